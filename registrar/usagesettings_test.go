package registrar

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestUsageSettings: owners set how the use of a namespace is counted, readers see it, and only a server lists the settings of all.
func TestUsageSettings(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345", owner("ann"), func(ns *stele.Namespace) {
		ns.Grants = []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}, {To: "user:ruth", Role: stele.RoleReader}}
	})
	if u, err := f.UsageSettings(as("ruth"), key); err != nil || u.CountAll || u.By != "" {
		t.Errorf("at first %+v, %v", u, err)
	}
	all := func(u *UsageSettings) { u.CountAll = true }
	for user, kind := range map[string]stele.Kind{"ed": stele.Forbidden, "ruth": stele.Forbidden, "sam": stele.NotFound} {
		if _, err := f.SetUsageSettings(as(user), key, all); stele.KindOf(err) != kind {
			t.Errorf("%s: %v", user, err)
		}
	}
	if u, err := f.SetUsageSettings(as("ann"), key, all); err != nil || !u.CountAll || u.By != "ann" {
		t.Errorf("set %+v, %v", u, err)
	}
	if u, err := f.UsageSettings(as("ruth"), key); err != nil || !u.CountAll {
		t.Errorf("then %+v, %v", u, err)
	}
	if list, err := f.UsageSpaces(f.admin); err != nil || len(list) != 1 || list[0].Key() != key || !list[0].CountAll {
		t.Errorf("all are %+v, %v", list, err)
	}
	if _, err := f.UsageSpaces(as("ann")); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("ann lists all: %v", err)
	}
	if _, err := f.UsageSettings(as("ann"), f.key("ark:54321")); stele.KindOf(err) != stele.NotFound {
		t.Errorf("of nothing: %v", err)
	}
}

// TestUsageSettingsLong sets how the use of namespaces with long prefixes is counted: what is kept of them has a name of bounded length, and is not mixed up.
func TestUsageSettingsLong(t *testing.T) {
	f := newFixture(t)
	long := "ark:12345/" + strings.Repeat("b", 1500)
	for _, end := range []string{"1", "2"} {
		key := f.space(long+end, owner("ann"))
		if n := len(usageSpaceCell(key)); n > MaxUsageText+100 {
			t.Errorf("the cell has a name of %d bytes", n)
		}
		if _, err := f.SetUsageSettings(as("ann"), key, func(u *UsageSettings) { u.CountAll, u.Public = end == "1", true }); err != nil {
			t.Fatal(err)
		}
	}
	list, err := f.UsageSpaces(f.admin)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, u := range list {
		if u.CountAll != strings.HasSuffix(u.Namespace, "1") {
			t.Errorf("%+v", u)
		}
	}
	seen, err := f.PublicUsage(t.Context(), f.key(long+"1"))
	if err != nil || !seen.Sees(f.key(long+"1")) {
		t.Error(err)
	}
	if ns, err := f.PublicNamespace(t.Context(), f.key(long+"1")); ns == nil || err != nil {
		t.Errorf("%+v, %v", ns, err)
	}
}

// TestUsageSettingsDamaged: an owner sets damaged settings anew.
func TestUsageSettingsDamaged(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345", owner("ann"))
	if err := f.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: usageSpaceCell(key), After: []byte("{")}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.UsageSettings(as("ann"), key); stele.KindOf(err) != stele.Internal {
		t.Errorf("damaged settings are read: %v", err)
	}
	if u, err := f.SetUsageSettings(as("ann"), key, func(u *UsageSettings) { u.Public = true }); err != nil || !u.Public {
		t.Errorf("they are %+v, %v", u, err)
	}
	if u, err := f.UsageSettings(as("ann"), key); err != nil || !u.Public {
		t.Errorf("then %+v, %v", u, err)
	}
}
