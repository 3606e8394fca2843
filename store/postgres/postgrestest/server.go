// Package postgrestest starts PostgreSQL for tests: a cluster of its own, from the
// binaries of Debian's package, in a temporary folder, on a free port of the loopback
// interface, which is gone in the end. It never touches a cluster that it did not make.
//
// PostgreSQL refuses to run as root. Where the tests do, the server runs as the user
// postgres of Debian's package, or as the user nobody.
package postgrestest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options say how a cluster is set up. The zero value is PostgreSQL as it comes.
type Options struct {
	// NoSync switches fsync off: faster, and nothing survives a crash of the machine.
	// A server that is killed loses nothing by it.
	NoSync bool

	// Settings are further settings, such as "max_connections=20".
	Settings []string
}

// user is the superuser of each cluster; password its password.
const (
	user     = "stele"
	password = "in tests: no secret"
)

// Server is a cluster. It is made by Start or New.
type Server struct {
	o      Options
	bin    string // folder of the programs
	folder string
	port   int
	cred   *syscall.Credential // nil: the user that runs the tests
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd is over
	made   atomic.Int64  // how many databases
}

// Start starts a cluster that is stopped and removed at the end of the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// New starts a cluster for a caller that has no testing.TB, such as TestMain. Close
// stops and removes it.
func New(o Options) (*Server, error) {
	s, err := newServer(o)
	if err != nil {
		return nil, err
	}
	secret := filepath.Join(s.folder, "password")
	err = os.WriteFile(secret, []byte(password), 0o600)
	if err == nil {
		err = s.own(secret)
	}
	if err == nil {
		err = s.run("initdb", "-D", s.data(), "-U", user, "-A", "md5", "--pwfile", secret,
			"--no-sync", "--encoding=UTF8", "--no-locale")
	}
	if err == nil {
		err = s.start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	return s, nil
}

func newServer(o Options) (s *Server, err error) {
	s = &Server{o: o}
	if s.bin, err = programs(); err != nil {
		return nil, err
	}
	if s.cred, err = unprivileged(); err != nil {
		return nil, err
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	if s.folder, err = os.MkdirTemp("", "stele-postgres-"); err != nil {
		return nil, err
	}
	return s, s.own(s.folder)
}

// Standby starts a second server that follows this one. [Hosts] puts the host of its
// URL after this one's.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	b, err := newServer(s.o)
	if err == nil {
		t.Cleanup(func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
		err = b.run("pg_basebackup", "-D", b.data(), "-R", "-X", "stream", "--checkpoint=fast", "--no-sync",
			"-d", s.URL("postgres")+"&application_name=standby")
	}
	if err == nil {
		err = b.start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Hosts is the URL of a database on several servers, in their order.
func Hosts(database string, servers ...*Server) string {
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.host())
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: strings.Join(hosts, ","), Path: "/" + database}
	return u.String() + "?sslmode=disable"
}

// URL is the URL of a database.
func (s *Server) URL(database string) string { return Hosts(database, s) }

func (s *Server) host() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Addr is the address at which the server listens.
func (s *Server) Addr() string { return s.host() }

// Database makes a new empty database and returns its URL.
func (s *Server) Database(t testing.TB) (url string) {
	t.Helper()
	name := fmt.Sprintf("test%d_%s", s.made.Add(1), strings.ToLower(rand.Text()[:8]))
	s.Exec(t, "postgres", "CREATE DATABASE "+name)
	return s.URL(name)
}

// Exec runs statements in a database, one after the other.
func (s *Server) Exec(t testing.TB, database string, statements ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// own gives a file to the user that the server runs as.
func (s *Server) own(name string) error {
	if s.cred == nil {
		return nil
	}
	return os.Chown(name, int(s.cred.Uid), int(s.cred.Gid))
}

// Data is the folder of the cluster.
func (s *Server) Data() string { return s.data() }

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

// freePort finds a port that is not in use. It is below those that the system gives to clients (32768 and above by default), so that none of
// them has it when the server is started again.
func freePort() (port int, err error) {
	for range 100 {
		port = 10_000 + mathrand.IntN(22_000)
		l, listenErr := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if listenErr == nil {
			return port, l.Close()
		}
		err = listenErr
	}
	return 0, err
}
