package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// checkModel: random commits do what the model predicts, and every read gives
// what it has. All runs share a store, each with schemes, hosts and minters of
// its own.
func checkModel(s *session) {
	runs := 0
	rapid.Check(s.test, func(t *rapid.T) {
		runs++
		r := &run{session: *s, t: t, model: newModel(), tag: letters(runs)}
		r.TB = t
		r.began = r.lastChange()
		t.Repeat(map[string]func(*rapid.T){
			"commit": r.commit,
			"ingest": r.ingestSome,
			"":       r.compare,
		})
	})
}

// run is one sequence of random commits.
type run struct {
	session
	t     *rapid.T
	model *model
	tag   string // distinguishes this run's names from those of others
	began uint64 // the last change before the run
}

// letters writes a number in small letters, so that a scheme can be named for it.
// None is the beginning of another.
func letters(n int) string {
	return strings.Map(func(r rune) rune { return r - '0' + 'a' }, fmt.Sprintf("%06d", n))
}

// Few names, so that they clash; several are beginnings of others.
var (
	pool  = []string{"1", "1/1", "11", "2", "A", "a", "a/b", "é"}
	pages = []string{"https://%s.example/a", "http://%s.example:80/b", "https://x.%s.example/", "urn:%s:1"}
)

// schemes returns the two schemes of the run.
func (r *run) schemes() []string { return []string{"p" + r.tag, "q" + r.tag} }

func (r *run) name() stele.ID {
	return r.id(rapid.SampledFrom(r.schemes()).Draw(r.t, "scheme"), rapid.SampledFrom(pool).Draw(r.t, "text"))
}

func (r *run) page() string {
	return fmt.Sprintf(rapid.SampledFrom(pages).Draw(r.t, "page"), r.tag)
}

// often draws true most of the time: commits without faults should prevail.
func (r *run) often(what string) bool { return rapid.IntRange(0, 7).Draw(r.t, what) > 0 }

// record draws a version of some record: mostly the next, with the names that the
// one before had, and perhaps others.
func (r *run) record() *stele.Record {
	id := r.name()
	v := first(id)
	v.Targets = nil
	v.By = rapid.SampledFrom([]string{"ana", "bruno", ""}).Draw(r.t, "by")
	v.State = rapid.SampledFrom([]stele.State{stele.Active, stele.Reserved, stele.Withdrawn}).Draw(r.t, "state")
	v.Version = r.model.version(id) + 1
	if !r.often("right version") {
		v.Version = rapid.Uint64Range(1, 4).Draw(r.t, "version")
	}
	if before := r.model.current(id); before != nil && before.ID == id && r.often("keep names") {
		v.Aliases = slices.Clone(before.Aliases)
	}
	for range rapid.IntRange(0, 2).Draw(r.t, "aliases") {
		if a := r.name(); !slices.Contains(v.Names(), a) {
			v.Aliases = append(v.Aliases, a)
		}
	}
	for range rapid.IntRange(0, 3).Draw(r.t, "targets") {
		v.Targets = append(v.Targets, at(r.page()))
	}
	return v
}

// later draws the next version of a record, mostly with its names.
func (r *run) later(before *stele.Record) *stele.Record {
	v := r.record()
	v.ID, v.Spelling, v.Version = before.ID, before.Spelling, before.Version+1
	v.Aliases = slices.DeleteFunc(v.Aliases, func(a stele.ID) bool { return a == before.ID || slices.Contains(before.Aliases, a) })
	if r.often("keep names") {
		v.Aliases = append(slices.Clone(before.Aliases), v.Aliases...)
	}
	return v
}

// counter counts the records of the first scheme, up to a small quota, and those
// of the second without limit.
func (r *run) counter(quota uint64) stele.NamespaceCounter {
	return func(id stele.ID) (stele.NamespaceKey, uint64) {
		if id.Scheme() == r.schemes()[0] {
			return stele.NamespaceKey{Scheme: id.Scheme()}, quota
		}
		return stele.NamespaceKey{Scheme: id.Scheme(), Prefix: "x"}, 0
	}
}

