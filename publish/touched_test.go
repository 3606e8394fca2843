package publish_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonesign"
)

var soaSerial = regexp.MustCompile(`(?m)^(@ \d+ IN SOA \S+ \S+) \d+ `)

// contents returns each zone as a file without its serial, and the serials.
func contents(p *publishtest.Registry) (zones map[string]string, serials map[string]uint32) {
	p.T.Helper()
	list, err := p.Zones.List(p.Ctx)
	if err != nil {
		p.T.Fatal(err)
	}
	zones, serials = make(map[string]string), make(map[string]uint32)
	for _, z := range list {
		zones[z.Zone] = soaSerial.ReplaceAllString(p.Export(z.Zone), "$1 ")
		one, err := p.Zones.Find(p.Ctx, z.Zone)
		if err != nil {
			p.T.Fatal(err)
		}
		soa, _ := one.Apex()
		serials[z.Zone] = soa.Serial
	}
	return zones, serials
}

// touchModel is a random registry of a few namespaces, zones and records.
type touchModel struct {
	*publishtest.Registry
	ever map[string]uint32 // the highest serial of each zone, whether it is there or not
}

var (
	modelSpaces = []string{"urn:", "urn:abc", "urn:abc:x", "urn:abc:x:y", "urn:def", "ark:", "ark:12345", "ark:12345/x5", "urn:lsid:example.org"}
	modelZones  = []string{"", "example.", "a.example.", "b.a.example.", "c.example.", "d.example.", "net."}
	modelNames  = []string{"urn:abc:1", "urn:abc:x:1", "urn:abc:x:2", "urn:abc:x:y:1", "urn:def:1", "ark:12345/1", "ark:12345/x51", "ark:12345/x5/2", "urn:lsid:example.org:n:1"}
)

// change makes one change of the registry, whatever may come of it.
func (m *touchModel) change(t *rapid.T) string {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1, 2, 3, 4:
		return m.changeRecord(t)
	}
	return m.changeSpace(t)
}

func (m *touchModel) changeRecord(t *rapid.T) string {
	id := m.ID(rapid.SampledFrom(modelNames).Draw(t, "name"))
	alias := m.ID(rapid.SampledFrom(modelNames).Draw(t, "alias"))
	url := fmt.Sprintf("https://example.org/%d", rapid.IntRange(0, 3).Draw(t, "url"))
	what := rapid.IntRange(0, 4).Draw(t, "what")
	_, err := m.Registrar.Register(m.Ctx, &stele.Record{ID: id, Targets: []stele.Target{publishtest.Target("N2L " + url)}})
	if err == nil {
		return "register " + id.String()
	}
	switch what {
	case 0:
		_, err = m.Registrar.AddAlias(m.Ctx, id, 0, alias)
		return fmt.Sprint("alias ", id, " ", alias, " ", err)
	case 1:
		_, err = m.Registrar.Withdraw(m.Ctx, id, 0, "gone", stele.ID{})
		return fmt.Sprint("withdraw ", id, " ", err)
	case 2:
		_, err = m.Registrar.Reinstate(m.Ctx, id, 0)
		return fmt.Sprint("reinstate ", id, " ", err)
	}
	_, err = m.Registrar.Update(m.Ctx, id, 0, func(r *stele.Record) error {
		r.Targets = []stele.Target{publishtest.Target("N2L " + url)}
		return nil
	})
	return fmt.Sprint("update ", id, " ", url, " ", err)
}

