package test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// debian is an empty Debian with systemd, in a container without a network. The test follows
// pages there literally: the container has only what its image has, and the test can be
// root, make users and start services.
type debian struct {
	sh      shell
	leader  int
	console string // file with what the machine printed when it started
}

// machineImage is a Debian with the packages that the pages tell an administrator to have.
// `make needs` makes it.
const machineImage = "bin/debian.tar"

// newMachine starts a machine, with the repository and the program in home.
func newMachine(t *testing.T, home string) *debian {
	t.Helper()
	return newMachineWith(t, home, func(folder string) { putRepository(t, filepath.Join(folder, home)) })
}

// newMachineWith starts a machine whose root is filled by prepare before that.
func newMachineWith(t *testing.T, home string, prepare func(folder string)) *debian {
	t.Helper()
	place := t.TempDir()
	folder := filepath.Join(place, "root")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := runIn(root, "tar", "-xf", machineImage, "-C", folder); err != nil {
		t.Fatalf("%v: %s; run make needs", err, out)
	}
	prepare(folder)
	m := &debian{console: filepath.Join(place, "console")}
	m.start(t, folder)
	m.sh = shell{dir: home, env: []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" + home + "/bin", "HOME=/root", "LC_ALL=C.UTF-8", "TZ=UTC", "TERM=dumb",
	}, enter: []string{"nsenter", "--target", strconv.Itoa(m.leader), "--all", "--root", "--"}}
	m.waitRunning(t)
	return m
}

// putRepository copies the repository and the program to a folder.
func putRepository(t *testing.T, home string) {
	t.Helper()
	for name, d := range repositoryFiles(t) {
		info, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(home, name), string(text), info.Mode().Perm())
	}
	program := filepath.Join(home, "bin/stele")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := copyExecutable(stele(t), program); err != nil {
		t.Fatal(err)
	}
}

// start starts systemd in the folder. It ends with the test.
func (m *debian) start(t *testing.T, folder string) {
	t.Helper()
	log, err := os.Create(m.console)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("systemd-nspawn", "--quiet", "--directory", folder, "--machine", "stele-test-"+strconv.Itoa(os.Getpid()),
		"--private-network", "--boot", "--register=no", "--keep-unit", "--console=pipe", "--hostname=id")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			if text, err := os.ReadFile(m.console); err == nil {
				t.Logf("the machine's console:\n%s", text)
			}
		}
		if err := m.end(cmd); err != nil {
			t.Error(err)
		}
	})
	children := fmt.Sprintf("/proc/%d/task/%d/children", cmd.Process.Pid, cmd.Process.Pid)
	m.leader = await(t, "the first process of the machine", func() (int, bool) {
		list, err := os.ReadFile(children)
		if err != nil {
			return 0, false
		}
		for field := range strings.FieldsSeq(string(list)) {
			name, err := os.ReadFile("/proc/" + field + "/comm")
			if pid, err2 := strconv.Atoi(field); err == nil && err2 == nil && strings.TrimSpace(string(name)) == "systemd" {
				return pid, true
			}
		}
		return 0, false
	})
}

// end switches the machine off.
func (m *debian) end(cmd *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	err := cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
		return nil
	case <-time.After(time.Minute):
		return errors.Join(err, errors.New("the machine does not switch off"), cmd.Process.Kill(), <-ended)
	}
}

// waitRunning waits until systemd has started what it starts by itself.
func (m *debian) waitRunning(t *testing.T) {
	t.Helper()
	await(t, "the machine", func() (bool, bool) {
		results, err := m.sh.run(t.Context(), "systemctl is-system-running")
		state := ""
		if err == nil {
			state = strings.TrimSpace(results[0].out)
		}
		return true, state == "running" || state == "degraded"
	})
}

// await asks for something until it is there. A test that waits for ever is ended by the
// limit of all tests.
func await[T any](t *testing.T, what string, ask func() (T, bool)) T {
	t.Helper()
	for {
		if v, ok := ask(); ok {
			return v
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s is not there", what)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// must runs commands that have to succeed.
func (m *debian) must(t *testing.T, commands ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	results, err := m.sh.run(ctx, commands...)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.code != 0 {
			t.Fatalf("%q: %s", commands[i], r.out)
		}
	}
	return results[len(results)-1].out
}

// export sets a variable for all commands that follow.
func (m *debian) export(name, value string) {
	m.sh.env = append(slices.DeleteFunc(m.sh.env, func(v string) bool { return strings.HasPrefix(v, name+"=") }), name+"="+value)
}
