package storetest

import (
	"fmt"
	"strings"

	"github.com/stele-id/stele"
)

// padded returns r with a description that makes it as large as a record may be.
func (s *session) padded(r *stele.Record, filler string) *stele.Record {
	s.Helper()
	p := *r
	p.Metadata = stele.Metadata{stele.What: ""}
	size := stele.MaxRecord - len(encode(s, &p)) - 2 // the length itself takes 3 bytes, not 1
	p.Metadata[stele.What] = strings.Repeat(filler, size)
	if n := len(encode(s, &p)); n != stele.MaxRecord {
		s.Fatalf("the suite's own sample has %d bytes, want %d", n, stele.MaxRecord)
	}
	return &p
}

// checkSizes: the largest records, and those with the most names and targets.
func checkSizes(s *session) {
	big := s.padded(first(s.ark("big")), "x")
	wide := first(s.ark("wide"))
	wide.Targets = nil
	for i := range stele.MaxTargets {
		wide.Targets = append(wide.Targets, at(fmt.Sprintf("https://h%d.example/%d", i%10, i)))
	}
	for i := range stele.MaxAliases - 1 {
		wide.Aliases = append(wide.Aliases, s.id("hdl", fmt.Sprintf("10.1000/%d", i)))
	}
	long := first(s.ark("long"))
	url := "https://example.org/" + strings.Repeat("p", stele.MaxURL)
	long.Targets = []stele.Target{at(url[:stele.MaxURL]), at(url[:stele.MaxURL-1]), at(url[:stele.MaxURL-1] + "q")}
	s.put(big)
	s.put(wide, long)
	s.want(big.ID, big)
	for i, name := range wide.Names() {
		if i%50 == 0 {
			s.want(name, wide)
		}
	}
	s.wantPointing(stele.Location{URL: "https://h3.example/993"}, stele.ID{}, wide.ID)
	s.wantPointing(stele.Location{Host: "h3.example"}, stele.ID{}, wide.ID)
	for _, t := range long.Targets {
		s.wantPointing(stele.Location{URL: t.URL}, stele.ID{}, long.ID)
	}
	s.wantPointing(stele.Location{URL: url[:stele.MaxURL-2]}, stele.ID{})

	// New versions of them, with all their names and other targets.
	bigger := s.padded(next(big, ""), "y")
	last := s.id("hdl", "10.1000/last")
	moved := next(wide, "moved", last)
	moved.Targets = nil
	for i := range stele.MaxTargets {
		moved.Targets = append(moved.Targets, at(fmt.Sprintf("https://h%d.example/%d", i%10, i+stele.MaxTargets/2)))
	}
	s.put(bigger, moved)
	s.want(big.ID, bigger)
	s.want(last, moved)
	s.wantPointing(stele.Location{URL: wide.Targets[0].URL}, stele.ID{})
	s.wantPointing(stele.Location{URL: moved.Targets[stele.MaxTargets-1].URL}, stele.ID{}, wide.ID)
	if got := s.history(big.ID); len(got) == 2 {
		s.same("History of a large record", got[1], big)
	} else {
		s.Errorf("History of a large record has %d versions", len(got))
	}
	other := renamed(big, s.ark("gib"))
	errs := s.ingest([]*stele.Record{big, other}, nil, nil)
	s.wantKind("Ingest of a large record that is there", errs[0], stele.Conflict)
	if errs[1] != nil {
		s.Errorf("Ingest of a large record: %v", errs[1])
	}
	s.want(other.ID, other)
}

// renamed returns r under another identifier.
func renamed(r *stele.Record, id stele.ID) *stele.Record {
	n := *r
	n.ID = id
	return &n
}

// checkBytes: names that a careless key layout, a collation or a length limit
// would mix up, or put in another order.
func checkBytes(s *session) {
	long := strings.Repeat("n", stele.MaxText-1)
	groups := []struct{ scheme, text string }{
		// The same letters, cut into scheme and text at different places.
		{"a", "bc:1"}, {"ab", "c:1"}, {"abc", ":1"},
		// Beginnings of each other.
		{"x", "1"}, {"x", "1/"}, {"x", "1/1"}, {"x", "1/1/1"}, {"x", "11"},
		// Alike to people, or to a collation.
		{"x", "a"}, {"x", "A"}, {"x", "á"}, {"x", "a\u0301"}, {"x", "ａ"}, {"x", "ß"}, {"x", "ss"}, {"x", "ı"}, {"x", "i"}, {"x", "I"},
		{"x", " "}, {"x", "  "}, {"x", "a "}, {"x", " a"}, {"x", "1 "}, {"x", "01"},
		// What other layers may take for something else.
		{"x", "%"}, {"x", "_"}, {"x", "\\"}, {"x", "\\x00"}, {"x", "%00"}, {"x", "'"}, {"x", "\""}, {"x", "*"}, {"x", "?"}, {"x", "~"}, {"x", "~~"},
		{"x", "/"}, {"x", "//"}, {"x", "."}, {"x", ".."}, {"x", "\ufffd"}, {"x", "\uffee"}, {"x", "𐀀"}, {"x", "🙂"},
		// The same text in several schemes.
		{"y", "1"}, {"z", "1"}, {"xx", "1"}, {"y", "a"},
		// The longest there are, which differ in the last byte only.
		{"x", long + "1"}, {"x", long + "2"}, {"y", long + "1"}, {"x", long},
	}
	var list []*stele.Record
	for i, g := range groups {
		r := first(s.id(g.scheme, g.text), s.id("alias", g.scheme+" "+strings.ToUpper(fmt.Sprint(i))))
		if len(g.text) > 1000 {
			r.Aliases = append(r.Aliases, s.id("longalias", g.text[:len(g.text)-3]+fmt.Sprintf("%03d", i)))
		}
		r.Metadata = stele.Metadata{stele.What: fmt.Sprint("number ", i)}
		r.Targets = []stele.Target{at("https://example.org/" + g.scheme + "/" + g.text)}
		list = append(list, r)
	}
	half := len(list) / 2
	for _, r := range list[:half] {
		s.put(r)
	}
	for i, err := range s.ingest(list[half:], nil, nil) {
		if err != nil {
			s.Errorf("Ingest of %.80q: %v", list[half+i].ID, err)
		}
	}
	for _, r := range list {
		for _, name := range r.Names() {
			s.want(name, r)
		}
		s.wantKind(fmt.Sprintf("%.80q again", r.ID), s.Apply(s.ctx, records(r)), stele.Conflict)
		if got := s.history(r.ID); len(got) != 1 {
			s.Errorf("History(%.80q) has %d versions", r.ID, len(got))
		}
		s.wantPointing(stele.Location{URL: r.Targets[0].URL}, stele.ID{}, r.ID)
	}
	for _, scheme := range []string{"a", "ab", "abc", "x", "xx", "y", "z"} {
		s.wantScans(scheme, list)
	}
}

// wantScans compares scans of a scheme with a list, for prefixes and cursors that
// are texts of the list or beginnings of them.
func (s *session) wantScans(scheme string, list []*stele.Record) {
	s.Helper()
	for _, prefix := range []string{"", "1", "1/", " ", "a", "\xc3", "\xf0\x9f", strings.Repeat("n", stele.MaxText-1), "n"} {
		for _, after := range []string{"", "1", "1/1", "a", "~", "\xff", strings.Repeat("n", stele.MaxText-1) + "1"} {
			s.wantTexts(fmt.Sprintf("Scan(%q, %.20q, %.20q)", scheme, prefix, after),
				texts(s.scan(scheme, prefix, after)), scanned(list, scheme, prefix, after))
		}
	}
}
