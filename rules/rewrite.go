package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/urltext"
)

// Rewriting is a rule as web servers follow it: a regular expression of PCRE, and URLs in which groups of it stand. Web servers put what
// a group matched into a URL as it is. So the expression is for those names only whose captures need no percent-encoding there.
type Rewriting struct {
	Expression string    // for what follows the namespace's prefix, without anchors
	URLs       [][]Piece // by target; nil for one without URL
	Narrowed   []string  // captures of which the expression does not match all that the pattern does
}

// Piece is a part of a URL: text, or a group of the expression.
type Piece struct {
	Text  string
	Group int // from 1; 0 for text
}

// Choose returns the number of the target that a client gets which asks for the location and accepts a media type or a range of them, or
// any if it is empty; -1 if there is none for the location. fits is false if the client does not accept it.
func Choose(targets []stele.Target, accept string) (best int, fits bool) {
	best, fit := choose(targets, accept)
	return best, best >= 0 && Fits(fit, targets[best].Type)
}

// Start returns the text with which all names of a rule begin, after the namespace's prefix.
func (s *Set) Start(rule int) string {
	if p := s.list[rule].pattern; p != nil && len(p.elements) > 0 && p.elements[0].kind == literalText {
		return p.elements[0].text
	}
	return ""
}

// Names returns some names that a rule matches.
func (s *Set) Names(rule int) (list []string) {
	for _, rest := range s.Samples(rule) {
		list = append(list, s.prefix+rest)
	}
	return list
}

// Rewrite returns a rule as web servers follow it. With folds set the scheme does not distinguish the case of letters. quote quotes
// text for the expression, and open begins a group by its number. It returns a reason if web servers can't follow the rule.
func (s *Set) Rewrite(rule int, folds bool, quote func(string) string, open func(group int) string) (*Rewriting, *stele.Message) {
	c := &s.list[rule]
	if c.pattern == nil {
		return nil, stele.Messagef("rule.web-unreadable", "its pattern can't be read")
	}
	w := &rewriter{p: c.pattern, folds: folds, quote: quote, open: open, prefix: s.prefix, places: make([][]urltext.Place, len(c.pattern.names))}
	out := &Rewriting{URLs: make([][]Piece, len(c.templates))}
	for _, t := range c.templates {
		if reason := w.use(t); reason != nil {
			return nil, reason
		}
	}
	for i, t := range c.templates {
		if t != nil {
			out.URLs[i] = w.url(t)
		}
	}
	var reason *stele.Message
	if out.Expression, reason = w.expression(out); reason != nil {
		return nil, reason
	}
	return out, nil
}

// rewriter makes a Rewriting.
type rewriter struct {
	p      *Pattern
	folds  bool
	quote  func(string) string
	open   func(int) string
	prefix string
	places [][]urltext.Place // where captures stand in URLs, by capture
	whole  []urltext.Place   // where all that follows the prefix stands
}

// use notes where a template has captures.
func (w *rewriter) use(t *Template) *stele.Message {
	if t == nil {
		return nil
	}
	for _, x := range t.pieces {
		switch {
		case x.source == ownText:
			continue
		case x.source < 0:
			w.whole = append(w.whole, x.place)
			for i := range w.p.elements {
				if e := &w.p.elements[i]; e.capture < 0 && (w.changes(x.change, e) || !isPlainText(e.text, x.place)) {
					return errRewrite(e.text)
				}
			}
			for i := range w.places {
				w.places[i] = append(w.places[i], x.place)
			}
		default:
			w.places[x.source] = append(w.places[x.source], x.place)
		}
		for i := range w.p.elements {
			e := &w.p.elements[i]
			if e.capture >= 0 && (x.source < 0 || x.source == e.capture) && w.changes(x.change, e) {
				return errRewrite(w.p.names[e.capture])
			}
		}
	}
	return nil
}

func errRewrite(part string) *stele.Message {
	return stele.Messagef("rule.web-letters", `a web server can't put "{part}" into the URL as the rule does: with its letters in one case, or percent-encoded`, part)
}