func (r *run) commit(*rapid.T) {
	c := &stele.Commit{}
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3}).Draw(r.t, "records") {
		v := r.record()
		c.Records = append(c.Records, v)
		for v.Version == 1 && !r.often("no history") || v.Version > 1 && len(c.Records) > 1 && !r.often("no more history") {
			v = r.later(v)
			c.Records = append(c.Records, v)
		}
	}
	if rapid.Bool().Draw(r.t, "counted") {
		c.Counter = r.counter(4)
	}
	if !r.often("no namespace") {
		n := space(rapid.SampledFrom(r.schemes()).Draw(r.t, "scheme"), rapid.SampledFrom(pool).Draw(r.t, "prefix"))
		if old := r.model.namespaces[n.Key()]; old != nil && r.often("right version") {
			n = nextNamespace(old, "next")
		}
		c.Namespaces = append(c.Namespaces, n)
	}
	if !r.often("no minter") {
		c.Minters = append(c.Minters, r.minter())
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(r.t, "cells") {
		c.Cells = append(c.Cells, r.cell())
	}
	faults := r.model.faults(c)
	err := r.Apply(r.ctx, c)
	if len(faults) > 0 {
		r.wantKind("a commit with faults", err, faults...)
		return
	}
	if err != nil {
		r.Fatalf("a commit without faults: %v", err)
	}
	r.model.log(r.model.apply(c))
}

// minter draws a new state of a minter, mostly with the right one before.
func (r *run) minter() stele.MinterState {
	bytes := rapid.SampledFrom([][]byte{{}, {0}, {1}, {0, 0}})
	m := stele.MinterState{
		Name:  r.tag + rapid.SampledFrom([]string{"", "a", "b"}).Draw(r.t, "minter"),
		After: bytes.Draw(r.t, "after"),
	}
	m.Before = r.model.minters[m.Name]
	if !r.often("right state") {
		m.Before = bytes.Draw(r.t, "before")
	}
	return m
}

// cell draws a change of a cell, mostly with the right value before.
func (r *run) cell() stele.CellChange {
	bytes := rapid.SampledFrom([][]byte{nil, {}, {0}, {1}, {0, 0}})
	c := stele.CellChange{
		Name:  r.tag + rapid.SampledFrom(pool).Draw(r.t, "cell"),
		After: bytes.Draw(r.t, "after"),
	}
	c.Before = r.model.cells[c.Name]
	if !r.often("right value") {
		c.Before = bytes.Draw(r.t, "before")
	}
	return c
}

func (r *run) ingestSome(*rapid.T) {
	var list []*stele.Record
	for range rapid.IntRange(0, 5).Draw(r.t, "records") {
		list = append(list, withVersion(r.record(), 1))
	}
	count := r.counter(0)
	errs := r.ingest(list, count, nil)
	var changes []stele.Change
	for i, v := range list {
		one := &stele.Commit{Records: []*stele.Record{v}, Counter: count}
		if len(r.model.faults(one)) > 0 {
			r.wantKind(fmt.Sprintf("Ingest, record %d", i), errs[i], stele.Conflict)
			continue
		}
		if errs[i] != nil {
			r.Fatalf("Ingest, record %d: %v", i, errs[i])
		}
		changes = append(changes, r.model.apply(one)...)
	}
	r.model.log(changes)
}

// compare reads everything, in ways that are drawn anew each time.
func (r *run) compare(*rapid.T) {
	m := r.model
	for _, scheme := range r.schemes() {
		for _, text := range pool {
			name := r.id(scheme, text)
			if want := m.current(name); want != nil {
				r.want(name, want)
			} else {
				r.wantNone(name)
			}
			r.compareHistory(name)
		}
		prefix := rapid.SampledFrom([]string{"", "1", "1/", "a", "\xc3"}).Draw(r.t, "prefix")
		after := rapid.SampledFrom(append([]string{"", "", "~"}, pool...)).Draw(r.t, "after")
		r.wantTexts(fmt.Sprintf("Scan(%q, %q)", prefix, after),
			texts(r.scan(scheme, prefix, after)), scanned(m.records(), scheme, prefix, after))
	}
	l := stele.Location{URL: r.page()}
	if rapid.Bool().Draw(r.t, "by host") {
		l = stele.Location{Host: at(l.URL).Host()}
	}
	if l != (stele.Location{}) {
		after := stele.ID{}
		if rapid.Bool().Draw(r.t, "cursor") {
			after = r.name()
		}
		r.wantPointing(l, after, m.pointing(l, after)...)
	}
	r.compareFirst()
	r.compareLongest()
	r.compareFeed()
	r.compareSettings()
	r.compareCells()
}

