package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign/webrules"
	"github.com/stele-id/stele/rules"
)

// The formats of files of w3id.org.
const (
	W3IDFile Format = "htaccess" // of one folder
	W3IDTree Format = "tar"      // of many
)

// w3idBase is what names of w3id.org begin with.
const w3idBase = "https://w3id.org/"

var htaccessLine = regexp.MustCompile(`(?im)^[ \t]*(RewriteEngine|RewriteRule|RewriteCond|RedirectMatch|Redirect)[ \t]+\S`)

func detectW3ID(head []byte) Format {
	switch {
	case isTar(head):
		return W3IDTree
	case htaccessLine.Match(head):
		return W3IDFile
	}
	return unknown
}

// isW3ID reports whether a file can't be that of another system. Archives of other systems have other files.
func isW3ID(head []byte) bool { return !isTar(head) || isW3IDFile(path.Base(tarName(head))) }

func isW3IDFile(base string) bool { return base == ".htaccess" || strings.EqualFold(base, "readme.md") }

// w3idFolder is a folder of w3id.org.
type w3idFolder struct {
	path   string // between slashes; "" for the root
	file   string
	text   string
	readme string
}

// w3idTally is what became of the directives of all folders.
type w3idTally struct {
	all, read, idle, refused, ignored int

	spaces []w3idSpace
}

// w3idSpace is a namespace whose rules are imported, and how many directives are in them only.
type w3idSpace struct {
	ns      *stele.Namespace
	inRules int
	entries []*oboEntry // the same of the OBO Foundry, whose namespaces share some
}

func openW3ID(s *Source, texts []*window) []part {
	return []part{&rowsPart{s: s, load: func() ([]bulk.Row, error) {
		files, err := s.readTree(texts, W3IDTree, isW3IDFile)
		if err != nil {
			return nil, err
		}
		base, err := s.webBase(w3idBase)
		if err != nil {
			return nil, err
		}
		tally := new(w3idTally)
		rows := s.w3idRows(base, w3idFolders(files), tally)
		s.tellW3ID(rows, tally)
		return rows, nil
	}}}
}

// webBase returns what names begin with, in their canonical form, and makes sure that such names are known.
func (s *Source) webBase(usual string) (string, error) {
	base := s.o.Prefix
	if base == "" {
		base = usual
	}
	if !strings.HasSuffix(base, "/") {
		base += "/"
	}
	_, sample, err := s.webPrefix(base)
	if err != nil {
		u, wrong := url.Parse(base)
		if wrong != nil || u.Host == "" {
			return "", failf(stele.Invalid, "import.web-base-wrong", "{base} is not the beginning of URLs, such as https://w3id.org/; give another --prefix", base)
		}
		return "", failf(stele.Invalid, "import.web-host-missing", "names at {host} are not known here ({cause}); add the host with 'stele purl-host add {host}', or give another --prefix", u.Host, stele.Reason(err))
	}
	return sample, nil
}

// webPrefix returns the beginning of names in its canonical form, and the key of the namespace that has it.
func (s *Source) webPrefix(base string) (key stele.NamespaceKey, canonical string, err error) {
	for scheme := range s.o.Schemes.All() {
		var prefix stele.Prefix
		if prefix, _, err = scheme.ParsePrefix(base); err == nil {
			return stele.NamespaceKey{Scheme: scheme.Name(), Prefix: prefix.String()}, prefix.String(), nil
		}
	}
	return key, "", err
}

// w3idFolders puts files into folders, in the order of their paths.
func w3idFolders(files []treeFile) (list []*w3idFolder) {
	byPath := make(map[string]*w3idFolder)
	for _, f := range files {
		dir := path.Dir(path.Clean("/" + f.name))
		if dir != "/" {
			dir += "/"
		}
		folder := byPath[dir]
		if folder == nil {
			folder = &w3idFolder{path: dir}
			byPath[dir] = folder
			list = append(list, folder)
		}
		if path.Base(f.name) == ".htaccess" || !isW3IDFile(path.Base(f.name)) {
			folder.file, folder.text = f.name, f.text
		} else {
			folder.readme = f.text
		}
	}
	list = slices.DeleteFunc(list, func(f *w3idFolder) bool { return f.file == "" })
	slices.SortFunc(list, func(a, b *w3idFolder) int { return strings.Compare(a.path, b.path) })
	return list
}

