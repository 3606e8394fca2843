package foreign

import (
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/stele-id/stele"
)

// maxOBOEntries bounds the redirects and tests of a file.
const maxOBOEntries = 20_000

// oboFile is the file of a project.
type oboFile struct {
	name     string
	idspace  string // such as CHEBI
	base     string // base_url, such as /obo/chebi
	redirect []*oboEntry
	products []*oboEntry
	term     []*oboEntry
	entries  []*oboEntry
	checks   []oboCheck
	unknown  []oboWrong // keys
	comment  string     // that no record keeps
}

// oboCheck is a test of a file: the path where it begins, from the root, and where it leads.
type oboCheck struct {
	line     int
	from, to string
	status   int // 0 if the file does not say it
}

// oboWrong is what can't be read of a file.
type oboWrong struct {
	line int
	text string
	err  error
}

// isRoot reports whether the file is that of the root.
func (f *oboFile) isRoot() bool { return f.base+"/" == oboRoot }

// folders returns the folders of a project: the server has it by the name in base_url and by its idspace.
func (f *oboFile) folders() []string {
	usual := f.base + "/"
	if other := path.Dir(f.base) + "/" + f.idspace + "/"; other != usual && strings.EqualFold(other, usual) {
		return []string{usual, other}
	}
	return []string{usual}
}

// all returns all redirects of a file.
func (f *oboFile) all() []*oboEntry { return slices.Concat(f.redirect, f.products, f.term, f.entries) }

// oboReader reads a file.
type oboReader struct {
	f     *oboFile
	wrong []oboWrong
	count int
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

// readOBO reads the file of a project: nil if it is that of something else, or can't be read. What is wrong with
// parts of it is told, and the rest is read.
func readOBO(t treeFile) (*oboFile, []oboWrong) {
	r := &oboReader{f: &oboFile{name: t.name}}
	root, err := parseYAML(t.text)
	if err != nil {
		line := 1
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1])
		}
		return nil, []oboWrong{{line, "the file", err}}
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, nil
	}
	top := r.mapping(root)
	if top["idspace"].value == nil && top["base_url"].value == nil {
		return nil, r.wrong
	}
	if !r.heading(top) {
		return nil, r.wrong
	}
	r.body(top)
	r.comments(root, top)
	for _, key := range sortedKeys(top) {
		if !slices.Contains([]string{"idspace", "base_url", "base_redirect", "products", "term_browser", "example_terms", "tests", "entries"}, key) {
			r.f.unknown = append(r.f.unknown, oboWrong{top[key].key.Line, key, nil})
		}
	}
	return r.f, r.wrong
}

// parseYAML reads a document. It has no aliases, so that nothing in it is larger than its text.
func parseYAML(text string) (*yaml.Node, error) {
	d := yaml.NewDecoder(strings.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, stele.Messagef("import.obo-unreadable", "the file is not YAML: {cause}", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, stele.Messagef("import.obo-documents", "the file has more than one document of YAML; only one is read")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	root := doc.Content[0]
	root.HeadComment, root.FootComment = joined(doc.HeadComment, root.HeadComment), joined(root.FootComment, doc.FootComment)
	return root, nil
}

// pair is a key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

func sortedKeys(m map[string]pair) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return m[a].key.Line - m[b].key.Line })
	return keys
}

func (r *oboReader) refuse(n *yaml.Node, entry, code, text string, args ...any) {
	if len(r.wrong) < maxOBOEntries {
		r.wrong = append(r.wrong, oboWrong{n.Line, entry, stele.Messagef(code, text, args...)})
	}
}

// mapping returns the pairs of a mapping. The first of two with the same key is taken, and the other refused.
func (r *oboReader) mapping(n *yaml.Node) map[string]pair {
	m := make(map[string]pair, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch _, twice := m[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			r.refuse(key, "a key", "import.obo-key-not-text", "a key is not text")
		case twice:
			r.refuse(key, key.Value, "import.obo-key-twice", "{key} stands here for the second time", key.Value)
		default:
			m[key.Value] = pair{key, n.Content[i+1]}
		}
	}
	return m
}

// text returns a value that is text; false if it is missing or is something else, which is refused.
func (r *oboReader) text(m map[string]pair, key string) (string, bool) {
	p := m[key]
	if p.value == nil {
		return "", false
	}
	if p.value.Kind != yaml.ScalarNode || p.value.Tag == "!!null" {
		r.refuse(p.key, key, "import.obo-not-text", "{key} is not text", key)
		return "", false
	}
	return strings.TrimSpace(p.value.Value), true
}

