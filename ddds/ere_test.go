package ddds

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// tree is an expression that can be written as an ERE, and that matches by trying
// everything. It knows nothing of the code that it is held against.
type tree interface {
	ere() string
	ends(text []rune, at int, fold bool) map[int]bool // where a match from at on may end
}

type (
	char   rune
	dot    struct{}
	begin  struct{}
	end    struct{}
	seq    []tree
	either []tree
	group  struct{ tree }
	repeat struct {
		tree
		low, high int // high -1: any number
		short     string
	}
	class struct {
		text    string
		negated bool
		has     func(rune) bool
	}
)

func (c char) ere() string {
	if strings.ContainsRune(`^.[$()|*+?{\`, rune(c)) {
		return `\` + string(c)
	}
	return string(c)
}
func (dot) ere() string     { return "." }
func (begin) ere() string   { return "^" }
func (end) ere() string     { return "$" }
func (g group) ere() string { return "(" + g.tree.ere() + ")" }
func (s class) ere() string { return s.text }

func (s seq) ere() (text string) {
	for _, n := range s {
		text += n.ere()
	}
	return text
}

func (e either) ere() string {
	var all []string
	for _, n := range e {
		all = append(all, n.ere())
	}
	return strings.Join(all, "|")
}

func (r repeat) ere() string { return r.tree.ere() + r.short }

// other returns the other case of an ASCII letter.
func other(r rune) rune {
	if r < utf8.RuneSelf && isLetter(byte(r)) {
		return r ^ 0x20
	}
	return r
}

func one(ok bool, at int) map[int]bool {
	if !ok {
		return nil
	}
	return map[int]bool{at: true}
}

func (c char) ends(text []rune, at int, fold bool) map[int]bool {
	return one(at < len(text) && (text[at] == rune(c) || fold && other(text[at]) == rune(c)), at+1)
}
func (dot) ends(text []rune, at int, _ bool) map[int]bool { return one(at < len(text), at+1) }
func (begin) ends(_ []rune, at int, _ bool) map[int]bool  { return one(at == 0, at) }
func (end) ends(text []rune, at int, _ bool) map[int]bool { return one(at == len(text), at) }
func (s class) ends(text []rune, at int, fold bool) map[int]bool {
	if at == len(text) {
		return nil
	}
	in := s.has(text[at]) || fold && s.has(other(text[at]))
	return one(in != s.negated, at+1)
}

func (s seq) ends(text []rune, at int, fold bool) map[int]bool {
	now := map[int]bool{at: true}
	for _, n := range s {
		now = step(n, text, now, fold)
	}
	return now
}

func (e either) ends(text []rune, at int, fold bool) map[int]bool {
	all := make(map[int]bool)
	for _, n := range e {
		for p := range n.ends(text, at, fold) {
			all[p] = true
		}
	}
	return all
}

func (r repeat) ends(text []rune, at int, fold bool) map[int]bool {
	now := map[int]bool{at: true}
	for range r.low {
		now = step(r.tree, text, now, fold)
	}
	all := make(map[int]bool)
	for i := r.low; ; i++ {
		before := len(all)
		for p := range now {
			all[p] = true
		}
		if i == r.high || i > r.low && len(all) == before {
			return all
		}
		now = step(r.tree, text, now, fold)
	}
}

func step(n tree, text []rune, from map[int]bool, fold bool) map[int]bool {
	all := make(map[int]bool)
	for p := range from {
		for q := range n.ends(text, p, fold) {
			all[q] = true
		}
	}
	return all
}

const alphabet = "abkABK-]^[.\\:1\u212aé"

func drawRune(t *rapid.T) rune { return rapid.SampledFrom([]rune(alphabet)).Draw(t, "rune") }

// drawClass draws a bracket expression together with what it should match.
func drawClass(t *rapid.T) tree {
	var text strings.Builder
	var tests []func(rune) bool
	add := func(f func(rune) bool) { tests = append(tests, f) }
	is := func(r rune) func(rune) bool { return func(x rune) bool { return x == r } }
	s := class{negated: rapid.Bool().Draw(t, "negated")}
	text.WriteByte('[')
	if s.negated {
		text.WriteByte('^')
	}
	if rapid.Bool().Draw(t, "bracket first") {
		text.WriteByte(']')
		add(is(']'))
	}
	for range rapid.IntRange(1, 3).Draw(t, "items") {
		switch rapid.IntRange(0, 4).Draw(t, "item") {
		case 0:
			r := rapid.SampledFrom([]rune("abkAK1.\\é\u212a")).Draw(t, "plain")
			text.WriteRune(r)
			add(is(r))
		case 1:
			low := rapid.RuneFrom([]rune("aAj1")).Draw(t, "low")
			high := low + rapid.Int32Range(0, 3).Draw(t, "more")
			fmt.Fprintf(&text, "%c-%c", low, high)
			add(func(x rune) bool { return low <= x && x <= high })
		case 2:
			r := drawRune(t)
			fmt.Fprintf(&text, "[.%c.]", r)
			add(is(r))
		case 3:
			r := rapid.SampledFrom([]rune("abK1é")).Draw(t, "equivalent")
			fmt.Fprintf(&text, "[=%c=]", r)
			add(is(r))
		case 4:
			text.WriteString("[:lower:]")
			add(func(x rune) bool { return 'a' <= x && x <= 'z' })
		}
	}
	if rapid.Bool().Draw(t, "hyphen last") {
		text.WriteByte('-')
		add(is('-'))
	}
	text.WriteByte(']')
	s.text = text.String()
	s.has = func(x rune) bool {
		for _, f := range tests {
			if f(x) {
				return true
			}
		}
		return false
	}
	return s
}

func drawNode(t *rapid.T, depth int) tree {
	most := 7
	if depth == 0 {
		most = 3
	}
	switch rapid.IntRange(0, most).Draw(t, "node") {
	case 0, 1:
		return char(drawRune(t))
	case 2:
		return dot{}
	case 3:
		return drawClass(t)
	case 4:
		return group{drawAlternatives(t, depth-1)}
	case 5:
		return drawRepeat(t, depth-1)
	case 6:
		return begin{}
	}
	return end{}
}

func drawRepeat(t *rapid.T, depth int) tree {
	n := drawNode(t, 0)
	if depth > 0 && rapid.Bool().Draw(t, "group") {
		n = group{drawAlternatives(t, depth-1)}
	}
	return drawTimes(t, n)
}

// drawTimes draws how often something is repeated.
func drawTimes(t *rapid.T, n tree) tree {
	low, more := rapid.IntRange(0, 2).Draw(t, "low"), rapid.IntRange(0, 2).Draw(t, "more")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return repeat{n, 0, -1, "*"}
	case 1:
		return repeat{n, 1, -1, "+"}
	case 2:
		return repeat{n, 0, 1, "?"}
	case 3:
		return repeat{n, low, low, fmt.Sprintf("{%d}", low)}
	case 4:
		return repeat{n, low, -1, fmt.Sprintf("{%d,}", low)}
	}
	return repeat{n, low, low + more, fmt.Sprintf("{%d,%d}", low, low+more)}
}

func drawAlternatives(t *rapid.T, depth int) tree {
	var all either
	for range rapid.IntRange(1, 3).Draw(t, "alternatives") {
		var s seq
		for range rapid.IntRange(1, 3).Draw(t, "length") {
			s = append(s, drawNode(t, depth))
		}
		all = append(all, s)
	}
	return all
}

// oracle returns where the tree matches, as "from to".
func oracle(n tree, text []rune, fold bool) string {
	for at := range len(text) + 1 {
		last := -1
		for p := range n.ends(text, at, fold) {
			last = max(last, p)
		}
		if last >= 0 {
			return fmt.Sprint(len(string(text[:at])), len(string(text[:last])))
		}
	}
	return "no match"
}

// compiled reads an ERE and gives both ways to match it; direct is nil for most.
func compiled(t *rapid.T, text string, fold bool) (e *Expression, re *regexp.Regexp) {
	parsed, err := parseERE(text, 0, fold, 0)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if re, err = regexp.Compile(parsed.translate(false)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	re.Longest()
	e = &Expression{ere: parsed}
	e.prepare()
	return e, re
}

// TestEREProperty holds the translation against a matcher that tries everything.
func TestEREProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawAlternatives(t, 3)
		fold := rapid.Bool().Draw(t, "fold")
		text := rapid.SliceOfN(rapid.Custom(drawRune), 0, 6).Draw(t, "text")
		_, re := compiled(t, n.ere(), fold)
		got := "no match"
		if m := re.FindStringIndex(string(text)); m != nil {
			got = fmt.Sprint(m[0], m[1])
		}
		if want := oracle(n, text, fold); got != want {
			t.Fatalf("%s (%s) in %q: %s, want %s", n.ere(), re, string(text), got, want)
		}
	})
}

// drawPlain draws an expression without alternatives and anchors inside, of
// characters that seldom leave a choice.
func drawPlain(t *rapid.T, depth int) tree {
	var s seq
	for range rapid.IntRange(1, 4).Draw(t, "length") {
		var n tree
		switch rapid.IntRange(0, 4).Draw(t, "plain") {
		case 0:
			n = drawClass(t)
		case 1:
			if depth > 0 {
				n = group{drawPlain(t, depth-1)}
				break
			}
			fallthrough
		default:
			n = char(drawRune(t))
		}
		if rapid.Bool().Draw(t, "repeat") {
			n = drawTimes(t, n)
		}
		s = append(s, n)
	}
	return s
}

// sample draws a text that the expression of drawPlain is likely to match.
func sample(t *rapid.T, n tree, fold bool) (text []rune) {
	switch n := n.(type) {
	case char:
		return []rune{rune(n)}
	case class:
		for _, r := range alphabet {
			if n.ends([]rune{r}, 0, fold) != nil {
				text = append(text, r)
			}
		}
		if len(text) == 0 {
			return nil
		}
		return []rune{rapid.SampledFrom(text).Draw(t, "of class")}
	case group:
		return sample(t, n.tree, fold)
	case seq:
		for _, part := range n {
			text = append(text, sample(t, part, fold)...)
		}
	case repeat:
		high := n.high
		if high < 0 {
			high = n.low + 2
		}
		for range rapid.IntRange(n.low, high).Draw(t, "times") {
			text = append(text, sample(t, n.tree, fold)...)
		}
	}
	return text
}

// TestDirect holds the direct way against the engine, with groups, and both against
// a matcher that tries everything.
func TestDirect(t *testing.T) {
	taken, matched := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := seq{begin{}, drawPlain(t, 2), end{}}
		fold := rapid.Bool().Draw(t, "fold")
		e, re := compiled(t, n.ere(), fold)
		if e.direct == nil {
			return
		}
		taken++
		for range 4 {
			runes := sample(t, n, fold)
			if rapid.Bool().Draw(t, "spoil") {
				runes = append(runes, drawRune(t))
			}
			text := string(runes)
			got, want := e.match(text), re.FindStringSubmatchIndex(text)
			if !slices.Equal(got, want) {
				t.Fatalf("%s in %q: %v, want %v", n.ere(), text, got, want)
			}
			if oracle(n, runes, fold) == "no match" != (got == nil) {
				t.Fatalf("%s in %q: %v, and the oracle differs", n.ere(), text, got)
			}
			if got != nil {
				matched++
			}
		}
	})
	if taken == 0 || matched == 0 {
		t.Errorf("%d expressions were matched directly, %d times with success", taken, matched)
	}
	for field, want := range map[string]bool{
		`!^urn:paradisec:ab1:001:a$!x!i`: true,
		`!^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}([.][-_a-z0-9]{1,63})*)$!x!i`: true,
		`!^urn:x:([^:]*):(.*)$!x!`: true,
		`!^((a*)b)*$!x!`:           true,
		`!^(a{3}){2}b?$!x!`:        true,
		`!^urn:cid:.+@(.*)$!x!`:    false, // a dot may be an @
		`!^a*a$!x!`:                false,
		`!^(a|b)$!x!`:              false,
		`!^(a*)*$!x!`:              false,
		`!^(ab?){2,3}b$!x!`:        false,
		`!^a$b$!x!`:                false,
		`!^a!x!`:                   false,
		`!a$!x!`:                   false,
		`!^a$|b!x!`:                false,
		`!^[é]*[ö]$!x!`:            false, // all beyond ASCII counts as one
	} {
		e, err := ParseExpression(field)
		if err != nil {
			t.Fatal(err)
		}
		if e.prepare(); (e.direct != nil) != want {
			t.Errorf("%s: direct is %v, want %v", field, e.direct != nil, want)
		}
	}
}