// w3idRows returns the namespaces and records of all folders.
func (s *Source) w3idRows(base string, folders []*w3idFolder, tally *w3idTally) (rows []bulk.Row) {
	work, inherited := cmp.Or(s.o.Work, webrules.MaxTreeWork), webrules.MaxInherited
	sources := make([]*webrules.Source, len(folders))
	answered := make(map[*webrules.Source]string) // by folder: the file of a folder above, whose rules answer in it
	var above []int
	for i, f := range folders { // paths are sorted, so that a folder comes before those below it
		for len(above) > 0 && !strings.HasPrefix(f.path, folders[above[len(above)-1]].path) {
			above = above[:len(above)-1]
		}
		var up *webrules.Source
		if len(above) > 0 {
			up = sources[above[len(above)-1]]
		}
		sources[i] = webrules.Read(f.text, up, &inherited)
		above = append(above, i)
	}
	var never [][3]any // directives that never answer: file, line and text
	under := ""        // a folder with rules: those below it need namespaces, as they have files of their own
	others := make(w3idSets)
	for i, f := range folders {
		// The path on the server is that of the base and of the folder.
		_, after, _ := strings.Cut(base, "://")
		_, root, _ := strings.Cut(after, "/")
		o := webrules.Options{Schemes: s.o.Schemes, Base: base + escapePath(f.path[1:]), Path: "/" + root + f.path[1:], Others: others.of, Work: &work}
		file := sources[i].Parse(o.Path)
		if by := answered[sources[i]]; by != "" {
			refused := file.RefuseAliases(by)
			for _, r := range refused {
				rows = append(rows, s.w3idRefused(f.file, r.Rule.Line, r.Rule.Text, r.Err))
			}
			tally.all += len(file.Rules)
			tally.refused += len(refused)
			tally.idle += len(file.Rules) - len(refused)
			tally.ignored += len(file.Ignored)
			rows = append(rows, s.w3idRecords(f, o, file, new(webrules.Result))...)
			continue
		}
		for k, g := range folders[i+1:] {
			rest, ok := strings.CutPrefix(g.path, f.path)
			if !ok { // paths are sorted
				break
			}
			if below := sources[i+1+k]; below.IsOf(sources[i]) && file.Reaches(rest, &work) {
				answered[below] = f.file
				continue
			}
			o.Folders = append(o.Folders, strings.TrimSuffix(rest, "/"))
		}
		result := webrules.Compile(file.Rules, o)
		own := s.tallyOwn(file, result, tally)
		for _, r := range result.Idle {
			if !r.Inherited && len(never) >= maxNotes {
				s.unnoted++
			} else if !r.Inherited {
				never = append(never, [3]any{f.file, r.Line, r.Text})
			}
		}
		for _, r := range own {
			rows = append(rows, s.w3idRefused(f.file, r.Rule.Line, r.Rule.Text, r.Err))
		}
		if len(o.Folders) == 0 { // a partial target would answer for names of the folders below, too
			result.Merge()
		}
		spaces := s.w3idNamespace(f, o, result, under != "" && strings.HasPrefix(f.path, under), tally)
		rows = append(rows, spaces...)
		others.add(spaces)
		if result.TakesRest() && (under == "" || !strings.HasPrefix(f.path, under)) {
			under = f.path
		}
		rows = append(rows, s.w3idRecords(f, o, file, result)...)
	}
	for _, n := range never {
		s.note("import.w3id-never-answers", "{file}, line {line} never answers, because of the directives before it: {text}", n[:]...)
	}
	return rows
}

// w3idSets are the rules of the folders that were compiled, by the prefixes of their namespaces.
type w3idSets map[string]w3idSet

