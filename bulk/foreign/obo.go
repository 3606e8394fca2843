package foreign

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign/webrules"
)

// The formats of files of the OBO Foundry.
const (
	OBOFile Format = "yaml" // of one project
	OBOTree Format = "tar"  // of many
)

// What names of the OBO Foundry begin with: here, and as its server sees them.
const (
	oboBase = "https://purl.obolibrary.org/obo/"
	oboRoot = "/obo/"
)

var oboStart, oboURL = regexp.MustCompile(`(?m)^idspace[ \t]*:[ \t]*\S`), regexp.MustCompile(`(?m)^base_url[ \t]*:[ \t]*['"]?/obo`)

func detectOBO(head []byte) Format {
	switch {
	case isTar(head):
		return OBOTree
	case oboStart.Match(head) && oboURL.Match(head):
		return OBOFile
	}
	return unknown
}

// isOBO reports whether a file can't be that of another system. Archives of other systems have other files.
func isOBO(head []byte) bool { return !isTar(head) || isOBOFile(path.Base(tarName(head))) }

func isOBOFile(base string) bool {
	ext := path.Ext(base)
	return ext == ".yml" || ext == ".yaml"
}

// oboEntry is a redirect of a file.
type oboEntry struct {
	file    *oboFile
	kind    string // exact, prefix or regex
	path    string // after the file's base_url, or after the root if the redirect is not one of the entries
	regex   string // of whole paths
	to      string
	status  int
	line    int
	text    string // as the file has it
	comment string

	err  error // why it can't be said here
	read bool  // it is said by a record or a rule
	lost bool  // the namespace that it needs is not there
}

// redirect returns the entry as a redirect of the folder with a path. Prefixes are for names in upper and lower case, as those of
// the server that reads the files are. Exact names are as they are written: they are records.
func (e *oboEntry) redirect(folder string) *webrules.Redirect {
	d := &webrules.Redirect{Line: e.line, Text: e.file.name + ": " + e.text, Pattern: e.regex, To: sentURL(e.to), Status: e.status}
	whole := regexp.QuoteMeta(strings.TrimSuffix(folder, "/") + e.path)
	switch e.kind {
	case "exact":
		d.Pattern = "^" + whole + "$"
	case "prefix":
		d.Pattern, d.To = "(?i)^"+whole+"(.*)$", d.To+"$1"
	}
	return d
}

