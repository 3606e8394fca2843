package publish_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonesign"
)

func TestApex(t *testing.T) {
	p := publishtest.New(t)
	if z, err := p.Zones.Find(p.Ctx, "paradisec.example."); z != nil || err != nil {
		t.Fatalf("a zone before there is one: %v, %v", z, err)
	}
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	_, z := p.Lookup("paradisec.example.")
	soa, ns := z.Apex()
	if soa.Ns != "ns1.paradisec.example." || soa.Mbox != `host\.master.example.org.` || soa.Serial != 1 {
		t.Errorf("SOA: %s", soa)
	}
	if len(ns) != 2 || ns[1].(*dns.NS).Ns != "ns2.example.net." {
		t.Errorf("NS: %v", ns)
	}
	before := p.Zones.Changed()
	p.Register("urn:paradisec:a:b:c", "http://example.org/")
	if soa, _ = z.Apex(); soa.Serial != 2 || p.Zones.Changed() == before {
		t.Errorf("serial %d and %d changes after a change", soa.Serial, p.Zones.Changed())
	}
	for name, want := range map[string]string{
		"ns1.paradisec.example.":        "A AAAA",
		"_http._tcp.paradisec.example.": "SRV",
		"paradisec.example.":            "NAPTR",
		"c.b.a.paradisec.example.":      "NAPTR URI",
	} {
		if got := strings.Join(typesAt(p, name), " "); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"_tcp", "b.a", "a"} {
		if n, _ := p.Lookup(name + ".paradisec.example."); !n.Exists || len(n.Records) > 0 {
			t.Errorf("%s: %+v, want an empty one", name, n)
		}
	}
	for _, name := range []string{"x", "c", "b", "x.c.b.a", "c.b.x", "_udp", "x._tcp", "x.ns1", "a.a", `\000.b.a`, "a.b.c.d.e.f.g.h"} {
		if n, _ := p.Lookup(name + ".paradisec.example."); n.Exists {
			t.Errorf("%s exists", name)
		}
	}
}

// TestEmptyNames asks for names that exist only because of dots in names, or of aliases.
func TestEmptyNames(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Lookup("paradisec.example.") // what follows is learned from changes
	exists := func(name string, want bool) {
		t.Helper()
		if n, _ := p.Lookup(name + ".paradisec.example."); n.Exists != want {
			t.Errorf("%s exists: %v", name, n.Exists)
		}
	}
	check := func() {
		t.Helper()
		for _, name := range []string{"a.b.wav.2.1", "b.wav.2.1", "wav.2.1", "2.1", "1", "z.y.x", "y.x", "x"} {
			exists(name, true)
		}
		for _, name := range []string{"mp3.2.1", "c.wav.2.1", "z.wav.2.1", "w.x", "3.1"} {
			exists(name, false)
		}
	}
	for _, name := range []string{"wav.2.1", "y.x"} {
		exists(name, false)
	}
	p.Register("urn:paradisec:1:2:a.b.wav", "http://example.org/")
	r := &stele.Record{ID: p.ID("ark:12345/x1"), Aliases: []stele.ID{p.ID("urn:paradisec:x:y:z")}, Targets: []stele.Target{publishtest.Target("http://example.org/")}}
	if _, err := p.Registrar.Register(p.Ctx, r); err != nil {
		t.Fatal(err)
	}
	check()
	// The same from reading the registry.
	p.Zones.Close()
	p.Zones = publish.NewZones(publish.ZonesOptions{Store: p.Store, Schemes: p.Schemes})
	t.Cleanup(p.Zones.Close)
	check()
	zone := p.Export("paradisec.example.")
	if !strings.Contains(zone, "\na.b.wav.2.1 ") || !strings.Contains(zone, "\nz.y.x ") {
		t.Errorf("names are missing in\n%s", zone)
	}
}

