// Package rules reads the rules of namespaces: patterns that names are held against, and
// templates that become URLs. See docs/rules.md for the language.
//
// A pattern is not a regular expression. Where each of its captures ends follows from the
// characters around it, or the pattern is refused; so a name is read once, from both ends,
// without backtracking, and has one meaning. The package computes: it reads no store, and
// opens nothing.
package rules

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// Limits of patterns.
const (
	MaxPattern  = 500           // bytes
	MaxCaptures = 9             // as many as rules in the DNS can refer to
	MaxWords    = 50            // of a capture
	maxLength   = stele.MaxText // of what a capture matches
	maxName     = 20            // bytes of the name of a capture
)

// Pattern is a pattern that was read. It does not change.
type Pattern struct {
	elements []element
	names    []string // of captures, in order
	pivot    int      // the element that takes what the others leave; len(elements) if there is none
	fold     bool
}

// element is a part of a pattern: literal text, a run of characters of a class, or one of
// some words.
type element struct {
	kind     kind
	capture  int    // its number; -1 for literal text
	text     string // literal text; in lower case if case does not count
	class    string // the name of the class
	set      *[256]bool
	min, max int
	words    []string // the longest first; in lower case if case does not count
}

type kind uint8

const (
	literalText kind = iota
	classRun
	oneWord
)

// isVariable reports whether what an element matches may have one length or another.
func (e *element) isVariable() bool {
	switch e.kind {
	case classRun:
		return e.min < e.max
	case oneWord:
		return slices.ContainsFunc(e.words, func(w string) bool { return len(w) != len(e.words[0]) })
	}
	return false
}

// isNullable reports whether an element may match nothing.
func (e *element) isNullable() bool {
	return e.kind == classRun && e.min == 0 || e.kind == oneWord && e.words[len(e.words)-1] == ""
}

// Captures returns the names of the captures, in order.
func (p *Pattern) Captures() []string { return p.names }

// invalid says what is wrong at a byte of a pattern.
func invalid(at int, code, text string, args ...any) error {
	return stele.Invalidf("", at, code, text, args...)
}

// ParsePattern reads a pattern. With fold set the case of ASCII letters does not count.
// Errors are of Kind Invalid and tell the position.
func ParsePattern(text string, fold bool) (*Pattern, error) {
	if text == "" {
		return nil, invalid(0, "rule.pattern-missing", "is missing; write what follows the namespace's prefix, such as HP_{capture}", "{number:digit,7}")
	}
	if len(text) > MaxPattern {
		return nil, invalid(MaxPattern, "rule.pattern-too-long", "the pattern has {bytes} bytes; {most} are the most", len(text), MaxPattern)
	}
	if !utf8.ValidString(text) { // its document could not say it
		return nil, invalid(0, "rule.pattern-not-utf8", "the pattern is not valid UTF-8; write other bytes percent-encoded, as names have them")
	}
	p := &Pattern{fold: fold}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			p.elements = append(p.elements, element{kind: literalText, capture: -1, text: p.folded(literal.String())})
			literal.Reset()
		}
	}
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case strings.HasPrefix(text[i:], "{{"), strings.HasPrefix(text[i:], "}}"):
			literal.WriteByte(c)
			i += 2
		case c == '}':
			return nil, invalid(i, "rule.brace-unopened", "this brace closes nothing; write it twice if names have it")
		case c < ' ' || c == 0x7f:
			return nil, invalid(i, "rule.pattern-control-character", "names have no control characters")
		case c == '{':
			end := strings.IndexByte(text[i:], '}')
			if end < 0 {
				return nil, invalid(i, "rule.brace-unclosed", "this brace is not closed; write it twice if names have it")
			}
			flush()
			if err := p.addCapture(text[i+1:i+end], i+1); err != nil {
				return nil, err
			}
			i += end + 1
		default:
			literal.WriteByte(c)
			i++
		}
	}
	flush()
	if err := p.findPivot(); err != nil {
		return nil, err
	}
	return p, nil
}

// folded returns text as names are held against it.
func (p *Pattern) folded(text string) string {
	if p.fold {
		return lower(text)
	}
	return text
}

