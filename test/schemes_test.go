package test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stele-id/stele/scheme/all"
)

// knowSchemes are the files outside scheme/ that know a scheme by its name or by the text of a
// name, and why. A new scheme changes none of them: either the file is about one scheme or
// protocol, or it shows examples.
var knowSchemes = map[string]string{
	"registrar/minting/placeholder.go": "names that stand for those of a minter",
	"registrar/minting/uuid.go":        "a minter puts its names together",
	"publish/naptr/owner.go":           "owner names are put together to names; it tries samples to learn how a namespace joins names to its prefix and whether case counts, which should be asked of the scheme",
	"namespace.go":                     "the kind of minter of the IBI report has the name of its scheme",
	"validatenamespace.go":             "the minters of IBI and PILIN make names of one scheme each",
	"internal/destination/*":           "handles have values of their own, which lead to other handles",
	"ddds/root.go":                     "the root of URNs in the DNS, urn.arpa (RFC 3405)",
	"client/application.go":            "how the names of a scheme are found in the DNS: a scheme without a line there is not found",
	"client/finish.go":                 "HTTP proxies of the Handle System",
	"client/client.go":                 "the way by the Handle protocol is named hdl",
	"cmd/stele/resolvehdl.go":          "the flags of the Handle protocol",
	"publish/root.go":                  "the root of URNs in the DNS (RFC 3405)",
	"serve/httpd/signatures.go":        "a path may begin with the mark of ARKs",
	"serve/httpd/lsid/*":               "the protocol of LSIDs",
	"serve/httpd/routes.go":            "requests of the protocol of LSIDs are counted under its name",
	"auth/origin.go":                   "the audit trail names the protocol of LSIDs as a way in",
	"serve/httpd/thttp.go":             "THTTP answers N2Ns with URNs (RFC 2169, section 3.6)",
	"serve/api/*":                      "examples in the OpenAPI document",
	"bulk/foreign/arklet.go":           "arklet has a column of this name",
	"document/ezidrecord/batch.go":     "EZID writes the URN of a UUID without its label",
	"bulk/header.go":                   "headers of columns that people write for identifiers",
	"cmd/stele/zoneadd.go":             "the default of a flag",
	"cmd/stele/resolve.go":             "the roots in the DNS, as client/application.go has them",
	"client/ways/local.go":             "N2Ns answers with URNs, as in THTTP",
	"cmd/stele/mint.go":                "the verbs mint ark, mint ibi and so on",
	"config/settings.go":               "the setting hdl, for the Handle protocol",
	"server/handle.go":                 "the Handle protocol, whose setting is hdl",
	"server/server.go":                 "the log names the addresses of the Handle protocol by their setting",
	"server/try.go":                    "the addresses of the Handle protocol",
	"cmd/stele/serve.go":               "the addresses of the Handle protocol",
	"cmd/stele/demo/*":                 "the names of the demonstration",
}

// excused returns the line of knowSchemes for a file, "" if there is none.
func excused(path string) string {
	if _, ok := knowSchemes[path]; ok {
		return path
	}
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		if _, ok := knowSchemes[path[:i]+"/*"]; ok {
			return path[:i] + "/*"
		}
	}
	return ""
}

// checkSchemes complains of texts that are the name of a scheme, or begin as names of one do,
// and of texts that are completed and then parsed, which tries what a grammar allows:
// [stele.Scheme.ParsePrefix] knows it.
func checkSchemes(names []string, s *source) (complaints []string) {
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Parse" && len(n.Args) == 1 && isSchemes(f.X) {
				if _, joined := n.Args[0].(*ast.BinaryExpr); joined {
					complaints = append(complaints, s.fset.Position(n.Pos()).String()+": a name is put together; a scheme knows what can follow a prefix")
				}
			}
		case *ast.BasicLit:
			text, err := strconv.Unquote(n.Value)
			if n.Kind != token.STRING || err != nil {
				return true
			}
			mark, _, marked := strings.Cut(text, ":")
			if slices.Contains(names, text) || marked && slices.Contains(names, mark) {
				complaints = append(complaints, s.fset.Position(n.Pos()).String()+": "+n.Value+" is known to a scheme only; ask the scheme, by a method if need be")
			}
		}
		return true
	})
	return complaints
}

// isSchemes reports whether an expression has a name that schemes have.
func isSchemes(x ast.Expr) bool {
	name := ""
	switch x := x.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
	}
	return strings.EqualFold(name, "scheme") || strings.EqualFold(name, "schemes")
}

// TestHouseSchemes: adding a scheme changes nothing but scheme/. So no other
// package knows schemes by their names, or by the texts of names.
func TestHouseSchemes(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	names := schemes.Names()
	used := make(map[string]bool)
	for _, f := range repository(t) {
		if !isProduct(f) || isUnder(f.path, "scheme", "bench", "internal/recordtest") {
			continue
		}
		complaints := checkSchemes(names, f)
		if line := excused(f.path); line != "" {
			used[line] = used[line] || len(complaints) > 0
			continue
		}
		for _, c := range complaints {
			t.Error(c)
		}
	}
	for line := range knowSchemes {
		if !used[line] {
			t.Errorf("%s knows no scheme any more; remove its line", line)
		}
	}
	for text, bad := range map[string]bool{
		"package a\nvar x = y == \"ark\"":                                    true,
		"package a\nvar x = strings.HasPrefix(y, \"urn:nbn:\")":              true,
		"package a\nvar id, err = schemes.Parse(text + end)":                 true,
		"package a\nvar id, err = r.o.Schemes.Parse(text)":                   false,
		"package a\nvar ends = []string{\"x\", \"/x\"}\nvar s = \"the ark\"": false,
	} {
		if got := checkSchemes(names, newSource(t, "a.go", text)); (got != nil) != bad {
			t.Errorf("%s: %q", text, got)
		}
	}
}