type w3idSet struct {
	set *rules.Set
	ns  *stele.Namespace
}

// add adds the rules of rows of namespaces.
func (l w3idSets) add(rows []bulk.Row) {
	for i := range rows {
		if ns := rows[i].Namespace; ns != nil {
			set, _ := rules.Compile(ns)
			l[ns.Prefix] = w3idSet{set, ns}
		}
	}
}

// of returns the rules of the nearest folder of a name, and their namespace; nil if there are none.
func (l w3idSets) of(id stele.ID) (*rules.Set, *stele.Namespace) {
	for text := id.String(); ; {
		i := strings.LastIndexByte(text, '/')
		if i < 0 {
			return nil, nil
		}
		if found, ok := l[text[:i+1]]; ok {
			return found.set, found.ns
		}
		text = text[:i]
	}
}

// tallyOwn counts the directives of a file, and not those that its folder inherits. Those that are refused it returns, the inherited ones
// among them: names of the folder lack them.
func (s *Source) tallyOwn(file *webrules.File, result *webrules.Result, tally *w3idTally) []webrules.Refusal {
	all, idle, refused := 0, 0, 0
	for _, r := range file.Rules {
		if !r.Inherited {
			all++
		}
	}
	for _, r := range result.Idle {
		if !r.Inherited {
			idle++
		}
	}
	for _, r := range result.Refused {
		if !r.Rule.Inherited {
			refused++
		}
	}
	tally.all += all
	tally.read += all - idle - refused
	tally.idle += idle
	tally.refused += refused
	tally.ignored += len(file.Ignored)
	return result.Refused
}

// tellW3ID tells what became of the directives, after all was written: the registry may refuse the rules of a namespace, for
// instance because its records may not lead to a host.
func (s *Source) tellW3ID(rows []bulk.Row, t *w3idTally) {
	s.closing = append(s.closing, func() (notes []error) {
		read, refused, stand, spaces := t.read, t.refused, 0, 0
		failed, lost := make(map[*stele.Namespace]bool), make(map[*oboEntry]bool)
		for i := range rows {
			if ns := rows[i].Namespace; ns != nil && rows[i].Rejected() {
				failed[ns] = true
			}
		}
		for _, space := range t.spaces {
			if failed[space.ns] {
				read, refused = read-space.inRules, refused+space.inRules
				for _, e := range space.entries {
					if e.read && e.err == nil && !e.lost {
						lost[e] = true
					}
				}
				continue
			}
			stand, spaces = stand+len(space.ns.Rules), spaces+1
		}
		read, refused = read-len(lost), refused+len(lost)
		if t.all > 0 {
			notes = append(notes, stele.Messagef("import.w3id-share", "{read} of {all} redirects were read ({share} %); {refused} can't be said here, and {idle} never answer", read, t.all, fmt.Sprintf("%.1f", 100*float64(read)/float64(t.all)), refused, t.idle))
		}
		if stand > 0 {
			notes = append(notes, stele.Messagef("import.rules-stay", "{rules} rules stand in {namespaces} namespaces; 'stele revert --import' withdraws records, and leaves rules as they are ('stele rule' changes them)", stand, spaces))
		}
		if t.ignored > 0 {
			notes = append(notes, stele.Messagef("import.w3id-directives", "{count} directives that make no redirects, such as Header and AddType, change nothing here; they are kept as metadata", t.ignored))
		}
		return notes
	})
}

func escapePath(text string) string { return (&url.URL{Path: text}).EscapedPath() }

// w3idRefused returns the row of a directive that can't be said here.
func (s *Source) w3idRefused(file string, line int, text string, why error) bulk.Row {
	return bulk.Row{Line: line, Text: []byte(file + ": " + text), Err: &stele.Error{Op: "import", Kind: stele.Invalid, Err: stele.Reason(why)}}
}