// changes reports whether letters that an element matches would have to be changed: by the template, or because a name is the same in
// either case, and the rule has it in one.
func (w *rewriter) changes(how change, e *element) bool {
	has := func(is func(byte) bool) bool {
		in := func(text string) bool {
			return strings.ContainsFunc(text, func(r rune) bool { return r < 0x80 && is(byte(r)) })
		}
		if e.set != nil {
			for c, in := range e.set {
				if in && is(byte(c)) {
					return true
				}
			}
		}
		return in(e.text) || slices.ContainsFunc(e.words, in)
	}
	switch {
	case w.folds || w.p.fold && how != unchanged:
		return has(isLetter)
	case how == toLower:
		return has(isUpper)
	case how == toUpper:
		return has(isLower)
	}
	// What the pattern has in lower case may come in either, and would stand in the URL as it comes: as the rule does.
	return false
}

func isPlainText(text string, at urltext.Place) bool {
	return string(urltext.Append(nil, text, at, true)) == text
}

// url returns the pieces of a URL.
func (w *rewriter) url(t *Template) (list []Piece) {
	for _, x := range t.pieces {
		switch x.source {
		case ownText:
			list = append(list, Piece{Text: x.text})
		case wholeID:
			list = append(list, Piece{Text: string(changed(urltext.Append(nil, w.prefix, x.place, false), x.change))}, Piece{Group: 1})
		case wholeRest:
			list = append(list, Piece{Group: 1})
		default:
			list = append(list, Piece{Group: w.group(x.source)})
		}
	}
	return list
}

func changed(text []byte, how change) []byte {
	switch how {
	case toLower:
		return []byte(lower(string(text)))
	case toUpper:
		return []byte(upper(string(text)))
	}
	return text
}

// group returns the number of the group of a capture. The first group is the whole, if a URL has that.
func (w *rewriter) group(capture int) int {
	if len(w.whole) > 0 {
		return capture + 2
	}
	return capture + 1
}

// expression writes the expression.
func (w *rewriter) expression(out *Rewriting) (string, *stele.Message) {
	if n := len(w.p.names); n > 0 && w.group(n-1) > MaxCaptures {
		return "", stele.Messagef("rule.web-groups", "it has more captures than a web server can refer to")
	}
	var b strings.Builder
	if w.p.fold && !w.folds {
		b.WriteString("(?i:")
	}
	if len(w.whole) > 0 {
		b.WriteString(w.open(1))
	}
	for i := range w.p.elements {
		e := &w.p.elements[i]
		if strings.Contains(e.text, "%") || slices.ContainsFunc(e.words, func(word string) bool { return strings.Contains(word, "%") }) {
			return "", stele.Messagef("rule.web-percent", "its pattern has a percent sign, and web servers look up names that are decoded")
		}
		if e.kind == literalText {
			b.WriteString(w.quote(e.text))
			continue
		}
		b.WriteString(w.open(w.group(e.capture)))
		at := append([]urltext.Place{urltext.InPath}, w.places[e.capture]...)
		if e.kind == classRun {
			set, all := narrowed(e.set, at)
			if !all {
				out.Narrowed = append(out.Narrowed, w.p.names[e.capture])
			}
			b.WriteString(set + bounds(e.min, e.max))
		} else {
			words := make([]string, len(e.words))
			for k, word := range e.words {
				if slices.ContainsFunc(at, func(p urltext.Place) bool { return !isPlainText(word, p) }) {
					return "", errRewrite(w.p.names[e.capture])
				}
				words[k] = w.quote(word)
			}
			b.WriteString(strings.Join(words, "|"))
		}
		b.WriteByte(')')
	}
	if len(w.whole) > 0 {
		b.WriteByte(')')
	}
	if w.p.fold && !w.folds {
		b.WriteByte(')')
	}
	return b.String(), nil
}

// narrowed writes the characters of a class that stand at all of the places as they are, and reports whether these are all of it.
func narrowed(set *[256]bool, at []urltext.Place) (text string, all bool) {
	all = true
	has := func(c int) bool {
		return c < 0x80 && set[c] && !slices.ContainsFunc(at, func(p urltext.Place) bool { return !isPlainText(string(rune(c)), p) })
	}
	var b strings.Builder
	b.WriteByte('[')
	for c := 0; c < len(set); c++ {
		if !has(c) {
			all = all && !set[c]
			continue
		}
		last := c
		for last+1 < len(set) && has(last+1) {
			last++
		}
		fmt.Fprintf(&b, `\x%02x`, c)
		if last > c {
			fmt.Fprintf(&b, `-\x%02x`, last)
		}
		c = last
	}
	b.WriteByte(']')
	return b.String(), all
}
