package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

// apply makes a commit that must succeed.
func (s *session) apply(c *stele.Commit) {
	s.Helper()
	if err := s.Apply(s.ctx, c); err != nil {
		s.Fatalf("Apply: %v", err)
	}
}

// put commits records, which must succeed.
func (s *session) put(records ...*stele.Record) {
	s.Helper()
	s.apply(&stele.Commit{Records: records})
}

// commit commits new records, every other time by Ingest. The two must be as one.
func (s *session) commit(ctx context.Context, turn int, list ...*stele.Record) error {
	if turn%2 == 0 {
		return s.Apply(ctx, records(list...))
	}
	errs, err := s.Ingest(ctx, list, nil, nil, nil)
	if err == nil && len(errs) != len(list) {
		s.Errorf("Ingest of %d records returned %d errors", len(list), len(errs))
	}
	for _, e := range errs {
		if err == nil {
			err = e
		}
	}
	return err
}

// refuse makes a commit that must fail with an error of one of the kinds, and
// must leave the store as it was.
func (s *session) refuse(why string, c *stele.Commit, kinds ...stele.Kind) {
	s.Helper()
	before := s.image()
	s.wantKind(why, s.Apply(s.ctx, c), kinds...)
	s.wantImage(why+": a commit that was refused left something behind", before)
}

// wantKind fails unless err is of one of the kinds, by the one error type.
func (s *session) wantKind(what string, err error, kinds ...stele.Kind) {
	s.Helper()
	if err == nil {
		s.Errorf("%s: no error, want one of kind %v", what, kinds)
		return
	}
	if _, ok := errors.AsType[*stele.Error](err); !ok || !slices.Contains(kinds, stele.KindOf(err)) {
		s.Errorf("%s: the error is of kind %v, want %v: %v", what, stele.KindOf(err), kinds, err)
	}
	switch code, _ := stele.CodeOf(err); stele.KindOf(err) {
	case stele.Conflict, stele.NotFound, stele.Exhausted:
		if !slices.Contains(codes, code) {
			s.Errorf("%s: the code %q is not one that every store uses: %v", what, code, err)
		}
	}
}

// codes are those of the refusals that clients of any store tell apart; package refusal has
// the errors.
var codes = []string{
	"audit.entry-out-of-order", "audit.trim-out-of-range",
	"commit.alias-missing", "commit.minter-state-changed", "commit.name-taken", "commit.namespace-changed-meanwhile",
	"commit.namespace-version-differs", "commit.replay-out-of-order", "commit.version-differs", "commit.zone-base-differs",
	"quota.reached",
	"record.identifier-unknown", "record.neither-name-nor-part-registered", "record.no-part-registered",
	"record.no-version-so-early", "record.not-registered", "record.version-missing",
	"store.cell-changed", "store.generation-differs", "store.namespace-missing", "registry.sealed",
}

// want fails unless the name leads to the record, byte for byte.
func (s *session) want(name stele.ID, r *stele.Record) {
	s.Helper()
	got, err := s.Record(s.ctx, name)
	if err != nil {
		s.Errorf("Record(%.80q): %v", name, err)
		return
	}
	s.same(fmt.Sprintf("Record(%.80q)", name), got, r)
}

// wantNone fails if something is registered under one of the names.
func (s *session) wantNone(names ...stele.ID) {
	s.Helper()
	for _, name := range names {
		r, err := s.Record(s.ctx, name)
		if r != nil {
			s.Errorf("Record(%q) gives %q; nothing should be there", name, r.ID)
		}
		s.wantKind(fmt.Sprintf("Record(%q)", name), err, stele.NotFound)
	}
}

// same compares records by their binary forms.
func (s *session) same(what string, got, want *stele.Record) {
	s.Helper()
	if got == nil {
		s.Errorf("%s: neither a record nor an error", what)
		return
	}
	if !bytes.Equal(encode(s, got), encode(s, want)) {
		s.Errorf("%s: not what was committed:\n got %.500s\nwant %.500s", what, fmt.Sprintf("%+v", *got), fmt.Sprintf("%+v", *want))
	}
}

func encode(t TB, r *stele.Record) []byte {
	t.Helper()
	b, err := binary.MarshalRecord(r)
	if err != nil {
		t.Fatalf("a record can't be encoded: %v", err)
	}
	return b
}

// all drains an iterator. An error ends the check.
func all[T any](t TB, what string, seq iter.Seq2[T, error]) (items []T) {
	t.Helper()
	items, err := drain(t, what, seq)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return items
}

// drain drains an iterator to its error, after which nothing may come, or its end.
func drain[T any](t TB, what string, seq iter.Seq2[T, error]) (items []T, err error) {
	t.Helper()
	for item, e := range seq {
		if err != nil {
			t.Errorf("%s: goes on after the error %v", what, err)
			return items, err
		}
		if err = e; err == nil {
			items = append(items, item)
		}
	}
	return items, err
}

func (s *session) scan(scheme, prefix, after string) []*stele.Record {
	s.Helper()
	return all(s, fmt.Sprintf("Scan(%q, %.80q, %.80q)", scheme, prefix, after), s.Scan(s.ctx, scheme, prefix, after))
}

