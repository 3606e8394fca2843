package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stele-id/stele"
)

// zonesIn makes records touch the zones that their texts end with, separated by "@".
func zonesIn(r *stele.Record) []string {
	parts := strings.Split(r.ID.String(), "@")
	return parts[1:]
}

// touching says that a commit comes from a caller that knows namespaces with this sum
// of versions.
func touching(namespaceVersions uint64, namespaces ...string) *stele.Touch {
	return &stele.Touch{Record: zonesIn, Namespaces: namespaces, NamespaceVersions: namespaceVersions}
}

func (s *session) zoneChanges(zone string, after uint64) (list []uint64) {
	s.Helper()
	for _, c := range all(s, fmt.Sprintf("ZoneChanges(%q, %d)", zone, after), s.ZoneChanges(s.ctx, zone, after)) {
		list = append(list, c.Seq)
	}
	return list
}

func (s *session) zone(zone string) stele.ZoneState {
	s.Helper()
	z, err := s.ZoneState(s.ctx, zone)
	if err != nil {
		s.Fatalf("ZoneState(%q): %v", zone, err)
	}
	if z.Zone != zone || z.At != s.lastChange() {
		s.Errorf("ZoneState(%q) is that of %q at change %d, and there are %d changes", zone, z.Zone, z.At, s.lastChange())
	}
	return z
}

// wantZone compares the state of a zone, and the changes of it.
func (s *session) wantZone(zone string, base uint32, last, since uint64, changes ...uint64) {
	s.Helper()
	z := s.zone(zone)
	if z.Base != base || z.Last != last || z.Since != since || z.Shut {
		s.Errorf("ZoneState(%q) = %+v, want base %d, last %d, since %d", zone, z, base, last, since)
	}
	if got := s.zoneChanges(zone, 0); !slices.Equal(got, changes) {
		s.Errorf("ZoneChanges(%q, 0) are %d, want %d", zone, got, changes)
	}
	for i, n := range changes {
		if got := s.zoneChanges(zone, n); !slices.Equal(got, changes[i+1:]) {
			s.Errorf("ZoneChanges(%q, %d) are %d, want %d", zone, n, got, changes[i+1:])
		}
	}
}

// wantZoneNames compares which zones have a state.
func (s *session) wantZoneNames(want ...string) {
	s.Helper()
	var got []string
	for _, z := range all(s, "ZoneStates", s.ZoneStates(s.ctx)) {
		got = append(got, z.Zone)
		if z != s.zone(z.Zone) {
			s.Errorf("ZoneStates has %+v, and ZoneState %+v", z, s.zone(z.Zone))
		}
	}
	s.wantTexts("ZoneStates", got, want)
}