// TestIndexBeside checks that a registry that is not small is read beside the first
// answers.
func TestIndexBeside(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	var records []*stele.Record
	for i := range publish.ReadAtOnce + 10 {
		records = append(records, &stele.Record{ID: p.ID(fmt.Sprintf("urn:paradisec:c:%d:a.b", i)), Version: 1, State: stele.Active, Targets: []stele.Target{publishtest.Target("http://example.org/")}})
	}
	if _, err := p.Store.Ingest(p.Ctx, records, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	complete := make(chan struct{}, 100)
	p.Zones.OnChange(func(names []string) {
		if names == nil {
			complete <- struct{}{}
		}
	})
	n, _ := p.Lookup(fmt.Sprintf("a.b.%d.c.paradisec.example.", publish.ReadAtOnce))
	if len(n.Records) == 0 {
		t.Error("a name is not there at once")
	}
	<-complete
	for name, want := range map[string]bool{"b.1.c": true, "c.1.c": false} {
		if n, _ := p.Lookup(name + ".paradisec.example."); n.Exists != want {
			t.Errorf("%s exists: %v", name, n.Exists)
		}
	}
}

func TestOnChange(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Lookup("paradisec.example.")
	p.TakeTold()
	p.Register("urn:paradisec:a:b:c.d", "http://example.org/")
	want := []string{"c.d.b.a.paradisec.example.", "d.b.a.paradisec.example.", "b.a.paradisec.example.", "a.paradisec.example."}
	if told := p.TakeTold(); len(told) != 1 || !slices.Equal(told[0], want) {
		t.Errorf("told %v, want %v", told, want)
	}
	p.Register("urn:other:a", "http://example.org/")
	if told := p.TakeTold(); len(told) != 0 {
		t.Errorf("told %v of a name that is not published", told)
	}
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.TTL = 77 })
	if told := p.TakeTold(); len(told) != 1 || told[0] != nil {
		t.Errorf("told %v of a namespace, want all", told)
	}
	if n, _ := p.Lookup("c.d.b.a.paradisec.example."); n.Records[0].Header().Ttl != 77 {
		t.Errorf("%v after the namespace's TTL was set", n.Records)
	}
}

// broken is a store that fails from some time on.
type broken struct {
	stele.Store
	fails atomic.Bool
}

var errBroken = errors.New("broken")

func (b *broken) Record(ctx context.Context, id stele.ID) (*stele.Record, error) {
	if b.fails.Load() {
		return nil, errBroken
	}
	return b.Store.Record(ctx, id)
}

func (b *broken) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	if !b.fails.Load() {
		return b.Store.Scan(ctx, scheme, prefix, after)
	}
	return func(yield func(*stele.Record, error) bool) { yield(nil, errBroken) }
}

func TestStoreFails(t *testing.T) {
	store := new(broken)
	p := publishtest.New(t, func(o *publish.ZonesOptions) { store.Store, o.Store = o.Store.(stele.Store), store })
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	_, z := p.Lookup("paradisec.example.")
	store.fails.Store(true)
	for _, name := range []string{"c.b.a.paradisec.example.", "b.a.paradisec.example."} {
		if n, err := z.Lookup(p.Ctx, name); err == nil || n.Exists {
			t.Errorf("%s: %+v, %v; want the store's error", name, n, err)
		}
	}
	var b bytes.Buffer
	if err := p.Zones.Export(p.Ctx, &b, "paradisec.example.", nil); !errors.Is(err, errBroken) {
		t.Errorf("export: %v", err)
	}
}

func TestSubNamespaces(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.Namespace("urn:paradisec:xy2", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "xy2.example.", Layout: stele.LayoutNames, Separator: ":", Parts: 2, Resolver: "xy2.example.org:8080"}
	})
	p.Namespace("urn:paradisec:far", func(ns *stele.Namespace) {
		ns.Publication.Elsewhere = []stele.Discovery{{Kind: stele.DiscoverNAPTR, At: "far.example.net."}, {Kind: stele.DiscoverSRV, At: "_http._tcp.far.example.net."}, {Kind: stele.DiscoverURL, At: "http://far.example.net/"}}
	})
	p.Namespace("urn:paradisec:del", func(ns *stele.Namespace) { ns.Delegate = "https://del.example.net/r?id={id}&rest={rest}" })
	p.Namespace("urn:paradisec:sub", func(ns *stele.Namespace) { ns.Title = "Not published by itself" })
	p.Register("urn:paradisec:xy2:1:a", "http://example.org/xy2")
	p.Register("urn:paradisec:sub:1:a", "http://example.org/sub")
	p.Register("urn:paradisec:far:1:a", "http://example.org/never")
	for id, want := range map[string]string{
		"urn:paradisec:xy2:1:a":   "RES:http http://example.org/xy2",
		"urn:paradisec:xy2:1:2:3": "s _http._tcp.xy2.example.",
		"urn:paradisec:sub:1:a":   "RES:http http://example.org/sub",
		"urn:paradisec:far:1:a":   "not found", // far.example.net has no rules here
		"URN:paradisec:del:1:a":   "DIS:URL https://del.example.net/r?id=URN:paradisec:del:1:a&rest=:1:a",
		"urn:paradisec:delx:1:a":  "not found",
	} {
		for _, root := range []string{"urn.example.", "@paradisec.example."} {
			if got := p.Walk(root, id, stele.N2L); got != want {
				t.Errorf("%s from %s: %s, want %s", id, root, got, want)
			}
		}
	}
	if n, _ := p.Lookup("a.1.far.paradisec.example."); n.Exists {
		t.Error("a name for which others answer exists")
	}
	golden(t, "subnamespaces.zone", p.Export("paradisec.example."))
}

