package webrules

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// inheritance is what RewriteOptions says of the rules of folders above. Other options change nothing here.
type inheritance struct{ after, before, downAfter, downBefore, ignore bool }

// Source is a file that is read, and whose expressions are not.
type Source struct {
	list     []directive
	comments []string
	cut      int

	// What holds in the folder for mod_rewrite: its own directives, or those of a folder above (config_perdir_merge of Apache httpd).
	engine  bool
	options inheritance
	rules   []directive // RewriteCond and RewriteRule, in the order in which they are tried
	of      *Source     // whose rules they are: this one, a folder above, or nil if no file has any directive of mod_rewrite
}

// MaxInherited bounds how many directives the folders of a tree inherit: each folder would have those of all above it.
const MaxInherited = 100_000

// Read reads a .htaccess file. Above is the file of the nearest folder above that has one, or nil. Left is how many directives may still be
// inherited in the tree; see [MaxInherited].
func Read(text string, above *Source, left *int) *Source {
	s := new(Source)
	s.list, s.comments, s.cut = readDirectives(text)
	if above == nil {
		above = new(Source)
	}
	s.engine, s.options = above.engine, above.options
	var own []directive
	named, any := false, false
	for _, d := range s.list {
		switch d.name {
		case "rewriteengine":
			s.engine = strings.EqualFold(d.rest, "on")
		case "rewriteoptions":
			if !named {
				s.options, named = inheritance{}, true
			}
			s.options.set(d.rest)
		case "rewritecond", "rewriterule":
			own = append(own, d)
		case "rewritebase", "rewritemap":
		default:
			continue
		}
		any = true
	}
	if !any { // mod_rewrite has no configuration for this folder, so that of the folder above holds in it
		s.rules, s.of = above.rules, above.of
		return s
	}
	s.rules, s.of = own, s
	down := !s.options.ignore
	after := s.options.after || down && above.options.downAfter
	if before := s.options.before || down && above.options.downBefore; (after || before) && len(above.rules) > 0 {
		if *left -= len(above.rules); *left < 0 || len(own)+len(above.rules) > maxDirectives {
			s.cut = max(s.cut, 1)
			return s
		}
		inherited := slices.Clone(above.rules)
		for i := range inherited {
			inherited[i].inherited = true
		}
		if s.rules = slices.Concat(own, inherited); !after {
			s.rules = slices.Concat(inherited, own)
		}
	}
	return s
}

// set reads the arguments of RewriteOptions.
func (o *inheritance) set(text string) {
	for _, word := range words(text) {
		switch strings.ToLower(word) {
		case "inherit":
			o.after = true
		case "inheritbefore":
			o.before = true
		case "inheritdown":
			o.downAfter = true
		case "inheritdownbefore":
			o.downBefore = true
		case "ignoreinherit":
			o.ignore = true
		}
	}
}

// IsOf reports whether the rules of mod_rewrite that hold in the folder are those of a folder above, whose names they see.
func (s *Source) IsOf(above *Source) bool { return s != above && s.of == above && above.engine }

// Reaches reports whether a rule of mod_rewrite may answer for a name that begins with the path of a folder below, such as sub/. Left is
// the work that may still be done.
func (f *File) Reaches(folder string, left *int) bool {
	tree, err := syntax.Parse("^"+regexp.QuoteMeta(folder), syntax.Perl)
	if err != nil {
		return true
	}
	below, err := newLanguage(tree)
	if err != nil {
		return true
	}
	for _, r := range f.Rules {
		switch {
		case r.never || r.alias:
		case r.literal != nil:
			if slices.ContainsFunc(r.literal, func(name string) bool { return strings.HasPrefix(name, folder) }) {
				return true
			}
		case r.names == nil || below.relate(r.names, left) != disjoint:
			return true
		}
	}
	return false
}

// RefuseAliases refuses the directives of a folder in which rules of a folder above answer first.
func (f *File) RefuseAliases(above string) (list []Refusal) {
	for _, r := range f.Rules {
		if r.alias && !r.never {
			list = append(list, Refusal{r, refusal("webrules.answered-above", "the rules of {file} answer for names of this folder, too, since it has no directive of mod_rewrite of its own; and they answer first", above)})
		}
	}
	return list
}
