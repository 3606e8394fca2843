package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele/internal/disk"
)

const (
	seedPrefix   = "20.500.99999"
	seedIdentity = "300:0.NA/20.500.99999"
	seedFile     = "../../document/handlejson/testdata/seed-records.json"
)

// handleVector writes an octet string of the computed vectors to a file.
func handleVector(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../wire/hdl/testdata/encodings.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + ` = ([0-9a-f]+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("there is no vector %s", name)
	}
	octets, err := hex.DecodeString(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, name, octets)
}

func writeFile(t *testing.T, name string, text []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// seededServer starts a server that has the records that the reference implementation had when it was
// recorded, and those of the file.
func seededServer(t *testing.T, more ...string) (*process, string) {
	t.Helper()
	seeds, err := filepath.Abs(seedFile)
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "source")
	runStele(t, "import", "--from", "handle", "--with-admins", "--with-secrets", "--create-namespaces", "--rejects", filepath.Join(t.TempDir(), "rejects"), seeds, "--data", data)
	for _, file := range more {
		runStele(t, "import", "--from", "handle", "--with-admins", file, "--data", data)
	}
	runStele(t, "handle", "setup", seedPrefix, "--address", "127.0.0.1", "--out", t.TempDir(), "--data", data)
	return startServe(t, "--data", data, "--http", "127.0.0.1:0", "--hdl", "127.0.0.1:0"), data
}

// exportHandles returns all handles of the seeds' prefix, as a Handle server writes them.
func exportHandles(t *testing.T, flags ...string) string {
	t.Helper()
	cmd := steleCommand(t, append([]string{"export", "--to", "handle-json", seedPrefix + "/"}, flags...)...)
	cmd.Stderr = io.Discard // it tells what it leaves out: secrets
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestImportLive imports the records of the reference implementation from a server that runs, by a key and by a secret:
// then the registry has what the server has.
func TestImportLive(t *testing.T) {
	server, source := seededServer(t)
	key := handleVector(t, "privkey_file_rsa")
	live := func(data string, args ...string) *exec.Cmd {
		all := []string{"import", "--from", "handle", "--live", server.hdl, "--data", data, "--create-namespaces", "--with-admins"}
		return steleCommand(t, append(all, args...)...)
	}
	home := t.TempDir()
	list := filepath.Join(home, "list")
	ok := func(cmd *exec.Cmd, want string) {
		t.Helper()
		out, err := cmd.CombinedOutput()
		if err != nil || !regexp.MustCompile(want).Match(out) {
			t.Fatalf("%v\n%s\nwant %s", err, out, want)
		}
		if _, err := os.Stat(list); err == nil {
			t.Error("the list of a complete import is still there")
		}
	}
	byKey := filepath.Join(home, "key")
	ok(live(byKey, "--identity", seedIdentity, "--identity-key", key, "--list", list, "--dry-run", seedPrefix), `5 new, .*nothing was written`)
	ok(live(byKey, "--identity", seedIdentity, "--identity-key", key, "--list", list, seedPrefix), `5 new, 0 updated, 0 unchanged, 0 rejected, 1 namespaces`)
	ok(live(byKey, "--identity", seedIdentity, "--identity-key", key, "--list", list, "--with-secrets", "--update", seedPrefix), `(?s)0 new, 0 updated, 5 unchanged, 0 rejected.*1 secrets \(HS_SECKEY\) are kept by the server`)
	// By a secret, through HTTP, with another prefix.
	bySecret := filepath.Join(home, "secret")
	secret := writeFile(t, "secret", []byte(seedSecret(t)+"\n"))
	ok(steleCommand(t, "import", "--from", "handle", "--live", server.http, "--data", bySecret, "--create-namespaces", "--with-admins",
		"--identity", "300:21.T14999/B2HANDLE_INTEGRATION_TESTS", "--identity-secret", secret, "--list", list, "21.T14999"), `2 new, 0 updated, 0 unchanged, 0 rejected, 1 namespaces`)
	// Who is not an administrator of the prefix reads nothing.
	out, err := live(byKey, "--identity", seedIdentity, "--identity-key", key, "--list", list, "21.T14999").CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("the handles of 21.T14999 are not listed")) {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = live(byKey, "--identity", seedIdentity, "--identity-secret", secret, "--list", list, seedPrefix).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("not listed: ")) {
		t.Errorf("%v\n%s", err, out)
	}
	server.end(t, os.Interrupt)
	if got, want := exportHandles(t, "--data", byKey), exportHandles(t, "--data", source); got != want || !strings.Contains(want, "20.500.99999/SEC-1") {
		t.Errorf("imported are\n%s\nwant\n%s", got, want)
	}
}

// seedSecret returns a secret of the seeds.
func seedSecret(t *testing.T) string {
	t.Helper()
	return seedSecretOf(t, "21.T14999/B2HANDLE_INTEGRATION_TESTS")
}

func seedSecretOf(t *testing.T, handle string) string {
	t.Helper()
	text, err := os.ReadFile(seedFile)
	if err != nil {
		t.Fatal(err)
	}
	var seeds struct {
		Records map[string]struct {
			Values []struct {
				Type string
				Data struct{ Value any }
			}
		} `json:"handleRecords"`
	}
	if err := json.Unmarshal(text, &seeds); err != nil {
		t.Fatal(err)
	}
	for _, v := range seeds.Records[handle].Values {
		if v.Type == "HS_SECKEY" {
			return v.Data.Value.(string)
		}
	}
	t.Fatal("the seeds have no secret")
	return ""
}

// manyHandles writes a batch file of handles whose administrator is that of the seeds.
func manyHandles(t *testing.T, n, size int) string {
	t.Helper()
	var b strings.Builder
	random := rand.NewChaCha8([32]byte{}) // compression would make the store small
	octets := make([]byte, size/2)
	for i := range n {
		_, _ = random.Read(octets) // it never fails
		text := hex.EncodeToString(octets)
		fmt.Fprintf(&b, "CREATE %s/N%06d\n100 HS_ADMIN 86400 1110 ADMIN 300:111111111111:0.NA/%s\n1 URL 86400 1110 UTF8 https://example.org/%d\n2 NOTE 86400 1100 UTF8 %s%d\n\n", seedPrefix, i, seedPrefix, i, text, i)
	}
	return writeFile(t, "many.txt", []byte(b.String()))
}

// countingProxy passes connections on to a server and counts them. At gets the number of each.
func countingProxy(t *testing.T, to string, at func(n int64)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); work.Wait() })
	var count atomic.Int64
	work.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			at(count.Add(1))
			work.Go(func() {
				defer in.Close()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { _, _ = io.Copy(out, in) }() // it ends with the connection
				_, _ = io.Copy(in, out)
			})
		}
	})
	return l.Addr().String()
}

// TestImportLiveKilled kills an import from a server in the middle: the same command goes on where it was, does not
// read again what is committed, and has all in the end.
func TestImportLiveKilled(t *testing.T) {
	const handles = 1600
	server, source := seededServer(t, manyHandles(t, handles, 10))
	key := handleVector(t, "privkey_file_rsa")
	home := t.TempDir()
	data, list := filepath.Join(home, "data"), filepath.Join(home, "list")
	var asked atomic.Int64
	var victim atomic.Pointer[os.Process]
	through := countingProxy(t, server.hdl, func(n int64) {
		if asked.Store(n); n == 2700 { // two messages for each handle, so that two chunks are committed
			_ = victim.Load().Kill()
		}
	})
	command := func() *exec.Cmd {
		return steleCommand(t, "import", "--from", "handle", "--live", through, "--identity", seedIdentity, "--identity-key", key, "--list", list, "--rate", "10000",
			"--create-namespaces", "--with-admins", seedPrefix, "--data", data)
	}
	cmd := command()
	var out lockedBuffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	victim.Store(cmd.Process)
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("it was not killed: %v\n%s", err, &out)
	}
	before := asked.Load()
	text, err := command().CombinedOutput()
	if err != nil || !bytes.Contains(text, []byte("continues at line")) || !bytes.Contains(text, []byte(" 0 rejected")) {
		t.Fatalf("%v\n%s", err, text)
	}
	line := regexp.MustCompile(`continues at line ([0-9,]+)`).FindSubmatch(text)
	done, err := strconv.Atoi(strings.ReplaceAll(string(line[1]), ",", ""))
	if err != nil || done < 100 {
		t.Fatalf("%v\n%s", err, text)
	}
	if again, most := asked.Load()-before, int64(2*(handles-done)+200); again > most { // how much was committed depends on the machine
		t.Errorf("%d connections were made to go on at line %d after %d, at most %d are needed", again, done, before, most)
	}
	server.end(t, os.Interrupt)
	if got, want := exportHandles(t, "--data", data), exportHandles(t, "--data", source); got != want {
		t.Errorf("imported are %d bytes of handles, want %d", len(got), len(want))
	}
	if out := runStele(t, "verify", "--data", data); !strings.Contains(out, "all is well") {
		t.Error(out)
	}
}

// TestImportLiveServerGone ends the server in the middle of an import: the import ends and asks to be started again,
// rejects nothing, and goes on when the server is back.
func TestImportLiveServerGone(t *testing.T) {
	server, source := seededServer(t, manyHandles(t, 600, 10))
	key := handleVector(t, "privkey_file_rsa")
	home := t.TempDir()
	data, list := filepath.Join(home, "data"), filepath.Join(home, "list")
	var gone atomic.Bool
	through := countingProxy(t, server.hdl, func(n int64) {
		if n == 300 && gone.CompareAndSwap(false, true) {
			_ = server.cmd.Process.Kill()
		}
	})
	command := func(at string) *exec.Cmd {
		return steleCommand(t, "import", "--from", "handle", "--live", at, "--identity", seedIdentity, "--identity-key", key, "--list", list, "--rate", "10000", "--parallel", "16",
			"--create-namespaces", "--with-admins", seedPrefix, "--data", data)
	}
	out, err := command(through).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 5 || !bytes.Contains(out, []byte("give the same command again to go on")) || !bytes.Contains(out, []byte(" 0 rejected")) {
		t.Fatalf("%v\n%s", err, out)
	}
	server.end(t)
	// The server is back at another address, so that a new list is needed.
	server = startServe(t, "--data", source, "--http", "127.0.0.1:0", "--hdl", "127.0.0.1:0")
	out, err = command(server.hdl).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("for an import that is not complete")) {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := command(server.hdl)
	cmd.Args = append(cmd.Args, "--again")
	if out, err = cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(" 0 rejected")) || bytes.Contains(out, []byte(" 0 unchanged")) {
		t.Fatalf("%v\n%s", err, out)
	}
	server.end(t, os.Interrupt)
	if got, want := exportHandles(t, "--data", data), exportHandles(t, "--data", source); got != want {
		t.Errorf("imported are %d bytes of handles, want %d", len(got), len(want))
	}
}

// TestImportHandleKilled kills imports of files of a Handle server again and again, each time when more is written: the same
// command goes on, and in the end all is there.
func TestImportHandleKilled(t *testing.T) {
	const handles = 40_000 // of which the store takes half the size of the file, or more
	batch := manyHandles(t, handles, 2000)
	for _, format := range []string{"batch", "json"} {
		t.Run(format, func(t *testing.T) {
			home := t.TempDir()
			file := batch
			if format == "json" {
				file = filepath.Join(home, "export.json")
				runStele(t, "import", "--from", "handle", "--with-admins", batch, "--rejects", filepath.Join(home, "r"), "--data", filepath.Join(home, "from"))
				runStele(t, "export", "--to", "handle-json", seedPrefix+"/", "-o", file, "--data", filepath.Join(home, "from"))
			}
			var data string
			killed, continued := 0, 0
			// Each run may write more than the one before until it is killed: one of them has committed a part by then, and the next one
			// continues, unless the program was faster than the look at its folder. Then it begins anew.
			for attempt := 0; continued == 0 && attempt < 5; attempt++ {
				data = filepath.Join(home, "data"+strconv.Itoa(attempt))
				for growth := int64(8 << 20); ; growth += growth / 2 {
					out, err := killGrown(t, data, growth, "import", "--from", "handle", "--with-admins", file, "--data", data)
					if strings.Contains(out, "continues at line") {
						continued++
					}
					if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == -1 {
						killed++
						continue
					}
					if err != nil || !strings.Contains(out, " 0 rejected") {
						t.Fatalf("%v\n%s", err, out)
					}
					break
				}
			}
			t.Logf("killed %d times; %d runs continued", killed, continued)
			if killed == 0 || continued == 0 {
				t.Errorf("it was killed %d times, and %d runs continued an earlier one", killed, continued)
			}
			if out := runStele(t, "verify", "--data", data); !strings.Contains(out, "all is well: "+grouped(handles)+" changes") {
				t.Error(out)
			}
		})
	}
}

// killGrown runs the program, and kills it when a folder has grown by a number of bytes.
func killGrown(t *testing.T, folder string, growth int64, args ...string) (string, error) {
	t.Helper()
	size, err := disk.FolderSize(folder)
	if err != nil { // there is none yet
		size = 0
	}
	size += growth
	cmd := steleCommand(t, args...)
	out := &lockedBuffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return out.String(), err
		case <-look.C:
			// The program makes and removes files meanwhile.
			if n, err := disk.FolderSize(folder); err == nil && n >= size {
				_ = cmd.Process.Kill() // it may be over
				return out.String(), <-done
			}
		}
	}
}
