package registrar

import (
	"testing"

	"github.com/stele-id/stele"
)

// All namespaces share one tree of zones, and the namespace that has a zone has its
// keys: no namespace takes the zone of another.
func TestPublish(t *testing.T) {
	f := newFixture(t)
	f.space("urn:one", owner("ann"), published("one.example."))
	f.space("urn:old", owner("ann"), published("old.example."))
	f.space("urn:ann", owner("ann"))
	bobs := f.space("urn:bob", owner("bob"))
	secret := func([]stele.Cell) ([]stele.CellChange, error) {
		return []stele.CellChange{{Name: "zonekey old.example. 1", After: []byte("secret")}}, nil
	}
	if err := f.SetZoneKeys(as("ann"), f.key("urn:old"), secret); err != nil {
		t.Fatal(err)
	}
	set := func(who, prefix string, change func(*stele.Namespace)) error {
		_, err := f.SetNamespace(as(who), f.key(prefix), 0, func(ns *stele.Namespace) error {
			change(ns)
			return nil
		})
		return err
	}
	if err := set("ann", "urn:old", func(ns *stele.Namespace) { ns.Publication = stele.Publication{} }); err != nil {
		t.Fatal(err)
	}
	for _, zone := range []string{"one.example.", "below.one.example.", "example.", "old.example.", "net.", "none.example."} {
		err := set("bob", "urn:bob", published(zone))
		want(t, err, stele.Forbidden, zone, "administrator")
		_, err = f.AddNamespace(as("bob"), &stele.Namespace{Scheme: "urn", Prefix: "urn:bob:x", Publication: stele.Publication{
			Zone: zone, Layout: stele.LayoutNames, Separator: ":", Parts: 1}})
		want(t, err, stele.Forbidden, zone)
	}
	if cells, err := f.ZoneKeys(as("bob"), bobs); err == nil {
		t.Errorf("another's keys: %v", cells)
	}
	// Zones are granted by administrators, with what is below them in the DNS for the
	// namespaces below.
	want(t, set("ann", "urn:ann", published("below.one.example.")), stele.Forbidden, "granted by administrators")
	f.space("urn:one:two")
	for _, tt := range []struct{ who, prefix, zone string }{
		{"ann", "urn:one", "one.example."}, // as it was
		{"ann", "urn:one:two", "below.one.example."},
	} {
		if err := set(tt.who, tt.prefix, published(tt.zone)); err != nil {
			t.Errorf("%s can't publish %s in %s: %v", tt.who, tt.prefix, tt.zone, err)
		}
	}
	// An administrator may; checks of the zones tell of a clash.
	must(f.SetNamespace(f.admin, bobs, 0, func(ns *stele.Namespace) error {
		published("old.example.")(ns)
		return nil
	}))(t)
	if err := set("bob", "urn:bob", func(ns *stele.Namespace) { ns.Title = "Bob's" }); err != nil {
		t.Errorf("what was given can't be kept: %v", err)
	}
}

// Secondaries take what a catalog lists, so administrators decide about it, and owners keep
// their records in the form that is served.
func TestCatalogAndRecordsAreJudged(t *testing.T) {
	f := newFixture(t)
	key := f.space("urn:one", owner("ann"), published("one.example."))
	set := func(change func(p *stele.Publication)) error {
		_, err := f.SetNamespace(as("ann"), key, 0, func(ns *stele.Namespace) error {
			change(&ns.Publication)
			return nil
		})
		return err
	}
	want(t, set(func(p *stele.Publication) { p.Catalog = "catalog.example.net." }), stele.Forbidden, "administrators decide")
	must(f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Publication.Catalog = "catalog.example.net."; return nil }))(t)
	if err := set(func(p *stele.Publication) { p.Mailbox = "ann@example.org" }); err != nil {
		t.Errorf("a zone in a catalog can't be changed: %v", err)
	}
	want(t, set(func(p *stele.Publication) { p.Catalog = "another.example.net." }), stele.Forbidden, "administrators decide")
	record := func(data string) func(*stele.Publication) {
		return func(p *stele.Publication) {
			p.Records = []stele.ZoneRecord{{Name: "a.one.example.", TTL: 60, Type: stele.RecordMX, Data: data}}
		}
	}
	want(t, set(record("10 mx.example.org")), stele.Invalid, "publication.records[0].data", "dot at the end")
	want(t, set(record("10 MX.example.org.")), stele.Invalid, "write 10 mx.example.org.")
	if err := set(record("10 mx.example.org.")); err != nil {
		t.Error(err)
	}
	if err := set(func(p *stele.Publication) { p.Catalog = "" }); err != nil {
		t.Errorf("an owner can't leave a catalog: %v", err)
	}
}

