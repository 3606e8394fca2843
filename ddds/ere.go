package ddds

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// Limits of an expression, so that none takes much memory or time whatever it
// looks like. What fits 255 bytes can still ask for 255 times 255 repetitions.
const (
	maxBound = 255  // of a repetition; POSIX promises as many (RE_DUP_MAX)
	maxSize  = 5000 // steps that an expression has when its repetitions are written out
	maxReps  = 1000 // of nested repetitions, multiplied; Go's engine takes as many
	maxDepth = 64   // of parentheses
)

// special are the characters that mean something outside brackets, and that a
// backslash takes their meaning from. (POSIX.1, base definitions, 9.4.3. The
// closing ones have none by themselves, but are often written with a backslash.)
const special = `^.[$()|*+?{\]}`

// ere is an extended regular expression that was read, and what it costs.
type ere struct {
	branches [][]node
	groups   int
	cost     cost
	quirk    string // why a name server may refuse or misread it; "" if none should
}

// node is a part of an expression and how often it may occur.
type node struct {
	kind      kind
	char      rune // of a character
	fold      bool // its case does not count
	set       *set
	group     int // its number, from 1
	branches  [][]node
	begin     front // of a group, where it is matched directly
	low, high int   // high is unbounded if there is no maximum
}

type kind uint8

const (
	character kind = iota // one character
	oneOf                 // one of a set
	grouped               // what stands in parentheses
	beginning             // of the text
	ending                // of the text
)

const unbounded = -1

// cost is how large an expression becomes.
type cost struct {
	size int // steps
	reps int // of nested repetitions, multiplied; 1 if there are none
}

// parser reads an extended regular expression of POSIX.1 (base definitions,
// chapter 9.4). What POSIX leaves undefined is refused: every implementation makes
// something else of it.
type parser struct {
	text   string
	delim  byte // stands for itself after a backslash; 0 if there is none
	fold   bool // the case of ASCII letters does not count
	offset int  // of text in its field, for errors
	pos    int
	ere    ere
}

// parseERE reads text, which stands at offset in its field.
func parseERE(text string, delim byte, fold bool, offset int) (ere, error) {
	p := &parser{text: text, delim: delim, fold: fold, offset: offset}
	if !utf8.ValidString(text) {
		return ere{}, p.errorf(0, "expression.not-utf-8", "the expression is not UTF-8")
	}
	var err error
	p.ere.branches, p.ere.cost, err = p.alternatives(0)
	return p.ere, err
}

func (p *parser) errorf(pos int, code, text string, args ...any) error {
	return stele.Invalidf("regexp", p.offset+pos, code, text, args...)
}

// note remembers the first thing in the expression that a name server may refuse or misread.
func (p *parser) note(pos int, format string, args ...any) {
	if p.ere.quirk == "" {
		p.ere.quirk = fmt.Sprintf("at byte %d: %s", p.offset+pos, fmt.Sprintf(format, args...))
	}
}

func (p *parser) more() bool { return p.pos < len(p.text) }

// alternatives reads up to the end, or to the parenthesis that closes this depth.
func (p *parser) alternatives(depth int) (branches [][]node, all cost, err error) {
	all.reps = 1
	for {
		start := p.pos
		branch, c, err := p.branch(depth)
		if err != nil {
			return nil, cost{}, err
		}
		if p.pos == start {
			return nil, cost{}, p.errorf(start, "expression.branch-empty", "nothing stands here, and POSIX does not say what that matches; write what is meant, or .* for anything")
		}
		branches = append(branches, branch)
		all.size += c.size + 1
		all.reps = max(all.reps, c.reps)
		if all.size > maxSize {
			return nil, cost{}, p.tooLarge()
		}
		if !p.more() || p.text[p.pos] != '|' {
			return branches, all, nil
		}
		p.pos++
	}
}

// branch reads what stands between two bars.
func (p *parser) branch(depth int) (list []node, all cost, err error) {
	all.reps = 1
	for p.more() && p.text[p.pos] != '|' && (p.text[p.pos] != ')' || depth == 0) {
		n, c, err := p.atom(depth)
		if err != nil {
			return nil, cost{}, err
		}
		if err = p.repetition(&n, &c); err != nil {
			return nil, cost{}, err
		}
		list = append(list, n)
		all.size += c.size
		all.reps = max(all.reps, c.reps)
		if all.size > maxSize {
			return nil, cost{}, p.tooLarge()
		}
	}
	return list, all, nil
}

