package postgrestest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Mode is how a server is stopped.
type Mode syscall.Signal

// The modes of pg_ctl.
const (
	Smart     = Mode(syscall.SIGTERM) // when all have left
	Fast      = Mode(syscall.SIGINT)  // what is under way is rolled back
	Immediate = Mode(syscall.SIGQUIT) // without a checkpoint: as after a crash
)

// patience is how long a server may take to start or to stop.
const patience = time.Minute

// programs finds the folder of the newest PostgreSQL of Debian's packages.
func programs() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", err
	}
	newest, folder := 0, ""
	for _, name := range found {
		bin := filepath.Dir(name)
		if n, err := strconv.Atoi(filepath.Base(filepath.Dir(bin))); err == nil && n > newest {
			newest, folder = n, bin
		}
	}
	if folder == "" {
		return "", errors.New("there is no PostgreSQL under /usr/lib/postgresql; install Debian's package postgresql")
	}
	return folder, nil
}

// unprivileged is the user that the server runs as; nil for the user that runs the
// tests.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := osuser.Lookup("postgres")
	if err != nil {
		if u, err = osuser.Lookup("nobody"); err != nil {
			return nil, fmt.Errorf("PostgreSQL does not run as root, and there is nobody else: %w", err)
		}
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(err1, err2)
}

// command prepares a program of PostgreSQL's.
func (s *Server) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	cmd.Dir = s.folder
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}
	// A test that is ended from outside leaves no server behind.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

func (s *Server) run(name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := s.command(ctx, name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, said.Bytes())
	}
	return nil
}

// start starts the server and waits until it answers.
func (s *Server) start() error {
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=200"}
	if s.o.NoSync {
		args = append(args, "-c", "fsync=off")
	}
	for _, set := range s.o.Settings {
		args = append(args, "-c", set)
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = s.command(context.Background(), "postgres", args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func(cmd *exec.Cmd, exited chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}(s.cmd, s.exited)
	if err := s.wait(); err != nil {
		said, _ := os.ReadFile(s.log())
		return errors.Join(fmt.Errorf("%w; the server's log: %s", err, said), s.end(Immediate))
	}
	return nil
}

func (s *Server) log() string { return filepath.Join(s.folder, "log") }

// Log is what the server has logged.
func (s *Server) Log() string {
	said, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	return string(said)
}

// wait waits until the server takes connections.
func (s *Server) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.exited:
			return errors.New("the server did not start")
		case <-ctx.Done():
			return fmt.Errorf("the server does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Stop stops the server. Restart starts it again.
func (s *Server) Stop(t testing.TB, mode Mode) {
	t.Helper()
	if err := s.end(mode); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) end(mode Mode) error {
	if s.cmd == nil {
		return nil
	}
	// An error says that it is over.
	_ = s.cmd.Process.Signal(syscall.Signal(mode))
	select {
	case <-s.exited:
	case <-time.After(patience):
		s.kill()
		return errors.New("the server did not stop, and was killed")
	}
	s.cmd = nil
	return nil
}

// Restart starts the server again, on the same port. One that runs is stopped first.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t, Fast)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server and all its processes at once, as kill -9 does.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.kill()
	<-s.exited
	s.cmd = nil
}

// kill kills all processes of the server, and waits until they are gone: a new server does
// not start before.
func (s *Server) kill() {
	all := s.freeze()
	for _, pid := range all {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, pid := range all[1:] {
		for deadline := 0; deadline < 1000 && stateOf(pid) != 0 && stateOf(pid) != 'Z'; deadline++ {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// freeze keeps all processes of the server from running, and returns them. The first is
// stopped before the others are counted, so that it makes no more.
func (s *Server) freeze() []int {
	first := s.cmd.Process.Pid
	all := []int{first}
	_ = syscall.Kill(first, syscall.SIGSTOP)
	for tries := 0; tries < 1000 && stateOf(first) != 'T'; tries++ {
		time.Sleep(time.Millisecond)
	}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first, first))
	for _, text := range strings.Fields(string(children)) {
		if child, err := strconv.Atoi(text); err == nil {
			_ = syscall.Kill(child, syscall.SIGSTOP)
			all = append(all, child)
		}
	}
	return all
}

// stateOf is the state of a process, such as T if it is stopped; 0 if there is none.
func stateOf(pid int) byte {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in brackets, may have anything in it.
	at := bytes.LastIndexByte(stat, ')')
	if at < 0 || at+2 >= len(stat) {
		return 0
	}
	return stat[at+2]
}

// Pause keeps the server and all its processes from running, as a machine that hangs
// does, until resume is called.
func (s *Server) Pause(t testing.TB) (resume func()) {
	t.Helper()
	all := s.freeze()
	return func() {
		for _, p := range all {
			_ = syscall.Kill(p, syscall.SIGCONT)
		}
	}
}

// CPU is how much processor time all processes of the server have used.
func (s *Server) CPU() (used time.Duration) {
	first := s.cmd.Process.Pid
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", first, first))
	for _, text := range append(strings.Fields(string(children)), strconv.Itoa(first)) {
		stat, _ := os.ReadFile("/proc/" + text + "/stat")
		// proc(5): utime, stime, cutime and cstime are fields 14 to 17; the name is field 2.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for i := 11; i < 15 && i < len(fields); i++ {
			ticks, _ := strconv.ParseInt(fields[i], 10, 64)
			used += time.Duration(ticks) * tick
		}
	}
	return used
}

// tick is the unit of times in proc(5), on every Linux that there is.
const tick = 10 * time.Millisecond

// Close stops the server and removes all that it had.
func (s *Server) Close() error {
	return errors.Join(s.end(Immediate), os.RemoveAll(s.folder))
}