func (s *session) pointing(l stele.Location, after stele.ID) []stele.ID {
	s.Helper()
	return all(s, fmt.Sprintf("Pointing(%.80v, %.80q)", l, after), s.Pointing(s.ctx, l, after))
}

func (s *session) changes(after uint64) []stele.Change {
	s.Helper()
	return all(s, fmt.Sprintf("Changes(%d)", after), s.Changes(s.ctx, after))
}

func (s *session) history(id stele.ID) []*stele.Record {
	s.Helper()
	return all(s, fmt.Sprintf("History(%.80q)", id), s.History(s.ctx, id))
}

func (s *session) lastChange() uint64 {
	s.Helper()
	n, err := s.LastChange(s.ctx)
	if err != nil {
		s.Fatalf("LastChange: %v", err)
	}
	return n
}

func (s *session) wantCount(key stele.NamespaceKey, want uint64) {
	s.Helper()
	if n, err := s.Count(s.ctx, key); err != nil || n != want {
		s.Errorf("Count(%q) = %d, %v; want %d", key, n, err, want)
	}
}

// texts returns the texts of the records' identifiers.
func texts(records []*stele.Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = r.ID.String()
	}
	return out
}

// wantTexts compares texts in their order.
func (s *session) wantTexts(what string, got, want []string) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("%s: got %.500q, want %.500q", what, got, want)
	}
}

// image is all that can be read of a store, as lines of text, so that two can be
// compared and the difference shown.
func (s *session) image() (lines []string) {
	s.Helper()
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	last := s.lastChange()
	add("last change %d", last)
	add("seal %q", s.sealed())
	schemes := make(map[string]bool)
	namespaces := make(map[stele.NamespaceKey]bool)
	for _, c := range s.changes(0) {
		add("change %d %q %q %d %q %q %s", c.Seq, c.ID, c.Namespace, c.Version, c.Counted, c.CountedAliases, c.At.UTC().Format(time.RFC3339Nano))
		schemes[c.ID.Scheme()] = true
		namespaces[c.Namespace] = true
		namespaces[stele.NamespaceKey{Scheme: c.ID.Scheme()}] = true
	}
	locations := make(map[stele.Location]bool)
	for _, scheme := range slices.Sorted(maps.Keys(schemes)) {
		for _, r := range s.scan(scheme, "", "") {
			lines = append(lines, s.recordLines(r)...)
			for _, t := range r.Targets {
				locations[stele.Location{URL: t.URL}] = true
				locations[stele.Location{Host: t.Host()}] = true
			}
		}
	}
	add("withholding %q", all(s, "Withholding", s.Withholding(s.ctx)))
	delete(locations, stele.Location{})
	for _, l := range slices.SortedFunc(maps.Keys(locations), compareLocations) {
		add("at %q: %q", l, s.pointing(l, stele.ID{}))
	}
	for _, n := range all(s, "Namespaces", s.Namespaces(s.ctx)) {
		for _, v := range all(s, "NamespaceHistory", s.NamespaceHistory(s.ctx, n.Key())) {
			add("namespace %q %+v", n.Key(), *v)
		}
		namespaces[n.Key()] = true
	}
	for _, m := range all(s, "MinterStates", s.MinterStates(s.ctx)) {
		add("minter %q %x", m.Name, m.After)
	}
	for _, c := range all(s, "Cells", s.Cells(s.ctx, "", "")) {
		add("cell %q %x", c.Name, c.Value)
	}
	for _, z := range all(s, "ZoneStates", s.ZoneStates(s.ctx)) {
		add("zone %+v, changes %d", z, s.zoneChanges(z.Zone, 0))
	}
	add("every zone: %d", s.zoneChanges(stele.EveryZone, 0))
	for _, key := range slices.SortedFunc(maps.Keys(namespaces), compareKeys) {
		if n, err := s.Count(s.ctx, key); err != nil {
			s.Errorf("Count(%q): %v", key, err)
		} else if n > 0 {
			add("count %q %d", key, n)
		}
	}
	return lines
}

// recordLines is the part of an image that one record has.
func (s *session) recordLines(r *stele.Record) (lines []string) {
	s.Helper()
	for _, h := range s.history(r.ID) {
		lines = append(lines, fmt.Sprintf("version %q %x", h.ID, encode(s, h)))
	}
	for _, name := range r.Names() {
		if owner, err := s.Record(s.ctx, name); err != nil {
			lines = append(lines, fmt.Sprintf("name %q: %v", name, err))
		} else {
			lines = append(lines, fmt.Sprintf("name %q of %x", name, encode(s, owner)))
		}
	}
	return lines
}

// wantImage compares the store with an image taken before.
func (s *session) wantImage(what string, want []string) {
	s.Helper()
	got := s.image()
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			s.Errorf("%s: line %d of the image:\n got %.500s\nwant %.500s", what, i, cmp.Or(g, "nothing"), cmp.Or(w, "nothing"))
			return
		}
	}
}

// compareKeys orders namespaces by scheme, then by prefix.
func compareKeys(a, b stele.NamespaceKey) int {
	return cmp.Or(cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(a.Prefix, b.Prefix))
}

func compareLocations(a, b stele.Location) int {
	return cmp.Or(cmp.Compare(a.URL, b.URL), cmp.Compare(a.Host, b.Host))
}

// isContextError reports whether err is that of an ended context.
func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