// sentURL returns a URL of a file as the server of the OBO Foundry sends it. Its tool decodes the URL; Apache httpd encodes the path again, and
// leaves query and fragment as they are. What can't stand in a URL stays encoded.
func sentURL(text string) string {
	i := strings.IndexAny(text, "?#")
	if i < 0 {
		return text
	}
	after, err := url.PathUnescape(text[i:])
	if err != nil || strings.ContainsFunc(after, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"<>\^`+"`{|}", c) }) {
		return text
	}
	return text[:i] + after
}

// start returns what all paths that an entry of the root is for begin with.
func (e *oboEntry) start() string {
	if e.kind != "regex" {
		return strings.TrimSuffix(oboRoot, "/") + e.path
	}
	text := strings.TrimPrefix(e.regex, "^")
	if i := strings.IndexAny(text, `\.+*?()|[]{}^$`); i >= 0 {
		if strings.IndexByte("*?{", text[i]) >= 0 {
			i = max(0, i-1)
		}
		text = text[:i]
	}
	return text
}

// oboFolder is names that have their own list of redirects: those in a folder, or those of the terms of a project.
type oboFolder struct {
	path   string
	file   string      // for messages
	own    []*oboEntry // whose paths are in the folder
	shared []*oboEntry // of the root, which are tried after the folder's own
}

func openOBO(s *Source, texts []*window) []part {
	return []part{&rowsPart{s: s, load: func() ([]bulk.Row, error) {
		files, err := s.readTree(texts, OBOTree, isOBOFile)
		if err != nil {
			return nil, err
		}
		base, err := s.webBase(oboBase)
		if err != nil {
			return nil, err
		}
		return s.oboRows(base, files), nil
	}}}
}

// compareSpaces compares projects as the tool of the OBO Foundry does, whatever the case of letters: of two of which one begins
// with the other, the longer comes first.
func compareSpaces(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) {
		return cmp.Compare(len(b), len(a))
	}
	return strings.Compare(a, b)
}

// oboRows returns the namespaces and records of all projects.
func (s *Source) oboRows(base string, texts []treeFile) (rows []bulk.Row) {
	var files []*oboFile
	for _, t := range texts {
		f, wrong := readOBO(t)
		for _, w := range wrong {
			rows = append(rows, bulk.Row{Line: w.line, Text: []byte(t.name + ": " + w.text), Err: &stele.Error{Op: "import", Kind: stele.Invalid, Err: stele.Reason(w.err)}})
		}
		switch {
		case f == nil && len(wrong) == 0:
			s.note("import.obo-not-a-project", "{file} has neither idspace nor base_url; it is not the file of a project, and is left out", t.name)
		case f != nil:
			files = append(files, f)
			for _, u := range f.unknown {
				s.note("import.obo-key-unknown", "{file}, line {line}: {key} is not known, and is left out", t.name, u.line, u.text)
			}
		}
	}
	slices.SortStableFunc(files, func(a, b *oboFile) int { return compareSpaces(a.idspace, b.idspace) })
	tally := new(w3idTally)
	comments := make(map[string]*oboEntry) // by directive
	work := cmp.Or(s.o.Work, webrules.MaxTreeWork)
	for _, f := range oboFolders(files) {
		rows = append(rows, s.oboFolder(base, f, tally, comments, &work)...)
	}
	rows = append(rows, s.oboSettle(files, tally)...)
	s.tellW3ID(rows, tally)
	s.oboChecks(base, files, rows)
	return rows
}

// oboFolders returns the lists of redirects: that of the root, which has what all projects share, then those of the
// projects and of their terms.
func oboFolders(files []*oboFile) []*oboFolder {
	root := &oboFolder{path: oboRoot}
	var shared []*oboEntry
	add := func(f *oboFile, list ...*oboEntry) {
		if root.file == "" && len(list) > 0 {
			root.file = f.name
		}
		shared = append(shared, list...)
	}
	for _, f := range files {
		if f.isRoot() {
			add(f, f.entries...)
		}
	}
	for _, f := range files {
		add(f, f.redirect...)
	}
	for _, f := range files {
		add(f, f.products...)
	}
	for _, f := range files {
		add(f, f.term...)
	}
	byPath := make(map[string]*oboFolder)
	list := []*oboFolder{root}
	folder := func(f *oboFile, path string) *oboFolder {
		sub := byPath[path]
		if sub == nil {
			sub = &oboFolder{path: path, file: f.name}
			byPath[path] = sub
			list = append(list, sub)
		}
		return sub
	}
	for _, f := range files {
		if !f.isRoot() && len(f.entries) > 0 {
			for _, path := range f.folders() {
				sub := folder(f, path)
				sub.own = append(sub.own, f.entries...)
			}
		}
	}
	for _, f := range files {
		terms := oboRoot + f.idspace + "_"
		if slices.ContainsFunc(shared, func(e *oboEntry) bool { return e.kind != "exact" && strings.HasPrefix(e.start(), terms) }) {
			folder(f, terms)
		}
	}
	for _, e := range shared {
		start, inside := e.start(), false
		for _, sub := range list[1:] {
			below := strings.HasPrefix(start, sub.path)
			if below || e.kind != "exact" && strings.HasPrefix(strings.ToLower(sub.path), strings.ToLower(start)) {
				sub.shared = append(sub.shared, e)
			}
			inside = inside || below
		}
		if !inside {
			root.shared = append(root.shared, e)
		}
	}
	return list
}

// oboFolder returns the rows of a folder.
func (s *Source) oboFolder(base string, f *oboFolder, tally *w3idTally, entries map[string]*oboEntry, work *int) (rows []bulk.Row) {
	var list []*webrules.Rule
	var of []*oboEntry
	shares, patterns := false, 0
	add := func(e *oboEntry, where string) bool {
		d := e.redirect(where)
		r := d.Rule(f.path)
		if !r.IsBelow() {
			return false
		}
		if e.kind != "exact" {
			patterns++
		}
		if patterns > stele.MaxRules { // each is compared with all others; those after it may be for its names
			if e.err == nil {
				e.err = stele.Messagef("import.obo-patterns", "{folder} has more than {most} prefixes and regular expressions before it, and a namespace has no more rules", f.path, stele.MaxRules)
			}
			return false
		}
		list, of = append(list, r), append(of, e)
		entries[oboKey(e.line, d.Text)] = e
		return true
	}
	for _, e := range f.own {
		add(e, f.path)
	}
	for _, e := range f.shared {
		shares = add(e, oboRoot) || shares
	}
	o := webrules.Options{Schemes: s.o.Schemes, Base: base + escapePath(f.path[len(oboRoot):]), Path: f.path, Work: work}
	result := webrules.Compile(list, o)
	idle := make(map[*webrules.Rule]bool)
	for _, r := range result.Idle {
		idle[r] = true
	}
	for _, r := range result.Refused {
		idle[r.Rule] = true
		if e := of[slices.Index(list, r.Rule)]; e.err == nil {
			e.err = r.Err
		}
	}
	if !shares {
		result.Merge()
	}
	had := len(result.Rules)
	var made w3idTally // redirects are counted once, whatever the number of their folders
	rows = s.w3idNamespace(&w3idFolder{path: f.path, file: f.file}, o, result, false, &made)
	var ruled []*oboEntry
	for i, e := range of {
		switch lost := had > len(result.Rules) && e.kind != "exact"; {
		case lost:
			e.lost = true
		case !idle[list[i]]:
			if e.read = true; e.kind != "exact" {
				ruled = append(ruled, e)
			}
		}
	}
	for _, space := range made.spaces {
		tally.spaces = append(tally.spaces, w3idSpace{ns: space.ns, entries: ruled})
	}
	for _, r := range result.Records {
		name := o.Base + r.Name // a path on the server, as a URL
		id, err := s.o.Schemes.Parse(name)
		if err != nil {
			entries[oboKey(r.Line, r.Text)].err = err
			continue
		}
		b := newBuilder(id)
		b.rec.Targets = r.Targets
		if e := entries[oboKey(r.Line, r.Text)]; e != nil {
			b.keep("obo.idspace", e.file.idspace)
			s.keepLong(b, e.file.name, "obo.comment", e.comment)
		}
		rows = append(rows, bulk.Row{Line: r.Line, Text: []byte(r.Text), Record: b.finish("obo")})
	}
	return rows
}

func oboKey(line int, text string) string { return fmt.Sprint(line, " ", text) }

// oboSettle returns the rows of redirects that can't be said here, and tells what became of all.
func (s *Source) oboSettle(files []*oboFile, tally *w3idTally) (rows []bulk.Row) {
	comments := 0
	for _, f := range files {
		if f.comment != "" {
			comments++
		}
		for _, e := range f.all() {
			tally.all++
			switch {
			case e.err != nil:
				rows = append(rows, s.w3idRefused(f.name, e.line, e.text, e.err))
				tally.refused++
			case e.lost:
				tally.refused++
			case e.read:
				tally.read++
			default:
				tally.idle++
				s.note("import.w3id-never-answers", "{file}, line {line} never answers, because of the directives before it: {text}", f.name, e.line, e.text)
			}
			if e.comment != "" && e.kind != "exact" {
				comments++
			}
		}
	}
	if comments > 0 {
		s.note("import.obo-comments", "{count} blocks of comments are not kept, since what they stand at became rules, which have no metadata", comments)
	}
	return rows
}
