package main

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stele-id/stele/internal/certtest"
	"github.com/stele-id/stele/internal/desktest"
	"github.com/stele-id/stele/store/postgres"
)

// Sessions with a server have the real one:
//
//	server PLACE FLAGS    starts 'stele serve', and puts its address, and a token that
//	                      its first administrator makes, where the program looks for them
//	stop                  ends it
//	site                  starts a publisher's site; see siteCommand
//	port NAME             finds a free port
//
// ca.pem, cert.pem and key.pem are for servers that speak TLS.
var serverCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){"server": serverCommand, "stop": stopCommand, "site": siteCommand, "port": portCommand}

// setUpServers gives a session what servers need.
func setUpServers(t *testing.T, ca *certtest.Authority, env *testscript.Env) error {
	env.Values[lastServerKey] = &lastServer{}
	cert, key := ca.Issue(t, t.TempDir(), time.Hour, 2, "localhost")
	for name, from := range map[string]string{"cert.pem": cert, "key.pem": key} {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(env.WorkDir, name), text, 0o600); err != nil {
			return err
		}
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Cert.Raw})
	return os.WriteFile(filepath.Join(env.WorkDir, "ca.pem"), text, 0o600)
}

// lastServer ends the server that a session has started last.
type lastServer struct{ stop func() error }

const lastServerKey = "last server" // among a session's values

// serverCommand starts a server.
func serverCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: server PLACE [FLAGS]")
	}
	place := "--data"
	if postgres.IsURL(args[0]) {
		place = "--store"
	}
	cmd := exec.Command("stele", append([]string{"serve", "--json", "--http", "127.0.0.1:0", place, args[0]}, args[1:]...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"GORACE=atexit_sleep_ms=0", "HOME=" + cmd.Dir, "PATH=" + os.Getenv("PATH")}
	stderr := &lockedBuffer{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	var where struct{ HTTP, HTTPS string }
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		ts.Fatalf("the server does not start: %v\n%s", cmd.Wait(), stderr)
	}
	ts.Check(json.Unmarshal(lines.Bytes(), &where))
	go func() {
		for lines.Scan() {
		}
		ended <- cmd.Wait()
	}()
	stop := func() error {
		if cmd.Process.Signal(syscall.SIGTERM) != nil {
			return nil // it has ended
		}
		return <-ended
	}
	ts.Defer(func() { _ = stop() })
	ts.Setenv("STELE_SERVER", where.HTTP)
	ts.Setenv("HTTPS_SERVER", where.HTTPS)
	for !strings.Contains(stderr.String(), "ready") { // it is written before the addresses, and arrives when it does
		time.Sleep(10 * time.Millisecond)
	}
	if desktest.Link(stderr.String()) != "" {
		token, err := desktest.Token(context.Background(), http.DefaultClient, where.HTTP, stderr.String())
		ts.Check(err)
		ts.Setenv("STELE_TOKEN", token)
	}
	ts.Value(lastServerKey).(*lastServer).stop = stop
}

// stopCommand ends the server that was started last.
func stopCommand(ts *testscript.TestScript, neg bool, args []string) {
	last := ts.Value(lastServerKey).(*lastServer)
	if neg || len(args) > 0 || last.stop == nil {
		ts.Fatalf("usage: stop, behind server")
	}
	ts.Check(last.stop())
}
