package webrules

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele/rules"
)

// Limits of what an expression becomes.
const (
	maxVariants = 16 // of an expression
	maxNames    = 16 // of one that matches some names only
	maxSmall    = 10 // characters of a class that are words
)

// unlimited is the greatest length of a run that has none.
const unlimited = -1

// element is a part of a name's form: literal text, a run of characters of a class, or one of some words.
type element struct {
	kind     kind
	text     string
	set      *charset
	min, max int
	greedy   bool
	words    []string
}

type kind uint8

const (
	literal kind = iota
	run
	oneOf
	begin // of the name
	end
)

// charset has the characters that names have.
type charset [lastRune + 1]bool

func (s *charset) count() (n int) {
	for _, in := range s {
		if in {
			n++
		}
	}
	return n
}

// hasAll reports whether all characters of another set are in the set.
func (s *charset) hasAll(other *charset) bool {
	for c, in := range other {
		if in && !s[c] {
			return false
		}
	}
	return true
}

// variant is one form of the names that an expression matches, and where its groups stand: from one element to another.
type variant struct {
	elements []element
	groups   map[int][2]int
}

var everything = setOf(&syntax.Regexp{Op: syntax.OpAnyChar})

// setOf returns the characters that an expression for one character matches; nil if it is for something else.
func setOf(re *syntax.Regexp) *charset {
	s := new(charset)
	switch {
	case re.Op == syntax.OpAnyChar || re.Op == syntax.OpAnyCharNotNL:
		for c := firstRune; c <= lastRune; c++ {
			s[c] = true
		}
	case re.Op == syntax.OpCharClass:
		for i := 0; i+1 < len(re.Rune); i += 2 {
			for c := max(re.Rune[i], firstRune); c <= min(re.Rune[i+1], lastRune); c++ {
				s[c] = true
			}
		}
	case re.Op == syntax.OpLiteral && len(re.Rune) == 1 && firstRune <= re.Rune[0] && re.Rune[0] <= lastRune:
		s[re.Rune[0]] = true
		if re.Flags&syntax.FoldCase != 0 && isLetter(re.Rune[0]) {
			s[re.Rune[0]|0x20], s[re.Rune[0]&^0x20] = true, true
		}
	default:
		return nil
	}
	return s
}

func isLetter(c rune) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// variantsOf returns the forms of the names that an expression matches. With fold set the case of letters does not
// count, and literal text is in lower case.
func variantsOf(re *syntax.Regexp, fold bool) ([]variant, error) {
	list, err := expand(re, fold)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i], err = list[i].anchored(); err != nil {
			return nil, err
		}
	}
	var all []variant
	for _, v := range list {
		all = append(all, v.split()...)
	}
	return all, nil
}

func one(e element) []variant { return []variant{{elements: []element{e}}} }

var errForm = refusal("webrules.expression-without-form", "the names that the expression matches have a form that rules can't say: repeated groups, for instance, or characters at the edge of a word")

// expand returns the forms with their anchors as elements.
func expand(re *syntax.Regexp, fold bool) ([]variant, error) {
	if set := setOf(re); set != nil && re.Op != syntax.OpLiteral {
		return single(set, fold)
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return []variant{{}}, nil
	case syntax.OpBeginText:
		return one(element{kind: begin}), nil
	case syntax.OpEndText:
		return one(element{kind: end}), nil
	case syntax.OpLiteral:
		return literalOf(re, fold)
	case syntax.OpCapture:
		list, err := expand(re.Sub[0], fold)
		for i := range list {
			if list[i].groups == nil {
				list[i].groups = make(map[int][2]int)
			}
			list[i].groups[re.Cap] = [2]int{0, len(list[i].elements)}
		}
		return list, err
	case syntax.OpConcat:
		list := []variant{{}}
		for _, sub := range re.Sub {
			next, err := expand(sub, fold)
			if err != nil {
				return nil, err
			}
			if list = product(list, next); len(list) > maxVariants {
				return nil, errForm
			}
		}
		return list, nil
	case syntax.OpAlternate:
		return alternate(re.Sub, fold)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return repeated(re, fold)
	}
	return nil, errForm
}

// single returns a form of one character of a set.
func single(set *charset, fold bool) ([]variant, error) {
	if fold {
		if !set.isFolded() {
			return nil, errForm
		}
		lower := *set
		for c := 'A'; c <= 'Z'; c++ {
			lower[c] = false
		}
		if lower.count() <= maxSmall {
			set = &lower
		}
	}
	if n := set.count(); n == 0 {
		return nil, nil // it never matches
	} else if n <= maxSmall {
		e := element{kind: oneOf}
		for c, in := range set {
			if in {
				e.words = append(e.words, string(rune(c)))
			}
		}
		return one(e), nil
	}
	return one(element{kind: run, set: set, min: 1, max: 1, greedy: true}), nil
}