// TestZoneInRoot checks that a zone inside a root zone has the key as its apex.
func TestZoneInRoot(t *testing.T) {
	p := publishtest.New(t)
	p.Namespace("urn:", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "urn.example.", Layout: stele.LayoutRoot, Servers: []stele.NameServer{{Name: "ns.urn.example.", Addresses: []string{"192.0.2.7"}}}}
	})
	p.Publish("urn:paradisec", "paradisec.urn.example.", ":", 3)
	p.Register("urn:paradisec:a:b:c", "http://example.org/c")
	if got := p.Walk("urn.example.", "urn:paradisec:a:b:c", stele.N2L); got != "RES:http http://example.org/c" {
		t.Error(got)
	}
	golden(t, "zoneinroot.zone", p.Export("urn.example."))
}

func TestRootOfARK(t *testing.T) {
	p := publishtest.New(t)
	p.Namespace("ark:", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "ark.example.", Layout: stele.LayoutRoot, Servers: []stele.NameServer{{Name: "ns1.example.net."}}, Resolver: "n2t.example.org"}
	})
	p.Namespace("ark:12345/x5", func(ns *stele.Namespace) { ns.Title = "A shoulder" })
	p.Publish("ark:99999", "ark99999.example.", "/", 1)
	wantRules(t, rulesAt(p, "12345.ark.example."), `100 10 "h" "ark" "" n2t.example.org.`)
	rules := rulesAt(p, "99999.ark.example.")
	if len(rules) != 4 || rules[3] != `100 10 "h" "ark" "" id.example.org.` {
		t.Errorf("%q", rules)
	}
}

func TestRulesLayout(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.Namespace("urn:example", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "rules.example.", Layout: stele.LayoutRules, Servers: []stele.NameServer{{Name: "ns1.example.net."}}, Resolver: "id.example.org"}
	})
	p.Register("urn:example:Some/thing.x", "http://example.org/1")
	p.Register("urn:example:some/thing.x", "http://example.org/2")
	want := map[string]string{
		"urn:example:Some/thing.x": "RES:http http://example.org/1",
		"URN:Example:some/thing.x": "RES:http http://example.org/2",
		"urn:example:other":        "s _http._tcp.rules.example.",
	}
	for id, want := range want {
		if got := p.Walk("urn.example.", id, stele.N2L); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
	if err := p.Zones.Judge(p.Ctx, current(p, "urn:example")); err != nil {
		t.Error(err)
	}
	for i := range publish.MaxCollection {
		p.Register(fmt.Sprintf("urn:example:n%d", i), "http://example.org/n")
	}
	wantRules(t, rulesAt(p, "rules.example."), strings.Replace(further, "paradisec", "rules", 1), `200 60 "s" "thttp" "" _http._tcp.rules.example.`)
	if err := p.Zones.Judge(p.Ctx, current(p, "urn:example")); !errors.Is(err, stele.Conflict) {
		t.Errorf("%v, want a refusal", err)
	}
}

// current returns a namespace as it is.
func current(p *publishtest.Registry, prefix string) *stele.Namespace {
	p.T.Helper()
	key, err := p.Registrar.ParsePrefix(prefix)
	if err != nil {
		p.T.Fatal(err)
	}
	ns, err := p.Registrar.Namespace(p.Ctx, key)
	if err != nil {
		p.T.Fatal(err)
	}
	return ns
}

