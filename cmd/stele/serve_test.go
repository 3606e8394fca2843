package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// steleCommand is the real program, as testscript.Main has put it into the path, in
// an environment without settings.
func steleCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("stele", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0", "HOME=" + cmd.Dir, "PATH=" + os.Getenv("PATH")}
	return cmd
}

// runStele runs the program to its end, which must be a success.
func runStele(t *testing.T, args ...string) string {
	t.Helper()
	out, err := steleCommand(t, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("stele %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// process is a server that runs.
type process struct {
	cmd     *exec.Cmd
	first   string // line that it printed
	http    string // its addresses
	https   string
	metrics string
	dns     string
	hdl     string
	stderr  *lockedBuffer
	rest    chan string // of what it prints, once it has ended
	ended   bool
}

// lockedBuffer is a buffer that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startServe starts a server and waits until it is ready.
func startServe(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, steleCommand(t, append([]string{"serve", "--json"}, args...)...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, stderr: &lockedBuffer{}, rest: make(chan string, 1)}
	cmd.Stderr = p.stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatalf("the server says nothing: %v\n%s", err, p.stderr)
	}
	var at struct{ HTTP, HTTPS, Metrics, DNS, HDL string }
	p.first = first
	if err := json.Unmarshal([]byte(first), &at); err != nil {
		t.Fatalf("%q: %v", first, err)
	}
	p.http, p.https, p.metrics, p.dns, p.hdl = at.HTTP, at.HTTPS, at.Metrics, at.DNS, at.HDL
	go func() {
		text, _ := io.ReadAll(lines)
		p.rest <- string(text)
	}()
	return p
}

// end sends a signal, waits for the end, and returns the exit code.
func (p *process) end(t *testing.T, signals ...os.Signal) int {
	t.Helper()
	for _, s := range signals {
		if err := p.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	<-p.rest
	p.ended = true
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// waitFor waits until the server's log has a text.
func (p *process) waitFor(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(p.stderr.String(), text) {
		select {
		case <-t.Context().Done():
			t.Fatalf("the log has no %q:\n%s", text, p.stderr)
		case <-time.After(time.Millisecond):
		}
	}
}

// waitForMetric waits until the server's metrics have a text: requests count when they are
// answered, and the client may have the answer before.
func (p *process) waitForMetric(t *testing.T, text string) {
	t.Helper()
	eventually(t, "the metrics have "+text, func() bool {
		_, numbers := httpGet(t, p.metrics+"/metrics")
		return strings.Contains(numbers, text)
	})
}

// httpGet asks for a path, follows nothing, and returns the answer with its body.
func httpGet(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// newRegistry makes a registry with a record, and returns its folder.
func newRegistry(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	runStele(t, "register", "ark:12345/x1", "--to", "https://example.org/x1", "--partial", "--data", data)
	return data
}

func TestServe(t *testing.T) {
	data := newRegistry(t)
	for range 2 { // a new server on the same folder serves the same
		p := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-requests")
		response, _ := httpGet(t, p.http+"/ark:12345/x1/page?a=b")
		if response.StatusCode != http.StatusFound || response.Header.Get("Location") != "https://example.org/x1/page?a=b" {
			t.Errorf("%s to %q", response.Status, response.Header.Get("Location"))
		}
		if response, _ := httpGet(t, p.http+"/ark:12345/none"); response.StatusCode != http.StatusNotFound {
			t.Errorf("an unknown name: %s", response.Status)
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if response, body := httpGet(t, p.http+path); response.StatusCode != http.StatusOK {
				t.Errorf("%s: %s %s", path, response.Status, body)
			}
		}
		checkListeners(t, p)
		checkHeld(t, data, p)
		if code := p.end(t, syscall.SIGTERM); code != 0 {
			t.Errorf("it ends with %d:\n%s", code, p.stderr)
		}
		checkLog(t, p, p.stderr.String())
	}
}

// checkListeners checks that metrics and profiles are on their own listeners only.
func checkListeners(t *testing.T, p *process) {
	t.Helper()
	for _, want := range []string{
		`stele_http_requests_total{method="GET",route="identifier",scheme="ark",status="3xx"} 1`,
		`status="4xx"} 1`,
		`stele_http_request_duration_seconds_count{route="health"} 2`,
		"\nstele_ready 1\n", "\nstele_http_connections ", "\nstele_build_info{", `,version="` + release + `"} 1`, // the tests' program has no version from the linker
		"\ngo_goroutines ", "\nprocess_resident_memory_bytes ",
	} {
		p.waitForMetric(t, want)
	}
	if response, _ := httpGet(t, p.metrics+"/debug/pprof/goroutine?debug=1"); response.StatusCode != http.StatusOK {
		t.Errorf("profiles: %s", response.Status)
	}
	for _, path := range []string{"/metrics", "/debug/pprof/", "/debug/pprof/goroutine", "/debug/vars"} {
		if response, body := httpGet(t, p.http+path); response.StatusCode < 400 || strings.Contains(body, "profile:") {
			t.Errorf("the public is told %s: %s", path, response.Status)
		}
	}
	if response, _ := httpGet(t, p.metrics+"/ark:12345/x1"); response.StatusCode != http.StatusNotFound {
		t.Errorf("names are resolved among the metrics: %s", response.Status)
	}
}

// checkHeld checks that another process is told that a server has the folder.
func checkHeld(t *testing.T, data string, p *process) {
	t.Helper()
	for _, args := range [][]string{{"show", "ark:12345/x1", "--data", data}, {"serve", "--http", "127.0.0.1:0", "--data", data}} {
		out, err := steleCommand(t, args...).CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != exitTryAgain || !strings.Contains(string(out), fmt.Sprint(p.cmd.Process.Pid)) {
			t.Errorf("stele %q ends with %v, not %d, and says %s", args, err, exitTryAgain, out)
		}
	}
}

// checkLog checks that the log has requests, and no client's address.
func checkLog(t *testing.T, p *process, log string) {
	t.Helper()
	for _, want := range []string{"msg=ready version=" + release + " ", "msg=ending", "msg=ended", "msg=request method=GET target=\"/ark:12345/x1/page?a=b\" status=302"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	own := strings.NewReplacer(p.http, "", p.metrics, "").Replace(log)
	if strings.Contains(own, "127.0.0.1") || strings.Contains(own, "address=") {
		t.Errorf("the log has a visitor's address:\n%s", own)
	}
}

// TestServeLogs: the server logs requests, and clients' addresses, only if settings say so;
// what a client sends breaks no line.
func TestServeLogs(t *testing.T) {
	data := newRegistry(t)
	for _, tt := range []struct {
		args []string
		want string // in the line of a request; "" for no such line
		not  string
	}{
		{nil, "", "target"},
		{[]string{"--log-level", "error", "--log-requests"}, "", "target"},
		{[]string{"--log-requests", "--log-format", "json"}, `"msg":"request","method":"GET","target":"/ark:12345/x1?evil=%0d%0a","status":302`, "address"},
		{[]string{"--log-addresses"}, "address=127.0.0.1", "evil=\n"},
	} {
		p := startServe(t, append([]string{"--data", data, "--http", "127.0.0.1:0"}, tt.args...)...)
		httpGet(t, p.http+"/ark:12345/x1?evil=%0d%0a")
		p.end(t, syscall.SIGINT)
		log := p.stderr.String()
		if !strings.Contains(log, tt.want) || strings.Contains(log, tt.not) {
			t.Errorf("%q: the log is\n%s", tt.args, log)
		}
	}
}

// TestServeSecondSignal: an incomplete request delays the end until the second signal, or
// until the grace period is over.
func TestServeSecondSignal(t *testing.T) {
	data := newRegistry(t)
	for _, grace := range []string{"1h", "10ms"} {
		p := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--grace", grace, "--header-timeout", "1h", "--read-timeout", "1h")
		c, err := net.Dial("tcp", strings.TrimPrefix(p.http, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /ark:123"); err != nil {
			t.Fatal(err)
		}
		for { // until it is accepted
			if _, numbers := httpGet(t, p.metrics+"/metrics"); strings.Contains(numbers, "\nstele_http_connections 1\n") {
				break
			}
		}
		if grace == "1h" {
			if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			p.waitFor(t, "msg=ending")
		}
		if code := p.end(t, syscall.SIGTERM); code != exitTryAgain {
			t.Errorf("with a grace of %s it ends with %d:\n%s", grace, code, p.stderr)
		}
		if !strings.Contains(p.stderr.String(), "ended before all requests were answered") {
			t.Errorf("it does not say why:\n%s", p.stderr)
		}
	}
}

// TestServeNotReady: while the server drains it answers, but is not ready.
func TestServeNotReady(t *testing.T) {
	p := startServe(t, "--data", newRegistry(t), "--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--drain", "1h")
	if response, body := httpGet(t, p.metrics+"/readyz"); response.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %s %s", response.Status, body)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.waitFor(t, "msg=ending")
	if response, body := httpGet(t, p.http+"/readyz"); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %s %s", response.Status, body)
	}
	// The operator's listener says why.
	if response, body := httpGet(t, p.metrics+"/readyz"); response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "about to end") {
		t.Errorf("/readyz: %s %s", response.Status, body)
	}
	if response, _ := httpGet(t, p.http+"/healthz"); response.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %s", response.Status)
	}
	if response, _ := httpGet(t, p.http+"/ark:12345/x1"); response.StatusCode != http.StatusFound || !response.Close {
		t.Errorf("a name: %s, and the connection will be closed: %t", response.Status, response.Close)
	}
	// The second signal ends the wait; no request is lost by it.
	if code := p.end(t, syscall.SIGTERM); code != 0 && code != exitTryAgain {
		t.Errorf("it ends with %d:\n%s", code, p.stderr)
	}
}

// TestServeSystemd: the server takes over a socket, and notifies systemd of its state.
func TestServeSystemd(t *testing.T) {
	// A path of a socket is short.
	dir, err := os.MkdirTemp("", "n")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	states, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer states.Close()
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()

	cmd := steleCommand(t)
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec stele serve --json --data "$1"`, "sh", newRegistry(t)}
	cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+filepath.Join(dir, "s"))
	cmd.ExtraFiles = []*os.File{socket}
	p := startCommand(t, cmd)
	if p.http != "http://"+l.Addr().String() {
		t.Errorf("it answers at %s, not on the socket at %s", p.http, l.Addr())
	}
	if response, _ := httpGet(t, p.http+"/ark:12345/x1"); response.StatusCode != http.StatusFound {
		t.Errorf("a name: %s", response.Status)
	}
	told := func() string {
		b := make([]byte, 200)
		n, err := states.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	if got := told(); got != "READY=1" {
		t.Errorf("systemd is told %q", got)
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if got := told(); !regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[1-9][0-9]+$`).MatchString(got) {
		t.Errorf("systemd is told %q", got)
	}
	if got := told(); got != "READY=1" {
		t.Errorf("systemd is told %q", got)
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("it ends with %d:\n%s", code, p.stderr)
	}
	if got := told(); got != "STOPPING=1" {
		t.Errorf("systemd is told %q", got)
	}
	// The socket is systemd's, and takes connections for the next server.
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestServeRefusals: the error that keeps a server from starting is one line.
func TestServeRefusals(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	full := newRegistry(t)
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--http", l.Addr().String()}, exitTryAgain, "another program listens on " + l.Addr().String()},
		{[]string{"--http", "127.0.0.1:0", "--metrics", l.Addr().String()}, exitTryAgain, "another program listens"},
		{[]string{"--http", "192.0.2.1:80"}, exitTryAgain, "listening on 192.0.2.1:80"},
		{[]string{"--demo", "--data", full}, exitFailed, "is not empty"},
		{[]string{"--demo", "--http", l.Addr().String()}, exitTryAgain, "another program listens"},
		{[]string{"--config", "none.toml"}, exitFailed, "none.toml: no such file"},
		{[]string{"--once"}, exitUsage, "--once goes with --demo"},
		{[]string{"--http", "80"}, exitUsage, "is a port alone"},
		{[]string{"x"}, exitUsage, "where none belongs"},
	} {
		out, err := steleCommand(t, append([]string{"serve"}, tt.args...)...).CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != tt.code || !strings.Contains(string(out), tt.want) {
			t.Errorf("serve %q ends with %v, not %d, and says %s", tt.args, err, tt.code, out)
		}
	}
}
