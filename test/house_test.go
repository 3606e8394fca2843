package test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// source is a file of the repository, as the rules see it.
type source struct {
	path string // from the root, with slashes
	text []byte
	fset *token.FileSet
	ast  *ast.File // nil unless it is Go
}

// rule is a rule of the house. Its good and bad samples, texts by path, prove
// that it works: it must complain of each bad one, and of no good one.
type rule struct {
	name  string
	where func(*source) bool
	check func(*source) []string // complaints, each beginning with its place
	good  map[string]string
	bad   map[string]string
}

var rules = []rule{
	{
		name:  "no init functions: what must be set up is constructed",
		where: isProduct,
		check: checkInit,
		good:  map[string]string{"a.go": "package a\ntype t int\nfunc (t) init() {}\nfunc Init() {}"},
		bad:   map[string]string{"cmd/stele/a.go": "package main\nfunc init() {}"},
	},
	{
		name:  "no clock below cmd: time is passed in",
		where: func(s *source) bool { return isProduct(s) && !isUnder(s.path, "cmd", "bench") },
		check: checkClock,
		good: map[string]string{
			"a.go":           "package a\nimport \"time\"\nvar t = time.Unix(0, 0)\n// time.Now is not called.",
			"b.go":           "package b\nvar time struct{ Now int }\nvar t = time.Now",
			"cmd/stele/a.go": "package main\nimport \"time\"\nvar t = time.Now()",
			"a_test.go":      "package a\nimport \"time\"\nvar t = time.Now()",
		},
		bad: map[string]string{
			"mint/a.go": "package mint\nimport \"time\"\nvar t = time.Now()",
			"b.go":      "package b\nimport \"time\"\nvar clock = time.Now",
			"c.go":      "package c\nimport \"time\"\nvar t = time.Since(u)",
			"d.go":      "package d\nimport clock \"time\"\nvar t = clock.Until(u)",
		},
	},
	{
		name: "package outbound alone opens connections for the server: it has the rule against private addresses",
		where: func(s *source) bool {
			// client and doctor work for the person who runs them; systemd's socket is a file that systemd names.
			return isProduct(s) && !isUnder(s.path, "cmd", "bench", "outbound", "client", "doctor") && s.path != "server/systemd.go"
		},
		check: checkDialing,
		good: map[string]string{
			"serve/dnsd/a.go":  "package dnsd\nimport \"net\"\nvar l net.ListenConfig\nvar e = net.ErrClosed",
			"serve/httpd/a.go": "package httpd\nimport \"net/http\"\nvar s http.Server\n// http.Get is not called.",
			"client/a.go":      "package client\nimport \"net\"\nvar d net.Dialer",
			"outbound/a.go":    "package outbound\nimport \"net\"\nvar d net.Dialer",
			"a_test.go":        "package a\nimport \"net\"\nvar d net.Dialer",
		},
		bad: map[string]string{
			"audit/a.go":      "package audit\nimport \"net\"\nvar d net.Dialer",
			"serve/dnsd/a.go": "package dnsd\nimport \"net\"\nvar c, _ = net.ListenUDP(\"udp\", nil)",
			"server/a.go":     "package server\nimport \"net\"\nvar c, _ = net.DialUnix(\"unixgram\", nil, nil)",
			"links/a.go":      "package links\nimport \"net/http\"\nvar c = http.DefaultClient",
			"b.go":            "package b\nimport web \"net/http\"\nvar c web.Client",
			"c.go":            "package c\nimport \"net/smtp\"",
			"d.go":            "package d\nimport \"crypto/tls\"\nvar c, _ = tls.Dial(\"tcp\", \"\", nil)",
			"e.go":            "package e\nimport \"net\"\nvar c, _ = net.DialTimeout(\"tcp\", \"\", 0)",
		},
	},
	{
		name:  "a package is named for what it does",
		where: isGo,
		check: checkPackageName,
		good:  map[string]string{"a.go": "package stele"},
		bad: map[string]string{
			"util/a.go":        "package util",
			"a/helpers/a.go":   "package helpers",
			"common/a_test.go": "package common_test",
			"types/a.go":       "package other",
		},
	},
	{
		name:  "no exported variables but errors: anybody could change them",
		where: isProduct,
		check: checkVariables,
		good: map[string]string{
			"a.go":                       "package a\nvar ErrGone = errors.New(\"gone\")\nvar x, _ = 1, 2\nconst Max = 3",
			"b.go":                       "package b\nfunc F() { var Local int; _ = Local }",
			"scheme/schemetest/suite.go": "package schemetest\nvar Hostile = []string{\"\"}",
		},
		bad: map[string]string{
			"a.go": "package a\nvar Debug bool",
			"b.go": "package b\nvar (\n x = 1\n y, Limit = 2, 3\n)",
			"c.go": "package c\nvar Errand = 1",
		},
	},
	{
		name:  "no panic, except where a comment says why it is unreachable",
		where: isProduct,
		check: checkPanic,
		good: map[string]string{
			"a.go":      "package a\nfunc f() {\n panic(\"x\") // unreachable: f is not called\n}",
			"b.go":      "package b\n// It does not panic(\nvar s = \"panic(\"",
			"a_test.go": "package a\nfunc f() { panic(1) }",
		},
		bad: map[string]string{
			"a.go":           "package a\nfunc f() { panic(1) }",
			"b.go":           "package b\n// unreachable: too far away\nfunc f() {\n panic(1) // cannot happen\n}",
			"cmd/stele/a.go": "package main\nfunc f() { panic(1) }",
		},
	},
	{
		name:  "no floats in schemes and minters: their arithmetic is exact",
		where: func(s *source) bool { return isProduct(s) && isUnder(s.path, "scheme", "mint") },
		check: checkFloats,
		good: map[string]string{
			"mint/a.go":            "package mint\nimport (\"math/big\"; \"math/bits\")\nvar n = bits.Len(7) + 1_000\nvar r big.Int",
			"mint/b.go":            "package mint\nimport \"math\"\nvar n, m uint64 = math.MaxInt64, math.MaxUint8",
			"mint/a_test.go":       "package mint\nvar f float64",
			"client/a.go":          "package client\nvar f = 0.5",
			"scheme/ibi/string.go": "package ibi\nvar s = \"float64 0.5\"",
		},
		bad: map[string]string{
			"mint/a.go":       "package mint\nfunc f(x float64) {}",
			"mint/b.go":       "package mint\nvar half = 0.5",
			"mint/c.go":       "package mint\nimport \"math\"\nvar m = math.Floor(x)",
			"mint/f.go":       "package mint\nimport m \"math\"\nvar x = m.MaxFloat32",
			"mint/d.go":       "package mint\nimport \"strconv\"\nvar f, _ = strconv.ParseFloat(\"1\", 64)",
			"mint/e.go":       "package mint\nimport \"math/big\"\nvar f = big.NewFloat",
			"scheme/ibi/a.go": "package ibi\nvar second = 1e9",
		},
	},
	{
		name:  "a Go file has one subject and fits in 600 lines",
		where: isGo,
		check: checkLength,
		good:  map[string]string{"a.go": "package a" + strings.Repeat("\n", maxLines)},
		bad:   map[string]string{"a_test.go": "package a" + strings.Repeat("\n", maxLines+1)},
	},
	{
		name:  "the command line's txtar files stand where its tests run them",
		where: func(s *source) bool { return path.Ext(s.path) == ".txtar" },
		check: func(s *source) []string {
			if path.Dir(s.path) == "cmd/stele/testdata" {
				return nil
			}
			return []string{s.path + " is run by nobody; it belongs in cmd/stele/testdata"}
		},
		good: map[string]string{"cmd/stele/testdata/a.txtar": "", "docs/txtar.md": ""},
		bad:  map[string]string{"docs/a.txtar": "", "cmd/stele/testdata/old/a.txtar": ""},
	},
	{
		// A program of 46 MB was committed once, and every clone has it since.
		name:  "no file has more than a megabyte",
		where: func(*source) bool { return true },
		check: func(s *source) []string {
			if len(s.text) <= maxFile {
				return nil
			}
			return []string{fmt.Sprintf("%s has %d bytes; at most %d are committed", s.path, len(s.text), maxFile)}
		},
		good: map[string]string{"a.txt": "small"},
		bad:  map[string]string{"stele": strings.Repeat("x", maxFile+1)},
	},
	{
		name:  "no file knows the machine it was written on",
		where: func(s *source) bool { return utf8.Valid(s.text) && !bytes.ContainsRune(s.text, 0) },
		check: checkMachine,
		good: map[string]string{
			"README.md": "https://example.org/" + "work/1 and ark:12345/" + "root/x\nGOPROXY is Go's\nhttps://proxy.golang.org, https://mirror.example.org",
			"a.bin":     "\x00 /" + "root/x",
		},
		bad: map[string]string{
			"README.md":  "see `/" + "work/notes.md`",
			"a.go":       "package a\nvar p = \"/" + "root/.config\"",
			"run.sh":     "export GO" + "PROXY=https://go.example.org",
			"b.sh":       "pip install --index-" + "url https://py.example.org",
			"Dockerfile": "FROM artifactory" + ".a-company.com/golang",
			"c.yaml":     "image: https://go" + "proxy.a-company.com/x",
		},
	},
}

