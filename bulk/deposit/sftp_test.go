package deposit

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/servertest"
	"github.com/stele-id/stele/outbound"
)

// sshServer is an SFTP server of OpenSSH at a loopback address.
type sshServer struct {
	t       *testing.T
	folder  string
	address string
	cmd     *exec.Cmd
	access  Access
	place   Place
}

// newKey writes a key of SSH to a file.
func newKey(t *testing.T, file string) ssh.PublicKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newSSHServer(t *testing.T) *sshServer {
	t.Helper()
	s := &sshServer{t: t, folder: t.TempDir(), address: net.JoinHostPort("127.0.0.1", servertest.FreePort(t))}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	host := newKey(t, s.file("host"))
	own := newKey(t, s.file("key"))
	if os.Getuid() == 0 { // sshd of root needs it, and its service makes it
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"authorized": string(ssh.MarshalAuthorizedKey(own)),
		"known":      knownhosts.Line([]string{knownhosts.Normalize(s.address)}, host) + "\n",
		"config": strings.Join([]string{
			"ListenAddress " + s.address, "HostKey " + s.file("host"), "AuthorizedKeysFile " + s.file("authorized"), "PidFile none", "StrictModes no", "UsePAM no",
			"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin yes", "Subsystem sftp internal-sftp", "LogLevel ERROR", ""}, "\n"),
	} {
		if err := os.WriteFile(s.file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rule, err := outbound.ParseRule([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	s.access = Access{Dial: (&outbound.Dialer{Rule: rule}).DialContext, Credentials: s.file("key"), KnownHosts: []string{s.file("nowhere"), s.file("known")}, Wait: waitShortly}
	if s.place, err = ParsePlace(fmt.Sprintf("sftp://%s@%s%s", who.Username, s.address, s.file("vault"))); err != nil {
		t.Fatal(err)
	}
	s.start()
	return s
}

// waitShortly waits less than it is told to.
func waitShortly(ctx context.Context, _ time.Duration) error {
	time.Sleep(100 * time.Millisecond)
	return ctx.Err()
}

func (s *sshServer) file(name string) string { return filepath.Join(s.folder, name) }

func (s *sshServer) start() {
	s.t.Helper()
	s.cmd = exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", s.file("config"))
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(s.stop)
	for range 2400 { // two minutes
		if c, err := net.Dial("tcp", s.address); err == nil {
			c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatal("sshd does not listen")
}

func (s *sshServer) stop() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *sshServer) open(change func(a *Access)) (Destination, error) {
	a := s.access
	if change != nil {
		change(&a)
	}
	d, err := s.place.Open(a)
	if err == nil {
		s.t.Cleanup(func() { _ = d.Close() })
	}
	return d, err
}

func TestSFTP(t *testing.T) {
	s := newSSHServer(t)
	d, err := s.open(nil)
	if err != nil {
		t.Fatal(err)
	}
	testDestination(t, d)
	for name := range filesIn(t, s.file("vault")) {
		if strings.Contains(name, partial) {
			t.Errorf("%s is left", name)
		}
	}
	ask := func(d Destination) error {
		return d.List(t.Context(), "objects", func(string, int64) error { return nil })
	}
	other := newKey(t, s.file("other"))
	for what, c := range map[string]struct {
		change func(a *Access)
		kind   stele.Kind
		word   string
	}{
		"another key":              {func(a *Access) { a.Credentials = s.file("other") }, stele.Unauthenticated, "does not accept the key"},
		"no key":                   {func(a *Access) { a.Credentials = "" }, stele.Invalid, "--credentials"},
		"not a key":                {func(a *Access) { a.Credentials = s.file("known") }, stele.Invalid, "ssh-keygen"},
		"a host that is not known": {func(a *Access) { a.KnownHosts = nil }, stele.Forbidden, "--known-hosts"},
		"another host": {func(a *Access) {
			_ = os.WriteFile(s.file("wrong"), []byte(knownhosts.Line([]string{knownhosts.Normalize(s.address)}, other)+"\n"), 0o600)
			a.KnownHosts = []string{s.file("wrong")}
		}, stele.Forbidden, "another key than the one that is known"},
		"an address that is not allowed": {func(a *Access) { a.Dial = (&outbound.Dialer{}).DialContext }, stele.Forbidden, "public Internet"},
	} {
		d, err := s.open(c.change)
		if err == nil {
			err = ask(d)
		}
		if stele.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// The list of a folder is bounded, and not that of all folders together.
	inner := d.(*patient).Destination.(*sftpServer)
	inner.listing = 24_000
	fill := func(folder string, n int) {
		if err := os.MkdirAll(s.file(folder), 0o700); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := os.WriteFile(s.file(fmt.Sprintf("%s/%064d", folder, i)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 5 {
		fill(fmt.Sprintf("vault/many/a%d", i), 50)
	}
	many := func() error { return d.List(t.Context(), "many", func(string, int64) error { return nil }) }
	if err := many(); err != nil {
		t.Errorf("several folders: %v", err)
	}
	fill("vault/many/a1", 300)
	if err := many(); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), "more than it was asked for") {
		t.Errorf("a long folder: %v", err)
	}
	// A file that may not be read, and a server that is gone.
	s.stop()
	_ = d.Close()
	if err := ask(d); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("without a server: %v", err)
	}
}

// A deposit goes on when the server comes back, and one that was interrupted is not seen.
func TestSFTPDeposit(t *testing.T) {
	h := newHouse(t)
	h.fill(300)
	s := newSSHServer(t)
	d, err := s.open(nil)
	h.must(err)
	var puts atomic.Int64
	h.deposit(&faulty{d, func(string) error {
		if puts.Add(1) == 5 { // the connection is lost
			inner := d.(*patient).Destination.(*sftpServer)
			inner.mu.Lock()
			defer inner.mu.Unlock()
			_ = inner.conn.net.Close()
		}
		return nil
	}})
	h.must(h.check(d))
	h.put("ark:12345/x7")
	made := h.deposit(d)
	if made.Sent > 11 {
		t.Errorf("%d objects were new", made.Sent)
	}
	h.must(h.check(d))
	name := s.file("got.tar")
	_, _, err = (&Rebuild{From: d, List: h.last(d)}).Fetch(h.ctx, name, false, h.options())
	h.must(err)
	got, err := os.ReadFile(name)
	h.must(err)
	if string(got) != string(h.bundle(false)) {
		t.Error("the bundle is another one")
	}
}

// A server that answers nothing, or sends without end, is left.
func TestMetered(t *testing.T) {
	here, there := net.Pipe()
	go func() {
		for {
			if _, err := there.Write(make([]byte, 1000)); err != nil {
				return
			}
		}
	}()
	m := &metered{Conn: here}
	m.budget.Store(10_000)
	var err error
	n, buf := 0, make([]byte, 1000)
	for err == nil && n < 1<<20 {
		var k int
		k, err = m.Read(buf)
		n += k
	}
	if stele.KindOf(err) != stele.Invalid || n > 10_000 {
		t.Errorf("%d bytes: %v", n, err)
	}
}
