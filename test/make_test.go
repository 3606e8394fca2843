package test

import (
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMakeHelp fails if a target that people rely on is not in the list that
// make prints by itself.
func TestMakeHelp(t *testing.T) {
	out, err := runIn(root, "make", "--no-print-directory")
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"build", "demo", "test", "quick", "lint", "bench", "fuzz", "soak", "cover", "clean"} {
		if !regexp.MustCompile(`(?m)^make ` + target + ` +\S`).Match(out) {
			t.Errorf("make does not list %s:\n%s", target, out)
		}
	}
}

// TestVersionVariable: the linker says nothing if the variable that it should set
// is not there.
func TestVersionVariable(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`-X main\.(\w+)=`).FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile sets no version")
	}
	for _, s := range repository(t) {
		if isGo(s) && !isTestFile(s.path) && filepath.ToSlash(filepath.Dir(s.path)) == "cmd/stele" {
			if o := s.ast.Scope.Lookup(string(m[1])); o != nil && o.Kind == ast.Var {
				return
			}
		}
	}
	t.Errorf("cmd/stele has no variable %s, which the Makefile sets", m[1])
}

// TestInstallPackages runs the script with commands of its own in place of the
// system's, which print how they are called.
func TestInstallPackages(t *testing.T) {
	const (
		aptGet = `echo "apt-get $*"`
		sudo   = `echo "sudo $*"`
		user   = `echo 1000`
		super  = `echo 0`
	)
	for _, tt := range []struct {
		name     string
		commands map[string]string
		needs    []string
		fails    bool
		want     []string // each is a part of what is printed
	}{
		{"all there", map[string]string{"gcc": "", "apt-get": aptGet, "id": super},
			[]string{"gcc:build-essential", "/dev/null:nothing"}, false, nil},
		{"root installs", map[string]string{"gcc": "", "apt-get": aptGet, "id": super, "env": "shift; exec \"$@\""},
			[]string{"gcc:build-essential", "no-such-named:bind9", "/no/such/file:knot"}, false,
			[]string{"missing: no-such-named (package bind9)", "apt-get -q update", "install bind9 knot\n"}},
		{"others ask", map[string]string{"apt-get": aptGet, "id": user, "sudo": sudo},
			[]string{"no-such-named:bind9"}, false,
			[]string{"sudo apt-get -q update", "sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install bind9\n"}},
		{"others can't", map[string]string{"apt-get": aptGet, "id": user},
			[]string{"no-such-named:bind9"}, true, []string{"run as root: apt-get install bind9\n"}},
		{"another system", map[string]string{"id": super},
			[]string{"no-such-named:bind9"}, true, []string{"no apt-get", "calls: bind9\n"}},
		{"apt-get fails", map[string]string{"apt-get": "exit 100", "id": super},
			[]string{"no-such-named:bind9"}, true, []string{"missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, script := range tt.commands {
				writeFile(t, filepath.Join(dir, name), "#!/bin/sh\n"+script+"\n", 0o700)
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh",
				append([]string{filepath.Join(root, "test/install-packages.sh")}, tt.needs...)...)
			cmd.Env = []string{"PATH=" + dir}
			out, err := cmd.CombinedOutput()
			if (err != nil) != tt.fails {
				t.Errorf("ends with %v; it should fail: %t", err, tt.fails)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if tt.want == nil && len(out) > 0 {
				t.Errorf("prints %q", out)
			}
		})
	}
}
