package storetest

import (
	"fmt"
	"iter"
	"slices"

	"github.com/stele-id/stele"
)

// checkGet: a record is found by its identifier and by any alias, in any scheme.
func checkGet(s *session) {
	handle, urn := s.id("hdl", "10.1000/1"), s.id("urn", "urn:a1:1")
	r := s.full(s.ark("a"), handle, urn)
	plain := first(s.ark("b"))
	s.wantNone(r.ID, handle, urn, stele.ID{})
	s.put(r)
	s.put(plain)
	for _, name := range r.Names() {
		s.want(name, r)
	}
	s.want(plain.ID, plain)
	s.gathers(r, plain)
	// A text that only resembles a registered name is not registered.
	s.wantNone(s.ark("c"), s.ark("aa"), s.ark("A"), s.id("ark", "ark:12345/"), s.id("hdl", "10.1000/11"),
		s.id("hdl", r.ID.String()), s.id("ark", handle.String()), stele.ID{})

	later := s.id("purl", "https://purl.org/a")
	second := next(r, "second", later)
	s.put(second)
	for _, name := range second.Names() {
		s.want(name, second)
	}
}

// gathers: a store that reads many records at once finds the same as one by one.
func (s *session) gathers(r, plain *stele.Record) {
	g, ok := s.Store.(stele.Gatherer)
	if !ok {
		return
	}
	names := append(r.Names(), s.ark("c"), plain.ID, stele.ID{}, s.ark("aa"), r.ID)
	for i := range 1500 { // more than a store reads by one statement
		names = append(names, s.ark(fmt.Sprintf("none%d", i)))
	}
	names = append(names, plain.ID)
	list, err := g.Gather(s.ctx, names)
	if err != nil || len(list) != len(names) {
		s.Fatalf("Gather: %d records of %d names, %v", len(list), len(names), err)
	}
	for i, name := range names {
		one, err := s.Record(s.ctx, name)
		if (err == nil) != (list[i] != nil) || err == nil && !list[i].Equal(one) {
			s.Errorf("Gather has %v under %s, and Record %v, %v", list[i], name, one, err)
		}
	}
}

// checkOwnValues: a caller that changes a returned value does not change the store.
func checkOwnValues(s *session) {
	r := s.full(s.ark("a"), s.ark("b"))
	n := space("ark", "ark:12345/")
	s.apply(&stele.Commit{
		Records:    []*stele.Record{r},
		Namespaces: []*stele.Namespace{n},
		Minters:    []stele.MinterState{{Name: "m", After: []byte("state")}},
		Cells:      []stele.CellChange{{Name: "c", After: []byte("value")}},
	})
	before := s.image()
	for _, got := range slices.Concat(s.scan("ark", "", ""), s.history(r.ID)) {
		spoil(got)
	}
	for _, name := range r.Names() {
		got, err := s.Record(s.ctx, name)
		if err != nil {
			s.Fatalf("Record: %v", err)
		}
		spoil(got)
	}
	got, _, err := s.First(s.ctx, slices.Values([]stele.Prefix{s.prefix("ark", r.ID.String())}))
	if err != nil {
		s.Fatalf("First: %v", err)
	}
	spoil(got)
	gotNamespace, err := s.Namespace(s.ctx, n.Key())
	if err != nil {
		s.Fatalf("Namespace: %v", err)
	}
	for _, n := range append(all(s, "Namespaces", s.Namespaces(s.ctx)), gotNamespace) {
		n.Title, n.Hosts[0], n.Protocols[0] = "spoiled", "spoiled", "spoiled"
		n.Grants[0].Role = stele.RoleOwner
	}
	state, err := s.MinterState(s.ctx, "m")
	if err != nil || len(state) == 0 {
		s.Fatalf("MinterState: %q, %v", state, err)
	}
	state[0] = 'X'
	for _, m := range all(s, "MinterStates", s.MinterStates(s.ctx)) {
		m.After[0] = 'X'
	}
	value, err := s.Cell(s.ctx, "c")
	if err != nil || len(value) == 0 {
		s.Fatalf("Cell: %q, %v", value, err)
	}
	value[0] = 'X'
	for _, c := range all(s, "Cells", s.Cells(s.ctx, "", "")) {
		c.Value[0] = 'X'
	}
	s.wantImage("what a caller does with returned values changes the store", before)
}

// spoil changes every part of a full record that is shared if it is not copied.
func spoil(r *stele.Record) {
	r.Version = 99
	r.Aliases[0] = r.ID
	r.Tombstone.Reason = "spoiled"
	r.Targets[0].URL = "spoiled:"
	r.Metadata[stele.What] = "spoiled"
	r.Values[0].Data[0] ^= 0xff
	r.Values[0].References[0].Handle = "spoiled"
	r.Readers[0] = "spoiled"
}

