package desk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stele-id/stele/web/language"
)

// audited is what the source says of operations in the audit trail.
type audited struct {
	funcs   []*ast.FuncDecl
	consts  map[string]string // of packages, by name
	writers map[string]int    // functions that leave entries, by name: which of their arguments is the operation
}

// readSource reads the packages whose code leaves entries.
func readSource(t *testing.T) *audited {
	s := &audited{consts: make(map[string]string), writers: map[string]int{"commit": 1, "entry": 1, "Witness": 1, "NoteFailure": 1}}
	for _, dir := range []string{"registrar", "registry", "registry/access", "serve/api", "serve/desk", "server"} {
		files, err := parserFiles(filepath.Join("..", "..", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Body != nil {
						s.funcs = append(s.funcs, d)
					}
				case *ast.GenDecl:
					if d.Tok == token.CONST {
						addConsts(s.consts, d)
					}
				}
			}
		}
	}
	return s
}

func parserFiles(dir string) (list []*ast.File, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".":
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, path), nil, parser.SkipObjectResolution)
		list = append(list, f)
		return err
	})
	return list, err
}

// addConsts adds the texts of constants.
func addConsts(to map[string]string, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		for i, value := range v.Values {
			switch value := value.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(value.Value); err == nil && value.Kind == token.STRING {
					to[v.Names[i].Name] = text
				}
			case *ast.Ident:
				if text := to[value.Name]; text != "" {
					to[v.Names[i].Name] = text
				}
			}
		}
	}
}

// parameter returns which parameter of a function is called op; -1 if none is.
func parameter(f *ast.FuncDecl) int {
	n := 0
	for _, field := range f.Type.Params.List {
		for _, name := range field.Names {
			if name.Name == "op" {
				return n
			}
			n++
		}
	}
	return -1
}

// passes calls found with each argument that stands where a function that leaves entries takes the operation.
func (s *audited) passes(f *ast.FuncDecl, found func(ast.Expr)) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch fun := call.Fun.(type) {
		case *ast.SelectorExpr:
			name = fun.Sel.Name
		case *ast.Ident:
			name = fun.Name
		}
		if at, ok := s.writers[name]; ok && at < len(call.Args) {
			found(call.Args[at])
		}
		return true
	})
}

// operations returns the operations that leave entries.
func (s *audited) operations() map[string]bool {
	for grown := true; grown; { // a function that hands its operation on to one that leaves entries leaves entries
		grown = false
		for _, f := range s.funcs {
			at := parameter(f)
			if _, known := s.writers[f.Name.Name]; known || at < 0 {
				continue
			}
			s.passes(f, func(arg ast.Expr) {
				if id, ok := arg.(*ast.Ident); ok && id.Name == "op" && !grown {
					s.writers[f.Name.Name], grown = at, true
				}
			})
		}
	}
	ops := make(map[string]bool)
	for _, f := range s.funcs {
		consts := maps.Clone(s.consts)
		delete(consts, "op")
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
				addConsts(consts, d)
			}
			return true
		})
		s.passes(f, func(arg ast.Expr) {
			switch arg := arg.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(arg.Value); err == nil {
					ops[text] = true
				}
			case *ast.Ident:
				if text := consts[arg.Name]; text != "" {
					ops[text] = true
				}
			}
		})
	}
	for op := range s.unaudited() {
		if op != "mint" { // which is counted
			delete(ops, op)
		}
	}
	return ops
}

// unaudited returns the operations that leave no entry.
func (s *audited) unaudited() map[string]bool {
	ops := make(map[string]bool)
	for _, f := range s.funcs {
		if f.Name.Name != "unaudited" {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CaseClause); ok {
				for _, e := range c.List {
					switch e := e.(type) {
					case *ast.BasicLit:
						if text, err := strconv.Unquote(e.Value); err == nil {
							ops[text] = true
						}
					case *ast.Ident:
						ops[s.consts[e.Name]] = true
					}
				}
			}
			return true
		})
	}
	return ops
}

// TestOperationsHaveWords: the page says each operation of the audit trail in words, and can search for it, in every language.
func TestOperationsHaveWords(t *testing.T) {
	s, catalog := readSource(t), must(language.New())(t)
	found := s.operations()
	for _, op := range []string{"register", "mint", "propose", "add alias", "rename passkey", "offer namespace", "adopt", "escrow", "backup", "prove", "confirm address", "fix data", "import"} {
		if !found[op] {
			t.Errorf("the test does not find %q in the source", op)
		}
	}
	if len(s.unaudited()) < 8 {
		t.Errorf("without entries: %v", s.unaudited())
	}
	for _, op := range slices.Sorted(maps.Keys(found)) {
		if !slices.Contains(operations, op) {
			t.Errorf("no filter finds %q", op)
		}
	}
	for _, op := range operations {
		for _, tag := range []string{"en", "pt-BR"} {
			for _, key := range []string{"operation." + slug(op), "did." + slug(op)} {
				if !catalog.Get(tag).Has(key) {
					t.Errorf("%s has no %q", tag, key)
				}
			}
		}
	}
}

// TestAuditKeepsFilter: an operation of an address that the form does not list stays chosen.
func TestAuditKeepsFilter(t *testing.T) {
	p := newSite(t).as("admin").get("/.desk/audit?operation=list+records")
	p.has(200, `<option value="list records" selected="selected">list records</option>`)
}
