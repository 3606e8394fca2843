package registrar

import (
	"errors"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// value returns a handle value that the public may read.
func value(index uint32, kind, data string) stele.HandleValue {
	return stele.HandleValue{Index: index, Type: kind, Data: []byte(data), TTL: 86400, Permissions: stele.PublicRead | stele.AdminRead | stele.AdminWrite}
}

// Whatever a record leads by is held against the rules of the namespaces of all its
// names.
func TestDestinations(t *testing.T) {
	f := newFixture(t)
	f.space("102.100.1/", func(ns *stele.Namespace) {
		ns.Hosts, ns.Protocols = []string{"good.example", ".good.example"}, []string{"https"}
	})
	f.space("102.100.2/") // leads anywhere
	f.space("102.100.3/", func(ns *stele.Namespace) { ns.Hosts, ns.Protocols = []string{".sub.good.example"}, []string{"https"} })
	f.space("102.100.4/", func(ns *stele.Namespace) {
		ns.Hosts, ns.Protocols, ns.Delegate = []string{"good.example"}, []string{"https"}, "https://evil.example/{id}"
	})
	for name, tt := range map[string]struct {
		id     string
		values []stele.HandleValue
		alias  string
		url    string
		code   string // of the problem; "" if there is none
		path   string
	}{
		"target":                 {id: "102.100.1/a", url: "https://evil.example/", code: "destination.host-not-allowed", path: "targets[0].url"},
		"target's protocol":      {id: "102.100.1/b", url: "http://good.example/", code: "destination.protocol-not-allowed", path: "targets[0].url"},
		"target allowed":         {id: "102.100.1/c", url: "https://www.good.example:8443/x@evil.example"},
		"URL":                    {id: "102.100.1/d", values: []stele.HandleValue{value(1, "URL", "https://evil.example/")}, code: "destination.host-not-allowed", path: "values[0].data"},
		"URL below a type":       {id: "102.100.1/e", values: []stele.HandleValue{value(1, "url.Old", " https://evil.example/ ")}, code: "destination.host-not-allowed", path: "values[0].data"},
		"URL with a user":        {id: "102.100.1/f", values: []stele.HandleValue{value(1, "URL", "https://good.example@evil.example/")}, code: "destination.host-not-allowed", path: "values[0].data"},
		"URL that is none":       {id: "102.100.1/g", values: []stele.HandleValue{value(1, "URL", "//evil.example/")}, code: "destination.unreadable", path: "values[0].data"},
		"URL with a backslash":   {id: "102.100.1/h", values: []stele.HandleValue{value(1, "URL", `https://good.example\@evil.example/`)}, code: "destination.unreadable", path: "values[0].data"},
		"script":                 {id: "102.100.1/i", values: []stele.HandleValue{value(1, "URL", "javascript:alert(1)")}, code: "destination.unreadable", path: "values[0].data"},
		"URL allowed":            {id: "102.100.1/j", values: []stele.HandleValue{value(1, "URL", "https://GOOD.example./x")}},
		"not readable":           {id: "102.100.1/k", values: []stele.HandleValue{{Index: 1, Type: "URL", Data: []byte("https://evil.example/"), Permissions: stele.AdminRead}}, code: "destination.host-not-allowed", path: "values[0].data"},
		"location":               {id: "102.100.1/l", values: []stele.HandleValue{value(2, "10320/loc", `<locations><location href="https://good.example/"/><location href="https://evil.example/" weight="0"/></locations>`)}, code: "destination.host-not-allowed", path: "values[0].data"},
		"location by template":   {id: "102.100.1/m", values: []stele.HandleValue{value(2, "10320/LOC", `<locations><location href_template="https://evil.example/{hdl}"/></locations>`)}, code: "destination.host-not-allowed", path: "values[0].data"},
		"template in the host":   {id: "102.100.1/evil.example", values: []stele.HandleValue{value(2, "10320/loc", `<locations><location href_template="https://{hdl:path}.good.example/"/></locations>`)}, code: "destination.unreadable", path: "values[0].data"},
		"location that is none":  {id: "102.100.1/o", values: []stele.HandleValue{value(2, "10320/loc", `<locations><location href="https://evil.example/">`)}, code: "destination.unreadable", path: "values[0].data"},
		"location allowed":       {id: "102.100.1/p", values: []stele.HandleValue{value(2, "10320/loc", `<locations><location href_template="https://good.example/{hdl}"/></locations>`)}},
		"alias elsewhere":        {id: "102.100.1/q", values: []stele.HandleValue{value(1, "HS_ALIAS", "102.100.2/x")}, code: "destination.handle-not-allowed", path: "values[0].data"},
		"alias far away":         {id: "102.100.1/r", values: []stele.HandleValue{value(1, "HS_ALIAS", "hdl:10.5555/x")}, code: "destination.handle-not-allowed", path: "values[0].data"},
		"alias delegated":        {id: "102.100.1/s", values: []stele.HandleValue{value(1, "HS_ALIAS", "102.100.4/x")}, code: "destination.handle-not-allowed", path: "values[0].data"},
		"alias inside":           {id: "102.100.1/t", values: []stele.HandleValue{value(1, "HS_ALIAS", "102.100.1/q2")}},
		"alias to stricter":      {id: "102.100.1/u", values: []stele.HandleValue{value(1, "HS_ALIAS", "102.100.3/x")}},
		"alias to looser":        {id: "102.100.3/v", values: []stele.HandleValue{value(1, "HS_ALIAS", "102.100.1/x")}, code: "destination.handle-not-allowed", path: "values[0].data"},
		"other values":           {id: "102.100.1/w", values: []stele.HandleValue{value(1, "EMAIL", "a@evil.example"), value(2, "10320/links", `<links/>`)}},
		"record elsewhere":       {id: "102.100.2/a", alias: "102.100.1/y", url: "https://evil.example/", code: "destination.host-not-allowed", path: "targets[0].url"},
		"record elsewhere, good": {id: "102.100.2/b", alias: "102.100.1/z", url: "https://good.example/"},
		"free":                   {id: "102.100.2/c", values: []stele.HandleValue{value(1, "URL", "mailto:x"), value(2, "HS_ALIAS", "10.5555/x")}, url: "http://evil.example/"},
		"free, unusual protocol": {id: "102.100.2/d", values: []stele.HandleValue{value(1, "URL", "rsync://x.example/y")}, code: "destination.protocol-not-allowed", path: "values[0].data"},
	} {
		t.Run(name, func(t *testing.T) {
			rec := &stele.Record{ID: f.id(tt.id), Values: tt.values}
			if tt.url != "" {
				rec.Targets = []stele.Target{{Service: stele.N2L, URL: tt.url, Order: 100, Preference: 10}}
			}
			if tt.alias != "" {
				rec.Aliases = []stele.ID{f.id(tt.alias)}
			}
			made, err := f.Register(f.admin, rec)
			judged(t, err, tt.path, tt.code)
			if made != nil {
				return
			}
			// What may not be registered may not be added later either.
			empty := &stele.Record{ID: rec.ID, Aliases: rec.Aliases}
			if _, err := f.Register(f.admin, empty); err != nil {
				t.Fatal(err)
			}
			_, err = f.Update(f.admin, rec.ID, 0, func(next *stele.Record) error {
				next.Targets, next.Values = rec.Targets, rec.Values
				return nil
			})
			judged(t, err, tt.path, tt.code)
		})
	}
}

// An alias in a namespace that says where names may lead is not given to a record that
// leads elsewhere.
func TestDestinationsOfNewAlias(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345/x5", func(ns *stele.Namespace) { ns.Hosts = []string{"good.example"} })
	rec := f.registered("ark:99999/fk4a")
	_, err := f.AddAlias(f.admin, rec.ID, 0, f.id("ark:12345/x5a"))
	judged(t, err, "targets[0].url", "destination.host-not-allowed")
}

// judged fails unless err has just the problem that is wanted.
func judged(t *testing.T, err error, path, code string) {
	t.Helper()
	if code == "" {
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	problems, _ := errors.AsType[stele.Problems](err)
	if len(problems) != 1 {
		t.Fatalf("got %v, want %s at %s", err, code, path)
	}
	got, params := stele.CodeOf(problems[0].Err)
	if problems[0].Path != path || got != code || len(params) == 0 {
		t.Errorf("got %s %v at %s, want %s at %s", got, params, problems[0].Path, code, path)
	}
}

// What is older than a rule is listed, and nothing else.
func TestCheckRules(t *testing.T) {
	f := newFixture(t)
	key := f.space("102.100.1/", owner("ann"))
	register := func(ids string, values ...stele.HandleValue) {
		t.Helper()
		names := strings.Fields(ids)
		rec := &stele.Record{ID: f.id(names[0]), Values: values}
		for _, alias := range names[1:] {
			rec.Aliases = append(rec.Aliases, f.id(alias))
		}
		if _, err := f.Register(f.admin, rec); err != nil {
			t.Fatal(err)
		}
	}
	bad := value(1, "URL", "https://evil.example/")
	register("102.100.1/good", value(1, "URL", "https://good.example/"))
	register("102.100.1/bad", bad)
	register("102.100.1/gone", bad)
	if _, err := f.Withdraw(f.admin, f.id("102.100.1/gone"), 0, "it is gone", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	register("102.100.9/else", bad)
	register("102.100.9/named 102.100.1/alias", bad)
	check := func() string {
		t.Helper()
		var got []string
		read := 0
		for b, err := range f.CheckRules(as("ann"), key, func(n int) { read = n }) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, b.ID.String()+" "+b.Problems.Error())
		}
		if read != 5 {
			t.Errorf("%d records were read, not 5", read)
		}
		return strings.Join(got, "\n")
	}
	if got := check(); got != "" {
		t.Errorf("before there is a rule:\n%s", got)
	}
	if _, err := f.SetNamespace(f.admin, key, 0, func(ns *stele.Namespace) error { ns.Hosts = []string{"good.example"}; return nil }); err != nil {
		t.Fatal(err)
	}
	const problem = `"evil.example": targets of 102.100.1/ don't point there; ask its owner to allow the host`
	const why = "targets[0].url: " + problem + "; values[0].data: " + problem // the value is a target too
	if got, want := check(), "102.100.1/BAD "+why+"\n102.100.9/NAMED "+why; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, err := range f.CheckRules(as("eve"), key, nil) {
		want(t, err, stele.NotFound)
		return
	}
	t.Error("anybody may check a namespace")
}

// A target is partial only where something can follow a name of the record; what was
// written before this rule may be changed.
func TestPartialNeedsNamesThatCanBeFollowed(t *testing.T) {
	f := newFixture(t)
	at := func(name string, aliases ...string) *stele.Record {
		rec := &stele.Record{ID: f.id(name), Targets: []stele.Target{
			{Service: stele.N2C, URL: "https://example.org/about", Order: 100, Preference: 10},
			{Service: stele.N2L, URL: "https://example.org/", Order: 100, Preference: 10, Partial: true},
		}}
		for _, alias := range aliases {
			rec.Aliases = append(rec.Aliases, f.id(alias))
		}
		return rec
	}
	for _, name := range []string{
		"urn:isbn:9780306406157", "urn:lsid:ubio.org:namebank:11815:2", "urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66",
		"8JMKD3MGP8W/34PGRBS", "sid.inpe.br/mtc-m18/2009/02.16.17.46",
	} {
		_, err := f.Register(f.admin, at(name))
		judged(t, err, "targets[1].partial", "target.nothing-follows")
	}
	for _, rec := range []*stele.Record{
		at("urn:lsid:ubio.org:namebank:11815"), at("urn:example:a"), at("10.5072/a"), at("ark:12345/x1"), at("https://purl.org/obo/HP_"),
		at("ark:99999/fk4"), at("ark:13030/tf5p30086k"), at("urn:isbn:9780131103627", "ark:12345/isbn"),
	} {
		if _, err := f.Register(f.admin, rec); err != nil {
			t.Errorf("%s: %v", rec.ID, err)
		}
	}

	old := at("urn:isbn:9780306406157")
	old.State, old.Version, old.Created, old.Modified = stele.Active, 1, f.now(), f.now()
	if err := f.store.Apply(t.Context(), &stele.Commit{Records: []*stele.Record{old}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Update(f.admin, old.ID, 0, func(rec *stele.Record) error { rec.Metadata = stele.Metadata{"what": "x"}; return nil }); err != nil {
		t.Error(err)
	}
	found := 0
	for breach, err := range f.CheckRules(f.admin, stele.NamespaceKey{Scheme: "urn"}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		found++
		judged(t, &stele.Error{Kind: stele.Invalid, Err: breach.Problems}, "targets[1].partial", "target.nothing-follows")
	}
	if found != 1 {
		t.Errorf("%d records break a rule", found)
	}

	// No name is used up for one that is refused.
	f.space("urn:uuid", minter(stele.Minter{Kind: stele.MinterUUID}))
	rec := at("urn:isbn:9780306406157")
	rec.ID = stele.ID{}
	_, err := f.MintAndRegister(f.admin, rec, stele.NamespaceKey{Scheme: "urn", Prefix: "urn:uuid"})
	judged(t, err, "targets[1].partial", "target.nothing-follows")
}

// A namespace asks for passthrough only where something can follow its names.
func TestPassthroughNeedsNamesThatCanBeFollowed(t *testing.T) {
	f := newFixture(t)
	for prefix, good := range map[string]bool{
		"ark:12345/x5": true, "https://purl.org/obo/HP_": true, "102.100.272/": true, "urn:example": true, "urn:lsid:ubio.org:namebank": true,
		"urn:lsid:ubio.org:namebank:11815": true, "urn:isbn": false, "urn:uuid": false, "urn:nbn:de:101": true, "sid.inpe.br/mtc-m18": false, "8JMKD3MGP8W": false,
	} {
		key := must(f.ParsePrefix(prefix))(t)
		_, err := f.AddNamespace(f.admin, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Passthrough: true})
		if good && err != nil {
			t.Errorf("%s: %v", prefix, err)
		} else if !good {
			judged(t, err, "passthrough", "namespace.nothing-follows")
		}
	}
}
