package test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// messageList is the file with every message of the program, for translators and for people
// who write clients. A code that stands there never changes its meaning.
const messageList = "docs/messages.txt"

// TestHouseMessages makes sure that every error which the program makes is a message with a
// code and parameters, so that a program can tell errors apart and a page can say them in
// another language; and that the list of messages is complete. With -update it writes the
// list:
//
//	go test ./test -run TestHouseMessages -update
func TestHouseMessages(t *testing.T) {
	found := newMessages()
	for name := range repositoryFiles(t) {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if s := (&source{name, text, fset, file}); isProduct(s) && !isUnder(name, "bench", "tools", "cmd/stele/demo", "internal/recordtest") {
			found.files = append(found.files, s)
		}
	}
	for _, complaint := range found.check() {
		t.Error(complaint)
	}
	var list bytes.Buffer
	for _, code := range slices.Sorted(maps.Keys(found.texts)) {
		fmt.Fprintf(&list, "%s\t%s\n", code, found.texts[code])
	}
	file := filepath.Join(root, filepath.FromSlash(messageList))
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, list.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(list.Bytes(), want) {
		t.Errorf("%s is not the list of messages: the code makes other ones (-), or the file has others (+); 'go test ./test -run TestHouseMessages -update' writes it\n%s",
			messageList, differingLines(list.String(), string(want)))
	}
}

// TestHouseMessagesSeen makes sure that the rule complains of what it is for.
func TestHouseMessagesSeen(t *testing.T) {
	const head = "package a\nimport (\n\"errors\"\n\"fmt\"\n\"github.com/stele-id/stele\"\n)\n" +
		"func refuse(kind stele.Kind, code, text string, args ...any) error { return stele.Errorf(\"a\", stele.ID{}, kind, code, text, args...) }\n"
	for name, c := range map[string]struct{ text, want string }{
		"a message":            {`var e = stele.Messagef("a.b", "it has {bytes} bytes", n)`, ""},
		"a wrapper":            {`var e = refuse(stele.Invalid, "a.b", "{x} is {y}, {x}", x, y)`, ""},
		"a place":              {`var e = fmt.Errorf("%s: %w", x, err)`, ""},
		"a place by a wrapper": {`var e = refuse(stele.Invalid, "", "{cause}", err)`, ""},
		"the old way":          {`var e = fmt.Errorf("it has %d bytes", n)`, "has no code"},
		"plain":                {`var e = errors.New("no")`, "has no code"},
		"too few":              {`var e = refuse(stele.Invalid, "a.b", "{x} is {y}", x)`, "2 parameters and 1 argument"},
		"too many":             {`var e = refuse(stele.Invalid, "a.b", "{x} is {x}", x, x)`, "1 parameters and 2 argument"},
		"verbs":                {`var e = stele.Messagef("a.b", "it is %d", n)`, "0 parameters and 1 argument"},
		"no code":              {`var e = stele.Messagef("it is bad", "{x}", n)`, "is not a code"},
		"words without code":   {`var e = stele.Messagef("", "on {x}: {cause}", n, err)`, "has words and no code"},
		"a made text":          {`var e = stele.Messagef("a.b", "it is "+x)`, "is not a literal"},
		"a made code":          {`var e = stele.Messagef(x, "it is")`, "is not a literal"},
		"two texts":            {`var e = stele.Messagef("a.b", "one"); var f = stele.Messagef("a.b", "two")`, "has two texts"},
		"two codes":            {`var e = stele.Messagef("a.b", "{x}"); var f = stele.Messagef("a.c", "{x}")`, "have one text"},
	} {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, "a/a.go", head+c.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(name, err)
		}
		found := newMessages()
		found.files = []*source{{"a/a.go", nil, fset, file}}
		got := strings.Join(found.check(), "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// messages are the messages of the program's files.
type messages struct {
	files      []*source
	makers     map[string]map[string][]int // by folder and name of a function: which parameter is the code
	texts      map[string]string           // by code
	complaints []string
}

func newMessages() *messages {
	return &messages{texts: make(map[string]string), makers: map[string]map[string][]int{
		// What other packages call as stele.Messagef, or as a method of stele.Report.
		"": {"Messagef": {0}, "Errorf": {3}, "Invalidf": {2}, "Addf": {1}},
	}}
}

func (m *messages) complain(s *source, n ast.Node, format string, args ...any) {
	m.complaints = append(m.complaints, fmt.Sprintf("%s: %s", s.fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
}

func (m *messages) check() []string {
	for _, s := range m.files {
		m.findMakers(s)
	}
	for _, s := range m.files {
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				m.call(s, call)
			}
			return true
		})
	}
	codes := make(map[string]string, len(m.texts)) // by text
	for _, code := range slices.Sorted(maps.Keys(m.texts)) {
		text := m.texts[code]
		if other := codes[text]; other != "" {
			m.complaints = append(m.complaints, fmt.Sprintf("%s and %s have one text: %s", other, code, text))
		}
		codes[text] = code
	}
	return m.complaints
}

// findMakers notes the functions of a file that take the code of a message, its text and its
// arguments last, by these names.
func (m *messages) findMakers(s *source) {
	folder := path.Dir(s.path)
	if m.makers[folder] == nil {
		m.makers[folder] = make(map[string][]int)
	}
	note := func(name string, t *ast.FuncType) {
		var names []string
		for _, f := range t.Params.List {
			for _, n := range f.Names {
				names = append(names, n.Name)
			}
		}
		if n := len(names); n >= 3 && slices.Equal(names[n-3:], []string{"code", "text", "args"}) {
			m.makers[folder][name] = append(m.makers[folder][name], n-3)
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			note(n.Name.Name, n.Type)
		case *ast.AssignStmt:
			for i, right := range n.Rhs {
				if f, ok := right.(*ast.FuncLit); ok && i < len(n.Lhs) {
					if id, ok := n.Lhs[i].(*ast.Ident); ok {
						note(id.Name, f.Type)
					}
				}
			}
		case *ast.Field: // a function that is given to another
			if f, ok := n.Type.(*ast.FuncType); ok && len(n.Names) == 1 {
				note(n.Names[0].Name, f)
			}
		}
		return true
	})
}

