package test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fileInMap is a file, or a pattern of files, in the README of a package.
var fileInMap = regexp.MustCompile("`([a-z_0-9*]+\\.go)`")

// TestMaps compares the READMEs of packages, which say which file is about what, with the
// packages: they list every file, and no file that does not exist.
func TestMaps(t *testing.T) {
	files := make(map[string][]string) // by folder
	var maps []string
	for name := range repositoryFiles(t) {
		dir, file := path.Split(name)
		switch {
		case file == "README.md" && dir != "":
			maps = append(maps, dir)
		case path.Ext(file) == ".go" && !isTestFile(file):
			files[dir] = append(files[dir], file)
		}
	}
	// Packages that are too large to be read without a map (decision 46).
	for _, dir := range []string{"client/", "registrar/", "serve/api/", "serve/dnsd/", "serve/httpd/", "store/pebble/", "store/postgres/", "store/storetest/"} {
		if !slices.Contains(maps, dir) {
			t.Errorf("%sREADME.md is not there", dir)
		}
	}
	for _, dir := range maps {
		text, err := os.ReadFile(filepath.Join(root, dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, complaint := range judgeMap(string(text), files[dir]) {
			t.Errorf("%sREADME.md %s", dir, complaint)
		}
	}
}

func judgeMap(text string, files []string) (complaints []string) {
	var patterns []string
	for _, m := range fileInMap.FindAllStringSubmatch(text, -1) {
		patterns = append(patterns, m[1])
	}
	matches := func(pattern, file string) bool { ok, err := path.Match(pattern, file); return ok && err == nil }
	for _, p := range patterns {
		if !slices.ContainsFunc(files, func(file string) bool { return matches(p, file) }) {
			complaints = append(complaints, "lists "+p+", which is not there")
		}
	}
	for _, file := range files {
		if !slices.ContainsFunc(patterns, func(p string) bool { return matches(p, file) }) {
			complaints = append(complaints, "does not list "+file)
		}
	}
	return complaints
}

func TestJudgeMap(t *testing.T) {
	files := []string{"a.go", "b_linux.go", "b_other.go"}
	if got := judgeMap("| x | `a.go`, `b_*.go` |", files); got != nil {
		t.Errorf("%q", got)
	}
	if got := strings.Join(judgeMap("| x | `b_*.go`, `c.go` |", files), "; "); got != "lists c.go, which is not there; does not list a.go" {
		t.Error(got)
	}
}