func literalOf(re *syntax.Regexp, fold bool) ([]variant, error) {
	text := string(re.Rune)
	for _, c := range re.Rune {
		if c < firstRune || c > lastRune {
			return nil, refusal("webrules.expression-character", "the expression has a character that names only have percent-encoded")
		}
		if isLetter(c) && fold != (re.Flags&syntax.FoldCase != 0) {
			return nil, refusal("webrules.expression-case-varies", "the case of some letters counts in the expression, and that of others does not")
		}
	}
	if fold {
		text = strings.ToLower(text)
	}
	return one(element{kind: literal, text: text}), nil
}

// product appends each form of a list to each of another.
func product(list, next []variant) (all []variant) {
	for _, a := range list {
		for _, b := range next {
			v := variant{elements: slices.Concat(a.elements, b.elements), groups: make(map[int][2]int)}
			for n, at := range a.groups {
				v.groups[n] = at
			}
			for n, at := range b.groups {
				v.groups[n] = [2]int{at[0] + len(a.elements), at[1] + len(a.elements)}
			}
			all = append(all, v)
		}
	}
	return all
}

// alternate returns the forms of all alternatives; words if all are literal.
func alternate(subs []*syntax.Regexp, fold bool) (list []variant, err error) {
	for _, sub := range subs {
		next, err := expand(sub, fold)
		if err != nil {
			return nil, err
		}
		if list = append(list, next...); len(list) > rules.MaxWords {
			return nil, errForm
		}
	}
	plain := !slices.ContainsFunc(list, func(v variant) bool { _, ok := v.literal(); return !ok || len(v.groups) > 0 })
	if plain && len(list) > 1 {
		var texts []string
		for _, v := range list {
			more, _ := v.literal()
			texts = append(texts, more...)
		}
		slices.Sort(texts)
		if texts = slices.Compact(texts); len(texts) <= rules.MaxWords {
			return one(element{kind: oneOf, words: texts}), nil
		}
	}
	if len(list) > maxVariants {
		return nil, errForm
	}
	return list, nil
}

// literal returns the texts of a form that has a few texts only, and no anchors.
func (v *variant) literal() (texts []string, ok bool) {
	texts = []string{""}
	for _, e := range v.elements {
		words := e.words
		switch e.kind {
		case literal:
			words = []string{e.text}
		case oneOf:
		default:
			return nil, false
		}
		if len(texts)*len(words) > rules.MaxWords {
			return nil, false
		}
		var all []string
		for _, a := range texts {
			for _, b := range words {
				all = append(all, a+b)
			}
		}
		texts = all
	}
	return texts, true
}

// repeated returns the form of a run of characters, or those of something that may be missing.
func repeated(re *syntax.Regexp, fold bool) ([]variant, error) {
	sub := re.Sub[0]
	for sub.Op == syntax.OpCapture && re.Op == syntax.OpRepeat && re.Min == 1 && re.Max == 1 {
		sub = sub.Sub[0]
	}
	low, high := re.Min, re.Max
	switch re.Op {
	case syntax.OpStar:
		low, high = 0, unlimited
	case syntax.OpPlus:
		low, high = 1, unlimited
	case syntax.OpQuest:
		low, high = 0, 1
	}
	greedy := re.Flags&syntax.NonGreedy == 0
	if set := setOf(sub); set != nil && set.count() > 0 && (set.count() > 1 || high != 1) {
		if fold && sub.Op == syntax.OpCharClass && !set.isFolded() {
			return nil, errForm
		}
		if high == 0 {
			return []variant{{}}, nil
		}
		return one(element{kind: run, set: set, min: low, max: high, greedy: greedy}), nil
	}
	if low != 0 || high != 1 {
		return nil, errForm
	}
	list, err := expand(sub, fold)
	if err != nil {
		return nil, err
	}
	if len(list) == 1 && len(list[0].groups) == 0 {
		if texts, ok := list[0].literal(); ok && !slices.Contains(texts, "") && len(texts) < rules.MaxWords {
			return one(element{kind: oneOf, words: append(texts, "")}), nil
		}
	}
	if !greedy {
		return append([]variant{{}}, list...), nil
	}
	return append(list, variant{}), nil
}

// isFolded reports whether the case of letters does not count in a set.
func (s *charset) isFolded() bool {
	for c := 'a'; c <= 'z'; c++ {
		if s[c] != s[c&^0x20] {
			return false
		}
	}
	return true
}

// anchored takes the anchors out of a form. Where there is none, anything may stand before or after.
func (v variant) anchored() (variant, error) {
	first, last := 0, len(v.elements)
	for first < last && v.elements[first].kind == begin {
		first++
	}
	for last > first && v.elements[last-1].kind == end {
		last--
	}
	hasBegin, hasEnd := first > 0, last < len(v.elements)
	out := variant{elements: slices.Clone(v.elements[first:last]), groups: make(map[int][2]int)}
	if slices.ContainsFunc(out.elements, func(e element) bool { return e.kind == begin || e.kind == end }) {
		return v, errForm
	}
	before := 0
	if !hasBegin {
		before = 1
		out.elements = append([]element{{kind: run, set: everything, max: unlimited}}, out.elements...)
	}
	if !hasEnd {
		out.elements = append(out.elements, element{kind: run, set: everything, max: unlimited, greedy: true})
	}
	for n, at := range v.groups {
		from, to := at[0]-first, at[1]-first
		out.groups[n] = [2]int{max(from, 0) + before, min(max(to, 0), last-first) + before}
	}
	out.dropUnused()
	return out, nil
}