// list returns the items of a list, which may be missing.
func (r *oboReader) list(m map[string]pair, key string) []*yaml.Node {
	p := m[key]
	switch {
	case p.value == nil || p.value.Kind == yaml.ScalarNode && p.value.Tag == "!!null":
		return nil
	case p.value.Kind != yaml.SequenceNode:
		r.refuse(p.key, key, "import.obo-not-a-list", "{key} is not a list", key)
		return nil
	}
	room := max(0, maxOBOEntries-r.count)
	if r.count += len(p.value.Content); len(p.value.Content) > room {
		r.refuse(p.key, key, "import.obo-too-many", "the file has more than {most} redirects and tests; divide it", maxOBOEntries)
		return p.value.Content[:room]
	}
	return p.value.Content
}

var oboSpace = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// heading reads what says whose file it is.
func (r *oboReader) heading(top map[string]pair) bool {
	var ok bool
	for _, key := range []string{"idspace", "base_url"} {
		if top[key].value == nil {
			r.wrong = append(r.wrong, oboWrong{1, key, stele.Messagef("import.obo-key-missing", "the file has no {key}", key)})
			return false
		}
	}
	if r.f.idspace, ok = r.text(top, "idspace"); !ok {
		return false
	}
	if !oboSpace.MatchString(r.f.idspace) {
		r.refuse(top["idspace"].key, r.f.idspace, "import.obo-idspace", "an idspace has letters, digits and underscores, and begins with a letter")
		return false
	}
	if r.f.base, ok = r.text(top, "base_url"); !ok {
		return false
	}
	r.f.base = strings.TrimSuffix(r.f.base, "/")
	if !strings.HasPrefix(r.f.base+"/", oboRoot) || path.Clean(r.f.base) != r.f.base {
		r.refuse(top["base_url"].key, r.f.base, "import.obo-base-url", "a base_url is a path that begins with {root}", oboRoot)
		return false
	}
	return true
}

// below returns a path from the root.
func (f *oboFile) below(path string) string {
	return strings.TrimPrefix(f.base+path, strings.TrimSuffix(oboRoot, "/"))
}

func (r *oboReader) body(top map[string]pair) {
	f := r.f
	if to, ok := r.text(top, "base_redirect"); ok {
		key := top["base_redirect"].key
		if f.isRoot() {
			r.refuse(key, "base_redirect", "import.obo-base-root", "a redirect of the beginning of all names is not a name here; set it up at the web server")
		} else {
			f.redirect = append(f.redirect, &oboEntry{file: f, kind: "exact", path: f.below(""), to: to, status: 302, line: key.Line, text: "base_redirect", comment: commentsIn(top["base_redirect"].value)})
		}
	}
	for _, n := range r.list(top, "products") {
		if n.Kind != yaml.MappingNode || len(n.Content) != 2 {
			r.refuse(n, "products", "import.obo-product", "a product is one name with one URL")
			continue
		}
		m := r.mapping(n)
		for name := range m {
			if to, ok := r.text(m, name); ok {
				f.products = append(f.products, &oboEntry{file: f, kind: "exact", path: "/" + name, to: to, status: 302, line: n.Line, text: "products: " + name, comment: commentsIn(n)})
			}
		}
	}
	browser := r.browser(top)
	for _, n := range r.list(top, "example_terms") {
		if n.Kind != yaml.ScalarNode {
			r.refuse(n, "example_terms", "import.obo-not-text", "{key} is not text", "example_terms")
			continue
		}
		if number, ok := strings.CutPrefix(n.Value, f.idspace+"_"); ok && browser != "" {
			f.checks = append(f.checks, oboCheck{n.Line, "/" + n.Value, strings.ReplaceAll(browser, "$1", number), 303})
		}
	}
	for _, n := range r.list(top, "tests") {
		r.test(n, 0)
	}
	for _, n := range r.list(top, "entries") {
		r.entry(n)
	}
}

// browser reads where terms lead, and returns the URL of a term, in which $1 is its number; "" if the file does not say it.
func (r *oboReader) browser(top map[string]pair) string {
	name, ok := r.text(top, "term_browser")
	if !ok {
		return ""
	}
	f, url := r.f, ""
	switch strings.ToLower(name) {
	case "custom":
		return ""
	case "ontobee":
		url = fmt.Sprintf("http://www.ontobee.org/browser/rdf.php?o=%s&iri=http://purl.obolibrary.org/obo/%[1]s_$1", f.idspace)
	case "ols":
		url = "https://www.ebi.ac.uk/ols4/ontologies/" + strings.ToLower(f.idspace) + "/terms/http%253A%252F%252Fpurl.obolibrary.org%252Fobo%252F" + f.idspace + "_$1"
	default:
		r.refuse(top["term_browser"].key, "term_browser: "+name, "import.obo-browser-unknown", "the browser of terms {name} is not known; it is ontobee, ols or custom", name)
		return ""
	}
	f.term = append(f.term, &oboEntry{file: f, kind: "regex", regex: "^" + oboRoot + f.idspace + `_(\d+)$`, to: url, status: 303, line: top["term_browser"].key.Line, text: "term_browser: " + name})
	return url
}

