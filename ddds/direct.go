package ddds

import "unicode/utf8"

// direct matches expressions that leave no choice: anchored at both ends, without
// alternatives, and such that the next character always tells whether a repetition
// goes on or ends. Almost all rules that are published are so. There is one way to
// match then, so it is the longest, and it is found as the text is read.
//
// It saves compiling, which takes a hundred times as long as matching: a rule with
// a few {1,63} would take longer than the query that it came with.
type direct struct {
	nodes  []node
	groups int
}

// newDirect returns nil if the expression is not of that sort. whole is as if it
// was anchored.
func newDirect(e *ere, whole bool) *direct {
	if len(e.branches) != 1 {
		return nil
	}
	nodes := e.branches[0]
	if !whole {
		last := len(nodes) - 1
		if last < 1 || nodes[0].kind != beginning || nodes[last].kind != ending {
			return nil
		}
		nodes = nodes[1:last]
	}
	if !decided(nodes, front{}) {
		return nil
	}
	return &direct{nodes, e.groups}
}

// front is the characters that a part of an expression may begin with.
type front struct {
	ascii ascii
	wide  bool // any beyond ASCII
}

func (f front) or(g front) front {
	return front{ascii{f.ascii[0] | g.ascii[0], f.ascii[1] | g.ascii[1]}, f.wide || g.wide}
}

// meets reports whether there may be a character in both.
func (f front) meets(g front) bool {
	return f.ascii[0]&g.ascii[0] != 0 || f.ascii[1]&g.ascii[1] != 0 || f.wide && g.wide
}

// decided reports whether the next character decides everything in the nodes, if
// what follows them begins with one of those given (or is the end of the text).
func decided(nodes []node, next front) bool {
	for i := len(nodes) - 1; i >= 0; i-- {
		n := &nodes[i]
		var begin front
		var empty bool
		switch n.kind {
		case character, oneOf:
			begin = n.front()
		case grouped:
			if len(n.branches) != 1 {
				return false
			}
			begin, empty = frontOf(n.branches[0])
			n.begin = begin
			if empty && n.low != n.high { // it may go on without a character
				return false
			}
			inside := next
			if n.high != 1 {
				inside = next.or(begin)
			}
			if empty && n.high != 1 || !decided(n.branches[0], inside) {
				return false
			}
		default:
			return false // an anchor inside
		}
		if n.low != n.high && begin.meets(next) {
			return false
		}
		switch {
		case n.high == 0:
		case n.low == 0 || empty:
			next = next.or(begin)
		default:
			next = begin
		}
	}
	return true
}

// frontOf returns what the nodes may begin with, and whether they may be empty.
func frontOf(nodes []node) (f front, empty bool) {
	for i := range nodes {
		n := &nodes[i]
		if n.high == 0 {
			continue
		}
		begin, none := n.front(), false
		if n.kind == grouped {
			if len(n.branches) != 1 {
				return front{}, true // decided says no
			}
			begin, none = frontOf(n.branches[0])
		}
		f = f.or(begin)
		if n.low > 0 && !none {
			return f, false
		}
	}
	return f, true
}

// front returns what a character or a set matches.
func (n *node) front() (f front) {
	switch {
	case n.kind == oneOf:
		return front{n.set.ascii, n.set.wide()}
	case n.kind != character:
		return front{}
	case n.char >= utf8.RuneSelf:
		return front{wide: true}
	}
	f.ascii.add(byte(n.char))
	if n.fold && isLetter(byte(n.char)) {
		f.ascii.add(byte(n.char) ^ 0x20)
	}
	return f
}

// match returns what [regexp.Regexp.FindStringSubmatchIndex] would.
func (d *direct) match(text string) []int {
	at := make([]int, 2*d.groups+2)
	for i := range at {
		at[i] = -1
	}
	end, ok := follow(d.nodes, text, 0, at)
	if !ok || end != len(text) {
		return nil
	}
	at[0], at[1] = 0, end
	return at
}

// follow matches the nodes from pos on, and returns where they end.
func follow(nodes []node, text string, pos int, at []int) (end int, ok bool) {
	for i := range nodes {
		n := &nodes[i]
		for count := 0; count != n.high; count++ {
			if count >= n.low && !n.begins(text, pos) {
				break
			}
			if n.kind != grouped {
				size, ok := n.matches(text, pos)
				if !ok {
					return 0, false
				}
				pos += size
				continue
			}
			start := pos
			if pos, ok = follow(n.branches[0], text, pos, at); !ok {
				return 0, false
			}
			at[2*n.group], at[2*n.group+1] = start, pos
		}
	}
	return pos, true
}

// begins reports whether the node may match at pos, as far as one character tells.
func (n *node) begins(text string, pos int) bool {
	switch {
	case pos == len(text):
		return false
	case n.kind != grouped:
		_, ok := n.matches(text, pos)
		return ok
	case text[pos] < utf8.RuneSelf:
		return n.begin.ascii.has(text[pos])
	}
	return n.begin.wide // nothing else could match it here
}

// matches matches a character or a set and returns the size of the character.
func (n *node) matches(text string, pos int) (size int, ok bool) {
	if pos == len(text) {
		return 0, false
	}
	r, size := rune(text[pos]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRuneInString(text[pos:])
	}
	switch {
	case n.kind == oneOf:
		ok = n.set.has(r)
	case n.fold && r < utf8.RuneSelf && isLetter(byte(r)):
		ok = r|0x20 == n.char|0x20
	default:
		ok = r == n.char
	}
	return size, ok
}
