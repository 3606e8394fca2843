package registrar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

func TestNamespaces(t *testing.T) {
	f := newFixture(t)
	roots := len(collect(t, f))
	if roots != 6 {
		t.Errorf("%d namespaces in an empty registry, want the root of each scheme", roots)
	}
	f.space("ark:12345", owner("ann"))
	f.space("ark:12345/x5", owner("bob"))
	f.space("urn:par", owner("par"))
	f.space("urn:paradisec", owner("paradisec"))
	f.space("102.100.272/")
	f.space("https://purl.org/net/")
	f.space("urn:lsid:ubio.org")
	f.space("sid.inpe.br")
	f.space("sid.inpe.br/mtc-m18")
	f.space("8JMKD3MGP8W")
	if list := collect(t, f); len(list) != roots+10 || !slices.IsSortedFunc(list, func(a, b stele.NamespaceKey) int {
		return slices.Compare([]string{a.Scheme, a.Prefix}, []string{b.Scheme, b.Prefix})
	}) {
		t.Errorf("%d namespaces: %v", len(list), list)
	}
	for _, restart := range []bool{false, true} {
		if restart {
			f.start()
		}
		for id, want := range map[string]string{
			"ark:12345/x54xz321":                      "ark:12345/x5",
			"ark:12345/x54xz321/s3.pdf":               "ark:12345/x5",
			"ark:12345/x5":                            "ark:12345/x5",
			"ark:12345/y5abc":                         "ark:12345",
			"ark:99999/x5abc":                         "ark:",
			"urn:paradisec:a":                         "urn:paradisec",
			"urn:par:a":                               "urn:par",
			"urn:parad:a":                             "urn:",
			"102.100.272/X/Y":                         "102.100.272/",
			"https://purl.org/net/a/b":                "https://purl.org/net/",
			"https://purl.org/nets/a":                 "purl:",
			"urn:lsid:ubio.org:namebank:1":            "urn:lsid:ubio.org",
			"sid.inpe.br/mtc-m18/2009/02.16.17.46":    "sid.inpe.br/mtc-m18",
			"sid.inpe.br/mtc-m19/2009/02.16.17.46":    "sid.inpe.br",
			"sid.inpe.br/mtc-m18@80/2009/02.16.17.46": "sid.inpe.br",
			"8JMKD3MGP8W/34PGRBS":                     "8JMKD3MGP8W",
		} {
			if ns := must(f.FindNamespace(f.admin, f.id(id)))(t); ns.Key().String() != want {
				t.Errorf("%s belongs to %s, want %s", id, ns.Key(), want)
			}
		}
	}
	for prefix, want := range map[string]string{
		"ark:12345/x5": "ark:12345", "ark:12345": "ark:", "urn:paradisec": "urn:", "sid.inpe.br/mtc-m18": "sid.inpe.br",
	} {
		if up := must(f.ParentNamespace(f.admin, f.key(prefix)))(t); up.Key().String() != want {
			t.Errorf("above %s is %s, want %s", prefix, up.Key(), want)
		}
	}
	_, err := f.ParentNamespace(f.admin, f.key("ark:"))
	want(t, err, stele.NotFound)
}

func collect(t *testing.T, f *fixture) (keys []stele.NamespaceKey) {
	t.Helper()
	for ns, err := range f.Namespaces(f.admin) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, ns.Key())
	}
	return keys
}

