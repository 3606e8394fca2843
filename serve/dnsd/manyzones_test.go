package dnsd

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// countedScans is a store that counts how often all records of a scheme are read, and
// fails once in the middle of that.
type countedScans struct {
	stele.Store
	whole  atomic.Int64 // readings that began with the first record
	broken atomic.Bool
}

func (s *countedScans) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	if prefix == "" && after == "" {
		s.whole.Add(1)
	}
	scan := s.Store.Scan(ctx, scheme, prefix, after)
	if prefix != "" || s.broken.Load() {
		return scan
	}
	return func(yield func(*stele.Record, error) bool) {
		n := 0
		for r, err := range scan {
			if n++; n > publish.ReadAtOnce/2 && s.broken.CompareAndSwap(false, true) {
				yield(nil, &stele.Error{Op: "scan", Kind: stele.Unavailable, Err: fmt.Errorf("the database restarts")})
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// zoneNames is how many names each zone has in TestManyZonesStart: a few, or as many as
// `make soak` asks for.
func zoneNames(t *testing.T) int {
	t.Helper()
	text := os.Getenv("STELE_ZONE_NAMES")
	if text == "" {
		return 60
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// manyZones is a registry of 20 zones in which case counts, of one to three parts and of
// every mode of signing. The first has more names than are read at once.
type manyZones struct {
	*publishtest.Registry
	zones []string
	modes map[string]zonesign.Mode
	names []string // owner names that exist
	alias []string // owner names of aliases
}

func newManyZones(t *testing.T) *manyZones {
	m := &manyZones{Registry: publishtest.New(t), modes: make(map[string]zonesign.Mode)}
	var records []*stele.Record
	for i := range 20 {
		zone, parts := fmt.Sprintf("z%02d.example.", i), i%3+1
		m.Publish(fmt.Sprintf("urn:example:z%02d", i), zone, ":", parts)
		m.zones, m.modes[zone] = append(m.zones, zone), []zonesign.Mode{zonesign.Transfer, zonesign.Online, zonesign.Unsigned}[i/2%3]
		count := zoneNames(t)
		if i == 0 {
			count = max(count, publish.ReadAtOnce+200)
		}
		for n := range count {
			records = append(records, m.record(i, n, parts))
		}
	}
	m.Namespace("urn:", func(ns *stele.Namespace) {
		ns.Publication = stele.Publication{Zone: "urn.example.", Layout: stele.LayoutRoot, Servers: []stele.NameServer{{Name: "ns1.example.net."}}}
	})
	m.zones, m.modes["urn.example."] = append(m.zones, "urn.example."), zonesign.Transfer
	if _, err := m.Store.Ingest(m.Ctx, records, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	m.SetSigning(func(ns *stele.Namespace) zonesign.Mode { return m.modes[ns.Publication.Zone] })
	for zone, mode := range m.modes {
		if mode != zonesign.Unsigned {
			m.ChangeKeys(zone, func(r *zonekey.Ring) error { return r.Begin(zonekey.ECDSA, false, time.Now(), rand.Reader) })
		}
	}
	return m
}

// record makes the record of a number in a zone: some share an owner name with another one,
// some have dots, aliases in another zone, or are not public.
func (m *manyZones) record(zone, n, parts int) *stele.Record {
	labels := append([]string{"Part", "b"}[:parts-1:parts-1], fmt.Sprintf("Name%d", n))
	switch n % 50 {
	case 1:
		labels[parts-1] = fmt.Sprintf("nAME%d", n-1)
	case 2:
		labels[parts-1] = fmt.Sprintf("x%d.y", n)
	}
	prefix := func(zone int) string { return fmt.Sprintf("urn:example:z%02d:", zone) }
	r := &stele.Record{ID: m.ID(prefix(zone) + strings.Join(labels, ":")), Version: 1, State: stele.Active, Targets: []stele.Target{publishtest.Target("http://example.org/" + strconv.Itoa(n))}}
	switch n % 50 {
	case 3:
		r.Aliases = []stele.ID{m.ID(fmt.Sprintf("%sAlias-%d-%d", prefix(zone/3*3), zone, n))} // of one part
		m.alias = append(m.alias, fmt.Sprintf("alias-%d-%d.z%02d.example.", zone, n, zone/3*3))
	case 4:
		r.Readers = []string{"user:ann"}
	case 5:
		owner := fmt.Sprintf("name%d.", n)
		for i := parts - 2; i >= 0; i-- {
			owner += strings.ToLower(labels[i]) + "."
		}
		m.names = append(m.names, fmt.Sprintf("%sz%02d.example.", owner, zone))
	}
	return r
}

// ask asks a server.
func ask(t *testing.T, w *worker, name string, qtype uint16) *dns.Msg {
	m := question(name, qtype)
	m.SetEdns0(1232, true)
	msg, err := m.Pack()
	if err != nil {
		t.Error(err)
		return m
	}
	r := new(dns.Msg)
	if err := r.Unpack(w.respond(nil, msg, peer{addr: someone.addr, tcp: true}, time.Now())); err != nil {
		t.Error(err)
	}
	return r
}

// TestManyZonesStart starts a server of 20 zones while it is asked all the time, records are
// committed, a zone is added and the store fails once. Names that exist are answered from
// the first question on, and the registry is read once for all zones, and once more for the
// new zone.
func TestManyZonesStart(t *testing.T) {
	m := newManyZones(t)
	store := &countedScans{Store: m.Store}
	zones := publish.NewZones(publish.ZonesOptions{Store: store, Schemes: m.Schemes, Now: time.Now, Secrets: m.Secrets, Signing: m.SigningOf, ReadAgain: time.Millisecond})
	defer zones.Close()
	s := newServer(Options{Now: time.Now, CacheBytes: 1 << 20, LookupTimeout: time.Minute, Signatures: 1 << 30}, published{zones})
	defer s.Shutdown(m.Ctx)
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for g := range 2 {
		asking.Go(func() {
			w := s.newWorker(m.Ctx, s.newTally())
			for i := g; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if r := ask(t, w, m.names[i%len(m.names)], dns.TypeNAPTR); r.Rcode != dns.RcodeSuccess || len(r.Answer) == 0 {
					t.Errorf("a name is not found while names are read:\n%v", r)
					return
				}
				if r := ask(t, w, fmt.Sprintf("ns1.z%02d.example.", i%20), dns.TypeA); r.Rcode != dns.RcodeSuccess || len(r.Answer) == 0 {
					t.Errorf("the address of a name server is not found while names are read:\n%v", r)
					return
				}
				ask(t, w, fmt.Sprintf("none%d.z%02d.example.", i%1000, i%20), dns.TypeNAPTR)
				s.cache.dropAll()
			}
		})
	}
	w := s.newWorker(m.Ctx, s.newTally())
	ask(t, w, "z00.example.", dns.TypeSOA)
	m.commitTo(zones)
	for _, name := range m.zones {
		m.AwaitNames(zones, name)
	}
	close(stop)
	asking.Wait()
	schemes := 0
	for range m.Schemes.All() {
		schemes++
	}
	if n := int(store.whole.Load()); n > 2*schemes {
		t.Errorf("all records of a scheme were read %d times, with %d schemes", n, schemes)
	}
	m.Registry.Zones = zones
	for zone, mode := range m.modes {
		if mode == zonesign.Transfer {
			m.CheckChain(zone)
		}
	}
	for _, name := range m.alias {
		if r := ask(t, w, name, dns.TypeNAPTR); r.Rcode != dns.RcodeSuccess || len(r.Answer) == 0 {
			t.Fatalf("the alias %s is not found:\n%v", name, r)
		}
	}
	for _, zone := range m.zones {
		r := ask(t, w, "none."+zone, dns.TypeNAPTR)
		// Signed online, a name that does not exist is NODATA (RFC 9824, section 3.1).
		if want := map[bool]int{true: dns.RcodeSuccess, false: dns.RcodeNameError}[m.modes[zone] == zonesign.Online]; r.Rcode != want || len(r.Answer) > 0 {
			t.Errorf("a name that does not exist in %s:\n%v", zone, r)
		}
	}
}

// commitTo commits records and a namespace while the names of zones are read: among them
// one that shares its owner name with another one, and some that are not public any more.
func (m *manyZones) commitTo(zones *publish.Zones) {
	m.T.Helper()
	for i := range 60 {
		r := m.Register(fmt.Sprintf("urn:example:z00:New%d", i), "N2L https://example.org/")
		zones.Invalidate(r)
		if i%3 == 0 {
			r, err := m.Registrar.Update(m.Ctx, r.ID, 0, func(r *stele.Record) error { r.Readers = []string{"user:ann"}; return nil })
			if err != nil {
				m.T.Fatal(err)
			}
			zones.Invalidate(r)
		}
		if i%3 == 1 {
			zones.Invalidate(m.Register(fmt.Sprintf("urn:example:z00:nEW%d", i), "N2L https://example.org/"))
		}
	}
	m.Publish("urn:example:z20", "z20.example.", ":", 1)
	m.zones = append(m.zones, "z20.example.")
	zones.InvalidateNamespaces()
}
