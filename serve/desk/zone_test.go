package desk

import (
	"bytes"
	"context"
	"crypto/rand"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonekey"
)

// siteZones is the zones of a site. What other servers say is what the test sets.
type siteZones struct {
	*site
	found       *client.Delegation
	err         error
	ds          []string
	secondaries []stele.SecondaryAnswer
}

func (z *siteZones) zones() *publish.Zones {
	return publish.NewZones(publish.ZonesOptions{Store: z.store, Schemes: z.names, Now: func() time.Time { return z.now }, Secrets: z.secrets})
}

func (z *siteZones) Survey(ctx context.Context, key stele.NamespaceKey, separator string) (string, int, error) {
	zones := z.zones()
	defer zones.Close()
	return zones.Survey(ctx, key, separator)
}

func (z *siteZones) Judge(ctx context.Context, ns *stele.Namespace) error {
	zones := z.zones()
	defer zones.Close()
	return zones.Judge(ctx, ns)
}

func (z *siteZones) Preview(ctx context.Context, ns *stele.Namespace, rec *stele.Record) (*publish.Previewed, error) {
	zones := z.zones()
	defer zones.Close()
	return zones.Preview(ctx, ns, rec)
}

func (z *siteZones) Parent(ctx context.Context, key stele.NamespaceKey) (string, error) {
	zones := z.zones()
	defer zones.Close()
	zone, err := zones.Of(ctx, key)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = zones.ExportParent(ctx, &b, zone, "")
	return b.String(), err
}

func (z *siteZones) manage(ctx context.Context, key stele.NamespaceKey, do func(m *zonekey.Manager, zone string) (*zonekey.Status, error)) (*zonekey.Status, error) {
	zones := z.zones()
	defer zones.Close()
	zone, err := zones.Of(ctx, key)
	if err != nil {
		return nil, err
	}
	return do(&zonekey.Manager{Store: z.r, Zones: zones, Now: func() time.Time { return z.now }, Random: rand.Reader}, zone)
}

func (z *siteZones) ZoneKeys(ctx context.Context, key stele.NamespaceKey, parent time.Duration) (*zonekey.Status, error) {
	return z.manage(ctx, key, func(m *zonekey.Manager, zone string) (*zonekey.Status, error) { return m.Status(ctx, zone, parent) })
}

func (z *siteZones) ChangeZoneKeys(ctx context.Context, key stele.NamespaceKey, change zonekey.Change) (*zonekey.Status, error) {
	return z.manage(ctx, key, func(m *zonekey.Manager, zone string) (*zonekey.Status, error) { return m.Change(ctx, zone, change) })
}

func (z *siteZones) Delegation(context.Context, string, []stele.NameServer) (*client.Delegation, error) {
	return z.found, z.err
}

func (z *siteZones) DS(context.Context, string) (string, []string, error) {
	return "example.", z.ds, nil
}

func (z *siteZones) tsig() *zonekey.TSIGManager {
	return &zonekey.TSIGManager{Store: z.r, Now: func() time.Time { return z.now }, Random: rand.Reader}
}

func (z *siteZones) TSIGKeys(ctx context.Context) ([]zonekey.TSIGKey, error) {
	return z.tsig().List(ctx)
}

func (z *siteZones) AddTSIGKey(ctx context.Context, name, algorithm string) (*zonekey.TSIGKey, error) {
	return z.tsig().Add(ctx, name, algorithm)
}

func (z *siteZones) RetireTSIGKey(ctx context.Context, name string) (*zonekey.TSIGKey, error) {
	return z.tsig().Retire(ctx, name)
}

func (z *siteZones) Secondaries(context.Context, string) ([]stele.SecondaryAnswer, error) {
	return z.secondaries, nil
}

// newZonedSite returns a site with zones.
func newZonedSite(t *testing.T) (*site, *siteZones) {
	z := &siteZones{}
	z.site = newSite(t, func(o *Options) { o.Zones = z })
	return z.site, z
}

