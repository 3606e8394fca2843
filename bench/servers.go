package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// twoCores returns two cores on which we may run: one for a server, and one for what
// asks it.
func twoCores() (cores [2]int, err error) {
	list, err := statusField("self", "Cpus_allowed_list")
	if err != nil {
		return cores, err
	}
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		if err != nil {
			return cores, err
		}
		last, err := strconv.Atoi(to)
		if err != nil {
			return cores, err
		}
		for c := first; c <= last && n < len(cores); c++ {
			cores[n] = c
			n++
		}
	}
	if n < len(cores) {
		return cores, errors.New("a server and what asks it need a core each, and there is only one")
	}
	return cores, nil
}

// statusField returns a field of what Linux says of a process (proc(5)).
func statusField(process, name string) (string, error) {
	path := "/proc/" + process + "/status"
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(line, ":"); key == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no %s", path, name)
}

// pinned makes a command that runs on one core only.
func pinned(ctx context.Context, core int, name string, args ...string) *exec.Cmd {
	return pinnedTo(ctx, strconv.Itoa(core), name, args...)
}

// pinnedTo is the same for some cores, in the form of taskset's list.
func pinnedTo(ctx context.Context, cores, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "taskset", append([]string{"--cpu-list", cores, name}, args...)...)
}

// findServer returns the path of a server's program. They stand in sbin, which is not on
// every user's path.
func findServer(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return "/usr/sbin/" + name
}

// server is a program that answers at a URL.
type server struct {
	cmd    *exec.Cmd
	url    string
	said   *bytes.Buffer
	ended  chan struct{}
	failed error // once it has ended
}

// startServer starts a program on a core, which answers at an address some time later.
func startServer(ctx context.Context, core int, address, name string, args ...string) (*server, error) {
	return startServerOn(ctx, strconv.Itoa(core), address, name, args...)
}

// startServerOn is the same for some cores, in the form of taskset's list.
func startServerOn(ctx context.Context, cores, address, name string, args ...string) (*server, error) {
	s := &server{cmd: pinnedTo(ctx, cores, name, args...), url: "http://" + address, said: new(bytes.Buffer), ended: make(chan struct{})}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.failed = s.cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

// pid is the program's: taskset becomes what it starts.
func (s *server) pid() int { return s.cmd.Process.Pid }

// memory returns how much it had at most, in bytes.
func (s *server) memory() (int64, error) {
	text, err := statusField(strconv.Itoa(s.pid()), "VmHWM")
	if err != nil {
		return 0, err
	}
	kilobytes, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	return kilobytes << 10, err
}

// await waits until the server answers with a redirect.
func (s *server) await(ctx context.Context, path string) error {
	return s.awaitAnswer(ctx, func() error { _, err := locate(ctx, s.url+path); return err })
}

// awaitAnswer waits until the server answers, for some minutes at most: some load much
// first.
func (s *server) awaitAnswer(ctx context.Context, ask func() error) error {
	deadline := time.Now().Add(3 * time.Minute)
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("%s ended: %w: %s", s.cmd.Args[3], s.failed, bytes.TrimSpace(s.said.Bytes()))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

// settle waits until the server does nothing in the background, for some minutes at
// most: tables that an import left are merged.
//
// It returns how long the server was busy until then: the last second, in which it rests, is not counted.
func (s *server) settle(ctx context.Context) time.Duration {
	progress("waiting until %s is at rest", filepath.Base(s.cmd.Args[3]))
	const step, window = 100 * time.Millisecond, 10
	began, used := time.Now(), []time.Duration{usedBy(s.pid())}
	for range 3000 {
		select {
		case <-time.After(step):
		case <-s.ended:
			return time.Since(began)
		case <-ctx.Done():
			return time.Since(began)
		}
		used = append(used, usedBy(s.pid()))
		if n := len(used) - 1; n >= window && used[n]-used[n-window] < 50*time.Millisecond {
			return max(time.Since(began)-window*step, 0)
		}
	}
	return time.Since(began)
}

// settledRate returns how many requests a second a server answered, if it is counted until the server is at rest after the load: work that is left for later is not free.
func settledRate(a answers, rest time.Duration) float64 {
	return float64(a.number) / (float64(a.number)/a.rate + rest.Seconds())
}

// stop ends the server, if it has not ended.
func (s *server) stop() error {
	select {
	case <-s.ended:
	default:
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		<-s.ended
	}
	// Some servers know no other end than that signal.
	if status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signal() == syscall.SIGTERM {
		return nil
	}
	if s.failed != nil {
		return fmt.Errorf("%s: %w: %s", s.cmd.Args[3], s.failed, bytes.TrimSpace(s.said.Bytes()))
	}
	return nil
}
