package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stele-id/stele/cmd/stele/demo"
)

// TestDemo starts the demo and runs every command that it prints with bash, curl and
// dig, opens every page that it prints, and follows all redirects to its own site.
func TestDemo(t *testing.T) {
	cmd, printed := startDemo(t)
	commands := regexp.MustCompile(`(?m)^curl .*$`).FindAllString(printed, -1)
	if len(commands) != len(demo.Steps()) {
		t.Fatalf("%d commands are printed for %d steps", len(commands), len(demo.Steps()))
	}
	for i, command := range commands {
		out, err := exec.Command("bash", "-c", command).CombinedOutput()
		want := demo.Steps()[i].Shows
		if _, after, ok := strings.Cut(want, "{site}"); ok {
			want = after // the address of the site is not known here
		}
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s\n%v: no %q in\n%s", command, err, want, out)
		}
		if status := fmt.Sprintf("HTTP/1.1 %d ", demo.Steps()[i].Status); demo.Steps()[i].Method == http.MethodHead && !strings.HasPrefix(string(out), status) {
			t.Errorf("%s\nthere is no %q in %s", command, status, out)
		}
	}
	checkDemoQueries(t, printed)
	checkDemoToken(t, printed)
	pages := regexp.MustCompile(`(?m)^  (http\S+)`).FindAllStringSubmatch(printed, -1)
	if len(pages) != len(demo.Pages()) {
		t.Fatalf("%d pages are printed, and there are %d", len(pages), len(demo.Pages()))
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
	if len(commands) != len(demo.Queries()) {
		t.Fatalf("%d commands are printed for %d queries", len(commands), len(demo.Queries()))
	}
	for i, command := range commands {
		shell := exec.Command("bash", "-c", command)
		shell.Dir = t.TempDir() // one leaves a file
		out, err := shell.CombinedOutput()
		want := demo.Queries()[i].Shows
		if _, after, ok := strings.Cut(want, "{site}"); ok {
			want = after // the address of the site is not known here
		}
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s\n%v: no %q in\n%s", command, err, want, out)
		}
	}
}

// checkDemoToken sets the token as the demo prints it, and lists names with it, which the public may not.
func checkDemoToken(t *testing.T, printed string) {
	t.Helper()
	export := regexp.MustCompile(`(?m)^export STELE_TOKEN=\S+$`).FindString(printed)
	address := regexp.MustCompile(`(?m)^serving (\S+)$`).FindStringSubmatch(printed)
	if export == "" || address == nil {
		t.Fatalf("no token is set:\n%s", printed)
	}
	list := "stele ls ark:12345/x5xm4dd26 --server " + address[1]
	if out, err := exec.Command("bash", "-c", list).CombinedOutput(); err == nil {
		t.Errorf("%s needs no token: %s", list, out)
	}
	if out, err := exec.Command("bash", "-c", export+"\n"+list).CombinedOutput(); err != nil || string(out) != "ark:12345/x5xm4dd26\n" {
		t.Errorf("%s\n%v: %s", list, err, out)
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

// TestDemoOnce: the demo takes all its steps itself, exits with success, and leaves no
// files.
func TestDemoOnce(t *testing.T) {
	cmd := steleCommand(t, "serve", "--demo", "--once", "--http", "127.0.0.1:0", "--dns", "127.0.0.1:0")
	cmd.Env = append(cmd.Env, "TMPDIR="+cmd.Dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range demo.Steps() {
		if !strings.Contains(string(out), "\n# "+s.What+"\n$ curl ") {
			t.Errorf("it does not show %q:\n%s", s.What, out)
		}
	}
	for _, q := range demo.Queries() {
		if strings.HasPrefix(q.Command, "{stele}") && !strings.Contains(string(out), "\n# "+q.What+"\n$ stele ") {
			t.Errorf("it does not show %q:\n%s", q.What, out)
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
	if got := runStele(t, "verify", "--purl-host", demo.Host, "--data", data); strings.Contains(got, "problem") {
		t.Error(got)
	}
	if got := runStele(t, "history", "urn:paradisec:AB1:001:A", "--data", data); !strings.Contains(got, "2012-03-01") || !strings.Contains(got, "2019-07-15") {
		t.Errorf("the history is\n%s", got)
	}
}

// TestDemoPorts: if other processes have the demo's usual ports, it takes free ones; and it
// works without the DNS if the user asks for that.
func TestDemoPorts(t *testing.T) {
	taken, err := net.Listen("tcp", demo.DNSAddress)
	if err == nil {
		defer taken.Close()
	} // else another process has it, which is as good
	if out := runStele(t, "serve", "--demo", "--once", "--http", "127.0.0.1:0"); !strings.Contains(out, "they agree") || strings.Contains(out, demo.DNSAddress) {
		t.Errorf("with the port taken:\n%s", out)
	}
	if out := runStele(t, "serve", "--demo", "--once", "--http", "127.0.0.1:0", "--dns", ""); strings.Contains(out, "stele resolve") {
		t.Errorf("without the DNS:\n%s", out)
	}
}
