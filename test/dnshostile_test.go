package test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/dnsd"
)

// serve answers for the registry in memory until the test ends.
func (p *publisher) serve() *nameServer {
	p.t.Helper()
	server := dnsd.New(dnsd.Options{Zones: p.zones, Now: time.Now, CacheBytes: 16 << 20})
	if err := server.Listen(p.ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(p.t)))); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := server.Shutdown(p.ctx); err != nil && p.ctx.Err() == nil {
			p.t.Error(err)
		}
	})
	at := server.Addr()
	return &nameServer{"Stele", at.String(), int(at.Port())}
}

// export writes zones into files that name servers' own checkers take.
func (p *publisher) export(zones ...string) (list []zoneFile) {
	p.t.Helper()
	folder := p.t.TempDir()
	for _, zone := range zones {
		z := zoneFile{zone, filepath.Join(folder, zone+"zone")}
		f, err := os.Create(z.file)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := p.zones.Export(p.ctx, f, zone, nil); err != nil {
			p.t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			p.t.Fatal(err)
		}
		checkZone(p.t, z)
		list = append(list, z)
	}
	return list
}

// trouble makes hostile records, always the same ones.
type trouble struct{ r *rand.Rand }

// text returns up to n characters of an alphabet.
func (x trouble) text(alphabet string, n int) string {
	letters := []rune(alphabet)
	list := make([]rune, 1+x.r.IntN(n))
	for i := range list {
		list[i] = letters[x.r.IntN(len(letters))]
	}
	return string(list)
}

// label returns a label of an owner name: bounds and bare hyphens among them.
func (x trouble) label() string {
	if x.r.IntN(8) == 0 {
		return []string{"-", "_", "--", "0", "_tcp", "in", "ttl", "soa", "naptr", "xn--a", "000000", "_-_"}[x.r.IntN(12)]
	}
	return x.text("abcxyzABCXYZ0123456789-_", 1+x.r.IntN(12))
}

// url returns a URL of any length that a record takes.
func (x trouble) url() string {
	protocol := []string{"http", "https", "ftp", "HTTPS"}[x.r.IntN(4)]
	host := []string{"example.org", "h_o-s.t.example:8080", "[2001:db8::1]:81", "192.0.2.1"}[x.r.IntN(4)]
	length := []int{10, 40, 150, 220, 260, 600, 1900}[min(x.r.IntN(14), 6)]
	text := x.text("abcXYZ019-._~:/?[]@!$&'()*+,;=", length)
	for _, mark := range []string{"%22", "%5C", "%5c1", "%00", "%C3%A9", "%25"} {
		if x.r.IntN(3) == 0 {
			text += mark + x.text("1!'$&", 3)
		}
	}
	if x.r.IntN(3) == 0 {
		text += "#" + x.text("!/?x", 5)
	}
	return protocol + "://" + host + "/" + text
}

func (x trouble) record(id vocabulary.ID) *vocabulary.Record {
	r := &vocabulary.Record{ID: id}
	for range 1 + x.r.IntN(3) {
		t := vocabulary.Target{
			Service:    []vocabulary.Service{"N2L", "N2L", "N2L", "N2C", "N2S", "N2P"}[x.r.IntN(6)],
			URL:        x.url(),
			Type:       []string{"", "text/html", "application/ld+json", "audio/x-wav"}[x.r.IntN(4)],
			Order:      []uint16{0, 1, 100, 65535}[x.r.IntN(4)],
			Preference: []uint16{0, 7, 65535}[x.r.IntN(3)],
			TTL:        []uint32{0, 1, 86400, vocabulary.MaxTTL}[x.r.IntN(4)],
		}
		r.Targets = append(r.Targets, t)
	}
	if x.r.IntN(2) == 0 {
		r.Persistence = vocabulary.Persistence{Level: vocabulary.Permanent, Until: "2100-01-01",
			Statement: x.text("ab \"\\;()$@#'!é永=.", []int{10, 260, 900}[x.r.IntN(3)])}
	}
	return r
}

// troubleZones publishes a thousand records in two zones, one of them of names whose
// case counts. It returns what to ask for.
func troubleZones(p *publisher) (zones []string, questions []question) {
	p.t.Helper()
	servers := func(zone string) []vocabulary.NameServer {
		return []vocabulary.NameServer{{Name: "ns1." + zone, Addresses: []string{"127.0.0.1"}}, {Name: "ns2.example.net."}}
	}
	for prefix, zone := range map[string]string{"urn:paradisec": "paradisec.example.", "urn:example": "case.example."} {
		p.publish(prefix, vocabulary.Publication{Zone: zone, Layout: vocabulary.LayoutNames, Separator: ":", Parts: 3,
			Servers: servers(zone), Mailbox: "host.master@example.net", Resolver: "ns1." + strings.TrimSuffix(zone, ".")}, nil)
		zones = append(zones, zone)
		questions = append(questions, question{zone, "SOA"}, question{zone, "NAPTR"})
	}
	slices.Sort(zones)
	x := trouble{rand.New(rand.NewPCG(7, 4))}
	var records []*vocabulary.Record
	known := make(map[vocabulary.ID]bool)
	for len(records) < 1000 {
		prefix := []string{"urn:paradisec", "urn:example"}[len(records)%2]
		last := x.label()
		for x.r.IntN(4) == 0 {
			last += "." + x.label()
		}
		id, err := p.schemes.Parse(fmt.Sprintf("%s:%s:%s:%s", prefix, x.label(), x.label(), last))
		if err != nil {
			p.t.Fatal(err)
		}
		if !known[id] {
			known[id] = true
			records = append(records, x.record(id))
		}
	}
	failures, err := p.registrar.Ingest(p.ctx, records, registrar.ImportOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for i, failure := range failures {
		if failure != nil {
			p.t.Fatalf("%s: %v", records[i].ID, failure)
		}
	}
	return zones, append(questions, p.questions(records)...)
}

// questions returns what to ask for about records.
func (p *publisher) questions(records []*vocabulary.Record) (list []question) {
	p.t.Helper()
	owners := make(map[string]bool)
	for _, r := range records {
		place, err := p.zones.Where(p.ctx, r.ID)
		if err != nil {
			p.t.Fatal(err)
		}
		if place.Owner == "" || owners[place.Owner] {
			continue // it does not fit, or differs in case only
		}
		owners[place.Owner] = true
		for _, kind := range []string{"NAPTR", "URI", "TXT"} {
			if slices.ContainsFunc(place.Records, func(e publish.Entry) bool { return strings.Contains(e.Text, " IN "+kind+" ") }) {
				list = append(list, question{place.Owner, kind})
			}
		}
	}
	return list
}

// Stock name servers read a thousand records with hostile names, URLs and statements just
// as we answer ourselves.
func TestDNSTrouble(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	zones, questions := troubleZones(p)
	if len(questions) < 2000 {
		t.Errorf("there are only %d questions", len(questions))
	}
	files := p.export(zones...)
	want := askDig(t, p.serve(), questions)
	found := 0
	for _, r := range want {
		if r.status != "NOERROR" || !r.aa || len(r.records) == 0 {
			t.Errorf("this is no answer: %v", r)
		}
		found += len(r.records)
	}
	if found < 4000 {
		t.Errorf("there are only %d records", found)
	}
	for _, stock := range stockServers() {
		t.Run(stock.name, func(t *testing.T) {
			t.Parallel()
			server := stock.start(t, files...)
			sameReplies(t, "dig", askDig(t, server, questions), want)
		})
	}
}