func (r *run) compareHistory(id stele.ID) {
	want := r.model.versions[id]
	got := r.history(id)
	if len(got) != len(want) {
		r.Fatalf("History(%q) has %d versions, want %d", id, len(got), len(want))
	}
	for i, v := range got {
		r.same("History", v, want[len(want)-1-i])
	}
}

func (r *run) compareFirst() {
	var candidates []stele.Prefix
	var want *stele.Record
	for range rapid.IntRange(0, 3).Draw(r.t, "candidates") {
		id := r.name()
		candidates = append(candidates, r.prefix(id.Scheme(), id.String()))
		if want == nil {
			want = r.model.current(id)
		}
	}
	got, _, err := r.First(r.ctx, slices.Values(candidates))
	if want == nil {
		r.wantKind("First", err, stele.NotFound)
	} else if err != nil {
		r.Errorf("First(%q): %v", candidates, err)
	} else {
		r.same("First", got, want)
	}
}

func (r *run) compareLongest() {
	name := r.name()
	longer := r.id(name.Scheme(), name.String()+rapid.SampledFrom([]string{"x", "/", "0", "~", "\u00e9"}).Draw(r.t, "rest"))
	var want *stele.Record
	for n := len(longer.String()) - 1; n > 0 && want == nil; n-- {
		if id, err := stele.NewID(longer.Scheme(), longer.String()[:n]); err == nil {
			want = r.model.current(id)
		}
	}
	got, _, err := r.Longest(r.ctx, longer, anywhere)
	if want == nil {
		r.wantKind("Longest", err, stele.NotFound)
	} else if err != nil {
		r.Errorf("Longest(%q): %v", longer, err)
	} else {
		r.same("Longest", got, want)
	}
}

// compareFeed compares the changes: in the order of commits, and within one in that of
// its records and then of its namespaces.
func (r *run) compareFeed() {
	feed := r.changes(r.began)
	for i, c := range feed {
		if c.Seq != r.began+uint64(i)+1 {
			r.Fatalf("change %d stands where %d should", c.Seq, r.began+uint64(i)+1)
		}
	}
	if n := r.lastChange(); n != r.began+uint64(len(feed)) {
		r.Fatalf("LastChange is %d; the feed ends with %d", n, r.began+uint64(len(feed)))
	}
	for _, want := range r.model.changes {
		if len(feed) < len(want) {
			r.Fatalf("the feed lacks the last of %v", want)
		}
		for i, c := range feed[:len(want)] {
			if !want[i].Equal(stele.Change{ID: c.ID, Namespace: c.Namespace, Version: c.Version, Counted: c.Counted, CountedAliases: c.CountedAliases}) {
				r.Fatalf("the change %+v stands where %+v should, of the commit with %v", c, want[i], want)
			}
		}
		feed = feed[len(want):]
	}
	if len(feed) > 0 {
		r.Fatalf("changes that were never made: %v", feed)
	}
}

func (r *run) compareCells() {
	for _, text := range pool {
		r.wantCell(r.tag+text, r.model.cells[r.tag+text])
	}
	prefix := r.tag + rapid.SampledFrom([]string{"", "1", "1/", "a", "\xc3"}).Draw(r.t, "prefix")
	after := r.tag + rapid.SampledFrom(append([]string{"", "", "~"}, pool...)).Draw(r.t, "after")
	names := slices.Collect(maps.Keys(r.model.cells))
	r.wantTexts(fmt.Sprintf("Cells(%q, %q)", prefix, after), r.cellNames(prefix, after), listed(names, prefix, after))
}

func (r *run) compareSettings() {
	var namespaces []string
	for _, n := range all(r, "Namespaces", r.Namespaces(r.ctx)) {
		if slices.Contains(r.schemes(), n.Scheme) {
			namespaces = append(namespaces, n.Scheme+" "+n.Prefix)
		}
	}
	var want []string
	for key, n := range r.model.namespaces {
		want = append(want, key.Scheme+" "+key.Prefix)
		r.wantNamespace(n)
	}
	slices.Sort(want)
	r.wantTexts("Namespaces", namespaces, want)
	for name, state := range r.model.minters {
		r.wantMinter(name, state)
	}
	for _, scheme := range r.schemes() {
		for _, key := range []stele.NamespaceKey{{Scheme: scheme}, {Scheme: scheme, Prefix: "x"}} {
			r.wantCount(key, r.model.counts[key])
		}
	}
}