// checkZones: a zone has the changes that touched it and no others; a commit without a
// Touch touches all.
func checkZones(s *session) {
	s.wantZone("unknown.", 0, 0, 0)
	a := func(text string) *stele.Record { return first(s.ark(text)) }
	s.apply(&stele.Commit{Records: []*stele.Record{a("1@a."), a("2"), a("3@b.@a.")}, Touch: touching(0)})
	s.wantZone("a.", 0, 3, 3, 1, 3)
	s.wantZone("b.", 0, 3, 3, 3)
	s.wantZone("unknown.", 0, 3, 3) // of which nothing is kept
	s.wantZoneNames("a.", "b.")
	s.apply(&stele.Commit{Records: []*stele.Record{a("4"), a("5@a.")}, Touch: touching(0)})
	s.apply(&stele.Commit{Records: []*stele.Record{a("6@b.")}, Touch: touching(0)})
	s.apply(&stele.Commit{Records: []*stele.Record{next(a("1@a."), "again"), a("8@a.")}, Touch: touching(0)})
	s.apply(&stele.Commit{Cells: []stele.CellChange{{Name: "c", After: []byte("c")}}})
	s.wantZone("a.", 0, 8, 3, 1, 3, 5, 7, 8)
	s.wantZone("b.", 0, 6, 3, 3, 6)
	s.put(a("9@a.")) // without a Touch
	s.wantZone("a.", 0, 9, 3, 1, 3, 5, 7, 8, 9)
	s.wantZone("b.", 0, 9, 3, 3, 6, 9)
	s.apply(&stele.Commit{Records: []*stele.Record{a("10@b.")}, Touch: touching(0)})
	s.wantZone("a.", 0, 9, 3, 1, 3, 5, 7, 8, 9)
	s.wantZone("b.", 0, 10, 3, 3, 6, 9, 10)
	s.wantZone(stele.EveryZone, 0, 9, 9, 9)
	s.wantZoneNames("a.", "b.")

	// A name that begins as another one is another one.
	s.apply(&stele.Commit{Records: []*stele.Record{a("11@a"), a("12@a.b.")}, Touch: touching(0)})
	s.wantZone("a", 0, 11, 11, 9, 11)
	s.wantZone("a.", 0, 9, 3, 1, 3, 5, 7, 8, 9)

	for why, name := range map[string]string{"an empty name": "", "a zero byte": "a\x00", "a long name": strings.Repeat("a", stele.MaxZoneName+1)} {
		s.refuse("a zone with "+why, &stele.Commit{Records: []*stele.Record{first(s.ark("x"))}, Touch: &stele.Touch{Record: func(*stele.Record) []string { return []string{name} }}}, stele.Invalid)
		s.refuse("a namespace in a zone with "+why, &stele.Commit{Namespaces: []*stele.Namespace{space("ark", "")}, Touch: touching(0, name)}, stele.Invalid)
		s.refuse("raising a zone with "+why, &stele.Commit{Zones: []stele.ZoneRaise{{Zone: name, Base: 1}}}, stele.Invalid)
	}
	// What is refused touches nothing.
	s.refuse("a version that there is", &stele.Commit{Records: []*stele.Record{a("11@a")}, Touch: touching(0)}, stele.Conflict)
	long := strings.Repeat("z", stele.MaxZoneName)
	s.apply(&stele.Commit{Records: []*stele.Record{first(s.ark("long"))}, Touch: &stele.Touch{Record: func(*stele.Record) []string { return []string{long} }}})
	s.wantZone(long, 0, 13, 13, 9, 13)
	if s.h.Durable {
		before := s.image()
		s.reopen()
		s.wantImage("zones after the store was opened again", before)
	}
}

