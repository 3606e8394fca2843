package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// cells makes a commit of cells.
func cells(list ...stele.CellChange) *stele.Commit { return &stele.Commit{Cells: list} }

// cell makes a commit of one cell.
func cell(name string, before, after []byte) *stele.Commit {
	return cells(stele.CellChange{Name: name, Before: before, After: after})
}

// wantCell compares a cell's value; nil is not empty.
func (s *session) wantCell(name string, want []byte) {
	s.Helper()
	got, err := s.Cell(s.ctx, name)
	if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
		s.Errorf("Cell(%.80q) = %.80q (nil: %t), %v; want %.80q (nil: %t)", name, got, got == nil, err, want, want == nil)
	}
}

// gathersCells: a store that reads many cells at once finds the same as one by one.
func (s *session) gathersCells(names ...string) {
	s.Helper()
	g, ok := s.Store.(stele.CellGatherer)
	if !ok {
		return
	}
	for i := range 1500 { // more than a store reads by one statement
		names = append(names, fmt.Sprintf("none %d", i))
	}
	names = append(names, names[0])
	list, err := g.GatherCells(s.ctx, names)
	if err != nil || len(list) != len(names) {
		s.Fatalf("GatherCells: %d values of %d names, %v", len(list), len(names), err)
	}
	for i, name := range names {
		one, err := s.Cell(s.ctx, name)
		if err != nil || !bytes.Equal(list[i], one) || (list[i] == nil) != (one == nil) {
			s.Errorf("GatherCells has %.80q (nil: %t) under %q, and Cell %.80q (nil: %t), %v", list[i], list[i] == nil, name, one, one == nil, err)
		}
	}
}

// cutsCells makes sure that parts of cells are those of their values, if the store reads parts.
func (s *session) cutsCells(names ...string) {
	c, ok := s.Store.(stele.CellCutter)
	if !ok {
		return
	}
	for _, name := range names {
		all, err := s.Cell(s.ctx, name)
		if err != nil {
			s.Errorf("Cell(%q): %v", name, err)
		}
		length := len(all)
		if all == nil {
			length = -1
		}
		for from := range len(all) + 2 {
			for count := range len(all) + 2 {
				rest := all[min(from, len(all)):]
				part, n, err := c.CutCell(s.ctx, name, from, count)
				if want := rest[:min(count, len(rest))]; err != nil || n != length || !bytes.Equal(part, want) {
					s.Errorf("CutCell(%q, %d, %d) = %q, %d, %v; want %q, %d", name, from, count, part, n, err, want, length)
				}
			}
		}
	}
}

// checkCells: a value is replaced, or removed, only by a caller that knows it, byte for
// byte; no value and an empty one differ; and nothing of it is in the change feed.
func checkCells(s *session) {
	const name = "user ana"
	s.wantCell(name, nil)
	s.refuse("empty where nothing is", cell(name, []byte{}, []byte("x")), stele.Conflict)
	s.refuse("something where nothing is", cell(name, []byte("x"), []byte("y")), stele.Conflict)
	s.refuse("removing what is not there", cell(name, []byte("x"), nil), stele.Conflict)
	s.refuse("removing as empty what is not there", cell(name, []byte{}, nil), stele.Conflict)
	s.apply(cell(name, nil, nil)) // a condition, and no more: it is not there
	s.wantCell(name, nil)

	value := []byte{0, 0xff, 'a', 0}
	s.apply(cell(name, nil, value))
	s.wantCell(name, value)
	for why, before := range map[string][]byte{
		"nothing where something is": nil,
		"empty where something is":   {},
		"the beginning only":         value[:3],
		"more than there is":         append(bytes.Clone(value), 0),
		"another byte":               {0, 0xff, 'A', 0},
	} {
		s.refuse(why, cell(name, before, []byte("no")), stele.Conflict)
		s.refuse(why+", and it is to be removed", cell(name, before, nil), stele.Conflict)
		s.wantCell(name, value)
	}
	s.apply(cell(name, value, []byte{}))
	s.wantCell(name, []byte{})
	s.cutsCells(name)
	s.gathersCells(name)
	s.refuse("nothing where empty is", cell(name, nil, []byte("no")), stele.Conflict)
	s.refuse("removing as nothing what is empty", cell(name, nil, nil), stele.Conflict)
	s.apply(cell(name, []byte{}, []byte("z")))
	s.apply(cell(name, []byte("z"), []byte("z"))) // to the same value
	s.wantCell(name, []byte("z"))

	// A removed cell is the same as one that never existed, and may be added again.
	for _, again := range [][]byte{[]byte("z"), {}, []byte("y")} {
		before, err := s.Cell(s.ctx, name)
		if err != nil {
			s.Fatalf("Cell: %v", err)
		}
		s.apply(cell(name, before, nil))
		s.wantCell(name, nil)
		if got := s.cellNames("", ""); len(got) != 0 {
			s.Errorf("the only cell was removed, and Cells has %q", got)
		}
		s.refuse("the value from before it was removed", cell(name, before, []byte("no")), stele.Conflict)
		s.apply(cell(name, nil, again))
		s.wantCell(name, again)
	}
	if n := s.lastChange(); n != 0 {
		s.Errorf("cells made %d changes in the feed; it is for records and namespaces", n)
	}
	s.checkCellFamily()
}