// lower returns text with its ASCII letters in lower case.
func lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		b[i] = lowerByte(c)
	}
	return string(b)
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// addCapture adds what stands between braces: name:class, name:class,lengths or
// name=word|word. at is where it begins.
func (p *Pattern) addCapture(text string, at int) error {
	mark := strings.IndexAny(text, ":=")
	if mark < 0 {
		return invalid(at, "rule.capture-without-class", "a capture is a name, a colon and a class of characters, such as {example}; or a name, an equals sign and words", "{number:digit,7}")
	}
	name, rest := text[:mark], text[mark+1:]
	switch {
	case !isName(name):
		return invalid(at, "rule.capture-name-invalid", `"{name}" can't be the name of a capture; write up to {most} small letters and digits, a letter first`, name, maxName)
	case name == "id" || name == "rest":
		return invalid(at, "rule.capture-name-taken", `"{name}" stands for the whole identifier, or for all that follows the prefix; take another name`, name)
	case slices.Contains(p.names, name):
		return invalid(at, "rule.capture-name-twice", `there are two captures "{name}"; give each a name of its own`, name)
	case len(p.names) == MaxCaptures:
		return invalid(at, "rule.captures-too-many", "a pattern has at most {most} captures", MaxCaptures)
	}
	e := element{capture: len(p.names)}
	p.names = append(p.names, name)
	var err error
	if text[mark] == ':' {
		err = p.readClass(&e, rest, at+mark+1)
	} else {
		err = p.readWords(&e, rest, at+mark+1)
	}
	p.elements = append(p.elements, e)
	return err
}

func isName(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || 'z' < c) && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// readClass reads class or class,lengths.
func (p *Pattern) readClass(e *element, text string, at int) error {
	class, lengths, given := strings.Cut(text, ",")
	e.kind, e.class, e.min, e.max = classRun, class, 1, maxLength
	if e.set = setOf(class, p.fold); e.set == nil {
		return invalid(at, "rule.class-unknown", `"{class}" is not a class of characters; use one of {classes}`, class, strings.Join(Classes(), ", "))
	}
	if !given {
		return nil
	}
	at += len(class) + 1
	low, high, ranged := strings.Cut(lengths, "-")
	var ok, okHigh bool
	e.min, ok = length(low)
	switch {
	case !ranged:
		e.max, okHigh = e.min, ok
	case high == "":
		okHigh = true
	default:
		e.max, okHigh = length(high)
	}
	if !ok || !okHigh || e.min > e.max || e.max == 0 {
		return invalid(at, "rule.length-invalid", `"{lengths}" does not say how many characters there are; write a number, such as 7, or a range, such as 1-3 or 2-`, lengths)
	}
	return nil
}

func length(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && n <= maxLength && (text == "0" || text[0] != '0')
}

// readWords reads words with bars between them.
func (p *Pattern) readWords(e *element, text string, at int) error {
	e.kind = oneWord
	for _, w := range strings.Split(text, "|") {
		w = p.folded(w)
		switch {
		case strings.ContainsAny(w, "{}"):
			return invalid(at, "rule.word-with-brace", "words have no braces")
		case strings.ContainsFunc(w, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return invalid(at, "rule.pattern-control-character", "names have no control characters")
		case slices.Contains(e.words, w):
			return invalid(at, "rule.word-twice", `the word "{word}" is there twice`, w)
		}
		e.words = append(e.words, w)
	}
	if len(e.words) > MaxWords {
		return invalid(at, "rule.words-too-many", "a capture has at most {most} words", MaxWords)
	}
	if len(e.words) == 1 && e.words[0] == "" {
		return invalid(at, "rule.words-missing", "there are no words; write them with bars between, such as ttl|rdf")
	}
	slices.SortStableFunc(e.words, func(a, b string) int { return len(b) - len(a) })
	return nil
}

// class is a set of characters with a name, and how a POSIX regular expression writes it.
type class struct {
	name, ere string
	has       func(c byte) bool
	folded    string // the class that it is if case does not count
}

var classes = []class{
	{"digit", "[0-9]", isDigit, ""},
	{"lower", "[a-z]", isLower, "letter"},
	{"upper", "[A-Z]", isUpper, "letter"},
	{"letter", "[A-Za-z]", isLetter, ""},
	{"alnum", "[0-9A-Za-z]", isAlnum, ""},
	{"word", "[0-9A-Za-z_-]", func(c byte) bool { return isAlnum(c) || c == '_' || c == '-' }, ""},
	{"hex", "[0-9A-Fa-f]", func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }, ""},
	{"segment", "[^/]", func(c byte) bool { return c != '/' }, ""},
	{"any", ".", func(byte) bool { return true }, ""},
}

// Classes returns the names of the classes of characters.
func Classes() (names []string) {
	for _, c := range classes {
		names = append(names, c.name)
	}
	return names
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return isLower(c) || isUpper(c) }
func isAlnum(c byte) bool  { return isDigit(c) || isLetter(c) }

// sets has the characters of the classes, in their order.
var sets = func() (sets [][256]bool) {
	for _, k := range classes {
		var set [256]bool
		for c := range set {
			set[c] = k.has(byte(c))
		}
		sets = append(sets, set)
	}
	return sets
}()

func findClass(name string, fold bool) int {
	i := slices.IndexFunc(classes, func(c class) bool { return c.name == name })
	if i >= 0 && fold && classes[i].folded != "" {
		return findClass(classes[i].folded, false)
	}
	return i
}

// setOf returns the characters of a class; nil if there is none of that name.
func setOf(name string, fold bool) *[256]bool {
	if i := findClass(name, fold); i >= 0 {
		return &sets[i]
	}
	return nil
}
