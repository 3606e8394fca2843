package rules

import "strings"

// findPivot makes sure that a name is read in one way only, and finds how.
//
// An element that may have several lengths ends where it must if no character that may
// follow it is one of its own. All elements up to the first of which that is not true, the
// pivot, are read from the left. Those after the pivot are read from the right, by the same
// rule with what may precede them. The pivot takes what is left between.
func (p *Pattern) findPivot() error {
	p.pivot = len(p.elements)
	for i := range p.elements {
		if !p.endsClearly(i) {
			p.pivot = i
			break
		}
	}
	for i := p.pivot + 1; i < len(p.elements); i++ {
		if !p.beginsClearly(i) {
			first, second := &p.elements[p.pivot], &p.elements[i]
			return invalid(0, "rule.pattern-ambiguous",
				`where the captures "{first}" and "{second}" end is not clear: each could take characters of what stands beside it. Give one of them a fixed length, or a class without the character between them`,
				p.names[first.capture], p.names[second.capture])
		}
	}
	return nil
}

// endsClearly reports whether where an element ends follows from what may follow it.
func (p *Pattern) endsClearly(i int) bool {
	e := &p.elements[i]
	if !e.isVariable() {
		return true
	}
	var next [256]bool
	for k := i + 1; k < len(p.elements); k++ {
		p.addFirst(&next, &p.elements[k])
		if !p.elements[k].isNullable() {
			break
		}
	}
	if e.kind == classRun {
		return !meet(&next, e.set)
	}
	for _, long := range e.words {
		for _, short := range e.words {
			if len(short) < len(long) && strings.HasPrefix(long, short) && next[long[len(short)]] {
				return false
			}
		}
	}
	return true
}

// beginsClearly reports whether where an element begins follows from what may precede it.
func (p *Pattern) beginsClearly(i int) bool {
	e := &p.elements[i]
	if !e.isVariable() {
		return true
	}
	var before [256]bool
	for k := i - 1; k >= 0; k-- {
		p.addLast(&before, &p.elements[k])
		if !p.elements[k].isNullable() {
			break
		}
	}
	if e.kind == classRun {
		return !meet(&before, e.set)
	}
	for _, long := range e.words {
		for _, short := range e.words {
			if len(short) < len(long) && strings.HasSuffix(long, short) && before[long[len(long)-len(short)-1]] {
				return false
			}
		}
	}
	return true
}

func meet(a, b *[256]bool) bool {
	for c := range a {
		if a[c] && b[c] {
			return true
		}
	}
	return false
}

// addFirst adds the characters with which an element may begin.
func (p *Pattern) addFirst(set *[256]bool, e *element) {
	p.addEdge(set, e, func(text string) byte { return text[0] })
}

// addLast adds the characters with which it may end.
func (p *Pattern) addLast(set *[256]bool, e *element) {
	p.addEdge(set, e, func(text string) byte { return text[len(text)-1] })
}

func (p *Pattern) addEdge(set *[256]bool, e *element, edge func(text string) byte) {
	add := func(text string) {
		if text == "" {
			return
		}
		c := edge(text)
		set[c] = true
		if p.fold && isLower(c) { // texts are in lower case then
			set[c&^0x20] = true
		}
	}
	switch e.kind {
	case literalText:
		add(e.text)
	case oneWord:
		for _, w := range e.words {
			add(w)
		}
	case classRun:
		for c, in := range e.set {
			set[c] = set[c] || in
		}
	}
}