// zoneValues returns a form that publishes the namespace of the site.
func zoneValues(version string, more ...string) url.Values {
	form := url.Values{"do": {"save"}, "namespace": {"ark:12345/x5"}, "version": {version}, "zone": {"maps.example"}, "layout": {"names"},
		"servers": {"ns1.maps.example 192.0.2.1\nns2.example.net"}, "mailbox": {"hostmaster@example.org"}, "resolver": {"id.example.org"}, "parts": {"1"}}
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return form
}

const zonePage = "/.desk/zone?namespace=ark:12345/x5"

func TestPublish(t *testing.T) {
	s, z := newZonedSite(t)
	b := s.as("admin")
	b.make(url.Values{"own": {"ark:12345/x5a"}, "target.0.url": {"https://example.org/a"}})
	must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/e5"}))(t)
	b.post("/.desk/zone", zoneValues("1", "namespace", "ark:12345/e5", "parts", "", "mailbox", "x")).has(422, `id="parts-problem"`, `id="mailbox-problem"`, "no name is registered there yet")
	b.get("/.desk/namespace?namespace=ark:12345/x5").has(200, "It is not published in the DNS.", "Publish it in the DNS")
	b.get(zonePage).has(200, "Publish it", "you write no patterns")

	// Looking shows the owner name and the rule, and publishes nothing.
	b.post("/.desk/zone", zoneValues("1", "do", "look")).has(200, "a.maps.example.", "NAPTR", "https://example.org/a")
	b.get(zonePage).has(200, "Publish it")

	// All problems are beside their fields.
	p := b.post("/.desk/zone", zoneValues("1", "zone", "not a zone", "servers", "ns1.x nonsense", "mailbox", "x", "secondaries", "nonsense", "separator", "%")).has(422)
	for _, field := range []string{"zone", "servers", "mailbox", "secondaries", "separator"} {
		if !strings.Contains(p.text, `id="`+field+`-problem"`) {
			t.Errorf("nothing is said about %s\n%s", field, p.main())
		}
	}
	b.post("/.desk/zone", zoneValues("1", "zone", "")).has(422, `id="zone-problem"`)
	s.as("admin").post("/.desk/zone", zoneValues("1", "namespace", "ark:12345/y5")).has(404)
	b.post("/.desk/zone", zoneValues("1", "parts", "many")).has(422, `id="parts-problem"`)

	b.follow(b.post("/.desk/zone", zoneValues("1", "parts", ""))).has(200, "Saved. The steps below", "The zone is made", "There are 2.", "to do", "Not checked yet.",
		"Please delegate maps.example.", "maps.example. 3600 IN NS ns1.maps.example.", "a.maps.example.")
	ns := must(s.r.Namespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}))(t)
	if p := ns.Publication; p.Zone != "maps.example." || p.Parts != 1 || len(p.Servers) != 2 || len(ns.Grants) != 2 {
		t.Errorf("got %+v", ns)
	}
	b.post("/.desk/zone", zoneValues("1")).has(409, "admin saved version 2 meanwhile", `name="version" value="2"`)

	// Sign it: the DS records are shown in one line, and field by field.
	b.follow(b.post("/.desk/zone/keys", url.Values{"namespace": {"ark:12345/x5"}, "do": {"sign"}, "mode": {"online"}})).has(200, "In the mode online", "maps.example. 3600 IN DS ", "Digest type", "and publish its DS record")

	server := client.ZoneServer{Name: "ns1.maps.example.", At: netip.MustParseAddrPort("192.0.2.1:53"), Serial: 3}
	names := []string{"ns1.maps.example.", "ns2.example.net."}
	broken := server
	broken.Err = stele.Messagef("dns.server-without-address", "it has no address")
	late := server
	late.Late = true
	for _, tt := range []struct {
		what  string
		found *client.Delegation
		err   error
		want  []string
	}{
		{"no server can be asked", nil, stele.Messagef("dns.server-missing", "there is no name server to ask"), []string{"It could not be found out: there is no name server to ask"}},
		{"not delegated", &client.Delegation{Parent: "example."}, nil, []string{"example. knows nothing of the zone"}},
		{"other servers", &client.Delegation{Parent: "example.", Names: names[:1], Servers: []client.ZoneServer{server}}, nil, []string{"names other servers: ns1.maps.example."}},
		{"a silent server", &client.Delegation{Parent: "example.", Names: names, Servers: []client.ZoneServer{broken}}, nil, []string{"ns1.maps.example. (192.0.2.1:53) does not answer for the zone: it has no address"}},
		{"a late server", &client.Delegation{Parent: "example.", Names: names, Servers: []client.ZoneServer{late}}, nil, []string{"has an older state"}},
		{"no DS", &client.Delegation{Parent: "example.", Names: names, Servers: []client.ZoneServer{server}, Trust: client.ZoneTrust{Keys: true}}, nil, []string{"example. has no DS records"}},
		{"wrong DS", &client.Delegation{Parent: "example.", Names: names, Servers: []client.ZoneServer{server}, Trust: client.ZoneTrust{Keys: true, DS: []string{"1 13 2 AA"}}}, nil, []string{"of none of the zone"}},
		{"other DS", &client.Delegation{Parent: "example.", Names: names, Servers: []client.ZoneServer{server}, Trust: client.ZoneTrust{Keys: true, Fits: true, DS: []string{"1 13 2 AA"}}}, nil, []string{"other DS records than"}},
		{"all well", &client.Delegation{Parent: "example.", Names: names, Servers: []client.ZoneServer{server, server}, Trust: client.ZoneTrust{Keys: true, Fits: true, DS: []string{"1 13 2 AA"}, Wanted: []string{"1 13 2 AA"}}}, nil,
			[]string{"example. names the same servers", "All 2 answer over UDP and TCP", "example. has the DS records."}},
	} {
		z.found, z.err = tt.found, tt.err
		b.follow(b.post("/.desk/zone/check", url.Values{"namespace": {"ark:12345/x5"}})).has(200, append(tt.want, "Every step was checked.")...)
		switch tt.what {
		case "not delegated":
			b.get("/.desk/").has(200, "The zone above knows nothing of maps.example.")
		case "no DS":
			b.get("/.desk/").has(200, "The zone above has no DS records of maps.example.")
		}
	}
	b.get("/.desk/namespace?namespace=ark:12345/x5").has(200, "It is published in", "maps.example.", "signed")

	// Secondaries.
	z.secondaries = []stele.SecondaryAnswer{{Zone: "maps.example.", At: "192.0.2.53:53", State: stele.SecondaryBehind}}
	b.post("/.desk/zone", zoneValues("4", "secondaries", "192.0.2.53 - 192.0.2.53")).has(303)
	b.get(zonePage).has(200, "get it without signatures")
	b.follow(b.post("/.desk/zone/check", url.Values{"namespace": {"ark:12345/x5"}})).has(200, "192.0.2.53:53: it is behind")

	// Other servers are not asked without bound.
	for n := range 2 * tryBurst {
		if p := b.post("/.desk/zone/check", url.Values{"namespace": {"ark:12345/x5"}}); p.StatusCode != http.StatusSeeOther {
			p.has(429, "too many requests in a short time")
			break
		} else if n == 2*tryBurst-1 {
			t.Error("there is no limit")
		}
	}
}