func TestJudge(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	for name, change := range map[string]func(*stele.Publication){
		"is the zone of urn:paradisec already": func(q *stele.Publication) { q.Zone = "paradisec.example." },
		"a rule can put 9 parts into a name":   func(q *stele.Publication) { q.Parts = 10 },
		"the field has":                        func(q *stele.Publication) { q.Zone, q.Parts = strings.Repeat("z.", 60), 6 },
		"no name of 3 parts has room":          func(q *stele.Publication) { q.Zone = strings.Repeat("z.", 126) },
	} {
		ns := &stele.Namespace{Scheme: "urn", Prefix: "urn:example", Publication: stele.Publication{Zone: "example.org.", Layout: stele.LayoutNames, Separator: ":", Parts: 3}}
		change(&ns.Publication)
		if err := p.Zones.Judge(p.Ctx, ns); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

func TestCheck(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Register("urn:paradisec:a:b:c", "http://example.org/"+strings.Repeat("x", 300))
	p.Register("urn:paradisec:a:b", "http://example.org/2")
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("http://example.org/%d/%s", i, strings.Repeat("x", 50)))
	}
	p.Register("urn:paradisec:a:b:many", many...)
	p.Namespace("urn:bare", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "bare.example.", Layout: stele.LayoutNames, Separator: ":", Parts: 1}
	})
	p.Register("urn:bare:a:b", "http://example.org/2")
	var got []string
	err := p.Zones.Check(p.Ctx, "", func(q publish.Problem) {
		got = append(got, fmt.Sprintf("%v %s %s %s", q.Serious, q.Zone, q.ID, q.Text))
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"false paradisec.example. urn:paradisec:a:b it has no owner name, so it is found over HTTP only: it has 2 parts",
		"false paradisec.example. urn:paradisec:a:b:c the URL of its N2L has 319 bytes",
		"false paradisec.example. urn:paradisec:a:b:many the answer for NAPTR records at many.b.a.paradisec.example. has ",
		"true bare.example.  it has no name servers",
		"false bare.example.  it names no resolver",
		"true bare.example. urn:bare:a:b it has no owner name, so it is not found: it has 2 parts",
	} {
		if !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("no problem is %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
	if err := p.Zones.Export(p.Ctx, &bytes.Buffer{}, "bare.example", nil); !errors.Is(err, stele.Conflict) {
		t.Errorf("export of a zone without servers: %v", err)
	}
}

func TestParent(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	var b bytes.Buffer
	if err := p.Zones.ExportParent(p.Ctx, &b, "paradisec.example", ""); err != nil {
		t.Fatal(err)
	}
	golden(t, "parent.zone", b.String())

	// A part of a namespace, whose own is not published, gets its part of the key only.
	p.Publish("urn:nbn:de:gbv", "gbv.example.", "-", 2)
	b.Reset()
	if err := p.Zones.ExportParent(p.Ctx, &b, "gbv.example", "urn.example."); err != nil {
		t.Fatal(err)
	}
	const want = `nbn.urn.example. 3600 IN NAPTR 99 10 "" "" "!^urn:nbn:de:gbv[:/].*$!gbv.example.!i" .`
	if !strings.Contains(b.String(), want) || strings.Contains(b.String(), "register@") {
		t.Errorf("no %s in\n%s", want, b.String())
	}
}

func TestWhere(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Register("urn:paradisec:a:b:c", "http://example.org/")
	for id, want := range map[string]string{
		"urn:paradisec:a:b:c": "c.b.a.paradisec.example.  3",
		"urn:paradisec:a:b:d": "d.b.a.paradisec.example. it is not registered, or not public 0",
		"urn:paradisec:a:b":   " it has 2 parts, and names in paradisec.example. have 3 0",
		"urn:other:a":         " its namespace is not published; 'stele zone add' does that 0",
	} {
		place, err := p.Zones.Where(p.Ctx, p.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		reason := ""
		if place.Reason != nil {
			reason = place.Reason.Error()
		}
		if got := fmt.Sprintf("%s %s %d", place.Owner, reason, len(place.Records)); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

// writingWriter commits something before the first byte is written.
type writingWriter struct {
	bytes.Buffer
	commit func()
}

func (w *writingWriter) Write(b []byte) (int, error) {
	if commit := w.commit; commit != nil {
		w.commit = nil
		commit()
	}
	return w.Buffer.Write(b)
}

// TestExportWhileWriting checks that a file has the zone at the moment of its serial,
// whatever is committed while it is written.
func TestExportWhileWriting(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	r := &stele.Record{ID: p.ID("ark:12345/x1"), Aliases: []stele.ID{p.ID("urn:paradisec:x:y:z")}, Targets: []stele.Target{publishtest.Target("http://example.org/before")}}
	if _, err := p.Registrar.Register(p.Ctx, r); err != nil {
		t.Fatal(err)
	}
	p.SignZones(zonesign.Transfer, "paradisec.example.")
	n := 0
	for name, export := range map[string]func(context.Context, io.Writer, string, func(int)) error{"unsigned": p.Zones.Export, "signed": p.Zones.ExportSigned} {
		var before bytes.Buffer
		if err := export(p.Ctx, &before, "paradisec.example.", nil); err != nil {
			t.Fatal(err)
		}
		during := &writingWriter{commit: func() {
			n++
			p.Register(fmt.Sprintf("urn:paradisec:zz:new:n%d", n), "N2L http://example.org/new")
			_, err := p.Registrar.Update(p.Ctx, r.ID, 0, func(r *stele.Record) error {
				r.Targets = []stele.Target{publishtest.Target(fmt.Sprintf("N2C http://example.org/after%d", n))}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}}
		if err := export(p.Ctx, during, "paradisec.example.", nil); err != nil {
			t.Fatal(err)
		}
		if before.String() != during.String() {
			t.Errorf("%s: the file is not that of its serial:\n%s\nbefore\n%s", name, during.String(), before.String())
		}
		var after bytes.Buffer
		if err := export(p.Ctx, &after, "paradisec.example.", nil); err != nil || !strings.Contains(after.String(), "example.org/new") {
			t.Errorf("%s: what was committed is not in the next file: %v", name, err)
		}
	}
}
