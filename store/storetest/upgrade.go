package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// Old is what is in a store that an earlier program wrote, before zones had states, and
// versions times and marks of what is withheld. [NewOld] writes it, the test of a store
// removes what the earlier program did not write and brings the store up to date, and
// Check makes sure that all of it was computed.
type Old struct {
	last              uint64
	versions          []*stele.Record // all that were written
	redacted          map[stele.ID]uint64
	namespaceVersions uint64 // the sum of the versions of namespaces
}

// The zones of an old store, and a namespace that was changed twice.
var (
	oldZones     = []string{"a.example.", "b.example."}
	oldNamespace = stele.NamespaceKey{Scheme: "urn", Prefix: "urn:a"}
)

// NewOld writes what an earlier program could have written. As that did, it marks only the
// version itself that is redacted.
func NewOld(t *testing.T, s stele.Store) *Old {
	t.Helper()
	o := &Old{redacted: make(map[stele.ID]uint64)}
	apply := func(c *stele.Commit) {
		t.Helper()
		if err := s.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for i, zone := range oldZones {
		prefix := fmt.Sprintf("urn:%c", 'a'+i)
		for version := range uint64(3 - 2*i) { // the first has three versions
			apply(&stele.Commit{Namespaces: []*stele.Namespace{{Scheme: "urn", Prefix: prefix, Title: fmt.Sprint(version), Version: version + 1,
				Publication: stele.Publication{Zone: zone, Layout: stele.LayoutNames, Parts: 1, Separator: ":"}}}})
			o.namespaceVersions++
		}
	}
	apply(&stele.Commit{Namespaces: []*stele.Namespace{{Scheme: "urn", Prefix: "urn:c", Version: 1}}})
	o.namespaceVersions++
	begin := time.Date(2025, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, plan := range []struct {
		name               string
		versions, redacted uint64
	}{{"urn:a:plain", 3, 0}, {"urn:a:once", 1, 0}, {"urn:a:redacted", 5, 3}, {"urn:b:redacted-last", 2, 2}, {"urn:c:twice", 4, 4}} {
		name := plan.name
		id, err := stele.NewID("urn", name)
		if err != nil {
			t.Fatal(err)
		}
		for v := range plan.versions {
			at := begin.Add(time.Duration(v) * time.Hour)
			r := &stele.Record{ID: id, State: stele.Active, Version: v + 1, Created: begin, Modified: at, By: "ann",
				Targets: []stele.Target{{Service: stele.N2L, URL: fmt.Sprintf("https://example.org/%s/%d", name, v)}}}
			if plan.redacted == v+1 || name == "urn:c:twice" && v+1 == 2 {
				r.State, r.Redacted, r.Targets = stele.Withdrawn, true, nil
				r.Tombstone = &stele.Tombstone{At: at, Reason: "a court"}
				o.redacted[id] = v + 1
			}
			apply(&stele.Commit{Records: []*stele.Record{r}})
			o.versions = append(o.versions, r)
		}
	}
	var err error
	if o.last, err = s.LastChange(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// Check makes sure that a store has all that was written, and what the upgrade computes.
func (o *Old) Check(t *testing.T, s stele.Store) {
	t.Helper()
	o.checkVersions(t, s)
	o.checkZones(t, s, o.last, o.last)
	o.goOn(t, s)
	if err := s.Verify(t.Context(), func(problem *stele.Message) { t.Error(problem) }); err != nil {
		t.Error(err)
	}
}

// checkVersions makes sure that every version is found by its number and by its time, and
// that what is withheld is marked.
func (o *Old) checkVersions(t *testing.T, s stele.Store) {
	t.Helper()
	for _, want := range o.versions {
		got, err := s.Version(t.Context(), want.ID, want.Version)
		if err != nil || got.Version != want.Version || got.Redacted != want.Redacted || len(got.Targets) != len(want.Targets) || !got.Modified.Equal(want.Modified) {
			t.Errorf("version %d of %s is %+v, %v", want.Version, want.ID, got, err)
		}
		if at, err := s.VersionAt(t.Context(), want.ID, want.Modified.Add(time.Minute)); err != nil || at.Version != want.Version {
			t.Errorf("%s at the time of version %d: %+v, %v", want.ID, want.Version, at, err)
		}
		now, err := s.Record(t.Context(), want.ID)
		if err != nil || now.Withheld.Redacted != o.redacted[want.ID] {
			t.Errorf("%s withholds %+v, %v; its highest redacted version is %d", want.ID, now.Withheld, err, o.redacted[want.ID])
		}
	}
	marked := make(map[stele.ID]bool)
	for id, err := range s.Withholding(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		marked[id] = true
	}
	for id := range o.redacted {
		if !marked[id] {
			t.Errorf("%s withholds something, and is not listed", id)
		}
	}
	if len(marked) != len(o.redacted) {
		t.Errorf("%d records are listed as withholding something; %d do", len(marked), len(o.redacted))
	}
}

// checkZones makes sure that the published zones, and no others, have states: with the
// serial that they had, the number of the last change, and a whole zone for every
// secondary that has an earlier one.
func (o *Old) checkZones(t *testing.T, s stele.Store, first, second uint64) {
	t.Helper()
	var list []stele.ZoneState
	for z, err := range s.ZoneStates(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, z)
	}
	slices.SortFunc(list, func(a, b stele.ZoneState) int { return cmp.Compare(a.Zone, b.Zone) })
	if len(list) != len(oldZones) {
		t.Fatalf("the zones are %+v", list)
	}
	for i, z := range list {
		want := []uint64{first, second}[i]
		if z.Zone != oldZones[i] || z.Serial() != uint32(want) || z.Last != want || z.Since != o.last || z.Shut {
			t.Errorf("the zone is %+v, want %s, touched last by %d", z, oldZones[i], want)
		}
		if _, ok := z.Change(uint32(o.last - 1)); ok {
			t.Errorf("%s knows what changed before it was upgraded", z.Zone)
		}
	}
}

// goOn makes sure that the store works as a new one: changes are indexed by zone, and
// namespaces have a history.
func (o *Old) goOn(t *testing.T, s stele.Store) {
	t.Helper()
	id := o.versions[0].ID
	now, err := s.Record(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	next := *now
	next.Version++
	next.Modified = now.Modified.Add(time.Hour)
	touch := &stele.Touch{Record: func(*stele.Record) []string { return oldZones[:1] }, NamespaceVersions: o.namespaceVersions}
	if err := s.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{&next}, Touch: touch}); err != nil {
		t.Fatal(err)
	}
	o.checkZones(t, s, o.last+1, o.last)
	for i, want := range []int{1, 0} {
		n := 0
		for c, err := range s.ZoneChanges(t.Context(), oldZones[i], o.last) {
			if err != nil || c.ID != id {
				t.Errorf("a change of %s is %+v, %v", oldZones[i], c, err)
			}
			n++
		}
		if n != want {
			t.Errorf("%s has %d changes since, want %d", oldZones[i], n, want)
		}
	}
	if got := namespaceVersions(t, s); !slices.Equal(got, []uint64{3}) {
		t.Errorf("the versions of %s that are kept are %d", oldNamespace, got)
	}
	ns, err := s.Namespace(t.Context(), oldNamespace)
	if err != nil {
		t.Fatal(err)
	}
	ns.Version++
	if err := s.Apply(t.Context(), &stele.Commit{Namespaces: []*stele.Namespace{ns}, Touch: &stele.Touch{NamespaceVersions: o.namespaceVersions}}); err != nil {
		t.Fatal(err)
	}
	if got := namespaceVersions(t, s); !slices.Equal(got, []uint64{4, 3}) {
		t.Errorf("after a change the versions of %s that are kept are %d", oldNamespace, got)
	}
}

// namespaceVersions returns the versions of a namespace that are kept.
func namespaceVersions(t *testing.T, s stele.Store) (list []uint64) {
	t.Helper()
	for ns, err := range s.NamespaceHistory(t.Context(), oldNamespace) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, ns.Version)
	}
	return list
}
