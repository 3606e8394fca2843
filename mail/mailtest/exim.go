// Package mailtest starts a real mail server for tests: Debian's Exim, with a certificate of its own, which
// takes mail from users who sign in, and delivers all of it into one folder.
package mailtest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// User and Password are those of the one user of the server.
const User, Password = "stele", "a secret of the test"

// Server is a running mail server. It refuses mail to the local part nobody.
type Server struct {
	Addr string // 127.0.0.1:PORT
	dir  string
}

// Mail is a mail that was delivered.
type Mail struct {
	Header     mail.Header
	Text, HTML string
	Raw        string
}

// Start starts a server with a certificate and its key, which are PEM files. It ends with the test.
func Start(t testing.TB, cert, key string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "exim")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Server{Addr: freeAddr(t), dir: dir}
	_, port, _ := net.SplitHostPort(s.Addr)
	owner, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // which Exim delivers nothing as
		if owner, err = user.Lookup("Debian-exim"); err != nil {
			t.Fatal(err)
		}
	}
	for name, from := range map[string]string{"cert.pem": cert, "key.pem": key} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), text, 0o600)
	}
	config := strings.NewReplacer("DIR", dir, "PORT", port, "OWNER", owner.Uid, "GROUP", owner.Gid, "USER", User, "PASSWORD", Password).Replace(configuration)
	write(t, filepath.Join(dir, "exim.conf"), []byte(config), 0o644)
	for _, name := range []string{"spool", "mail"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	for _, name := range []string{"spool", "mail", "cert.pem", "key.pem"} {
		if err := os.Chown(filepath.Join(dir, name), uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	s.run(t)
	return s
}

func write(t testing.TB, file string, text []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(file, text, mode); err != nil {
		t.Fatal(err)
	}
}

// run starts the program and waits until it answers.
func (s *Server) run(t testing.TB) {
	t.Helper()
	program, err := exec.LookPath("exim4")
	if err != nil {
		program = "/usr/sbin/exim4"
	}
	var said bytes.Buffer
	cmd := exec.Command(program, "-C", filepath.Join(s.dir, "exim.conf"), "-bdf")
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	for {
		if conn, err := net.Dial("tcp", s.Addr); err == nil {
			conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("Exim ended: %s", said.String())
		case <-t.Context().Done():
			t.Fatal("Exim does not answer")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freeAddr returns a loopback address with a port that no program uses.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Mails returns the mails that were delivered, in the order of their delivery.
func (s *Server) Mails(t testing.TB) (list []Mail) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "mail", "new", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files { // names begin with the time
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := read(raw)
		if err != nil {
			t.Fatalf("%v\n%s", err, raw)
		}
		list = append(list, m)
	}
	return list
}

// Await returns the mails when there are so many.
func (s *Server) Await(t testing.TB, count int) []Mail {
	t.Helper()
	for {
		if list := s.Mails(t); len(list) >= count {
			return list
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the mail was not delivered")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Log returns what the server logged.
func (s *Server) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "spool", "main.log"))
	return string(text)
}

// read reads a mail and its parts.
func read(raw []byte) (Mail, error) {
	m, err := mail.ReadMessage(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return Mail{}, err
	}
	got := Mail{Header: m.Header, Raw: string(raw)}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return got, err
	}
	if !strings.HasPrefix(kind, "multipart/") {
		return got, fmt.Errorf("the mail is of type %s", kind)
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := parts.NextRawPart()
		if err == io.EOF {
			return got, nil
		} else if err != nil {
			return got, err
		}
		var body io.Reader = p
		if p.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
			body = quotedprintable.NewReader(p)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return got, err
		}
		if strings.HasPrefix(p.Header.Get("Content-Type"), "text/html") {
			got.HTML = string(text)
		} else {
			got.Text = strings.ReplaceAll(string(text), "\r\n", "\n")
		}
	}
}

// Subject returns the decoded subject.
func (m Mail) Subject() string {
	text, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		return m.Header.Get("Subject")
	}
	return text
}

// Link returns the first address in the text that begins with another.
func (m Mail) Link(t testing.TB, begins string) string {
	t.Helper()
	for word := range strings.FieldsSeq(m.Text) {
		if strings.HasPrefix(word, begins) {
			return word
		}
	}
	t.Fatalf("there is no link to %s in\n%s", begins, m.Text)
	return ""
}

const configuration = `exim_user = OWNER
exim_group = GROUP
spool_directory = DIR/spool
log_file_path = DIR/spool/%s.log
pid_file_path = DIR/spool/exim.pid
primary_hostname = localhost
daemon_smtp_ports = PORT
local_interfaces = 127.0.0.1
tls_advertise_hosts = *
tls_certificate = DIR/cert.pem
tls_privatekey = DIR/key.pem
auth_advertise_hosts = ${if eq{$tls_in_cipher}{}{}{*}}
acl_smtp_rcpt = recipients
acl_smtp_data = accept
message_size_limit = 1M
keep_environment =
host_lookup =
rfc1413_query_timeout = 0s
begin acl
recipients:
  require message = sign in first
          authenticated = *
  deny message = there is no such person
       local_parts = nobody
  accept
begin routers
all:
  driver = accept
  transport = folder
begin transports
folder:
  driver = appendfile
  directory = DIR/mail
  maildir_format
  create_directory
  user = OWNER
  group = GROUP
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if and{{eq{$auth2}{USER}}{eq{$auth3}{PASSWORD}}}}
  server_set_id = $auth2
`
