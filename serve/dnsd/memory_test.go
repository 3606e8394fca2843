package dnsd

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/publish/zonesign"
)

// memory is a source: zones out of a zone file.
type memory struct {
	mu      sync.Mutex
	zones   map[string]*memoryZone
	changes uint64
	told    []func([]string)
	fail    error
	asked   int
}

type memoryZone struct {
	from   *memory
	soa    *dns.SOA
	ns     []dns.RR
	nodes  map[string][]dns.RR
	signer *zonesign.Signer
	chain  *publish.NSEC3Chain
}

func (z *memoryZone) NSEC3() *publish.NSEC3Chain { return z.chain }

func (z *memoryZone) Signer() *zonesign.Signer { return z.signer }

func (z *memoryZone) Delegation(name string) publish.Node {
	one := z.from.zones[name]
	n := publish.Node{Exists: true, Records: one.ns}
	if one.signer != nil {
		n.Records = append(n.Records[:len(n.Records):len(n.Records)], one.signer.Parent...)
	}
	return n
}

func (m *memory) Signs() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, z := range m.zones {
		if z.signer != nil {
			return true
		}
	}
	return false
}

const zoneText = `
paradisec.example. 3600 SOA ns1.paradisec.example. hostmaster.paradisec.example. 7 7200 900 1209600 300
paradisec.example. 3600 NS ns1.paradisec.example.
paradisec.example. 3600 NS ns.elsewhere.example.
paradisec.example. 3600 TXT "kept for ever"
ns1.paradisec.example. 3600 A 192.0.2.1
ns1.paradisec.example. 3600 AAAA 2001:db8::1
a.001.ab1.paradisec.example. 600 NAPTR 100 10 "RES:https" "N2L:text/html" "!^urn:paradisec:ab1:001:a$!https://example.org/ab1/001/a!i" .
a.001.ab1.paradisec.example. 600 NAPTR 100 20 "RES:https" "N2L:audio/wav" "!^urn:paradisec:ab1:001:a$!https://example.org/ab1/001/a.wav!i" .
a.001.ab1.paradisec.example. 600 NAPTR 100 30 "RES:https" "N2L:audio/mpeg" "!^urn:paradisec:ab1:001:a$!https://example.org/ab1/001/a.mp3!i" .
a.001.ab1.paradisec.example. 600 URI 10 1 "https://example.org/ab1/001/a"
_http._tcp.paradisec.example. 600 SRV 0 0 80 www.paradisec.example.
www.paradisec.example. 600 A 192.0.2.80
large.paradisec.example. 600 TXT LARGE
middle.paradisec.example. 600 TXT MIDDLE
`

// newMemory makes a source with one zone, paradisec.example., and one inside it with
// other servers, inner.paradisec.example.
func newMemory(t testing.TB) *memory {
	t.Helper()
	m := &memory{zones: make(map[string]*memoryZone)}
	long := `"` + strings.Repeat("x", 200) + `" `
	m.add(t, "paradisec.example.", strings.NewReplacer("LARGE", strings.Repeat(long, 8), "MIDDLE", strings.Repeat(long, 4)).Replace(zoneText))
	m.add(t, "inner.paradisec.example.", `
inner.paradisec.example. 60 SOA ns1.paradisec.example. hostmaster.paradisec.example. 9 7200 900 1209600 300
inner.paradisec.example. 60 NS ns1.paradisec.example.
x.inner.paradisec.example. 60 TXT "x"
`)
	return m
}

func (m *memory) add(t testing.TB, apex, text string) {
	t.Helper()
	z := &memoryZone{from: m, nodes: make(map[string][]dns.RR)}
	for zp := dns.NewZoneParser(strings.NewReader(text), ".", ""); ; {
		rr, ok := zp.Next()
		if !ok {
			if err := zp.Err(); err != nil {
				t.Fatal(err)
			}
			break
		}
		if soa, ok := rr.(*dns.SOA); ok {
			z.soa = soa
			continue
		}
		if rr.Header().Rrtype == dns.TypeNS {
			z.ns = append(z.ns, rr)
		}
		z.nodes[rr.Header().Name] = append(z.nodes[rr.Header().Name], rr)
	}
	m.zones[apex] = z
}