// atom reads what a repetition can follow, or an anchor.
func (p *parser) atom(depth int) (n node, c cost, err error) {
	n, c = node{low: 1, high: 1}, cost{1, 1}
	switch b := p.text[p.pos]; b {
	case '(':
		c, err = p.parentheses(&n, depth)
		return n, c, err
	case '[':
		n.kind = oneOf
		n.set, err = p.bracket()
		return n, c, err
	case '^':
		n.kind = beginning
		p.pos++
		return n, c, nil
	case '$':
		n.kind = ending
		p.pos++
		return n, c, nil
	case '.':
		n.kind, n.set = oneOf, newSet(nil, true)
		p.pos++
		return n, c, nil
	case '\\':
		n.char, err = p.escaped()
		n.fold = p.fold
		return n, c, err
	case '*', '+', '?', '{':
		return n, c, p.errorf(p.pos, "expression.nothing-repeated", `'{character}' repeats nothing here; write "{literal}" for the character`, string(rune(b)), string(b))
	case ')':
		p.note(p.pos, "a closing parenthesis without an opening one; write [)]")
	}
	r, size := utf8.DecodeRuneInString(p.text[p.pos:])
	p.pos += size
	n.char, n.fold = r, p.fold
	return n, c, nil
}

// parentheses reads a subexpression in them.
func (p *parser) parentheses(n *node, depth int) (c cost, err error) {
	start := p.pos
	if depth == maxDepth {
		return cost{}, p.errorf(start, "expression.too-deep", "parentheses stand more than {most} deep", maxDepth)
	}
	p.pos++
	p.ere.groups++
	n.kind, n.group = grouped, p.ere.groups
	if n.branches, c, err = p.alternatives(depth + 1); err != nil {
		return cost{}, err
	}
	if !p.more() {
		return cost{}, p.errorf(start, "expression.parenthesis-open", "this parenthesis is not closed")
	}
	p.pos++
	c.size += 2
	return c, nil
}

// escaped reads a backslash and the character after it.
func (p *parser) escaped() (rune, error) {
	start := p.pos
	p.pos++
	if !p.more() {
		return 0, p.errorf(start, "expression.backslash-at-end", "nothing follows the backslash")
	}
	b := p.text[p.pos]
	switch {
	case b == p.delim && b != 0, strings.IndexByte(special, b) >= 0:
		p.pos++
		return rune(b), nil
	case isDigit(b):
		return 0, p.errorf(start, "expression.back-reference", "extended regular expressions have no back-references")
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.pos:])
	return 0, p.errorf(start, "expression.escape-undefined", "POSIX does not say what a backslash before '{character}' means; leave it out, or use a bracket expression such as [[:digit:]]", string(rune(r)))
}

// repetition reads what says how often the node before it is repeated.
func (p *parser) repetition(n *node, c *cost) error {
	if !p.more() || strings.IndexByte("*+?{", p.text[p.pos]) < 0 {
		return nil
	}
	start := p.pos
	if n.kind == beginning || n.kind == ending {
		return p.errorf(start, "expression.anchor-repeated", "POSIX does not say what a repeated anchor means")
	}
	switch p.text[start] {
	case '*':
		n.low, n.high = 0, unbounded
	case '+':
		n.low, n.high = 1, unbounded
	case '?':
		n.low, n.high = 0, 1
	case '{':
		if err := p.bounds(n, c); err != nil {
			return err
		}
		p.pos-- // to its end
	}
	p.pos++
	c.size++
	if p.more() && strings.IndexByte("*+?{", p.text[p.pos]) >= 0 {
		return p.errorf(p.pos, "expression.repetition-repeated", "POSIX does not say what a repetition of a repetition means; use parentheses")
	}
	return nil
}

// bounds reads {n}, {n,} or {n,m}.
func (p *parser) bounds(n *node, c *cost) error {
	start := p.pos
	p.pos++
	low, ok := p.number()
	high := low
	if ok && p.more() && p.text[p.pos] == ',' {
		p.pos++
		if p.more() && p.text[p.pos] == '}' {
			high = unbounded
		} else {
			high, ok = p.number()
		}
	}
	if !ok || !p.more() || p.text[p.pos] != '}' {
		return p.errorf(start, "expression.repetition-malformed", "this is not a repetition; write it as {2}, {2,} or {2,5}, and [{] for the character")
	}
	p.pos++
	switch {
	case low > maxBound || high > maxBound:
		return p.errorf(start, "expression.bound-too-large", "the bound is too large; {most} is the most", maxBound)
	case high != unbounded && high < low:
		return p.errorf(start, "expression.bounds-reversed", "the second bound is less than the first")
	}
	n.low, n.high = low, high
	times := max(low, high, 1)
	c.size, c.reps = times*(c.size+1), times*c.reps
	if c.size > maxSize || c.reps > maxReps {
		return p.tooLarge()
	}
	return nil
}

// number reads a number. One that is far too large is cut short.
func (p *parser) number() (n int, ok bool) {
	for ; p.more() && isDigit(p.text[p.pos]); p.pos++ {
		n, ok = min(n*10+int(p.text[p.pos]-'0'), maxBound+1), true
	}
	return n, ok
}

func (p *parser) tooLarge() error {
	return tooLarge("expression.repetitions-too-large", "its repetitions, written out, have more than {most-steps} steps or are nested more than {most-depth} times", maxSize, maxReps)
}
