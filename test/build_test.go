package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// root is the repository's folder: the tests run in their own.
var root = func() string {
	abs, err := filepath.Abs("..")
	if err != nil {
		panic(err)
	}
	return abs
}()

// binDir holds what stele builds; TestMain removes it.
var binDir string

func TestMain(m *testing.M) {
	if folder := os.Getenv(crashEnv); folder != "" {
		fmt.Fprintln(os.Stderr, crashWorker(folder))
		os.Exit(1)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "stele-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binDir = dir
		return m.Run()
	}())
}

// stele returns the path of the program, built once for all tests of the
// package and only if one asks for it.
func stele(t *testing.T) string {
	t.Helper()
	path, err := buildStele()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildStele = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binDir, "stele")
	// With the flags of packages, so that the compiler works once for both (see packages_test.go).
	if out, err := runIn(root, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./cmd/stele"); err != nil {
		return "", fmt.Errorf("building stele: %w\n%s", err, out)
	}
	return path, nil
})

// runIn runs a command in a folder and returns what it prints on standard
// output. An error holds what it prints on standard error.
func runIn(dir, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // a busy machine compiles everything
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second
	cmd.Env = environ()
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		err = fmt.Errorf("%v: %w\n%s", cmd, err, exit.Stderr)
	}
	return out, err
}

// environ is the environment without what an outer make hands down: under
// `make -n test -j2` an inner make would not be its own.
func environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEFILES":
		default:
			env = append(env, kv)
		}
	}
	return env
}