func (m *touchModel) changeSpace(t *rapid.T) string {
	text := rapid.SampledFrom(modelSpaces).Draw(t, "namespace")
	zone := rapid.SampledFrom(modelZones).Draw(t, "zone")
	what := rapid.IntRange(0, 9).Draw(t, "setting")
	number := rapid.IntRange(1, 3).Draw(t, "number")
	set := func(ns *stele.Namespace) {
		p := &ns.Publication
		switch what {
		case 0:
			ns.Title = fmt.Sprint("title ", number)
		case 1:
			ns.TTL = uint32(number * 100)
		case 2:
			ns.Delegate = []string{"", "https://a.example/{id}", "https://b.example/{id}"}[number-1]
			*p = stele.Publication{}
		case 3:
			if p.Zone != "" {
				p.Servers = []stele.NameServer{{Name: "ns." + p.Zone, Addresses: []string{fmt.Sprint("192.0.2.", number)}}}
			}
		case 4:
			if p.Zone != "" {
				p.Resolver = fmt.Sprintf("r%d.example.org", number)
			}
		case 8:
			if p.Zone != "" {
				p.Catalog = []string{"", "one.catalogs.", "two.catalogs."}[number-1]
			}
		case 9:
			if p.Zone != "" {
				p.Records = []stele.ZoneRecord{{Name: "own." + p.Zone, TTL: uint32(number), Type: "A", Data: "192.0.2.9"}}
			}
		case 5:
			ns.Persistence = stele.Persistence{Level: "permanent", Statement: fmt.Sprint(number)}
		default:
			ns.Delegate = ""
			*p = stele.Publication{Zone: zone, Layout: stele.LayoutNames, Separator: ":", Parts: number, Resolver: "id.example.org",
				Servers: []stele.NameServer{{Name: "ns.example.net."}}}
			switch {
			case zone == "":
				*p = stele.Publication{}
			case ns.Prefix == "":
				*p = stele.Publication{Zone: zone, Layout: stele.LayoutRoot, Servers: p.Servers}
			case what == 6 && number == 3:
				p.Layout, p.Separator, p.Parts = stele.LayoutRules, "", 0
			}
		}
	}
	key, err := m.Registrar.ParsePrefix(text)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Registrar.SetNamespace(m.Ctx, key, 0, func(ns *stele.Namespace) error { set(ns); return nil })
	if stele.KindOf(err) == stele.NotFound {
		ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix}
		set(ns)
		_, err = m.Registrar.AddNamespace(m.Ctx, ns)
		return fmt.Sprint("add ", text, " setting ", what, " ", zone, " ", number, " ", err)
	}
	return fmt.Sprint("namespace ", text, " setting ", what, " ", zone, " ", number, " ", err)
}

// TestSerialsFollowContents checks that every change that alters what is compiled into a
// zone raises its serial, and that no serial is used again; a record that is not in a zone
// leaves its serial alone.
func TestSerialsFollowContents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &touchModel{Registry: publishtest.New(t), ever: make(map[string]uint32)}
		zones, serials := contents(m.Registry)
		var done []string
		for range rapid.IntRange(1, 20).Draw(rt, "changes") {
			what := m.change(rt)
			done = append(done, what)
			after, now := contents(m.Registry)
			for _, zone := range slices.Sorted(maps.Keys(after)) {
				was, before := zones[zone]
				switch {
				case before && after[zone] != was && !stele.SerialAfter(now[zone], serials[zone]):
					rt.Fatalf("%s: the zone %s has other contents, and the serial %d as before\n%s\n--- after\n%s\n--- by\n%s",
						what, zone, now[zone], was, after[zone], strings.Join(done, "\n"))
				case !before && !stele.SerialAfter(now[zone], m.ever[zone]):
					rt.Fatalf("%s: the zone %s is back, with a serial that it had, %d", what, zone, now[zone])
				case before && after[zone] == was && strings.HasPrefix(what, "namespace") && strings.Contains(what, " setting 0 ") && now[zone] != serials[zone]:
					rt.Fatalf("%s: a title is not in the DNS, and %s has serial %d, not %d", what, zone, now[zone], serials[zone])
				}
				m.ever[zone] = now[zone]
			}
			zones, serials = after, now
		}
	})
}

// TestQuietZoneKeepsItsSerial checks that a zone in which nothing changes keeps its serial,
// whatever changes elsewhere, and that a change of its keys raises it.
func TestQuietZoneKeepsItsSerial(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:quiet", "quiet.example.", ":", 2)
	p.Publish("urn:busy", "busy.example.", ":", 2)
	p.Publish("urn:outer", "example.", ":", 2)
	p.Register("urn:quiet:a:b", "https://example.org/1")
	_, before := contents(p)
	for i := range 20 {
		p.Register(fmt.Sprintf("urn:busy:a:%d", i), "https://example.org/1")
		p.Register(fmt.Sprintf("urn:elsewhere:a:%d", i), "https://example.org/1")
	}
	p.Namespace("urn:busy", func(ns *stele.Namespace) { ns.TTL = 7 })
	_, after := contents(p)
	if after["quiet.example."] != before["quiet.example."] {
		t.Errorf("nothing changed in it, and its serial was %d and is %d", before["quiet.example."], after["quiet.example."])
	}
	if after["busy.example."] <= before["busy.example."] {
		t.Errorf("much changed in it, and its serial was %d and is %d", before["busy.example."], after["busy.example."])
	}
	p.SignZones(zonesign.Transfer, "quiet.example.")
	_, signed := contents(p)
	if signed["quiet.example."] <= after["quiet.example."] || signed["example."] <= after["example."] || signed["busy.example."] != after["busy.example."] {
		t.Errorf("after one was signed the serials are %v, and were %v", signed, after)
	}
}