func (m *memory) find(_ context.Context, name string) (authority, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		return nil, m.fail
	}
	for off, end := 0, false; !end; off, end = dns.NextLabel(name, off) {
		if z := m.zones[name[off:]]; z != nil {
			return z, nil
		}
	}
	return nil, nil
}

func (m *memory) Changed() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changes
}

func (m *memory) OnChange(f func([]string)) { m.told = append(m.told, f) }

// change puts records in the place of those of a name, and counts up the serial.
func (m *memory) change(t testing.TB, name, text string) {
	t.Helper()
	rr, err := dns.NewRR(text)
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	for apex, z := range m.zones {
		if dns.IsSubDomain(apex, name) {
			delete(z.nodes, name)
			if rr != nil {
				z.nodes[name] = []dns.RR{rr}
			}
			soa := *z.soa
			soa.Serial++
			z.soa = &soa
		}
	}
	m.changes++
	m.mu.Unlock()
	for _, f := range m.told {
		f([]string{name})
	}
}

func (z *memoryZone) Lookup(_ context.Context, name string) (publish.Node, error) {
	z.from.mu.Lock()
	defer z.from.mu.Unlock()
	z.from.asked++
	n := publish.Node{Records: z.nodes[name]}
	for other := range z.nodes {
		n.Exists = n.Exists || dns.IsSubDomain(name, other)
	}
	return n, nil
}

func (z *memoryZone) Apex() (*dns.SOA, []dns.RR) {
	z.from.mu.Lock()
	defer z.from.mu.Unlock()
	return z.soa, z.ns
}

// clock is a time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// offlineServer is a server without sockets.
type offlineServer struct {
	t     testing.TB
	from  *memory
	s     *Server
	w     *worker
	clock *clock
	log   strings.Builder
}

func newOfflineServer(t testing.TB, o Options) *offlineServer {
	t.Helper()
	d := &offlineServer{t: t, from: newMemory(t), clock: &clock{now: time.Unix(1_700_000_000, 0)}}
	o.Now = d.clock.Now
	o.CacheBytes = 1 << 20
	o.Log = slog.New(slog.NewTextHandler(&d.log, nil))
	d.s = newServer(o, d.from)
	d.w = d.s.newWorker(t.Context(), d.s.newTally())
	t.Cleanup(func() { d.s.Shutdown(context.Background()) })
	return d
}

var (
	someone  = peer{addr: netip.MustParseAddr("192.0.2.33")}
	neighbor = peer{addr: netip.MustParseAddr("198.51.100.7")}
	caller   = peer{addr: netip.MustParseAddr("192.0.2.33"), tcp: true, idle: 10 * time.Second}
)

// send has raw bytes answered.
func (d *offlineServer) send(msg []byte, from peer) []byte {
	return d.w.respond(make([]byte, 0, 2048), msg, from, d.clock.Now())
}

// ask has a message answered, and reads the answer. It returns nil if there is none.
func (d *offlineServer) ask(m *dns.Msg, from peer) *dns.Msg {
	d.t.Helper()
	wire, err := m.Pack()
	if err != nil {
		d.t.Fatal(err)
	}
	answer := d.send(wire, from)
	if answer == nil {
		return nil
	}
	r := new(dns.Msg)
	if err := r.Unpack(answer); err != nil {
		d.t.Fatalf("the answer to\n%v\ncan't be read: %v\n%x", m, err, answer)
	}
	if r.Id != m.Id || !r.Response || r.Opcode != m.Opcode || r.RecursionDesired != m.RecursionDesired || r.RecursionAvailable || r.AuthenticatedData || r.Zero {
		d.t.Errorf("header of the answer to %v: %v", m.MsgHdr, r.MsgHdr)
	}
	return r
}

// question is a message that asks for a name and type.
func question(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg)
	m.SetQuestion(name, qtype)
	m.RecursionDesired = false
	return m
}
