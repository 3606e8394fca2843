package test

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
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
	for _, target := range []string{"build", "demo", "test", "quick", "lint", "bench", "fuzz", "fuzz-network", "soak", "cover", "clean", "packages"} {
		if !regexp.MustCompile(`(?m)^make ` + target + ` +\S`).Match(out) {
			t.Errorf("make does not list %s:\n%s", target, out)
		}
	}
}

// TestMakeFuzz runs make fuzz with a go command of its own: a target that fails makes it fail, after the others
// were tried, and FUZZ chooses targets.
func TestMakeFuzz(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go"), `#!/bin/sh
case "$*" in
*-list*) [ -z "$BROKEN" ] || exit 1; printf 'FuzzA\nFuzzB\nok  \tx/one\t0.1s\n?   \tx/none\t[no test files]\nFuzzC\nok  \tx/two\t0.1s\n' ;;
*) echo "tried $*"; case "$*" in *"^$BAD\$"*) exit 1 ;; esac ;;
esac
`, 0o700)
	for _, tt := range []struct {
		fuzz, bad, broken string
		fails             bool
		want              []string // targets that are tried
	}{
		{"", "none", "", false, []string{"FuzzA", "FuzzB", "FuzzC"}},
		{"", "FuzzA", "", true, []string{"FuzzA", "FuzzB", "FuzzC"}},
		{"two|FuzzB", "FuzzA", "", false, []string{"FuzzB", "FuzzC"}},
		{"x/one FuzzA$", "FuzzA", "", true, []string{"FuzzA"}},
		{"FuzzD", "none", "", true, nil},
		{"", "none", "yes", true, nil}, // a package does not compile
	} {
		cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "fuzz", "FUZZ="+strings.ReplaceAll(tt.fuzz, "$", "$$"))
		cmd.Dir = root
		cmd.Env = append(environ(), "PATH="+dir+":"+os.Getenv("PATH"), "BAD="+tt.bad, "BROKEN="+tt.broken)
		out, err := cmd.CombinedOutput()
		var tried []string
		for _, m := range regexp.MustCompile(`(?m)^tried .*-fuzz \^(\w+)\$ .*-fuzztime 30s x/`).FindAllStringSubmatch(string(out), -1) {
			tried = append(tried, m[1])
		}
		if (err != nil) != tt.fails || !slices.Equal(tried, tt.want) {
			t.Errorf("FUZZ=%s where %s fails: %v, tried %q\n%s", tt.fuzz, tt.bad, err, tried, out)
		}
	}
}

// TestNetworkFuzz: make fuzz-network works for 20 minutes on each target of the packages that face the network, and not on others.
func TestNetworkFuzz(t *testing.T) {
	m := regexp.MustCompile(`(?m)^NETWORK_FUZZ := (.*)$`).FindStringSubmatch(readRoot(t, "Makefile"))
	if m == nil {
		t.Fatal("the Makefile has no NETWORK_FUZZ")
	}
	network, found := regexp.MustCompile(m[1]), 0
	for name := range repositoryFiles(t) {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, target := range regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`).FindAllStringSubmatch(readRoot(t, name), -1) {
			line := "github.com/stele-id/stele/" + path.Dir(filepath.ToSlash(name)) + " " + target[1]
			first, _, _ := strings.Cut(name, "/")
			switch faces := network.MatchString(line); {
			case faces:
				found++
			case slices.Contains([]string{"serve", "wire", "client", "auth", "harvest", "transparency"}, first) || target[1] == "FuzzSmuggling":
				t.Errorf("NETWORK_FUZZ leaves out %s", line)
			}
			if slices.Contains([]string{"store", "mint"}, first) && network.MatchString(line) {
				t.Errorf("NETWORK_FUZZ has %s, which reads nothing of the network", line)
			}
		}
	}
	if found < 60 {
		t.Errorf("NETWORK_FUZZ has %d targets", found)
	}
	out, err := runIn(root, "make", "--no-print-directory", "-n", "fuzz-network", "NETWORK_FUZZ=only-this")
	if err != nil || !strings.Contains(string(out), "-e 'only-this'") || !strings.Contains(string(out), "-fuzztime 20m ") {
		t.Errorf("%v\n%s", err, out)
	}
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
