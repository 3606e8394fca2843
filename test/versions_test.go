package test

import (
	"go/ast"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	modules "golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"
)

func readRoot(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sourceVersion returns the version of this source.
func sourceVersion(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^const release = "(.*)"$`).FindStringSubmatch(readRoot(t, "cmd/stele/version.go"))
	if m == nil || !semver.IsValid(m[1]) || semver.Canonical(m[1]) != m[1] {
		t.Fatalf("cmd/stele/version.go has no version: %q", m)
	}
	return m[1]
}

// TestVersions: all places name the same version, and the change log begins with it.
func TestVersions(t *testing.T) {
	version := sourceVersion(t)
	heading := regexp.MustCompile(`(?m)^## (\d\S*) \(\d{4}-\d\d-\d\d\)$`).FindStringSubmatch(readRoot(t, "CHANGELOG.md"))
	if heading == nil || "v"+heading[1] != version {
		t.Errorf("CHANGELOG.md begins with %q, and the version is %s", heading, version)
	}
	out, err := runIn(root, "make", "--no-print-directory", "--eval=print-version:; @echo $(VERSION)", "print-version")
	if err != nil {
		t.Fatal(err)
	}
	// After the tag, git counts commits.
	if got := strings.TrimSpace(string(out)); semver.Compare(semver.MajorMinor(got), semver.MajorMinor(version)) != 0 {
		t.Errorf("make builds version %q of %s", got, version)
	}
}

// TestVersionVariables: the linker says nothing if a variable that it should set is not
// there, or has a value already.
func TestVersionVariables(t *testing.T) {
	set := regexp.MustCompile(`-X main\.(\w+)=`).FindAllStringSubmatch(readRoot(t, "Makefile"), -1)
	if len(set) < 2 {
		t.Fatalf("the Makefile sets %q only", set)
	}
	for _, m := range set {
		found := false
		for _, s := range repository(t) {
			if isGo(s) && !isTestFile(s.path) && filepath.ToSlash(filepath.Dir(s.path)) == "cmd/stele" {
				o := s.ast.Scope.Lookup(m[1])
				if o == nil || o.Kind != ast.Var {
					continue
				}
				spec, ok := o.Decl.(*ast.ValueSpec)
				found = ok && spec.Values == nil
			}
		}
		if !found {
			t.Errorf("cmd/stele has no variable %s without a value, which the Makefile sets", m[1])
		}
	}
}

// TestGoInstall: `go install .../cmd/stele@VERSION` finds all that the program needs in the module
// as the module proxy has it: without the folders of other modules and without replacements.
func TestGoInstall(t *testing.T) {
	version := sourceVersion(t)
	file, err := modfile.Parse("go.mod", []byte(readRoot(t, "go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	// The go command refuses to install a module that has these.
	if len(file.Replace) > 0 || len(file.Exclude) > 0 {
		t.Errorf("go.mod has replace or exclude directives")
	}
	published := modules.Version{Path: file.Module.Mod.Path, Version: version}
	archive := filepath.Join(t.TempDir(), "module.zip")
	to, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	var members []zip.File
	for name := range repositoryFiles(t) {
		members = append(members, member(name))
	}
	if err := zip.Create(to, published, members); err != nil {
		t.Fatalf("the module can't be published: %v", err)
	}
	folder := filepath.Join(t.TempDir(), "module")
	if err := zip.Unzip(folder, published, archive); err != nil {
		t.Fatal(err)
	}
	if out, err := runIn(folder, "go", "list", "-deps", "./cmd/stele"); err != nil {
		t.Errorf("the module lacks something: %v\n%s", err, out)
	}
}

// member is a file of the repository, in the archive of the module.
type member string

func (m member) Path() string                 { return string(m) }
func (m member) Lstat() (fs.FileInfo, error)  { return os.Lstat(filepath.Join(root, string(m))) }
func (m member) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(root, string(m))) }