// w3idNamespace returns the row of the namespace that a folder needs: one with rules, or one whose names the rules of a folder above
// must not answer for. If there is none, and none may be made, its rules are refused.
func (s *Source) w3idNamespace(f *w3idFolder, o webrules.Options, result *webrules.Result, below bool, tally *w3idTally) []bulk.Row {
	if len(result.Rules) == 0 && !below {
		return nil
	}
	key, _, err := s.webPrefix(o.Base)
	if err != nil {
		return []bulk.Row{s.w3idRefused(f.file, 1, f.path, err)}
	}
	ns, registered := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}, false
	line := 1
	if len(result.Lines) > 0 {
		line = result.Lines[0]
	}
	switch have := s.o.Find(key); {
	case have != nil: // also without rules: an import that continues counts rows, and must find as many as when it began
		clone := *have
		ns, registered = &clone, len(result.Rules) > 0
	case !s.o.Namespaces:
		n := len(result.Rules)
		if n == 0 {
			return []bulk.Row{s.w3idRefused(f.file, line, f.path, stele.Messagef("import.w3id-folder-needs-namespace",
				"a folder above answers for all names, also for those of this folder, unless there is the namespace {namespace}; import with --create-namespaces", key.Prefix))}
		}
		return s.withoutRules(f, line, result, tally, stele.Messagef("import.w3id-namespace-missing",
			"{rules} rules need the namespace {namespace}; add it with 'stele ns add {namespace}' and import with --update, or import with --create-namespaces", n, key.Prefix))
	}
	if len(result.Rules) > 0 {
		ns.Rules = result.Rules
		tally.spaces = append(tally.spaces, w3idSpace{ns: ns, inRules: result.InRules})
	}
	return []bulk.Row{{Line: line, Text: []byte(f.file), Namespace: ns, RulesOnly: registered}}
}

// withoutRules refuses the rules of a folder.
func (s *Source) withoutRules(f *w3idFolder, line int, result *webrules.Result, tally *w3idTally, why error) []bulk.Row {
	tally.read -= result.InRules
	tally.refused += result.InRules
	result.Rules = nil
	return []bulk.Row{s.w3idRefused(f.file, line, f.path, why)}
}

// w3idRecords returns the rows of a folder's records. What the file and README.md say beside redirects stands in the
// first of them, which is that of the folder itself if it has one.
func (s *Source) w3idRecords(f *w3idFolder, o webrules.Options, file *webrules.File, result *webrules.Result) (rows []bulk.Row) {
	said := map[string]string{
		"w3id.comments": strings.TrimSpace(strings.Join(file.Comments, "\n")), "w3id.readme": strings.TrimSpace(f.readme), "w3id.directives": strings.Join(file.Ignored, "\n"),
	}
	first := max(0, slices.IndexFunc(result.Records, func(r webrules.Record) bool { return r.Name == "" }))
	for i, r := range result.Records {
		name := o.Base + r.Name
		id, err := s.o.Schemes.Parse(name)
		if err != nil {
			rows = append(rows, s.w3idRefused(f.file, r.Line, r.Text, err))
			continue
		}
		b := newBuilder(id)
		b.rec.Targets = r.Targets
		if r.Gone {
			b.rec.State = stele.Withdrawn
			b.rec.Tombstone = &stele.Tombstone{Reason: "The thing is gone, as " + f.file + " says."}
		}
		if i == first {
			for _, name := range slices.Sorted(maps.Keys(said)) {
				value := said[name]
				s.keepLong(b, f.file, name, value)
			}
		}
		rows = append(rows, bulk.Row{Line: r.Line, Text: []byte(f.file + ": " + r.Text), Record: b.finish("w3id")})
	}
	if len(result.Records) == 0 {
		for _, name := range slices.Sorted(maps.Keys(said)) {
			if value := said[name]; value != "" {
				s.note("import.w3id-metadata-left-out", "{file}: {name} is not kept, since the folder has no records: {text}", f.file, name, cutText(strings.ReplaceAll(value, "\n", " "), 200))
			}
		}
	}
	return rows
}

// cutText returns the beginning of a text, without a part of a character at its end.
func cutText(text string, most int) string {
	text = proseOf(text)
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-4], "") + " ..."
}
