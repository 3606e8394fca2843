package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// cuttingProxy passes connections on to a server, and cuts each of the first ones after some bytes of its answers: the first one after
// the first number, the next one after the next number, and all others after the last number.
func cuttingProxy(t *testing.T, to string, cuts *atomic.Int64, most ...int64) string {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			most := most[min(n, len(most)-1)]
			go func() {
				defer c.Close()
				s, err := net.Dial("tcp", u.Host)
				if err != nil {
					return
				}
				defer s.Close()
				go func() { _, _ = io.Copy(s, c) }()
				if cuts.Load() <= 0 {
					_, _ = io.Copy(c, s)
					return
				}
				if n, _ := io.CopyN(c, s, most); n == most {
					cuts.Add(-1)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// TestBundleFromServer gets bundles from a server: they have the bytes of those that are made at its folder, also if the connection breaks.
func TestBundleFromServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	runStele(t, "ns", "add", "ark:12345", "--data", data)
	runStele(t, "ns", "add", "ark:99999", "--data", data)
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, `{"id":"ark:12345/x%d","url":"https://example.org/%d"}`+"\n", i, i)
	}
	names := filepath.Join(t.TempDir(), "names.jsonl")
	if err := os.WriteFile(names, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	runStele(t, "import", names, "--data", data)
	runStele(t, "log", "key", "--origin", testOrigin, "--data", data)
	tokens := make(map[string]string)
	for _, user := range []string{"root", "ann"} {
		args := []string{"user", "add", user, "--data", data}
		if user == "root" {
			args = append(args, "--admin")
		}
		runStele(t, args...)
		out, err := steleCommand(t, "token", "create", user, "--data", data).Output()
		if err != nil {
			t.Fatal(err)
		}
		tokens[user] = strings.TrimSpace(string(out))
	}
	runStele(t, "ns", "set", "ark:99999", "--owner", "ann", "--data", data)
	p := startServe(t, "--data", data, "--http", "127.0.0.1:0")
	var cuts atomic.Int64
	at := cuttingProxy(t, p.http, &cuts, 200_000)
	folder := t.TempDir()
	get := func(user, name string, args ...string) (string, error) {
		t.Helper()
		cmd := steleCommand(t, append([]string{"bundle", "-o", filepath.Join(folder, name), "--server", at}, args...)...)
		cmd.Env = append(cmd.Env, "STELE_TOKEN="+tokens[user])
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, name := range []string{"all.tar", "cut.tar", "all.tgz"} {
		if name == "cut.tar" {
			cuts.Store(3)
		}
		if out, err := get("root", name); err != nil || !strings.Contains(out, name+" has 3,000 records") {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	if cuts.Load() != 0 {
		t.Error("the connection was not cut")
	}
	// The server knows that the last one was made, and that the command has checked it.
	ls := steleCommand(t, "bundle", "ls", "--server", at)
	ls.Env = append(ls.Env, "STELE_TOKEN="+tokens["root"])
	if out, err := ls.CombinedOutput(); err != nil || !regexp.MustCompile(`(?m)^ark:\n  made        \S+ by root, up to change 3,0\d\d\n  records     3,000 in 3,000 versions, with those of other namespaces\n  manifest    SHA-256 [0-9a-f]{64}\n  checked     \S+ by root, up to change 3,0\d\d$`).Match(out) {
		t.Errorf("%v: %s", err, out)
	}
	// If nothing more comes it gives up, leaves no file, and goes on when it is called again. 10 bytes are less than the first line of an
	// answer.
	cuts.Store(1 << 30)
	most := at
	at = cuttingProxy(t, p.http, &cuts, 200_000, 10)
	out, err := get("root", "later.tar")
	if err == nil {
		t.Errorf("it is done: %s", out)
	}
	if _, err := os.Stat(filepath.Join(folder, "later.tar")); err == nil {
		t.Error("the file is there before it is complete")
	}
	cuts.Store(0)
	at = most
	if out, err := get("root", "later.tar"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	// What is half there and of another server is begun anew; what is damaged is not taken.
	if err := os.WriteFile(filepath.Join(folder, "odd.tar.download"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "odd.tar.download.state"), []byte("c3RhdGU"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := get("root", "odd.tar"); err != nil || !strings.Contains(out, "begins anew") {
		t.Errorf("%v: %s", err, out)
	}
	// Owners have what is theirs.
	if out, err := get("ann", "hers.tar", "ark:99999"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, prefix := range [][]string{nil, {"ark:12345"}, {"ark:99999", "ark:12345"}} {
		if out, err := get("ann", "not.tar", prefix...); err == nil || !strings.Contains(out, "administrator") {
			t.Errorf("%v: %v: %s", prefix, err, out)
		}
	}
	p.end(t, syscall.SIGTERM)
	// A user was added and a namespace changed before the first one: nothing since.
	for _, name := range []string{"all.tar", "all.tgz"} {
		runStele(t, "bundle", "-o", filepath.Join(folder, "here-"+name), "--data", data)
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	want := read("here-all.tar")
	for _, name := range []string{"all.tar", "cut.tar", "later.tar", "odd.tar"} {
		if !bytes.Equal(read(name), want) {
			t.Errorf("%s has other bytes", name)
		}
	}
	if !bytes.Equal(read("all.tgz"), read("here-all.tgz")) {
		t.Error("the compressed bundle has other bytes")
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "*.download*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if trail := runStele(t, "audit", "--data", data, "--json"); !strings.Contains(trail, `"operation":"bundle"`) || !strings.Contains(trail, `"ann"`) {
		t.Errorf("the audit trail does not have them: %.2000s", trail)
	}
}
