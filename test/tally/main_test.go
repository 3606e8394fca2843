package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	const (
		pass     = `{"Action":"pass","Package":"p","Test":"TestA"}`
		sub      = `{"Action":"pass","Package":"p","Test":"TestA/x"}`
		passed   = `{"Action":"pass","Package":"p"}`
		noTests  = `{"Action":"skip","Package":"q"}`
		output   = `{"Action":"output","Package":"p","Test":"TestA","Output":"--- SKIP: TestA\n"}`
		fail     = `{"Action":"fail","Package":"p","Test":"TestB"}`
		failed   = `{"Action":"fail","Package":"p"}`
		noBuild  = `{"ImportPath":"r","Action":"build-fail"}`
		notBuilt = `{"Action":"fail","Package":"r","FailedBuild":"r"}`
		skip     = `{"Action":"skip","Package":"p","Test":"TestC"}`
	)
	for _, tt := range []struct {
		name   string
		events []string
		code   int
		want   string
	}{
		{"good", []string{output, pass, sub, passed, noTests}, 0, "2 passed, 0 failed, 0 skipped\n"},
		{"a test failed", []string{pass, fail, failed}, 1,
			"there are failed tests\n1 passed, 1 failed, 0 skipped\n"},
		{"a package failed", []string{pass, passed, noBuild, notBuilt}, 1,
			"there are failed tests\n1 passed, 1 failed, 0 skipped\n"},
		{"a test was skipped", []string{pass, skip, passed}, 1,
			"a test must not be skipped: [\"p.TestC\"]\n1 passed, 0 failed, 1 skipped\n"},
		{"nothing ran", []string{noTests}, 1, "no test ran\n0 passed, 0 failed, 0 skipped\n"},
		{"nothing written", nil, 1, "no test ran\n0 passed, 0 failed, 0 skipped\n"},
		{"torn file", []string{pass, `{"Action":`}, 1,
			"line 2: unexpected end of JSON input\n1 passed, 0 failed, 0 skipped\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "events.json")
			if err := os.WriteFile(name, []byte(strings.Join(tt.events, "\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if code := run([]string{name}, &out); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if out.String() != tt.want {
				t.Errorf("got\n%swant\n%s", &out, tt.want)
			}
		})
	}
}

// TestRunSeveral: the totals of several runs; each has to have run tests.
func TestRunSeveral(t *testing.T) {
	folder := t.TempDir()
	file := func(name, events string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(events), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := file("good", `{"Action":"pass","Package":"p","Test":"TestA"}`)
	more := file("more", `{"Action":"pass","Package":"q","Test":"TestB"}`)
	bad := file("bad", `{"Action":"fail","Package":"r","Test":"TestC"}`)
	none := file("none", "")
	for _, tt := range []struct {
		files []string
		code  int
		want  string
	}{
		{[]string{good, more}, 0, "2 passed, 0 failed, 0 skipped\n"},
		{[]string{bad, good}, 1, "there are failed tests\n1 passed, 1 failed, 0 skipped\n"},
		{[]string{good, none}, 1, "no test ran\n1 passed, 0 failed, 0 skipped\n"},
	} {
		var out strings.Builder
		if code := run(tt.files, &out); code != tt.code || out.String() != tt.want {
			t.Errorf("%d and\n%s, want %d and\n%s", code, &out, tt.code, tt.want)
		}
	}
	var out strings.Builder
	if code := run([]string{good, filepath.Join(folder, "missing")}, &out); code != 1 || !strings.HasSuffix(out.String(), "\n1 passed, 0 failed, 0 skipped\n") {
		t.Errorf("%d and\n%s for a missing file", code, &out)
	}
}

func TestRunWithoutFile(t *testing.T) {
	var out strings.Builder
	if code := run([]string{filepath.Join(t.TempDir(), "none")}, &out); code != 1 {
		t.Errorf("exit code %d for a missing file, want 1", code)
	}
	if code := run(nil, &out); code != 2 {
		t.Errorf("exit code %d without arguments, want 2", code)
	}
}