// checkCellFamily: a cell is a cell and nothing else, whatever its name.
func (s *session) checkCellFamily() {
	s.Helper()
	root := space("ark", "")
	s.apply(&stele.Commit{
		Minters:    []stele.MinterState{{Name: "one name", After: []byte("minter")}},
		Namespaces: []*stele.Namespace{root},
		Records:    []*stele.Record{first(s.ark("a"))},
	})
	s.wantCell("one name", nil)
	s.wantCell("ark\x00", nil)
	s.wantCell("ark\x00ark:12345/a", nil)
	s.apply(cells(
		stele.CellChange{Name: "one name", After: []byte("cell")},
		stele.CellChange{Name: "ark\x00", After: []byte("cell")},
		stele.CellChange{Name: "ark\x00ark:12345/a", After: []byte("cell")},
	))
	s.wantMinter("one name", []byte("minter"))
	s.wantNamespace(root)
	s.want(s.ark("a"), first(s.ark("a")))
	s.apply(cell("one name", []byte("cell"), nil))
	s.wantMinter("one name", []byte("minter"))
}

// cellNames returns the names of cells in the order in which they come.
func (s *session) cellNames(prefix, after string) (names []string) {
	s.Helper()
	for _, c := range all(s, fmt.Sprintf("Cells(%.80q, %.80q)", prefix, after), s.Cells(s.ctx, prefix, after)) {
		names = append(names, c.Name)
	}
	return names
}

// checkCellList: bytes decide the order; prefix and cursor are bytes too.
func checkCellList(s *session) {
	s.wantTexts("Cells of an empty store", s.cellNames("", ""), nil)
	sorted := []string{
		"\x00", "\x00\x00", "\x00a", " ", "A", "a", "a\x00", "a\x00b", "a ", "a b", "a b\xff", "a b\xff\xff", "aB", "ab", "b", "é", "\xff", "\xff\x00", "\xff\xff",
	}
	c := &stele.Commit{}
	for i := range sorted {
		name := sorted[(i*7)%len(sorted)] // 7 and 19 have no common divisor
		c.Cells = append(c.Cells, stele.CellChange{Name: name, After: []byte("value of " + name)})
	}
	s.apply(c)
	s.gathersCells(sorted...)
	s.gathersCells("b", "a b", "A", "\xff\xff", "c", "a") // in any order
	s.cutsCells("b", "a b", "c")
	for _, prefix := range append([]string{"", "c", "a b\xff\xff\xff", "\xc3", "zz"}, sorted...) {
		for _, after := range append([]string{"", "a\x00\x00", "aa", "\xff\xff\xff", "zz"}, sorted...) {
			s.wantTexts(fmt.Sprintf("Cells(%q, %q)", prefix, after), s.cellNames(prefix, after), listed(sorted, prefix, after))
		}
	}
	for _, c := range all(s, "Cells", s.Cells(s.ctx, "", "")) {
		if want := "value of " + c.Name; string(c.Value) != want {
			s.Errorf("Cells has %q with %q, want %q", c.Name, c.Value, want)
		}
	}
	// Page by page, with the last name as the cursor, is the whole.
	var pages []string
	for after := ""; len(pages) <= 2*len(sorted); after = pages[len(pages)-1] {
		n := len(pages)
		for c, err := range s.Cells(s.ctx, "", after) {
			if err != nil {
				s.Fatalf("Cells: %v", err)
			}
			if pages = append(pages, c.Name); len(pages) == n+3 {
				break
			}
		}
		if len(pages) == n {
			break
		}
	}
	s.wantTexts("Cells in pages", pages, sorted)
}