// checkFirst: the first candidate that is registered wins, and none is drawn
// after it.
func checkFirst(s *session) {
	shop := first(s.ark("shop"), s.id("hdl", "10.1000/shop"))
	shelf := first(s.ark("shop/shelf"))
	s.put(shop)
	s.put(shelf)
	text := func(tail string) stele.Prefix { return s.prefix("ark", "ark:12345/"+tail) }
	alias := s.prefix("hdl", "10.1000/shop")
	// A text may be cut anywhere, also inside a character; and a Prefix may be zero.
	inside := s.id("ark", "ark:12345/é").Prefix(len("ark:12345/") + 1)
	for _, c := range []struct {
		name       string
		candidates []stele.Prefix
		want       *stele.Record
		at         int
	}{
		{"longest", []stele.Prefix{text("shop/shelf/box"), text("shop/shelf"), text("shop")}, shelf, 1},
		{"order decides", []stele.Prefix{text("shop"), text("shop/shelf")}, shop, 0},
		{"alias", []stele.Prefix{text("sho"), alias, text("shop/shelf")}, shop, 1},
		{"other scheme", []stele.Prefix{s.prefix("hdl", shop.ID.String()), text("shop")}, shop, 1},
		{"odd candidates", []stele.Prefix{{}, inside, text("shop/"), text("shop")}, shop, 3},
		{"none", []stele.Prefix{text("sho"), text("")}, nil, 1},
		{"no candidates", nil, nil, -1},
	} {
		drawn := -1
		r, p, err := s.First(s.ctx, counted(c.candidates, &drawn))
		if drawn != c.at {
			s.Errorf("First, %s: %d candidates were drawn, want %d", c.name, drawn+1, c.at+1)
		}
		if c.want == nil {
			s.wantKind("First, "+c.name, err, stele.NotFound)
			continue
		}
		if err != nil || p != c.candidates[c.at] {
			s.Errorf("First, %s: candidate %q, %v; want %q", c.name, p, err, c.candidates[c.at])
			continue
		}
		s.same("First, "+c.name, r, c.want)
	}
}

// counted yields candidates and keeps the place of the last one.
func counted(list []stele.Prefix, last *int) iter.Seq[stele.Prefix] {
	return func(yield func(stele.Prefix) bool) {
		for i, p := range list {
			*last = i
			if !yield(p) {
				return
			}
		}
	}
}

// checkScan: bytes decide the order; prefix and cursor are bytes too.
func checkScan(s *session) {
	// In the order of bytes, which is neither that of a language nor of length.
	sorted := []string{"a", "a b", "a-b", "a.b", "a/", "a/b", "a/b/c", "a0", "aB", "ab", "b", "b/Z", "b/a", "ç", "日", "🙂"}
	for i := range sorted {
		text := sorted[(i*7)%len(sorted)] // 7 and 16 have no common divisor
		s.put(first(s.id("x", text), s.id("y", "alias of "+text)))
	}
	s.put(first(s.id("xx", "a/other")))
	s.put(first(s.id("w", "a/other")))
	s.put(first(s.id("y", "b"), s.id("x", "a/alias")))
	for _, c := range []struct {
		prefix, after string
		want          []string
	}{
		{"", "", sorted},
		{"a", "", sorted[:10]},
		{"a/", "", sorted[4:7]},
		{"a/b", "", sorted[5:7]},
		{"b/", "", sorted[11:13]},
		{"\xe6", "", sorted[14:15]}, // the first byte of 日
		{"c", "", nil},
		{"a/b/c/d", "", nil},
		{"", "a/b", sorted[6:]},
		{"a", "a/b", sorted[6:10]},
		{"a/", "a/a", sorted[5:7]},
		{"a/", "a/b/c", nil},
		{"a/", "a", sorted[4:7]},  // a cursor before the prefix
		{"a/", "b", nil},          // and one after it
		{"a/", "a/", sorted[5:7]}, // a cursor that is the prefix, and a name
		{"", "🙂", nil},
		{"", "\xff", nil},
		{"a/b/c", "", sorted[6:7]},
	} {
		got := s.scan("x", c.prefix, c.after)
		s.wantTexts(fmt.Sprintf("Scan(%q, %q)", c.prefix, c.after), texts(got), c.want)
		for _, r := range got {
			s.same("Scan", r, first(s.id("x", r.ID.String()), r.Aliases...))
		}
	}
	s.wantTexts("Scan of another scheme", texts(s.scan("y", "", "")), []string{"b"})
	s.wantTexts("Scan of an unknown scheme", texts(s.scan("z", "", "")), nil)

	// Page by page, with the last text as the cursor, is the whole.
	var pages []string
	for after := ""; ; after = pages[len(pages)-1] {
		n := len(pages)
		for r, err := range s.Scan(s.ctx, "x", "", after) {
			if err != nil {
				s.Fatalf("Scan: %v", err)
			}
			if pages = append(pages, r.ID.String()); len(pages) == n+3 {
				break
			}
		}
		if len(pages) == n || len(pages) > 2*len(sorted) {
			break
		}
	}
	s.wantTexts("Scan in pages", pages, sorted)
}

// checkHistory: every version is there, the newest first, as it was committed.
func checkHistory(s *session) {
	versions := []*stele.Record{s.full(s.ark("a"), s.ark("alias"))}
	neighbour := first(s.ark("a/b"))
	s.put(versions[0])
	s.put(neighbour)
	for i := range 300 { // past what one byte of a number holds
		r := next(versions[0], fmt.Sprint("version ", i+2))
		r.Redacted = i%2 == 0
		if i == 100 {
			r.Aliases = append(r.Aliases, s.ark("later"))
		}
		versions = slices.Insert(versions, 0, r)
		s.put(r)
	}
	got := s.history(versions[0].ID)
	if len(got) != len(versions) {
		s.Fatalf("History has %d versions, want %d", len(got), len(versions))
	}
	for i, r := range got {
		s.same(fmt.Sprintf("History, entry %d", i), r, versions[i])
	}
	if got := s.history(neighbour.ID); len(got) != 1 {
		s.Errorf("History of a record that never changed has %d versions", len(got))
	}
	for _, name := range []stele.ID{s.ark("unknown"), s.ark("alias"), s.ark("a/"), s.id("hdl", "ark:12345/a"), {}} {
		if got := s.history(name); len(got) != 0 {
			s.Errorf("History(%q) has %d versions; no record has this identifier", name, len(got))
		}
	}
	for r, err := range s.History(s.ctx, versions[0].ID) { // leaving early is allowed
		if err != nil || r.Version != versions[0].Version {
			s.Errorf("History begins with %v, %v", r, err)
		}
		break
	}
}
