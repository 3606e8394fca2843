package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestObjectsOnce fails on a type with JSON fields in the API's server or client: both must
// take theirs from document/apijson, so that no object is written twice.
func TestObjectsOnce(t *testing.T) {
	// A page of keys, whose type is in publish/zonekey: apijson does not import the DNS library.
	exceptions := []string{"serve/api/zonekeys.go tsigPage"}
	files := 0
	for name := range repositoryFiles(t) {
		dir, file := path.Split(name)
		if dir != "serve/api/" && dir != "client/remote/" || path.Ext(file) != ".go" || isTestFile(file) {
			continue
		}
		files++
		tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range jsonTypes(tree) {
			if !slices.Contains(exceptions, name+" "+typ) {
				t.Errorf("%s has fields in JSON in %s; put the type into document/apijson", name, typ)
			}
		}
	}
	if files < 30 {
		t.Errorf("only %d files were read", files)
	}
}

// jsonTypes returns the declarations with a struct that has a tag of JSON.
func jsonTypes(tree *ast.File) (names []string) {
	for _, decl := range tree.Decls {
		name := ""
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				name = n.Name.Name
			case *ast.FuncDecl:
				name = n.Name.Name
			case *ast.Field:
				if n.Tag != nil && strings.Contains(n.Tag.Value, `json:"`) && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
			return true
		})
	}
	return names
}

func TestJSONTypes(t *testing.T) {
	const text = "package x\ntype A struct{ B int `json:\"b\"` }\ntype C struct{ D int }\nfunc f() { var v struct{ E int `json:\"e\"` }; _ = v }\n"
	tree, err := parser.ParseFile(token.NewFileSet(), "x.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(jsonTypes(tree), " "); got != "A f" {
		t.Errorf("got %q", got)
	}
}