// checkZoneRaises: another base needs that the one before is known, and forgets what
// the index has.
func checkZoneRaises(s *session) {
	raise := func(z stele.ZoneRaise) *stele.Commit { return &stele.Commit{Zones: []stele.ZoneRaise{z}} }
	a := func(text string) *stele.Record { return first(s.ark(text)) }
	s.apply(&stele.Commit{Records: []*stele.Record{a("1@a."), a("2@b.")}, Touch: touching(0)})
	s.refuse("another base", raise(stele.ZoneRaise{Zone: "a.", Before: 1, Base: 7}), stele.Conflict)
	s.refuse("a base of a zone that has none", raise(stele.ZoneRaise{Zone: "c.", Before: 1, Base: 7}), stele.Conflict)
	s.refuse("a change that there is not", raise(stele.ZoneRaise{Zone: "c.", Base: 7, Last: 3}), stele.Invalid, stele.Conflict)
	s.refuse("a zone twice", &stele.Commit{Zones: []stele.ZoneRaise{{Zone: "c.", Base: 7}, {Zone: "c.", Base: 8}}}, stele.Invalid)
	s.apply(&stele.Commit{Zones: []stele.ZoneRaise{{Zone: "a.", Base: 1<<32 - 1}, {Zone: "c.", Base: 7, Shut: true}}})
	s.wantZone("a.", 1<<32-1, 1, 1, 1)
	s.wantZone("b.", 0, 2, 2, 2)
	if z := s.zone("a."); z.Serial() != 0 {
		s.Errorf("base %d and change %d make the serial %d", z.Base, z.Last, z.Serial())
	}
	if z := s.zone("c."); !z.Shut || z.Base != 7 || z.Last != 2 || z.Since != 2 {
		s.Errorf("a zone that was shut is %+v", z)
	}
	// Shut stays until it is said otherwise, and so does the base.
	s.apply(&stele.Commit{Records: []*stele.Record{a("3@c.@a.")}, Touch: touching(0)})
	if z := s.zone("c."); !z.Shut || z.Base != 7 || z.Last != 3 || z.Since != 2 {
		s.Errorf("a zone that was shut and touched is %+v", z)
	}
	s.wantZone("a.", 1<<32-1, 3, 1, 1, 3)
	s.refuse("half of a commit", &stele.Commit{Records: []*stele.Record{a("4")}, Zones: []stele.ZoneRaise{{Zone: "a.", Base: 1}}}, stele.Conflict)
	s.refuse("the other half", &stele.Commit{Records: []*stele.Record{a("3@c.@a.")}, Zones: []stele.ZoneRaise{{Zone: "a.", Before: 1<<32 - 1, Base: 1}}}, stele.Conflict)
	s.put(a("4")) // touches all
	s.apply(&stele.Commit{Records: []*stele.Record{a("5")}, Touch: touching(0), Zones: []stele.ZoneRaise{{Zone: "c.", Before: 7, Base: 8}, {Zone: "new.", Base: 5}, {Zone: "copied.", Base: 9, Last: 2}}})
	s.wantZone("c.", 8, 4, 4, 3, 4)
	s.wantZone("new.", 5, 5, 5, 4)
	s.wantZone("copied.", 9, 4, 2, 4)
}

// checkZoneNamespaces: the caller finds the touched zones from namespaces. A caller that
// does not know all of them may be wrong.
func checkZoneNamespaces(s *session) {
	root, other := space("ark", ""), space("ark", "ark:12345")
	a := func(text string) *stele.Record { return first(s.ark(text)) }
	s.refuse("namespaces that are not known", &stele.Commit{Namespaces: []*stele.Namespace{root}, Touch: touching(1, "a.")}, stele.Conflict)
	s.apply(&stele.Commit{Namespaces: []*stele.Namespace{root, other}, Records: []*stele.Record{a("1@b.")}, Touch: touching(0, "a.")})
	s.wantZone("a.", 0, 3, 3, 2, 3)
	s.wantZone("b.", 0, 1, 1, 1)
	second := space("ark", "")
	second.Version = 2
	s.refuse("a namespace whose others have changed", &stele.Commit{Namespaces: []*stele.Namespace{second}, Touch: touching(1, "a.")}, stele.Conflict)
	s.apply(&stele.Commit{Records: []*stele.Record{a("4@b.")}, Touch: touching(0)}) // from before
	s.wantZone("a.", 0, 4, 3, 2, 3, 4)
	s.wantZone("b.", 0, 4, 1, 1, 4)
	s.apply(&stele.Commit{Namespaces: []*stele.Namespace{second}, Touch: touching(2, "b.")})
	s.apply(&stele.Commit{Records: []*stele.Record{a("6@a.")}, Touch: touching(3)})
	s.wantZone("a.", 0, 6, 3, 2, 3, 4, 6)
	s.wantZone("b.", 0, 5, 1, 1, 4, 5)
	if s.h.Durable {
		s.reopen()
		s.apply(&stele.Commit{Records: []*stele.Record{a("7@b.")}, Touch: touching(3)})
		s.wantZone("a.", 0, 6, 3, 2, 3, 4, 6)
	}

	// A replay touches nothing by itself.
	last := s.lastChange()
	r, third := a("replayed@a."), space("hdl", "")
	s.apply(&stele.Commit{Records: []*stele.Record{r}, Namespaces: []*stele.Namespace{third}, Replay: []stele.Change{
		{Seq: last + 1, ID: r.ID, Version: 1, At: spring}, {Seq: last + 2, Namespace: third.Key(), Version: 1, At: spring},
	}})
	s.wantZone("a.", 0, 6, 3, 2, 3, 4, 6)
	s.apply(&stele.Commit{Records: []*stele.Record{a("behind@c.")}, Touch: touching(4)})
	s.wantZone("a.", 0, 6, 3, 2, 3, 4, 6)
}

