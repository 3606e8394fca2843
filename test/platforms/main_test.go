package main

import (
	"os"
	"strings"
	"testing"
)

// TestCheck: what one system lacks is found there, and on no other one.
func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":          "module example.org/x\n\ngo 1.26\n",
		"main.go":         "package main\n\nimport \"example.org/x/lock\"\n\nfunc main() { lock.Take() }\n",
		"lock/lock.go":    "//go:build !windows\n\npackage lock\n\nimport \"syscall\"\n\n// Take takes it.\nfunc Take() { syscall.Umask(0) }\n",
		"lock/windows.go": "//go:build windows\n\npackage lock\n\nimport \"syscall\"\n\n// Take takes it.\nfunc Take() { syscall.Umask(0) }\n",
	} {
		if err := os.MkdirAll("lock", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range systems {
		problems, err := check(s, ".")
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case s.os != "windows" && len(problems) > 0:
			t.Errorf("%s: %v", s, problems)
		case s.os == "windows" && (len(problems) != 1 || !strings.Contains(problems[0].Error(), "windows.go:8") || !strings.Contains(problems[0].Error(), "syscall.Umask")):
			t.Errorf("%s: %v", s, problems)
		}
	}
	if _, err := check(systems[0], "./none"); err == nil {
		t.Error("a package that is not there is checked")
	}
}