func TestRollKeys(t *testing.T) {
	s, z := newZonedSite(t)
	b := s.as("admin")
	const keys = "/.desk/zone/keys?namespace=ark:12345/x5"
	do := func(values ...string) page {
		t.Helper()
		form := url.Values{"namespace": {"ark:12345/x5"}}
		for i := 0; i+1 < len(values); i += 2 {
			form.Set(values[i], values[i+1])
		}
		return b.post("/.desk/zone/keys", form)
	}
	do("do", "sign", "mode", "online").has(404)
	b.post("/.desk/zone", zoneValues("1")).has(303)
	b.get(keys).has(200, "The zone has no signatures.", "Sign the zone")
	do("do", "sign", "mode", "nonsense").has(422, "is not a mode")
	do("do", "sign", "mode", "online").has(303)
	b.get(keys).has(200, "everything (csk)", "active: it signs", "Replace a key", "End the signing")
	b.follow(do("do", "roll", "role", "csk")).has(200, "The keys have changed.", "published, so that resolvers learn it", "becomes active", "It can be done from this time on:")
	do("do", "next", "role", "csk").has(422, "until then others may not know")
	s.now = s.now.Add(30 * time.Hour)
	b = s.as("admin") // the session has ended
	b.get("/.desk/").has(200, "The next step of the keys of maps.example. can be done.")
	b.get(keys).has(200, "It can be done now.", "The server asks it.")
	do("do", "next", "role", "csk").has(422, "when its DS record is at the parent")
	do("do", "next", "role", "csk", "said", "yes").has(422, "does not have the DS record")
	for _, e := range must(z.ZoneKeys(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0))(t).DS {
		_, data, _ := strings.Cut(e.Record, " IN DS ")
		z.ds = append(z.ds, strings.ToUpper(data))
	}
	b.follow(do("do", "next", "role", "csk", "said", "yes")).has(200, "retired: it stays", "is removed.")
	s.now = s.now.Add(72 * time.Hour)
	b = s.as("admin")
	b.follow(do("do", "next", "role", "csk")).has(200, "removed, and its private part is erased", "Replace a key")
	b.follow(do("do", "unsign")).has(200, "The signing is about to end")
	do("do", "unsign", "said", "yes").has(422, "still has the DS record")
	z.ds = nil
	b.follow(do("do", "unsign", "said", "yes")).has(200, "It can go without signatures from this time on:")
	// A key is not changed long after the proof.
	s.now = s.now.Add(time.Hour)
	do("do", "sign", "mode", "online").has(403, "Prove")
}