const (
	maxLines = 600
	maxFile  = 1 << 20
)

// TestHouse checks every file of the repository against the rules.
func TestHouse(t *testing.T) {
	files := repository(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range files {
				if !r.where(f) {
					continue
				}
				for _, complaint := range r.check(f) {
					t.Error(complaint)
				}
			}
		})
	}
}

// TestRules proves each rule on its samples.
func TestRules(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if len(r.good) == 0 || len(r.bad) == 0 {
				t.Fatal("a rule needs a good and a bad sample")
			}
			judged := 0
			for name, text := range r.good {
				s := newSource(t, name, text)
				if !r.where(s) {
					continue
				}
				judged++
				if got := r.check(s); got != nil {
					t.Errorf("%s is good:\n%s\nbut: %q", name, text, got)
				}
			}
			if judged == 0 {
				t.Error("no good sample is one that the rule looks at")
			}
			for name, text := range r.bad {
				s := newSource(t, name, text)
				if !r.where(s) || r.check(s) == nil {
					t.Errorf("nothing is said against %s:\n%s", name, text)
				}
			}
		})
	}
}

// TestPackageComments fails on a package that does not say what it is for.
func TestPackageComments(t *testing.T) {
	if got := undocumented(repository(t)); got != nil {
		t.Errorf("packages without a package comment: %q", got)
	}
	got := undocumented([]*source{
		newSource(t, "a/a.go", "// Package a is good.\npackage a"),
		newSource(t, "a/b.go", "package a"),
		newSource(t, "b/a.go", "// Not attached.\n\npackage b"),
		newSource(t, "b/a_test.go", "// Package b has no comment in its tests.\npackage b"),
		newSource(t, "c/a_test.go", "package c"),
		newSource(t, "d/testdata/a.go", "package d"),
	})
	if want := []string{"b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// undocumented returns the folders of the packages without a package comment.
func undocumented(files []*source) (bad []string) {
	documented := make(map[string]bool)
	for _, f := range files {
		if isGo(f) && !isTestFile(f.path) && !slices.Contains(strings.Split(f.path, "/"), "testdata") {
			documented[path.Dir(f.path)] = documented[path.Dir(f.path)] || f.ast.Doc != nil
		}
	}
	for dir, ok := range documented {
		if !ok {
			bad = append(bad, dir)
		}
	}
	slices.Sort(bad)
	return bad
}

// repository returns the files of the repository.
func repository(t *testing.T) (files []*source) {
	t.Helper()
	for rel := range repositoryFiles(t) {
		text, err := os.ReadFile(filepath.Join(root, rel))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, newSource(t, rel, string(text)))
	}
	return files
}

// repositoryFiles yields the paths of the repository's files, from the root and
// with slashes, without what is built and what git keeps.
func repositoryFiles(t *testing.T) iter.Seq2[string, fs.DirEntry] {
	t.Helper()
	return func(yield func(string, fs.DirEntry) bool) {
		err := fs.WalkDir(os.DirFS(root), ".", func(rel string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && slices.Contains([]string{".git", ".idea", ".vscode", "bin", "dist", "stele-data"}, rel):
				return fs.SkipDir
			case rel == ".git": // a file in a work tree of git's
				return nil
			case d.Type().IsRegular() && !yield(rel, d):
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func newSource(t *testing.T, name, text string) *source {
	t.Helper()
	s := &source{path: name, text: []byte(text), fset: token.NewFileSet()}
	if path.Ext(name) == ".go" {
		var err error
		if s.ast, err = parser.ParseFile(s.fset, name, s.text, parser.ParseComments); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func isGo(s *source) bool { return s.ast != nil }

func isTestFile(name string) bool { return strings.HasSuffix(name, "_test.go") }

// isProduct reports whether s is Go code that is not there for tests alone.
func isProduct(s *source) bool {
	return isGo(s) && !isTestFile(s.path) && !isUnder(s.path, "test") && !isUnder(s.path, suites...)
}

func isUnder(name string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(name, f+"/") })
}
