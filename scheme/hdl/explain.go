package hdl

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// Explain reads text as Parse does. The form is "doi" or "handle", the parts are
// prefix and local; pilin is the date of a local name that could be a PILIN
// suffix, and describes the prefix whose own values a handle 0.NA/... holds.
func (s *Scheme) Explain(text string) (stele.Explanation, error) {
	var r reading
	if err := r.read(text); err != nil {
		return stele.Explanation{}, err
	}
	x := stele.Explanation{ID: r.id, Form: "handle", Spellings: s.Spellings(r.id), Warnings: r.warnings()}
	prefix, local, _ := lex.Cut(strings.TrimPrefix(r.id.String(), mark), '/')
	note := ""
	switch {
	case r.numeric && isDOI(prefix):
		x.Form = "doi"
	case prefix == shortDOI:
		note = "shortDOI, an alias of a DOI"
	}
	x.Parts = append(x.Parts, stele.Part{Name: "prefix", Value: prefix, Note: note}, stele.Part{Name: "local", Value: local})
	if t, ok := pilinDate(local, s.now()); ok {
		note := "could be PILIN's: the millisecond in which it was asked for"
		if usesPILIN(prefix) {
			note = "PILIN's, as this prefix uses: the millisecond in which it was asked for"
		}
		x.Parts = append(x.Parts, stele.Part{Name: "pilin", Value: t.Format("2006-01-02T15:04:05.000Z07:00"), Note: note})
	}
	// The registry of prefixes is itself made of handles, under the prefix 0.NA.
	if prefix == "0.NA" && isPrefix(local) {
		x.Parts = append(x.Parts, stele.Part{Name: "describes", Value: local, Note: "holds this prefix's own values"})
	}
	return x, nil
}

// isPrefix reports whether s could be a prefix.
func isPrefix(s string) bool {
	r := reading{handle: s + "/"}
	return r.split() == nil && r.slash == len(s)
}

// warnings returns what a reader of the handle should know.
func (r *reading) warnings() (all []string) {
	d := r.src.dropped
	if d&query != 0 {
		all = append(all, "The URL's query is not part of the name and was left out; if the \"?\" belongs to the name, write %3F.")
	}
	if d&component != 0 {
		all = append(all, "The URN's components (after \"?+\" or \"?=\") are not part of the name and were left out.")
	}
	if d&fragment != 0 {
		all = append(all, "The fragment is not part of the name and was left out; if the \"#\" belongs to the name, write %23.")
	}
	local := r.handle[r.slash+1:]
	if r.src.syntax == link && !r.src.proxy && strings.IndexByte(local, '/') >= 0 {
		all = append(all, "The whole path was taken for the name; on a publisher's page its last parts (such as /abstract) may not belong to it.")
	}
	if r.src.syntax == plain && looksEncoded(local) {
		all = append(all, "The local name seems to be percent-encoded, but in this spelling a \"%\" is a character of the name; write it as a URL to have it decoded.")
	}
	if r.src.syntax == link && hasDotSegment(r.src.body) {
		all = append(all, "Browsers remove \".\" and \"..\" between slashes from a URL; write the slash before them as %2F.")
	}
	if strings.IndexByte(".,;:", local[len(local)-1]) >= 0 {
		all = append(all, fmt.Sprintf("The local name ends with %q, which may belong to the sentence around it.", local[len(local)-1]))
	}
	return append(all, letterWarnings(r.handle)...)
}

// looksEncoded reports whether s has a percent-encoded byte.
func looksEncoded(s string) bool {
	for i := 0; i+2 < len(s); i++ {
		if s[i] == '%' && lex.IsHex(s[i+1]) && lex.IsHex(s[i+2]) {
			return true
		}
	}
	return false
}

// hasDotSegment reports whether a path has a segment "." or "..".
func hasDotSegment(path string) bool {
	for i := range len(path) {
		if path[i] == '/' && isDotSegment(path[i+1:]) {
			return true
		}
	}
	return false
}

// letterWarnings warns of characters that are easily taken for others.
func letterWarnings(s string) (all []string) {
	alike, odd := 0, rune(0)
	var scripts []string
	script := ""
	for _, c := range s {
		if stele.LooksLike(c) != 0 {
			if alike++; alike == 1 {
				odd = c
			}
		}
		if !unicode.IsLetter(c) {
			continue
		}
		if script == "" || !unicode.Is(unicode.Scripts[script], c) {
			script = scriptOf(c)
		}
		if known := family(script); known != "" && !slices.Contains(scripts, known) {
			scripts = append(scripts, known)
		}
	}
	if alike > 0 {
		more := ""
		if alike > 1 {
			more = fmt.Sprintf(", and %d more such characters", alike-1)
		}
		all = append(all, fmt.Sprintf("The name has %s%s; it is another name than the one with ASCII characters.", stele.Describe(odd), more))
	}
	if slices.Sort(scripts); len(scripts) > 1 && !slices.Equal(scripts, []string{"Han", "Latin"}) {
		all = append(all, fmt.Sprintf("The name mixes letters of several scripts (%s), which may look alike.", strings.Join(scripts, ", ")))
	}
	return all
}

// scriptOf returns the name of the script that c belongs to, or "".
func scriptOf(c rune) string {
	if c < utf8.RuneSelf {
		return "Latin"
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, c) {
			return name
		}
	}
	return ""
}

// family returns the script under which a script counts: those that are written
// together count as one (UTS #39, 5.1), and those that all share as none.
func family(script string) string {
	switch script {
	case "Hiragana", "Katakana", "Hangul", "Bopomofo":
		return "Han"
	case "Common", "Inherited":
		return ""
	}
	return script
}
