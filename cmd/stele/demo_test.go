package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDemo starts the demo and runs every command that it prints with bash, curl and
// dig, opens every page that it prints, and follows all redirects to its own site.
func TestDemo(t *testing.T) {
	cmd, printed := startDemo(t)
	commands := regexp.MustCompile(`(?m)^curl .*$`).FindAllString(printed, -1)
	if len(commands) != len(demoSteps) {
		t.Fatalf("%d commands are printed for %d steps", len(commands), len(demoSteps))
	}
	for i, command := range commands {
		out, err := exec.Command("bash", "-c", command).CombinedOutput()
		want := demoSteps[i].shows
		if _, after, ok := strings.Cut(want, "{site}"); ok {
			want = after // the address of the site is not known here
		}
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s\n%v: no %q in\n%s", command, err, want, out)
		}
		if status := fmt.Sprintf("HTTP/1.1 %d ", demoSteps[i].status); demoSteps[i].method == http.MethodHead && !strings.HasPrefix(string(out), status) {
			t.Errorf("%s\nthere is no %q in %s", command, status, out)
		}
	}
	checkDemoQueries(t, printed)
	pages := regexp.MustCompile(`(?m)^  (http\S+)`).FindAllStringSubmatch(printed, -1)
	if len(pages) != len(demoPages) {
		t.Fatalf("%d pages are printed, and there are %d", len(pages), len(demoPages))
	}
	for _, page := range pages {
		checkPage(t, page[1])
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}

// checkDemoQueries runs the commands that are for the DNS.
func checkDemoQueries(t *testing.T, printed string) {
	t.Helper()
	commands := regexp.MustCompile(`(?m)^(?:dig|stele) .*$`).FindAllString(printed, -1)
	if len(commands) != len(demoQueries) {
		t.Fatalf("%d commands are printed for %d queries", len(commands), len(demoQueries))
	}
	for i, command := range commands {
		shell := exec.Command("bash", "-c", command)
		shell.Dir = t.TempDir() // one leaves a file
		out, err := shell.CombinedOutput()
		want := demoQueries[i].shows
		if _, after, ok := strings.Cut(want, "{site}"); ok {
			want = after // the address of the site is not known here
		}
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s\n%v: no %q in\n%s", command, err, want, out)
		}
	}
}

// startDemo starts the demo as people do, and returns what it prints.
func startDemo(t *testing.T) (cmd *exec.Cmd, printed string) {
	t.Helper()
	cmd = steleCommand(t, "serve", "--demo", "--http", "127.0.0.1:0", "--dns", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "STELE_DATA="+newRegistry(t)) // which it leaves alone
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		printed += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "Ctrl-C ends it") {
			return cmd, printed
		}
	}
	t.Fatalf("the demo prints only %s", printed)
	return nil, ""
}

// checkPage opens a page as a browser does, redirects included.
func checkPage(t *testing.T, url string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(response.Header.Get("Content-Type"), "text/html") || !bytes.Contains(body, []byte("<html")) {
		t.Errorf("%s: %v, %s", url, err, response.Header.Get("Content-Type"))
	}
}

// TestDemoOnce: the demo takes all its steps itself, and ends well. It leaves nothing
// behind.
func TestDemoOnce(t *testing.T) {
	cmd := steleCommand(t, "serve", "--demo", "--once", "--http", "127.0.0.1:0", "--dns", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "TMPDIR="+cmd.Dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range demoSteps {
		if !strings.Contains(string(out), "\n# "+s.what+"\n$ curl ") {
			t.Errorf("it does not show %q:\n%s", s.what, out)
		}
	}
	for _, q := range demoQueries {
		if strings.HasPrefix(q.command, "{stele}") && !strings.Contains(string(out), "\n# "+q.what+"\n$ stele ") {
			t.Errorf("it does not show %q:\n%s", q.what, out)
		}
	}
	left, err := exec.Command("find", cmd.Dir, "-mindepth", "1").Output()
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves behind %s (%v)", left, err)
	}
}

// TestDemoFolder: the demo's registry can be kept, and is a registry.
func TestDemoFolder(t *testing.T) {
	data := t.TempDir()
	runStele(t, "serve", "--demo", "--once", "--http", "127.0.0.1:0", "--dns", "127.0.0.1:0", "--data", data)
	if got := runStele(t, "verify", "--purl-host", demoHost, "--data", data); strings.Contains(got, "problem") {
		t.Error(got)
	}
	if got := runStele(t, "history", "urn:paradisec:AB1:001:A", "--data", data); !strings.Contains(got, "2012-03-01") || !strings.Contains(got, "2019-07-15") {
		t.Errorf("the history is\n%s", got)
	}
}

// TestDemoPorts: where others have the demo's usual ports it takes free ones, and it
// does without the DNS if it is told to.
func TestDemoPorts(t *testing.T) {
	taken, err := net.Listen("tcp", demoDNS)
	if err == nil {
		defer taken.Close()
	} // else somebody else has it, which is as good
	if out := runStele(t, "serve", "--demo", "--once", "--http", "127.0.0.1:0"); !strings.Contains(out, "they agree") || strings.Contains(out, demoDNS) {
		t.Errorf("with the port taken:\n%s", out)
	}
	if out := runStele(t, "serve", "--demo", "--once", "--http", "127.0.0.1:0", "--dns", ""); strings.Contains(out, "stele resolve") {
		t.Errorf("without the DNS:\n%s", out)
	}
}

// TestDemoSounds: the sounds are what they say.
func TestDemoSounds(t *testing.T) {
	tone := demoTone()
	if string(tone[:4]) != "RIFF" || string(tone[8:16]) != "WAVEfmt " || string(tone[36:40]) != "data" ||
		int(binary.LittleEndian.Uint32(tone[4:])) != len(tone)-8 || int(binary.LittleEndian.Uint32(tone[40:])) != len(tone)-44 {
		t.Errorf("this is no WAV: % x", tone[:44])
	}
	crossings := 0
	for i := 46; i+1 < len(tone); i += 2 {
		before, now := int16(binary.LittleEndian.Uint16(tone[i-2:])), int16(binary.LittleEndian.Uint16(tone[i:]))
		if before < 0 && now >= 0 {
			crossings++
		}
	}
	if crossings < 430 || crossings > 440 { // the last of them are silent
		t.Errorf("the tone has %d periods in its second, and should have 440", crossings)
	}
	if got := demoSilence(); got[0] != 0xff || got[417] != 0xff || len(got) != 38*417 {
		t.Error("this is no MP3")
	}
	request, err := http.NewRequest(http.MethodGet, "http://site.example/a.wav", nil)
	if err != nil {
		t.Fatal(err)
	}
	if mediaType, _ := (demoSite{begun: time.Unix(0, 0)}).content(request); mediaType != "audio/wav" {
		t.Errorf("the type is %s", mediaType)
	}
}
