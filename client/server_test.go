package client

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/miekg/dns"
)

// nameServer is a name server on this machine, over UDP and TCP. It answers from a
// zone file, or misbehaves.
type nameServer struct {
	addr netip.AddrPort
	mu   sync.Mutex
	rrs  []dns.RR
	odd  func(w dns.ResponseWriter, q *dns.Msg) bool // true if it answered
	log  []string
}

func newNameServer(t testing.TB, zone string) *nameServer {
	t.Helper()
	s := &nameServer{}
	s.rrs = parseZone(t, zone)
	var udp net.PacketConn
	var tcp net.Listener
	for { // the same port may be taken for TCP
		var err error
		if udp, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if tcp, err = net.Listen("tcp", udp.LocalAddr().String()); err == nil {
			break
		}
		udp.Close()
	}
	s.addr = udp.LocalAddr().(*net.UDPAddr).AddrPort()
	var running sync.WaitGroup
	t.Cleanup(running.Wait) // it comes last
	for _, one := range []*dns.Server{{PacketConn: udp, Handler: s}, {Listener: tcp, Handler: s}} {
		begun := make(chan struct{})
		one.NotifyStartedFunc = func() { close(begun) }
		running.Go(func() { _ = one.ActivateAndServe() })
		<-begun
		t.Cleanup(func() { _ = one.Shutdown() })
	}
	return s
}

func parseZone(t testing.TB, zone string) (list []dns.RR) {
	t.Helper()
	p := dns.NewZoneParser(strings.NewReader("$TTL 60\n"+zone), ".", "")
	for r, ok := p.Next(); ok; r, ok = p.Next() {
		list = append(list, r)
	}
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// asked returns the questions so far: "udp name TYPE".
func (s *nameServer) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

func (s *nameServer) misbehave(odd func(w dns.ResponseWriter, q *dns.Msg) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odd = odd
}

func (s *nameServer) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	s.mu.Lock()
	network := w.LocalAddr().Network()
	if len(q.Question) > 0 {
		s.log = append(s.log, network+" "+dns.CanonicalName(q.Question[0].Name)+" "+dns.TypeToString[q.Question[0].Qtype])
	}
	odd := s.odd
	s.mu.Unlock()
	if odd != nil && odd(w, q) {
		return
	}
	m := s.answer(q)
	if network == "udp" {
		size := dns.MinMsgSize
		if opt := q.IsEdns0(); opt != nil {
			size = int(opt.UDPSize())
		}
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

// answer is what an authoritative server says.
func (s *nameServer) answer(q *dns.Msg) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	m.Authoritative, m.Compress = true, true
	name, kind := dns.CanonicalName(q.Question[0].Name), q.Question[0].Qtype
	exists := false
	for range 10 {
		alias := ""
		found := false
		for _, r := range s.rrs {
			owner := dns.CanonicalName(r.Header().Name)
			exists = exists || owner == name || strings.HasSuffix(owner, "."+name)
			if owner != name {
				continue
			}
			if r.Header().Rrtype == kind {
				m.Answer = append(m.Answer, r)
				found = true
			}
			if c, ok := r.(*dns.CNAME); ok && kind != dns.TypeCNAME {
				m.Answer = append(m.Answer, r)
				alias = dns.CanonicalName(c.Target)
			}
		}
		if found || alias == "" {
			break
		}
		name, exists = alias, false
	}
	if len(m.Answer) == 0 || m.Answer[len(m.Answer)-1].Header().Rrtype != kind {
		if !exists {
			m.Rcode = dns.RcodeNameError
		}
		m.Ns = []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: 300}, Ns: "ns.", Mbox: "m.", Serial: 1, Minttl: 30}}
	}
	return m
}

// raw sends bytes as they are.
func raw(w dns.ResponseWriter, b []byte) { _, _ = w.Write(b) }

// packed packs a message, changed.
func packed(m *dns.Msg, change func(b []byte)) []byte {
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	if change != nil {
		change(b)
	}
	return b
}

func otherID(b []byte) { binary.BigEndian.PutUint16(b, binary.BigEndian.Uint16(b)+1) }