// Aliases count for the quota of the namespace that they are in, however they are added.
func TestQuotaOfAliases(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	f.space("ark:12345/x5", owner("ann"), func(ns *stele.Namespace) { ns.Quota = 3 })
	add := func(record, alias string) error {
		_, err := f.AddAlias(as("ann"), f.id(record), 0, f.id(alias))
		return err
	}
	f.registered("ark:12345/elsewhere")
	f.registered("ark:12345/x5/a")
	for record, alias := range map[string]string{"ark:12345/x5/a": "ark:12345/x5/1", "ark:12345/elsewhere": "ark:12345/x5/2"} {
		if err := add(record, alias); err != nil {
			t.Fatal(err)
		}
	}
	want(t, add("ark:12345/x5/a", "ark:12345/x5/3"), stele.Exhausted, "quota", "3 names")
	want(t, add("ark:12345/elsewhere", "ark:12345/x5/3"), stele.Exhausted)
	if err := add("ark:12345/x5/a", "ark:12345/other"); err != nil {
		t.Errorf("an alias in a namespace without a quota: %v", err)
	}
	imported := f.record("ark:12345/elsewhere", "https://example.org/1")
	imported.Aliases = []stele.ID{f.id("ark:12345/x5/2"), f.id("ark:12345/x5/3")}
	errs := must(f.Ingest(as("ann"), []*stele.Record{imported}, ImportOptions{Update: true}))(t)
	want(t, errs[0], stele.Exhausted)
	_, err := f.Update(as("ann"), f.id("ark:12345/x5/a"), 0, func(r *stele.Record) error {
		r.Aliases = append(r.Aliases, f.id("ark:12345/x5/3"))
		return nil
	})
	want(t, err, stele.Exhausted)
	if n := must(f.store.Count(t.Context(), f.key("ark:12345/x5")))(t); n != 3 {
		t.Errorf("%d names count, want 3", n)
	}
}

