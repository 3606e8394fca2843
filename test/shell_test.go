package test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell runs commands as a reader would type them: in bash, one after the other.
type shell struct {
	dir   string   // where it starts
	env   []string // its whole environment
	enter []string // a command that runs bash somewhere else, with dir as a folder there; nil: here
}

// result is what a command printed, on both streams, and how it ended.
type result struct {
	out  string
	code int
}

// stepEnd is what run has printed after each command: its exit status, in marks
// that no command prints.
var stepEnd = regexp.MustCompile(`(?s)(.*?)\n\x01(\d+)\x01\n`)

// run runs the commands in one bash, so that each finds what those before it
// set: $?, variables, the folder. It ends what they leave running.
func (sh shell) run(ctx context.Context, commands ...string) ([]result, error) {
	var script strings.Builder
	fmt.Fprintln(&script, "trap 'kill $(jobs -p) 2>/dev/null' EXIT")
	for _, c := range commands {
		// By eval, a syntax error is the command's own. The end hands on $?.
		fmt.Fprintf(&script, "eval %s\nstep=$?; printf '\\n\\x01%%d\\x01\\n' $step; (exit $step)\n", quote(c))
	}
	out, err := sh.bash(ctx, script.String())
	var results []result
	for _, m := range stepEnd.FindAllStringSubmatch(out, -1) {
		code, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		results = append(results, result{m[1], code})
	}
	if err == nil && len(results) < len(commands) {
		err = fmt.Errorf("the shell ended in %q", commands[len(results)])
	}
	return results, err
}

// bash runs a script. When the context ends it kills all that the script
// started.
func (sh shell) bash(ctx context.Context, script string) (string, error) {
	words := []string{"bash", "--noprofile", "--norc", "-c", script}
	if sh.enter != nil {
		words[len(words)-1] = "cd " + quote(sh.dir) + " || exit\n" + script
		words = append(slices.Clone(sh.enter), words...)
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = sh.env
	if sh.enter == nil {
		cmd.Dir = sh.dir
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return out.String(), fmt.Errorf("it takes too long: %w", ctx.Err())
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil // that of the last command; the marks tell
	}
	return out.String(), err
}

// quote makes one word of a text, for the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// lines returns what was printed as lines.
func (r result) lines() []string {
	if r.out == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
}

func TestShell(t *testing.T) {
	sh := shell{dir: t.TempDir(), env: []string{"PATH=" + os.Getenv("PATH"), "GREETING=hello"}}
	got, err := sh.run(t.Context(),
		"echo $GREETING; echo \"it's\" >&2", "x=1; false", "echo $? $x", "printf 'no newline'",
		"if then", "mkdir a; cd a", "basename $PWD; echo; echo", "cat <<EOF\nline\nEOF", "(exit 7)", "sleep 600 &")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got[4].out, "syntax error") || got[4].code == 0 {
		t.Errorf("a syntax error gives %+v", got[4])
	}
	got[4] = result{}
	want := []result{
		{"hello\nit's\n", 0}, {"", 1}, {"1 1\n", 0}, {"no newline", 0}, {}, {"", 0},
		{"a\n\n\n", 0}, {"line\n", 0}, {"", 7}, {"", 0},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := want[6].lines(); !reflect.DeepEqual(got, []string{"a", "", ""}) {
		t.Errorf("lines %q", got)
	}
}

func TestShellEnds(t *testing.T) {
	sh := shell{dir: t.TempDir(), env: os.Environ()}
	if got, err := sh.run(t.Context(), "echo a", "exit 3", "echo b"); err == nil || len(got) != 1 {
		t.Errorf("exit: %+v, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	// The inner bash holds the pipe: killing the outer alone would not end it.
	if _, err := sh.run(ctx, "bash -c 'sleep 600; echo late'"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command that does not end: %v", err)
	}
}
