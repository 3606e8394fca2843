// Platforms checks that the program compiles for the systems of a release on which no test runs. It reads
// the source of everything that the program consists of and checks the types, of our own packages with the
// bodies of functions. That takes a fraction of what a compiler does, and as long with an empty build cache as with a
// full one. It links nothing, and does not check assembly.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// systems are those of a release, except that of the tests (tools/packages has all).
var systems = []system{{"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

type system struct{ os, arch string }

func (s system) String() string { return s.os + "/" + s.arch }

func main() {
	program := "./cmd/stele"
	if len(os.Args) > 1 {
		program = os.Args[1]
	}
	failed := false
	for _, s := range systems {
		problems, err := check(s, program)
		if err != nil {
			problems = append(problems, err)
		}
		for _, p := range problems {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s, p)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package, as go list describes it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
	Error           *struct{ Err string }
}

// list returns what the program consists of on a system, each package after those that it imports.
func list(s system, program string) (all []*listed, err error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Error", program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+s.os, "GOARCH="+s.arch)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		switch err := dec.Decode(p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case p.Error != nil:
			return nil, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		all = append(all, p)
	}
}

// check returns what a compiler for a system would say.
func check(s system, program string) (problems []error, err error) {
	all, err := list(s, program)
	if err != nil {
		return nil, err
	}
	fset := token.NewFileSet()
	files, err := parse(fset, all)
	if err != nil {
		return nil, err
	}
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	for i, p := range all {
		if p.ImportPath == "unsafe" {
			continue
		}
		config := types.Config{
			Importer: importer{known, p.ImportMap}, Sizes: types.SizesFor("gc", s.arch),
			IgnoreFuncBodies: p.Module == nil || !p.Module.Main,
			Error:            func(err error) { problems = append(problems, err) },
		}
		checked, err := config.Check(p.ImportPath, fset, files[i], nil)
		if err != nil && len(problems) == 0 {
			problems = append(problems, err)
		}
		if known[p.ImportPath] = checked; len(problems) > 0 {
			return problems, nil // what imports it would say the same again
		}
	}
	return nil, nil
}

// parse reads the files of packages.
func parse(fset *token.FileSet, all []*listed) ([][]*ast.File, error) {
	files, faults := make([][]*ast.File, len(all)), make([]error, len(all))
	var running sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i, p := range all {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			for _, name := range p.GoFiles {
				if !filepath.IsAbs(name) {
					name = filepath.Join(p.Dir, name)
				}
				file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
				if err != nil {
					faults[i] = err
					return
				}
				files[i] = append(files[i], file)
			}
		})
	}
	running.Wait()
	return files, errors.Join(faults...)
}

// importer finds packages among those that were checked.
type importer struct {
	known map[string]*types.Package
	names map[string]string // of imports that stand for others, as those that the standard library brings
}

// Import implements [types.Importer].
func (i importer) Import(name string) (*types.Package, error) {
	if other := i.names[name]; other != "" {
		name = other
	}
	if p := i.known[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s is not there", strings.TrimSpace(name))
}