func TestNamespaceVersions(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345", owner("ann"))
	ns := must(f.Namespace(f.admin, key))(t)
	if ns.Version != 1 || ns.By != "local" || ns.Created.IsZero() || ns.Modified != ns.Created {
		t.Errorf("got %+v", ns)
	}
	_, err := f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345"})
	want(t, err, stele.Conflict, "exists")

	title := func(text string) func(*stele.Namespace) error {
		return func(ns *stele.Namespace) error { ns.Title = text; return nil }
	}
	next := must(f.SetNamespace(as("ann"), key, 1, title("Ann's")))(t)
	if next.Version != 2 || next.By != "ann" || next.Created != ns.Created || next.Title != "Ann's" {
		t.Errorf("got %+v", next)
	}
	_, err = f.SetNamespace(as("ann"), key, 1, title("no"))
	want(t, err, stele.Conflict, "version 2, not 1")
	if same := must(f.SetNamespace(as("ann"), key, 0, title("Ann's")))(t); same.Version != 2 {
		t.Errorf("nothing changed, but the version is %d", same.Version)
	}
	_, err = f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Prefix = "ark:99999"; return nil })
	want(t, err, stele.Invalid, "never change")
	_, err = f.SetNamespace(f.admin, f.key("ark:99999"), 0, title("x"))
	want(t, err, stele.NotFound)
	boom := errors.New("boom")
	if _, err = f.SetNamespace(f.admin, key, 0, func(*stele.Namespace) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("got %v", err)
	}
	// A root exists before its first version is written.
	root := must(f.SetNamespace(f.admin, f.key("ark:"), 0, title("Strays")))(t)
	if root.Version != 1 || root.Created.IsZero() {
		t.Errorf("got %+v", root)
	}
	// What is returned is a copy.
	root.Title = "scribbled"
	if again := must(f.Namespace(f.admin, f.key("ark:")))(t); again.Title != "Strays" {
		t.Errorf("the title is %q", again.Title)
	}
}

func TestNamespaceRights(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345", owner("ann"))
	add := func(ctx context.Context, prefix string) error {
		k := f.key(prefix)
		_, err := f.AddNamespace(ctx, &stele.Namespace{Scheme: k.Scheme, Prefix: k.Prefix, Owner: "bob"})
		return err
	}
	want(t, add(context.Background(), "ark:12345/x5"), stele.Unauthenticated)
	want(t, add(as("bob"), "ark:12345/x5"), stele.Forbidden, "ark:12345")
	want(t, add(as("ann"), "ark:99999"), stele.Forbidden, "administrator")
	if err := add(as("ann"), "ark:12345/x5"); err != nil {
		t.Error(err)
	}
	shoulder := f.key("ark:12345/x5")
	set := func(ctx context.Context, key stele.NamespaceKey, change func(*stele.Namespace)) error {
		_, err := f.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error { change(ns); return nil })
		return err
	}
	quota := func(ns *stele.Namespace) { ns.Quota++ }
	take := func(ns *stele.Namespace) { ns.Owner = "eve" }
	title := func(ns *stele.Namespace) { ns.Title += "x" }
	want(t, set(as("eve"), shoulder, title), stele.NotFound)
	want(t, set(as("eve"), shoulder, take), stele.NotFound)
	want(t, set(as("bob"), shoulder, quota), stele.Forbidden, "quota")
	want(t, set(as("bob"), shoulder, take), stele.Conflict, "no owner") // he may hand it over, to a user that there is
	want(t, set(as("ann"), key, quota), stele.Forbidden)
	want(t, set(as("ann"), f.key("ark:"), title), stele.NotFound)
	for who, change := range map[string]func(*stele.Namespace){"bob": title, "ann": quota} {
		if err := set(as(who), shoulder, change); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
}

