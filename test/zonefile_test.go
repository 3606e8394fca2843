package test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// publisher is a registry in memory with zones.
type publisher struct {
	t         *testing.T
	ctx       context.Context
	schemes   *vocabulary.Schemes
	registrar *registrar.Registrar
	zones     *publish.Zones
}

func newPublisher(t *testing.T) *publisher {
	t.Helper()
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }
	store := mem.New(now)
	zones := publish.NewZones(publish.ZonesOptions{Store: store, Schemes: schemes, Now: now})
	t.Cleanup(zones.Close)
	return &publisher{
		t: t, ctx: auth.With(t.Context(), auth.Local()), schemes: schemes, zones: zones,
		registrar: registrar.New(store, schemes, registrar.Options{Now: now, OnCommit: zones.Invalidate, OnNamespaces: zones.InvalidateNamespaces}),
	}
}

// publish sets how a namespace is published.
func (p *publisher) publish(prefix string, publication vocabulary.Publication, more func(*vocabulary.Namespace)) {
	p.t.Helper()
	key, err := p.registrar.ParsePrefix(prefix)
	if err != nil {
		p.t.Fatal(err)
	}
	ns := &vocabulary.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Publication: publication}
	if more != nil {
		more(ns)
	}
	if key.Prefix == "" {
		_, err = p.registrar.SetNamespace(p.ctx, key, 0, func(root *vocabulary.Namespace) error {
			root.Publication = publication
			return nil
		})
	} else {
		_, err = p.registrar.AddNamespace(p.ctx, ns)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *publisher) register(id string, persistence vocabulary.Persistence, urls ...string) {
	p.t.Helper()
	name, err := p.schemes.Parse(id)
	if err != nil {
		p.t.Fatal(err)
	}
	r := &vocabulary.Record{ID: name, Persistence: persistence}
	for i, url := range urls {
		r.Targets = append(r.Targets, vocabulary.Target{Service: vocabulary.N2L, URL: url, Order: 100, Preference: uint16(i), Type: "text/html"})
	}
	if _, err := p.registrar.Register(p.ctx, r); err != nil {
		p.t.Fatal(err)
	}
}

