package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/cmd/stele/manual"
)

// Each command has its page, which groff reads without a warning, and which is the same each time.
func TestMan(t *testing.T) {
	plainEnvironment(t)
	dir := filepath.Join(t.TempDir(), "man1")
	if code, out, complaints := execute(t, "", "man", dir); code != exitOK || out != "" || complaints != "" {
		t.Fatal(code, out, complaints)
	}
	p := &program{stdout: new(bytes.Buffer), stderr: new(bytes.Buffer), now: time.Now}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if all := manual.Commands(p.rootCommand()); err != nil || len(files) != len(all) || len(all) < 100 {
		t.Errorf("%d pages of %d commands, %v", len(files), len(all), err)
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for name, parts := range map[string][]string{
		"stele.1":          {".TH STELE 1 \"\"", "stele \\- names that outlive their addresses", ".BR stele\\-register (1),\n"},
		"stele-ns-add.1":   {".TH STELE\\-NS\\-ADD 1 \"\"", ".SH SYNOPSIS\n\\fBstele ns add\\fR ", ".SH OPTIONS\n", "\\fB\\-\\-title\\fR", ".SH OPTIONS OF ALL COMMANDS\n", "\\fB\\-\\-server\\fR", ".SH EXAMPLES\n", ".BR stele\\-ns (1)\n"},
		"stele-register.1": {"\\fB\\-\\-to\\fR"},
	} {
		for _, part := range parts {
			if text := read(name); !strings.Contains(text, part) {
				t.Errorf("%s has not %q:\n%s", name, part, text)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "stele-man.1")); err == nil {
		t.Error("a hidden command has a page")
	}
	again := filepath.Join(t.TempDir(), "again")
	execute(t, "", "man", again)
	if out, err := exec.Command("diff", "-r", dir, again).CombinedOutput(); err != nil {
		t.Errorf("a second time the pages are others: %v\n%s", err, out)
	}
	if out, err := exec.Command("groff", append([]string{"-man", "-Tutf8", "-ww", "-z"}, files...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v\n%s", err, out)
	}
	if code, _, complaints := execute(t, "", "man", filepath.Join(dir, "stele.1")); code != exitFailed || !strings.Contains(complaints, "cannot make the folder") {
		t.Error(code, complaints)
	}
}

// plainEnvironment removes the variables that are defaults of flags.
func plainEnvironment(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "STELE_") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
}