func TestNamespaceProblems(t *testing.T) {
	f := newFixture(t)
	for name, tt := range map[string]struct {
		ns   stele.Namespace
		says []string
	}{
		"everything at once": {
			stele.Namespace{Scheme: "ark", Prefix: "ARK:/12345", Status: 200, Delegate: "ftp://x/{id}", Hosts: []string{"EXAMPLE.org"}},
			[]string{"prefix: ", `write "ark:12345"`, "status: ", "delegate: ", "hosts[0]: "},
		},
		"unknown scheme":          {stele.Namespace{Scheme: "xyz", Prefix: "ark:12345"}, []string{"scheme: "}},
		"prefix of another":       {stele.Namespace{Scheme: "urn", Prefix: "ark:12345"}, []string{"scheme ark, not urn"}},
		"no prefix":               {stele.Namespace{Scheme: "hdl", Prefix: "102.100.272"}, []string{`"102.100.272/"`}},
		"bad template":            {stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Minter: noid(".qee")}, []string{"minter.template: "}},
		"template that fits not":  {stele.Namespace{Scheme: "urn", Prefix: "urn:isbn", Minter: noid(".seek")}, []string{"minter.template: "}},
		"no check character":      {stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Minter: noid(".see"), Checked: true}, []string{"minter.template: "}},
		"bad granularity":         {stele.Namespace{Scheme: "ibi", Prefix: "example.org/a", Minter: rep("a.example.org", "2s")}, []string{"minter.granularity: "}},
		"host without a dot":      {stele.Namespace{Scheme: "ibi", Prefix: "example.org/a", Minter: rep("localhost", "1s")}, []string{"minter.host: "}},
		"somebody else's host":    {stele.Namespace{Scheme: "ibi", Prefix: "example.org/a", Minter: rep("b.example.org", "1s")}, []string{"minter: ", "example.org/b", "example.org/a"}},
		"documentation address":   {stele.Namespace{Scheme: "ibi", Prefix: "example.org/a", Minter: stele.Minter{Kind: stele.MinterIBI, Host: "a.example.org", Port: 80, IP: "192.0.2.1", IPPort: 800}}, []string{"minter: ", "192.0.2.1"}},
		"loopback":                {stele.Namespace{Scheme: "ibi", Prefix: "LK47B6W", Minter: stele.Minter{Kind: stele.MinterIBI, IP: "127.0.0.1", IPPort: 800}}, []string{"minter.ip: "}},
		"uuids where none can be": {stele.Namespace{Scheme: "ibi", Prefix: "example.org/a", Minter: stele.Minter{Kind: stele.MinterUUID}}, []string{"minter.kind: "}},
		"pilin in the middle":     {stele.Namespace{Scheme: "hdl", Prefix: "102.100.272/A", Minter: stele.Minter{Kind: stele.MinterPILIN}}, []string{"minter: "}},
	} {
		_, err := f.AddNamespace(f.admin, &tt.ns)
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		t.Run(name, func(t *testing.T) { want(t, err, stele.Invalid, tt.says...) })
	}
	_, err := f.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark"})
	want(t, err, stele.Conflict, "root")
	_, err = f.SetNamespace(f.admin, f.key("ark:"), 0, func(ns *stele.Namespace) error { ns.Minter = noid(".zd"); return nil })
	want(t, err, stele.Invalid, "root")
}