// test reads a test.
func (r *oboReader) test(n *yaml.Node, status int) {
	if n.Kind != yaml.MappingNode {
		r.refuse(n, "tests", "import.obo-test", "a test has a path (from) and a URL (to)")
		return
	}
	m := r.mapping(n)
	from, ok := r.text(m, "from")
	to, also := r.text(m, "to")
	if !ok || !also || !strings.HasPrefix(from, "/") {
		r.refuse(n, "tests", "import.obo-test", "a test has a path (from) and a URL (to)")
		return
	}
	r.f.checks = append(r.f.checks, oboCheck{n.Line, r.f.below(from), to, status})
}

var oboStatus = map[string]int{"": 302, "permanent": 301, "temporary": 302, "see other": 303}

// entry reads an item of the entries.
func (r *oboReader) entry(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		r.refuse(n, "entries", "import.obo-entry", "an entry is not a mapping with a replacement")
		return
	}
	m := r.mapping(n)
	e := &oboEntry{file: r.f, line: n.Line, comment: commentsIn(n)}
	for _, kind := range []string{"exact", "prefix", "regex"} {
		value, ok := r.text(m, kind)
		switch {
		case !ok:
			continue
		case e.kind != "":
			r.refuse(n, e.text, "import.obo-entry-kinds", "an entry is exact, a prefix or a regex, and not two of them")
			return
		}
		e.kind, e.text = kind, kind+": "+value
		if kind == "regex" {
			e.regex = value
		} else {
			e.path = value
		}
	}
	for _, key := range sortedKeys(m) {
		if !slices.Contains([]string{"exact", "prefix", "regex", "replacement", "status", "tests"}, key) {
			r.f.unknown = append(r.f.unknown, oboWrong{m[key].key.Line, key, nil})
		}
	}
	word, _ := r.text(m, "status")
	var ok bool
	switch e.to, ok = r.text(m, "replacement"); {
	case e.kind == "":
		r.refuse(n, "entries", "import.obo-entry-kind-missing", "an entry has one of exact, prefix and regex")
		return
	case !ok || e.to == "":
		r.refuse(n, e.text, "import.obo-replacement-missing", "the entry has no replacement")
		return
	case e.kind != "regex" && !strings.HasPrefix(e.path, "/"):
		r.refuse(n, e.text, "import.obo-path", "the path of an entry begins with a slash")
		return
	case oboStatus[word] == 0:
		r.refuse(n, e.text, "import.obo-status", "the status {status} is not known; it is permanent, temporary or see other", word)
		return
	}
	e.status = oboStatus[word]
	r.f.entries = append(r.f.entries, e)
	for _, t := range r.list(m, "tests") {
		r.test(t, e.status)
	}
}

// commentsIn returns the comments at a part of a file and in it, without their marks.
func commentsIn(nodes ...*yaml.Node) string { return strings.Join(commentLines(nil, nodes...), "\n") }

// commentLines appends these comments, each line by itself: a file may be one long comment.
func commentLines(list []string, nodes ...*yaml.Node) []string {
	for _, n := range nodes {
		for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
			for line := range strings.Lines(c) {
				if line = strings.Trim(line, "# \t\n"); line != "" {
					list = append(list, line)
				}
			}
		}
		list = commentLines(list, n.Content...)
	}
	return list
}

// comments gives the comments that are not at redirects to the first redirect of one name, whose record keeps them.
func (r *oboReader) comments(root *yaml.Node, top map[string]pair) {
	own := *root
	own.Content = nil
	list := commentLines(nil, &own)
	for _, key := range sortedKeys(top) {
		list = commentLines(list, top[key].key)
		value := *top[key].value
		if key == "entries" || key == "products" {
			value.Content = nil
		}
		if key != "base_redirect" {
			list = commentLines(list, &value)
		}
	}
	text := strings.Join(list, "\n")
	all := r.f.all()
	if i := slices.IndexFunc(all, func(e *oboEntry) bool { return e.kind == "exact" }); i >= 0 {
		all[i].comment = joined(text, all[i].comment)
	} else {
		r.f.comment = text
	}
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