// A principal that may not raise a quota can't evade it with namespaces below.
func TestQuotaBelow(t *testing.T) {
	f := newFixture(t)
	must(f.SetNamespace(f.admin, f.key("ark:"), 0, func(ns *stele.Namespace) error {
		ns.Quota = 1 // of names in no namespace
		return nil
	}))(t)
	f.space("ark:12345", owner("top"))
	f.space("ark:12345/x5", owner("ann"), func(ns *stele.Namespace) { ns.Quota = 1 })
	f.space("ark:12345/x5/given", func(ns *stele.Namespace) { ns.Quota = 1 })
	f.space("ark:12345/x6", owner("ann"))
	add := func(who, prefix string) error {
		_, err := f.AddNamespace(as(who), &stele.Namespace{Scheme: "ark", Prefix: f.key(prefix).Prefix})
		return err
	}
	quota := func(who, prefix string, n uint64) error {
		_, err := f.SetNamespace(as(who), f.key(prefix), 0, func(ns *stele.Namespace) error {
			ns.Quota = n
			return nil
		})
		return err
	}
	want(t, add("ann", "ark:12345/x5/more"), stele.Forbidden, "quota", "ark:12345/x5")
	want(t, add("ann", "ark:12345/x5/given/more"), stele.Forbidden, "quota")
	want(t, quota("ann", "ark:12345/x5/given", 0), stele.Forbidden, "quota")
	want(t, quota("ann", "ark:12345/x5", 0), stele.Forbidden, "quota")
	for name, err := range map[string]error{
		"below another one":         add("ann", "ark:12345/x6/more"),
		"by the owner above":        add("top", "ark:12345/x5/top"),
		"a quota below another one": quota("ann", "ark:12345/x6/more", 7),
		"a quota by who is above":   quota("top", "ark:12345/x5/given", 2),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// All else is theirs to change.
	must(f.SetNamespace(as("ann"), f.key("ark:12345/x5/given"), 0, func(ns *stele.Namespace) error {
		ns.Title, ns.Owner = "Given", "heir"
		return nil
	}))(t)
}

// A PARADISEC name has three fields (thesis, 7.2). A namespace whose publication is exact
// takes no other new names, in namespaces below it either; what is registered stays.
func TestExactParts(t *testing.T) {
	f := newFixture(t)
	f.space("urn:paradisec", owner("ann"))
	f.space("urn:paradisec:ab1", owner("ann"))
	f.space("ark:12345", owner("ann"))
	f.registered("urn:paradisec:old")
	exact := func(prefix, zone, separator string, parts int) {
		t.Helper()
		must(f.SetNamespace(f.admin, f.key(prefix), 0, func(ns *stele.Namespace) error {
			ns.Publication = stele.Publication{Zone: zone, Layout: stele.LayoutNames, Separator: separator, Parts: parts, Exact: true}
			return nil
		}))(t)
	}
	exact("urn:paradisec", "paradisec.example.", ":", 3)
	register := func(id string, aliases ...stele.ID) error {
		r := f.record(id, "https://example.org/")
		r.Aliases = aliases
		_, err := f.Register(as("ann"), r)
		return err
	}
	for id, has := range map[string]string{
		"urn:paradisec:cd2": "1 part", "urn:paradisec:ab1:001": "2 parts", "urn:paradisec:ab1:001:a:notes": "4 parts",
	} {
		err := register(id)
		judged(t, err, "id", "name.parts")
		want(t, err, stele.Invalid, "names in urn:paradisec have 3 parts", "this one has "+has)
	}
	for _, id := range []string{"urn:paradisec:ab1:001:a", "urn:paradisec:ab1:001:a%20b", "ark:12345/x"} {
		if err := register(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	judged(t, register("urn:paradisec:ab1:001:b", f.id("urn:paradisec:ab1:b")), "aliases[0]", "name.parts")
	// What was registered before can be changed.
	must(f.Update(as("ann"), f.id("urn:paradisec:old"), 0, func(r *stele.Record) error {
		r.Metadata = stele.Metadata{"what": "Old"}
		return nil
	}))(t)
	// Handles have nothing between the prefix and the name.
	f.space("20.500.12345/", owner("ann"))
	exact("20.500.12345/", "handles.example.", "/", 2)
	if err := register("20.500.12345/a/b"); err != nil {
		t.Error(err)
	}
	judged(t, register("20.500.12345/a"), "id", "name.parts")
	// Minters make names that can be registered.
	minter := func(prefix string) error {
		_, err := f.SetNamespace(f.admin, f.key(prefix), 0, func(ns *stele.Namespace) error {
			ns.Minter = stele.Minter{Kind: stele.MinterNOID, Template: ".reedd"}
			return nil
		})
		return err
	}
	f.space("urn:paradisec:ab1:001", owner("ann"))
	want(t, minter("urn:paradisec:ab1"), stele.Invalid, "makes names of 2 parts", "have 3 parts")
	if err := minter("urn:paradisec:ab1:001"); err != nil {
		t.Error(err)
	}
	r := f.record("urn:paradisec:ab1:001:c", "https://example.org/")
	r.ID = stele.ID{}
	minted, err := f.MintAndRegister(as("ann"), r, f.key("urn:paradisec:ab1:001"))
	if err != nil {
		t.Errorf("%v, %v", minted, err)
	}
}