// TestPrefixesBelongToOne: a repository prefix and an IBIp prefix each belong to
// one namespace only, by name or by a minter's settings.
func TestPrefixesBelongToOne(t *testing.T) {
	f := newFixture(t)
	a := f.space("sid.inpe.br/mtc-m18", owner("ann"), minter(ibi("1s")))
	add := func(ctx context.Context, prefix string, m stele.Minter) error {
		k := f.key(prefix)
		_, err := f.AddNamespace(ctx, &stele.Namespace{Scheme: k.Scheme, Prefix: k.Prefix, Owner: "bob", Minter: m})
		return err
	}
	address := stele.Minter{Kind: stele.MinterIBI, IP: "150.163.34.243", IPPort: 800}
	for _, restart := range []bool{false, true} {
		if restart {
			f.start()
		}
		want(t, add(f.admin, "8JMKD3MGP8W", stele.Minter{}), stele.Conflict, "sid.inpe.br/mtc-m18")
		want(t, add(f.admin, "8JMKD3MGP8W", address), stele.Conflict)
		other := ibi("1s")
		other.Host = "other.inpe.br"
		want(t, add(f.admin, "inpe.br/other", other), stele.Conflict, "8JMKD3MGP8W")
		want(t, add(f.admin, "sid.inpe.br", rep("mtc-m18.sid.inpe.br", "1s")), stele.Conflict)
	}
	// Another port is another prefix. But only a principal that may write there may
	// claim it.
	other := ibi("1s")
	other.Host, other.IPPort = "other.inpe.br", 801
	f.space("inpe.br", owner("bob"))
	want(t, add(as("bob"), "inpe.br/other", other), stele.Forbidden)
	if err := add(f.admin, "inpe.br/other", other); err != nil {
		t.Error(err)
	}
	// A prefix that the settings no longer have is free again.
	if _, err := f.SetNamespace(f.admin, a, 0, func(ns *stele.Namespace) error {
		ns.Minter.IP, ns.Minter.IPPort = "", 0
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := add(f.admin, "8JMKD3MGP8W", address); err != nil {
		t.Error(err)
	}
	_, err := f.SetNamespace(f.admin, a, 0, func(ns *stele.Namespace) error { ns.Minter = ibi("1s"); return nil })
	want(t, err, stele.Conflict, "8JMKD3MGP8W")
}

// TestPrefixChangesHands: a later minter of a prefix continues where the earlier one
// stopped, though no name that it minted was registered.
func TestPrefixChangesHands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where no time passes meanwhile
		f := newFixture(t)
		a := f.space("sid.inpe.br/mtc-m18", minter(ibi("1us")))
		given := make(map[stele.ID]bool)
		take := func(key stele.NamespaceKey, alias bool) {
			t.Helper()
			for _, l := range must(f.Mint(f.admin, key, 100))(t) {
				id := l.ID
				if alias {
					id = l.Aliases[0]
				}
				if given[id] {
					t.Fatalf("%s was given twice", id)
				}
				given[id] = true
			}
		}
		take(a, true)
		if _, err := f.SetNamespace(f.admin, a, 0, func(ns *stele.Namespace) error {
			ns.Minter = rep("mtc-m18.sid.inpe.br", "1us")
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		b := f.space("8JMKD3MGP8W", minter(stele.Minter{Kind: stele.MinterIBI, IP: "150.163.34.243", IPPort: 800, Granularity: "1us"}))
		take(b, false)
		f.start()
		take(b, false)
		// And back.
		if _, err := f.SetNamespace(f.admin, b, 0, func(ns *stele.Namespace) error { ns.Minter = stele.Minter{}; return nil }); err != nil {
			t.Fatal(err)
		}
		if _, err := f.SetNamespace(f.admin, a, 0, func(ns *stele.Namespace) error { ns.Minter = ibi("1us"); return nil }); err == nil {
			t.Error("8JMKD3MGP8W is a namespace of its own, and was claimed")
		}
	})
}

// TestKindOfMinterStays: what made names of dates must not make them of a
// template.
func TestKindOfMinterStays(t *testing.T) {
	f := newFixture(t)
	pilin := stele.Minter{Kind: stele.MinterPILIN}
	set := func(key stele.NamespaceKey, m stele.Minter) error {
		_, err := f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Minter = m; return nil })
		return err
	}
	a, b := f.space("102.100.272/", minter(pilin)), f.space("102.100.273/", minter(noid(".reeeeeeeee")))
	for key, m := range map[stele.NamespaceKey]stele.Minter{a: noid(".zd"), b: pilin} {
		if err := set(key, m); err != nil { // nothing is given yet
			t.Fatal(err)
		}
	}
	for key, m := range map[stele.NamespaceKey]stele.Minter{a: pilin, b: noid(".reeeeeeeee")} {
		must(f.Mint(f.admin, key, 1))(t)
		want(t, set(key, m), stele.Conflict, "use another prefix")
	}
}

func TestReload(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	other := New(f.store, f.schemes, Options{Now: f.clock})
	if _, err := other.AddNamespace(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Owner: "bob"}); err != nil {
		t.Fatal(err)
	}
	id := f.id("ark:12345/x5abc")
	if ns := must(f.FindNamespace(f.admin, id))(t); ns.Prefix != "ark:12345" {
		t.Errorf("got %s", ns.Key())
	}
	if err := f.Reload(f.admin); err != nil {
		t.Fatal(err)
	}
	if ns := must(f.FindNamespace(f.admin, id))(t); ns.Prefix != "ark:12345/x5" {
		t.Errorf("got %s", ns.Key())
	}
	// A write that another process was faster with is seen, too.
	third := New(f.store, f.schemes, Options{Now: f.clock})
	must(third.FindNamespace(f.admin, id))(t)
	must(f.SetNamespace(f.admin, f.key("ark:12345"), 0, func(ns *stele.Namespace) error { ns.Title = "1"; return nil }))(t)
	ns := must(third.SetNamespace(f.admin, f.key("ark:12345"), 0, func(ns *stele.Namespace) error { ns.Title += "2"; return nil }))(t)
	if ns.Title != "12" || ns.Version != 3 {
		t.Errorf("got %+v", ns)
	}
}