// hostileZones publishes hostile records, and returns the zones.
func hostileZones(t *testing.T) (*publisher, []string) {
	p := newPublisher(t)
	servers := func(zone string) []vocabulary.NameServer {
		return []vocabulary.NameServer{{Name: "ns1." + zone, Addresses: []string{"192.0.2.1", "2001:db8::1"}}, {Name: "ns2." + zone, Addresses: []string{"192.0.2.2"}}}
	}
	names := func(zone, sep string, parts int) vocabulary.Publication {
		return vocabulary.Publication{Zone: zone, Layout: vocabulary.LayoutNames, Separator: sep, Parts: parts, Servers: servers(zone),
			Mailbox: `o'hara.x+y@example.org`, Resolver: "ns1." + zone[:len(zone)-1] + ":8080"}
	}
	long := strings.Repeat("longlabel-", 6) + "z."
	p.publish("urn:", vocabulary.Publication{Zone: "urn.example.", Layout: vocabulary.LayoutRoot, Servers: servers("urn.example.")}, nil)
	p.publish("urn:paradisec", names("paradisec.example.", ":", 3), nil)
	p.publish("urn:example", names("case.example.", ":", 1), nil)
	p.publish("urn:x-1", names("hyphen.example.", "-", 2), nil)
	p.publish("urn:x-2", names(long+long+"example.", ".", 2), nil)
	p.publish("urn:x-3", vocabulary.Publication{Zone: "rules.example.", Layout: vocabulary.LayoutRules, Servers: servers("rules.example."), Resolver: "ns1.rules.example"}, nil)
	p.publish("urn:x-4", vocabulary.Publication{Elsewhere: []vocabulary.Discovery{{Kind: vocabulary.DiscoverNAPTR, At: "a.example.net."}, {Kind: vocabulary.DiscoverAAAA, At: "b.example.net."}, {Kind: vocabulary.DiscoverURL, At: `http://example.net/!#'$&;=?`}}}, nil)
	p.publish("urn:x-5", vocabulary.Publication{}, func(ns *vocabulary.Namespace) { ns.Delegate = "https://example.net/{rest}?x=!;{id}" })
	p.publish("urn:paradisec:sub", names("sub.paradisec.example.", ":", 2), nil)

	words := vocabulary.Persistence{Level: vocabulary.Permanent, Until: "2100-01-01", Statement: `He said "for ever" \ (more; or less) $TTL @ 永久 ` + strings.Repeat("é", 400)}
	url := "http://example.org/!~#,;$&'()*+=:@[]%22%5C?"
	p.register("urn:paradisec:AB1:001:A", words, url, "https://example.org/"+strings.Repeat("x", 230), "ftp://example.org/"+strings.Repeat("y", 282))
	p.register("urn:paradisec:ab1:001:a.b.c", vocabulary.Persistence{}, "http://example.org/"+strings.Repeat("z", 1981))
	p.register("urn:paradisec:-:_:--", vocabulary.Persistence{}, url)
	p.register("urn:paradisec:sub:1:2", words, url)
	for _, id := range []string{"Abc", "aBC", "ABC", "abc", "x%C3%A9", "a:b"} {
		p.register("urn:example:"+id, words, url, "http://example.org/"+id)
	}
	p.register("urn:x-1:a-b", words, url)
	p.register("urn:x-2:a.b", words, url)
	p.register("urn:x-3:a/b.c$(d)*", words, url)
	id, err := p.schemes.Parse("urn:x-1:a-b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.registrar.Withdraw(p.ctx, id, 0, `"; $INCLUDE /etc/passwd`+" \\", vocabulary.ID{}); err != nil {
		t.Fatal(err)
	}
	list, err := p.zones.List(p.ctx)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, z := range list {
		all = append(all, z.Zone)
	}
	return p, all
}

// Name servers load every exported zone, and read it as we mean it.
func TestZoneFiles(t *testing.T) {
	p, zones := hostileZones(t)
	folder := t.TempDir()
	if len(zones) != 7 {
		t.Errorf("%d zones: %v", len(zones), zones)
	}
	for _, zone := range zones {
		var b bytes.Buffer
		if err := p.zones.Export(p.ctx, &b, zone, nil); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, zone+"zone")
		if err := os.WriteFile(file, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		mustRun(t, file, "named-checkzone", "-i", "local", zone, file)
		mustRun(t, file, "kzonecheck", "-o", zone, file)
		mustRun(t, file, "nsd-checkzone", zone, file)
		compiled := filepath.Join(folder, "compiled")
		mustRun(t, file, "named-compilezone", "-i", "local", "-o", compiled, zone, file)
		text, err := os.ReadFile(compiled)
		if err != nil {
			t.Fatal(err)
		}
		want, got := wireRecords(t, b.Bytes(), zone), wireRecords(t, text, zone)
		if !slices.Equal(want, got) {
			t.Errorf("%s: BIND reads\n%s\nof\n%s", zone, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if len(want) < 5 {
			t.Errorf("%s has %d records", zone, len(want))
		}
	}
}

// mustRun runs a program that must accept the file.
func mustRun(t *testing.T, file string, args ...string) {
	t.Helper()
	cmd := exec.Command(serverProgram(args[0]), args[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		text, _ := os.ReadFile(file)
		t.Errorf("%v: %v\n%s\nof\n%s", args, err, out, text)
	}
}

// wireRecords reads a zone file and returns its records in wire form, in order. URI
// records stay texts: the library reads none of more than 255 bytes.
func wireRecords(t *testing.T, text []byte, zone string) (list []string) {
	t.Helper()
	var rest bytes.Buffer
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if i := slices.Index(words, "URI"); i > 0 {
			list = append(list, strings.Join(words[i:], " "))
			continue
		}
		rest.WriteString(line)
	}
	parser := dns.NewZoneParser(&rest, zone, "")
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		buf := make([]byte, 4096)
		n, err := dns.PackRR(rr, buf, 0, nil, false)
		if err != nil {
			t.Errorf("%s: %v", rr, err)
		}
		list = append(list, fmt.Sprintf("%s %x", dns.TypeToString[rr.Header().Rrtype], buf[:n]))
	}
	if err := parser.Err(); err != nil {
		t.Error(err)
	}
	slices.Sort(list)
	return list
}