// dropUnused removes what can't match anything but nothing: after a greedy run of any length, elements up to the end that
// may be missing and have none but its characters. The run takes them.
func (v *variant) dropUnused() {
	for i, e := range v.elements {
		if e.kind != run || !e.greedy || e.max != unlimited {
			continue
		}
		if !slices.ContainsFunc(v.elements[i+1:], func(f element) bool { return !f.isNullable() || !e.set.hasAll(f.chars()) }) {
			v.elements = v.elements[:i+1]
			for n, at := range v.groups {
				v.groups[n] = [2]int{min(at[0], i+1), min(at[1], i+1)}
			}
			return
		}
	}
}

func (e *element) isNullable() bool {
	return e.kind == run && e.min == 0 || e.kind == oneOf && slices.Contains(e.words, "")
}

// chars returns the characters that an element may have.
func (e *element) chars() *charset {
	if e.kind == run {
		return e.set
	}
	s := new(charset)
	for _, text := range append([]string{e.text}, e.words...) {
		for _, c := range text {
			s[c] = true
		}
	}
	return s
}

// split makes two forms of one that ends with a run of any characters after a greedy run of others, if only one
// character can come between: a segment is followed by nothing, or by a slash.
func (v variant) split() []variant {
	n := len(v.elements)
	if n < 2 {
		return []variant{v}
	}
	last, before := v.elements[n-1], v.elements[n-2]
	if last.kind != run || last.min != 0 || *last.set != *everything || before.kind != run || !before.greedy || before.max != unlimited || before.set.count() != everything.count()-1 {
		return []variant{v}
	}
	missing := ""
	for c, in := range everything {
		if in && !before.set[c] {
			missing = string(rune(c))
		}
	}
	short := variant{slices.Clone(v.elements[:n-1]), v.groups}
	long := variant{append(slices.Clone(v.elements[:n-1]), element{kind: literal, text: missing}, last), v.groups}
	return []variant{long, short}
}

// namesOf returns the names that forms have, if there are only a few.
func namesOf(list []variant) (names []string, ok bool) {
	for _, v := range list {
		texts, ok := v.literal()
		if !ok {
			return nil, false
		}
		names = append(names, texts...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names, len(names) <= maxNames
}

// text returns a form as the pattern of a rule. Each run and each list of words is a capture, c1 and so on. Literal text
// is one, too, if a URL needs it as the name has it.
func (v *variant) text(needs func(i int) bool, fold bool) (string, error) {
	var b strings.Builder
	for i := range v.elements {
		e := &v.elements[i]
		name := "c" + strconv.Itoa(i+1)
		switch e.kind {
		case literal:
			if fold && needs(i) && strings.ContainsFunc(e.text, isLetter) {
				if strings.ContainsAny(e.text, "{}|") {
					return "", errForm
				}
				b.WriteString("{" + name + "=" + e.text + "}")
				continue
			}
			b.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(e.text))
		case oneOf:
			if strings.ContainsAny(strings.Join(e.words, ""), "{}|") {
				return "", errForm
			}
			b.WriteString("{" + name + "=" + strings.Join(e.words, "|") + "}")
		case run:
			class, ok := className(e.set)
			if !ok {
				return "", refusal("webrules.class-unknown", "rules have no class of characters that is {class}", e.set.String())
			}
			b.WriteString("{" + name + ":" + class + lengths(e.min, e.max) + "}")
		}
	}
	return b.String(), nil
}

// lengths returns the lengths of a run, as patterns have them.
func lengths(low, high int) string {
	switch {
	case low == 1 && high == unlimited:
		return ""
	case high == unlimited:
		return fmt.Sprintf(",%d-", low)
	case low == high:
		return fmt.Sprintf(",%d", low)
	}
	return fmt.Sprintf(",%d-%d", low, high)
}

// className returns the class of rules that has these characters.
func className(set *charset) (string, bool) {
	for _, name := range rules.Classes() {
		if *rulesSet(name) == *set {
			return name, true
		}
	}
	return "", false
}

// rulesSet returns the characters of a class of rules.
func rulesSet(class string) *charset {
	s := new(charset)
	p, err := rules.ParsePattern("{c:"+class+",1}", false)
	for c := range s {
		if c >= firstRune && err == nil {
			_, s[c] = p.Match(string(rune(c)))
		}
	}
	return s
}

// String returns the set as a regular expression has it.
func (s *charset) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for c := rune(firstRune); c <= lastRune; c++ {
		if !s[c] {
			continue
		}
		from := c
		for c < lastRune && s[c+1] {
			c++
		}
		b.WriteRune(from)
		if c > from {
			b.WriteString("-" + string(c))
		}
	}
	b.WriteByte(']')
	return b.String()
}