// checkZoneIngest: an ingest touches the zones of the records that it takes in.
func checkZoneIngest(s *session) {
	for _, n := range []int{3, 5000} {
		begin := s.lastChange()
		old := first(s.ark(fmt.Sprint(n, "old@a.")))
		s.apply(&stele.Commit{Records: []*stele.Record{old}, Touch: touching(0)})
		var list []*stele.Record
		for i := range n {
			list = append(list, first(s.ark(fmt.Sprintf("%d-%05d@%c.", n, i, 'a'+i*3/n))))
		}
		list[1] = old
		errs, err := s.Ingest(s.ctx, list, nil, touching(0), nil)
		if err != nil || len(errs) != n || errs[1] == nil {
			s.Fatalf("Ingest: %v, %d errors", err, len(errs))
		}
		var want []uint64
		for i, taken := 0, begin+1; i < n; i++ {
			if errs[i] == nil {
				if taken++; i*3/n == 2 {
					want = append(want, taken)
				}
			}
		}
		if got := s.zoneChanges("c.", begin); !slices.Equal(got, want) {
			s.Errorf("of an ingest of %d, %d changes touched a zone, want %d", n, len(got), len(want))
		}
		if z := s.zone("a."); z.Last >= want[0] {
			s.Errorf("changes %d and later touched another zone, which has %+v", want[0], z)
		}
	}
	last := s.lastChange()
	s.ingest([]*stele.Record{first(s.ark("nobody@a."))}, nil, nil)
	if got := s.zoneChanges("c.", last); len(got) != 1 {
		s.Errorf("an ingest that does not say which zones it touches touches another one by %d", got)
	}
}

// checkZonesLoad: with several writers at the same time, each zone has the changes of its own
// records, and its state has every acknowledged change.
func checkZonesLoad(s *session) {
	const each = 30
	var mu sync.Mutex
	named := make(map[string][]string)
	together(writers, func(i int) {
		zone := fmt.Sprintf("z%d.", i%3)
		for k := range each {
			r := first(s.ark(fmt.Sprintf("w%d/%d@%s", i, k, zone)))
			c := &stele.Commit{Records: []*stele.Record{r}, Touch: touching(0)}
			if k%10 == 9 {
				c.Zones = []stele.ZoneRaise{{Zone: fmt.Sprintf("own%d-%d.", i, k), Base: 1}}
			}
			before, err := s.ZoneState(s.ctx, zone)
			if err == nil {
				err = s.Apply(s.ctx, c)
			}
			after, err2 := s.ZoneState(s.ctx, zone)
			if err != nil || err2 != nil {
				s.Errorf("a commit under load: %v, %v", err, err2)
				return
			}
			if after.Last <= before.Last && before.Since > 0 && before.Zone == zone && before.At > 0 && before.Last != before.At {
				s.Errorf("a zone was touched, and its last change is %d, after %d", after.Last, before.Last)
			}
			mu.Lock()
			named[zone] = append(named[zone], r.ID.String())
			mu.Unlock()
		}
	})
	for zone, want := range named {
		var got []string
		for _, c := range all(s, "ZoneChanges", s.ZoneChanges(s.ctx, zone, 0)) {
			got = append(got, c.ID.String())
		}
		slices.Sort(got)
		slices.Sort(want)
		s.wantTexts("the changes of "+zone, got, want)
	}
}