// listed is what Cells should find among names.
func listed(names []string, prefix, after string) (out []string) {
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && name > after {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// checkCellLimits: what is within the limits is kept as it is; what is not can never be
// committed, nor can a cell twice.
func checkCellLimits(s *session) {
	long := strings.Repeat("n", stele.MaxCellName)
	large := bytes.Repeat([]byte{0xff, 0}, stele.MaxCell/2)
	for why, c := range map[string]*stele.Commit{
		"no name":                         cell("", nil, []byte("x")),
		"no name, and it is removed":      cell("", nil, nil),
		"a long name":                     cell(long+"n", nil, []byte("x")),
		"a long name, and it is removed":  cell(long+"n", nil, nil),
		"a large value":                   cell("a", nil, append(bytes.Clone(large), 0)),
		"a large value beside others":     cells(stele.CellChange{Name: "b", After: []byte{}}, stele.CellChange{Name: "a", After: append(bytes.Clone(large), 0)}),
		"a cell twice":                    cells(stele.CellChange{Name: "a", After: []byte("x")}, stele.CellChange{Name: "a", After: []byte("x")}),
		"a cell twice, one on the other":  cells(stele.CellChange{Name: "a", After: []byte("x")}, stele.CellChange{Name: "a", Before: []byte("x"), After: []byte("y")}),
		"a cell twice, and it is removed": cells(stele.CellChange{Name: "a", After: []byte("x")}, stele.CellChange{Name: "b"}, stele.CellChange{Name: "a", Before: []byte("x")}),
	} {
		s.refuse(why, c, stele.Invalid)
	}
	s.apply(cells(
		stele.CellChange{Name: long, After: large},
		stele.CellChange{Name: long[1:], After: large},
		stele.CellChange{Name: "n", After: large[:1]},
	))
	s.wantCell(long, large)
	s.wantCell(long[1:], large)
	s.wantCell("n", large[:1])
	s.wantCell(long+"n", nil) // asking is allowed
	s.wantCell("", nil)
	s.wantTexts("Cells with large values", s.cellNames("n", ""), []string{"n", long[1:], long})
	s.wantTexts("Cells behind a name that is too long", s.cellNames("", long+"n"), nil)
	last := append(bytes.Clone(large[:len(large)-1]), 1)
	s.refuse("another last byte", cell(long, last, nil), stele.Conflict)
	s.apply(cell(long, large, last))
	s.wantCell(long, last)
	s.apply(cell(long, last, nil))
	s.wantCell(long, nil)
}

// checkCellWriters: of many writers that replace, make or remove a cell, one wins each
// time, and nothing of the losing commits is there.
func checkCellWriters(s *session) {
	const rounds = 12
	var before []byte
	for round := range rounds {
		var mu sync.Mutex
		var won []int
		value := func(i int) []byte {
			if round%4 == 3 {
				return nil // all want it to be removed
			}
			return fmt.Appendf(nil, "round %d, writer %d", round, i)
		}
		id := func(i int) stele.ID { return s.ark(fmt.Sprintf("r%d/%d", round, i)) }
		together(writers, func(i int) {
			c := cell("wanted", before, value(i))
			c.Records = []*stele.Record{first(id(i))}
			if err := s.Apply(s.ctx, c); err != nil {
				s.wantKind("a writer of a cell who lost", err, stele.Conflict)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			won = append(won, i)
		})
		if len(won) != 1 {
			s.Fatalf("round %d: %d writers replaced the same value of a cell", round, len(won))
		}
		before = value(won[0])
		s.wantCell("wanted", before)
		if got := texts(s.scan("ark", s.ark(fmt.Sprintf("r%d/", round)).String(), "")); len(got) != 1 || got[0] != id(won[0]).String() {
			s.Errorf("round %d: writer %d won, and there are the records %q", round, won[0], got)
		}
	}
	s.checkCellChain()
}

// checkCellChain: writers that read a cell and count it up, and retry when they lose,
// lose no count.
func (s *session) checkCellChain() {
	s.Helper()
	const each = 25
	var lost atomic.Int64
	together(8, func(i int) {
		for done := 0; done < each; {
			have, err := s.Cell(s.ctx, "chain")
			if err != nil {
				s.Errorf("Cell: %v", err)
				return
			}
			// One byte for each count: the writer that made it.
			switch err := s.Apply(s.ctx, cell("chain", have, append(bytes.Clone(have), byte(i)))); {
			case err == nil:
				done++
			case stele.KindOf(err) == stele.Conflict:
				lost.Add(1)
			default:
				s.Errorf("a commit under load: %v", err)
				return
			}
		}
	})
	got, err := s.Cell(s.ctx, "chain")
	if err != nil || len(got) != 8*each {
		s.Errorf("the cell was counted up %d times, and has %d, %v (%d tried again)", 8*each, len(got), err, lost.Load())
	}
	for i := range byte(8) {
		if n := bytes.Count(got, []byte{i}); n != each {
			s.Errorf("writer %d counted %d times, and %d are there", i, each, n)
		}
	}
}