var (
	codeShape   = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*$`)
	placeholder = regexp.MustCompile(`\{[a-z][a-z0-9-]*\}`)
	formatVerb  = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z]`)
	letters     = regexp.MustCompile(`\p{L}\p{L}`)
)

// call checks a call that makes a message or an error.
func (m *messages) call(s *source, call *ast.CallExpr) {
	name, of := "", ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
		if id, ok := f.X.(*ast.Ident); ok {
			of = id.Name
		}
	}
	switch {
	case of == "errors" && name == "New", of == "fmt" && name == "Errorf":
		text, ok := literal(call.Args[0])
		if name == "New" || !ok || hasWords(formatVerb.ReplaceAllString(text, "")) {
			m.complain(s, call, "this error has no code; make it with stele.Messagef")
		}
		return
	}
	places := m.makers[path.Dir(s.path)][name]
	switch {
	case of == "stele" || name == "Addf" && places == nil:
		places = m.makers[""][name]
	case of == "usage": // the commands' own, cmd/stele/usage
		places = m.makers["cmd/stele/usage"][name]
	}
	if places = slices.DeleteFunc(slices.Clone(places), func(at int) bool { return len(call.Args) < at+2 }); len(places) == 0 {
		return
	}
	at := places[0]
	for _, other := range places { // functions of one name may differ; code and text are literals
		_, isCode := literal(call.Args[other])
		_, isText := literal(call.Args[other+1])
		if isCode && isText {
			at = other
		}
	}
	if id, ok := call.Args[at].(*ast.Ident); ok && id.Name == "code" && call.Ellipsis.IsValid() {
		return // passed on
	}
	code, isCode := literal(call.Args[at])
	text, isText := literal(call.Args[at+1])
	if !isCode || !isText {
		m.complain(s, call, "the code or the text of the message is not a literal, so it can't be listed")
		return
	}
	if code == "" {
		if hasWords(placeholder.ReplaceAllString(text, "")) {
			m.complain(s, call, "the message %q has words and no code", text)
		}
	} else if !codeShape.MatchString(code) {
		m.complain(s, call, "%q is not a code", code)
	}
	names := make(map[string]bool)
	for _, p := range placeholder.FindAllString(text, -1) {
		names[p] = true
	}
	if n := len(call.Args) - at - 2; n != len(names) && !call.Ellipsis.IsValid() {
		m.complain(s, call, "the message %q has %d parameters and %d arguments", text, len(names), n)
	}
	if known, ok := m.texts[code]; ok && known != text {
		m.complain(s, call, "the code %s has two texts: %q and %q", code, known, text)
	}
	if code != "" {
		m.texts[code] = text
	}
}

// hasWords reports whether the text around parameters is in a language. The name of a flag, a
// setting or a field before a colon is not.
func hasWords(text string) bool {
	name, _, ok := strings.Cut(text, ": ")
	return letters.MatchString(text) && (!ok || strings.Contains(name, " ") || letters.MatchString(text[len(name):]))
}

// literal returns the value of a string literal.
func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// differingLines returns some of the lines that only one of two texts has.
func differingLines(a, b string) string {
	const most = 20
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	var list []string
	for _, line := range left {
		if _, ok := slices.BinarySearch(right, line); !ok && !slices.Contains(right, line) {
			list = append(list, "- "+line)
		}
	}
	for _, line := range right {
		if !slices.Contains(left, line) {
			list = append(list, "+ "+line)
		}
	}
	return strings.Join(list[:min(len(list), most)], "\n")
}
