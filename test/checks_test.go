package test

// The checks for the rules of house_test.go.

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// at makes a complaint about the place of a node.
func (s *source) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s: %s", s.fset.Position(n.Pos()), fmt.Sprintf(format, args...))
}

// importedAs returns the name by which s imports a package, or "".
func (s *source) importedAs(pkg string) string {
	for _, spec := range s.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(pkg)
	}
	return ""
}

// uses makes complaints about names of a standard package, however imported.
func (s *source) uses(pkg string, names ...string) (complaints []string) {
	local := s.importedAs(pkg)
	if local == "" {
		return nil
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && slices.Contains(names, sel.Sel.Name) {
			complaints = append(complaints, s.at(sel, "%s.%s", pkg, sel.Sel.Name))
		}
		return true
	})
	return complaints
}

func checkInit(s *source) (complaints []string) {
	for _, d := range s.ast.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
			complaints = append(complaints, s.at(f, "an init function"))
		}
	}
	return complaints
}

func checkClock(s *source) []string { return s.uses("time", "Now", "Since", "Until") }

// checkDialing finds ways to open a connection that have no rule about addresses.
func checkDialing(s *source) (complaints []string) {
	complaints = append(complaints, s.uses("net", "Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "Dialer", "ListenUDP", "ListenPacket")...)
	complaints = append(complaints, s.uses("crypto/tls", "Dial", "DialWithDialer", "Dialer")...)
	complaints = append(complaints, s.uses("net/http", "DefaultClient", "DefaultTransport", "Client", "Transport", "Get", "Head", "Post", "PostForm")...)
	for _, spec := range s.ast.Imports {
		if spec.Path.Value == `"net/smtp"` {
			complaints = append(complaints, s.at(spec, "net/smtp opens connections itself"))
		}
	}
	return complaints
}

func checkPackageName(s *source) []string {
	empty := []string{"util", "utils", "common", "helper", "helpers", "types", "models", "misc"}
	for _, name := range []string{strings.TrimSuffix(s.ast.Name.Name, "_test"), path.Base(path.Dir(s.path))} {
		if slices.Contains(empty, name) {
			return []string{s.at(s.ast.Name, "%q says nothing about what the package does", name)}
		}
	}
	return nil
}

var sentinel = regexp.MustCompile(`^Err[A-Z]`)

func checkVariables(s *source) (complaints []string) {
	for _, d := range s.ast.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				if name.IsExported() && !sentinel.MatchString(name.Name) {
					complaints = append(complaints, s.at(name, "exported variable %s", name.Name))
				}
			}
		}
	}
	return complaints
}

func checkPanic(s *source) (complaints []string) {
	excused := make(map[int]bool)
	for _, group := range s.ast.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "// unreachable:") {
				excused[s.fset.Position(c.Pos()).Line] = true
			}
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" && !excused[s.fset.Position(call.Pos()).Line] {
			complaints = append(complaints, s.at(call, "panic without a remark // unreachable: why"))
		}
		return true
	})
	return complaints
}

// integerLimit matches all in package math that is not a float.
var integerLimit = regexp.MustCompile(`^(Max|Min)U?[iI]nt`)

func checkFloats(s *source) (complaints []string) {
	math := s.importedAs("math")
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == math && !integerLimit.MatchString(n.Sel.Name) {
				complaints = append(complaints, s.at(n, "math.%s is about floats", n.Sel.Name))
			}
		case *ast.Ident:
			if n.Name == "float32" || n.Name == "float64" {
				complaints = append(complaints, s.at(n, "%s", n.Name))
			}
		case *ast.BasicLit:
			if n.Kind == token.FLOAT {
				complaints = append(complaints, s.at(n, "%s is a float; write the integer out", n.Value))
			}
		}
		return true
	})
	complaints = append(complaints, s.uses("strconv", "ParseFloat", "FormatFloat", "AppendFloat")...)
	return append(complaints, s.uses("math/big", "Float", "NewFloat", "ParseFloat")...)
}

func checkLength(s *source) []string {
	if n := bytes.Count(s.text, []byte("\n")); n > maxLines {
		return []string{fmt.Sprintf("%s has %d lines; split it by subject", s.path, n)}
	}
	return nil
}

// machine matches folders and package mirrors that only one machine knows. The
// words are cut in two, so that the check does not find this file.
var machine = regexp.MustCompile(`(?m)` + strings.Join([]string{
	"(?:^|[\\s\"'`(=:,<>\\[])/(?:wo" + `rk|ro` + `ot|home/[a-z]+)/`,
	`\bGO(?:PROXY|NOSUMDB|SUMDB)=\S`,
	`--index-` + `url[= ]`,
	`\b(?:goproxy|artifactory|mirrors?)\.[a-z0-9.-]+\.[a-z]{2,}`,
}, "|"))

// machineWords are texts of which each match has one: most files have none, and the expression takes long.
var machineWords = []string{"/wo" + "rk/", "/ro" + "ot/", "/home/", "PROXY=", "SUMDB=", "--index-" + "url", "goproxy" + ".", "artifactory" + ".", "mirror"}

// fictitious hosts (RFC 2606) are examples, whatever they are called.
var fictitious = regexp.MustCompile(`\.(?:example|example\.(?:com|net|org))$`)

func checkMachine(s *source) (complaints []string) {
	if !slices.ContainsFunc(machineWords, func(word string) bool { return bytes.Contains(s.text, []byte(word)) }) {
		return nil
	}
	for _, m := range machine.FindAllIndex(s.text, -1) {
		found := s.text[m[0]:m[1]]
		if !fictitious.Match(found) {
			line := 1 + bytes.Count(s.text[:m[0]], []byte("\n"))
			complaints = append(complaints, fmt.Sprintf("%s:%d: %q", s.path, line, found))
		}
	}
	return complaints
}