// TestZoneRights walks the forms of zones with every role. An owner publishes only in a zone that an
// administrator granted.
func TestZoneRights(t *testing.T) {
	for user, may := range map[string]bool{"admin": true, "olga": true, "ed": false, "ruth": false, "sam": false} {
		s, z := newZonedSite(t)
		z.found = &client.Delegation{Parent: "example."}
		if user != "admin" {
			s.as(user).post("/.desk/zone", zoneValues("1"))
			if ns := must(s.r.Namespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}))(t); ns.Publication.Zone != "" {
				t.Errorf("%s took a zone that was not granted", user)
			}
		}
		s.as("admin").post("/.desk/zone", zoneValues("1")).has(303)
		b := s.as(user)
		for _, step := range []struct {
			path string
			form url.Values
		}{
			{"/.desk/zone", zoneValues("2", "mailbox", "other@example.org")},
			{"/.desk/zone/check", url.Values{"namespace": {"ark:12345/x5"}}},
			{"/.desk/zone/keys", url.Values{"namespace": {"ark:12345/x5"}, "do": {"sign"}, "mode": {"online"}}},
			{"/.desk/zone/keys", url.Values{"namespace": {"ark:12345/x5"}, "do": {"roll"}, "role": {"csk"}}},
		} {
			p := b.post(step.path, step.form)
			if done := p.StatusCode == http.StatusSeeOther && strings.Contains(p.Header.Get("Location"), "done="); done != may {
				t.Errorf("%s, %s: %s %s\n%s", user, step.path, p.Status, p.Header.Get("Location"), p.main())
			}
		}
		if user == "ed" {
			p := b.get(zonePage).has(200, "The zone is made")
			if strings.Contains(p.main(), "<form") {
				t.Error("an editor is offered to change the zone")
			}
			b.get("/.desk/zone/keys?namespace=ark:12345/x5").has(403)
		}
	}
	newSite(t).as("admin").get(zonePage).has(404)
}