// TestManyNamespaces makes sure that namespaces don't make each other slow.
func TestManyNamespaces(t *testing.T) {
	f := newFixture(t)
	for i := range 1000 {
		f.space(fmt.Sprintf("ark:%05d", 10000+i))
	}
	if ns := must(f.FindNamespace(f.admin, f.id("ark:10999/a")))(t); ns.Prefix != "ark:10999" {
		t.Errorf("got %s", ns.Key())
	}
}

// TestTryNamespace: what a form asks is judged as if it were written, and nothing is.
func TestTryNamespace(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("olga"))
	olga := auth.With(t.Context(), auth.Principal{Name: "olga"})
	try := func(ctx context.Context, prefix string, isNew bool, change ...func(*stele.Namespace)) error {
		key := f.key(prefix)
		ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
		for _, c := range change {
			c(ns)
		}
		return f.TryNamespace(ctx, ns, isNew)
	}
	for _, err := range []error{try(olga, "ark:12345/x5", true, minter(noid(".reedeedk"))), try(olga, "ark:12345", false, owner("olga")), try(f.admin, "urn:example", true)} {
		if err != nil {
			t.Error(err)
		}
	}
	want(t, try(olga, "ark:12345", true), stele.Conflict, "exists")
	want(t, try(olga, "ark:12345/x5", false), stele.NotFound)
	want(t, try(olga, "urn:example", true), stele.Forbidden)
	want(t, try(t.Context(), "urn:example", true), stele.Unauthenticated)
	want(t, try(olga, "ark:12345/x5", true, minter(noid("nonsense"))), stele.Invalid, "minter.template")
	_, err := f.Namespace(f.admin, f.key("ark:12345/x5"))
	want(t, err, stele.NotFound)
}

// TestSampleNames: names that are shown can be made later, and showing takes none.
func TestSampleNames(t *testing.T) {
	f := newFixture(t)
	key := f.space("ark:12345/x5", minter(noid(".zeeddk")))
	ns := must(f.Namespace(f.admin, key))(t)
	samples := f.SampleNames(f.admin, ns, 3)
	if again := f.SampleNames(f.admin, ns, 3); !slices.Equal(again, samples) {
		t.Errorf("%q, and then %q", samples, again)
	}
	for i, label := range must(f.Mint(f.admin, key, 3))(t) {
		if samples[i] != label.ID.String() {
			t.Errorf("%s was made, and %q shown", label.ID, samples)
		}
	}
	for _, name := range f.SampleNames(f.admin, ns, 3) {
		if slices.Contains(samples, name) {
			t.Errorf("%s is shown after it was made", name)
		}
	}
	for prefix, m := range map[string]stele.Minter{"urn:example": {Kind: stele.MinterUUID}, "102.100.272/": {Kind: stele.MinterPILIN}, "sid.inpe.br/mtc-m18": ibi("")} {
		k := f.key(prefix)
		ns := &stele.Namespace{Scheme: k.Scheme, Prefix: k.Prefix, Minter: m}
		list := f.SampleNames(f.admin, ns, 2)
		if len(list) == 0 {
			t.Errorf("%s: no names", prefix)
		}
		for _, name := range list {
			if id := f.id(name); !f.schemes.IsWithin(id, k.Prefix) {
				t.Errorf("%s is not in %s", name, k)
			}
		}
	}
	if list := f.SampleNames(f.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/y5", Minter: noid("nonsense")}, 2); len(list) > 0 {
		t.Errorf("a wrong template makes %q", list)
	}
}
