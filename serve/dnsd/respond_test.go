package dnsd

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele/trace"
)

// brief is an answer in one line: what counts of it.
func brief(m *dns.Msg) string {
	if m == nil {
		return "nothing"
	}
	var b strings.Builder
	rcode := dns.RcodeToString[m.Rcode]
	if o := m.IsEdns0(); o != nil {
		if code := o.ExtendedRcode() | m.Rcode&0xF; code == dns.RcodeBadVers {
			rcode = "BADVERS"
		}
	}
	b.WriteString(rcode)
	if m.Authoritative {
		b.WriteString(" aa")
	}
	if m.Truncated {
		b.WriteString(" tc")
	}
	for _, rr := range m.Answer {
		fmt.Fprintf(&b, " answer:%s", dns.TypeToString[rr.Header().Rrtype])
	}
	for _, rr := range m.Ns {
		fmt.Fprintf(&b, " authority:%s", dns.TypeToString[rr.Header().Rrtype])
	}
	for _, rr := range m.Extra {
		fmt.Fprintf(&b, " additional:%s", dns.TypeToString[rr.Header().Rrtype])
	}
	return b.String()
}

func TestAnswers(t *testing.T) {
	d := newOfflineServer(t, Options{})
	const naptr = "a.001.ab1.paradisec.example."
	tests := []struct {
		name  string
		qtype uint16
		want  string
	}{
		{naptr, dns.TypeNAPTR, "NOERROR aa answer:NAPTR answer:NAPTR answer:NAPTR"},
		{"A.001.aB1.PARADISEC.example.", dns.TypeNAPTR, "NOERROR aa answer:NAPTR answer:NAPTR answer:NAPTR"},
		{naptr, dns.TypeURI, "NOERROR aa answer:URI"},
		{naptr, dns.TypeA, "NOERROR aa authority:SOA"},
		{naptr, 65280, "NOERROR aa authority:SOA"},
		{naptr, dns.TypeANY, "NOERROR aa answer:HINFO"},
		{"001.ab1.paradisec.example.", dns.TypeNAPTR, "NOERROR aa authority:SOA"}, // an empty non-terminal
		{"001.ab1.paradisec.example.", dns.TypeANY, "NOERROR aa authority:SOA"},
		{"b.001.ab1.paradisec.example.", dns.TypeNAPTR, "NXDOMAIN aa authority:SOA"},
		{"b.a.001.ab1.paradisec.example.", dns.TypeNAPTR, "NXDOMAIN aa authority:SOA"},
		{"*.ab1.paradisec.example.", dns.TypeNAPTR, "NXDOMAIN aa authority:SOA"},
		{`a\.b\000c.paradisec.example.`, dns.TypeNAPTR, "NXDOMAIN aa authority:SOA"},
		{"nothing.paradisec.example.", dns.TypeANY, "NXDOMAIN aa authority:SOA"},
		{"paradisec.example.", dns.TypeSOA, "NOERROR aa answer:SOA"},
		{"paradisec.example.", dns.TypeNS, "NOERROR aa answer:NS answer:NS additional:A additional:AAAA"},
		{"paradisec.example.", dns.TypeTXT, "NOERROR aa answer:TXT"},
		{"paradisec.example.", dns.TypeNAPTR, "NOERROR aa authority:SOA"},
		{"paradisec.example.", dns.TypeANY, "NOERROR aa answer:HINFO"},
		{"ns1.paradisec.example.", dns.TypeA, "NOERROR aa answer:A"},
		{"ns1.paradisec.example.", dns.TypeAAAA, "NOERROR aa answer:AAAA"},
		{"ns1.paradisec.example.", dns.TypeSOA, "NOERROR aa authority:SOA"},
		{"_http._tcp.paradisec.example.", dns.TypeSRV, "NOERROR aa answer:SRV additional:A"},
		{"x.inner.paradisec.example.", dns.TypeTXT, "NOERROR aa answer:TXT"},
		{"inner.paradisec.example.", dns.TypeNS, "NOERROR aa answer:NS"}, // its address is in another zone
		{"example.", dns.TypeSOA, "REFUSED"},
		{".", dns.TypeNS, "REFUSED"},
		{"notparadisec.example.", dns.TypeSOA, "REFUSED"},
		{"paradisec.example.", dns.TypeAXFR, "REFUSED"},
		{"paradisec.example.", dns.TypeIXFR, "REFUSED"},
		{"paradisec.example.", dns.TypeMAILB, "NOTIMP"},
		{"paradisec.example.", dns.TypeOPT, "FORMERR"},
	}
	for _, test := range tests {
		for _, from := range []peer{someone, caller} {
			for range 2 { // the second time it is known already
				q := question(test.name, test.qtype)
				r := d.ask(q, from)
				if got := brief(r); got != test.want {
					t.Errorf("%s %s: %s, want %s", test.name, dns.TypeToString[test.qtype], got, test.want)
				}
				if r != nil && !cmp.Equal(r.Question, q.Question) {
					t.Errorf("%s: the question comes back as %v", test.name, r.Question)
				}
			}
		}
	}
}

func TestNegativeTTL(t *testing.T) {
	d := newOfflineServer(t, Options{})
	r := d.ask(question("b.paradisec.example.", dns.TypeA), someone)
	if ttl := r.Ns[0].Header().Ttl; ttl != 300 {
		t.Errorf("SOA of a negative answer has TTL %d, want its minimum 300", ttl)
	}
	if ttl := d.ask(question("paradisec.example.", dns.TypeSOA), someone).Answer[0].Header().Ttl; ttl != 3600 {
		t.Errorf("SOA has TTL %d, want 3600", ttl)
	}
	r = d.ask(question("b.inner.paradisec.example.", dns.TypeA), someone)
	if ttl := r.Ns[0].Header().Ttl; ttl != 60 {
		t.Errorf("SOA of a negative answer has TTL %d, want its own 60", ttl)
	}
}

func TestEDNS(t *testing.T) {
	d := newOfflineServer(t, Options{})
	with := func(name string, size uint16, do bool) *dns.Msg {
		m := question(name, dns.TypeTXT)
		m.SetEdns0(size, do)
		return m
	}
	tests := []struct {
		what string
		ask  func() *dns.Msg
		from peer
		want string
	}{
		{"plain", func() *dns.Msg { return with("paradisec.example.", 4096, false) }, someone, "NOERROR aa answer:TXT additional:OPT"},
		{"size 0", func() *dns.Msg { return with("paradisec.example.", 0, true) }, someone, "NOERROR aa answer:TXT additional:OPT"},
		{"too large", func() *dns.Msg { return with("large.paradisec.example.", 65535, false) }, someone, "NOERROR aa tc additional:OPT"},
		{"too large without EDNS", func() *dns.Msg { return question("large.paradisec.example.", dns.TypeTXT) }, someone, "NOERROR aa tc"},
		{"by TCP", func() *dns.Msg { return with("large.paradisec.example.", 512, false) }, caller, "NOERROR aa answer:TXT additional:OPT"},
		{"by TCP without EDNS", func() *dns.Msg { return question("large.paradisec.example.", dns.TypeTXT) }, caller, "NOERROR aa answer:TXT"},
		{"version 1", func() *dns.Msg {
			m := with("paradisec.example.", 1232, false)
			m.IsEdns0().SetVersion(1)
			return m
		}, someone, "BADVERS additional:OPT"},
		{"unknown options", func() *dns.Msg {
			m := with("paradisec.example.", 1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_LOCAL{Code: 65001, Data: []byte("x")}, &dns.EDNS0_NSID{Code: dns.EDNS0NSID}}
			return m
		}, someone, "NOERROR aa answer:TXT additional:OPT"},
		{"two OPT", func() *dns.Msg {
			m := with("paradisec.example.", 1232, false)
			m.SetEdns0(1232, false)
			return m
		}, someone, "FORMERR additional:OPT"},
		{"OPT as authority", func() *dns.Msg {
			m := with("paradisec.example.", 1232, false)
			m.Ns, m.Extra = m.Extra, nil
			return m
		}, someone, "FORMERR"},
		{"OPT with a name", func() *dns.Msg {
			m := with("paradisec.example.", 1232, false)
			m.IsEdns0().Hdr.Name = "x."
			return m
		}, someone, "FORMERR"},
		{"short cookie", func() *dns.Msg {
			m := with("paradisec.example.", 1232, false)
			m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "00112233445566"}}
			return m
		}, someone, "FORMERR additional:OPT"},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			q := test.ask()
			r := d.ask(q, test.from)
			if got := brief(r); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if o := r.IsEdns0(); o != nil && (o.UDPSize() != maxUDP || o.Version() != 0 || o.Do() != q.IsEdns0().Do()) {
				t.Errorf("OPT %v", o)
			}
		})
	}
}

// TestSizes goes through all sizes that a client may ask for.
func TestSizes(t *testing.T) {
	d := newOfflineServer(t, Options{})
	longest, truncated := 0, 0
	for size := range 1500 {
		m := question("middle.paradisec.example.", dns.TypeTXT)
		m.SetEdns0(uint16(size), false)
		wire, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		answer := d.send(wire, someone)
		if len(answer) > max(min(size, maxUDP), minUDP) {
			t.Fatalf("an answer of %d bytes to a client that takes %d", len(answer), size)
		}
		longest = max(longest, len(answer))
		if binary.BigEndian.Uint16(answer[2:])&flagTC != 0 {
			truncated = size
		}
	}
	if longest != truncated+1 {
		t.Errorf("an answer of %d bytes is truncated for clients that take %d", longest, truncated)
	}
}

// TestFits checks that an answer loses the additional section before it loses
// anything else.
func TestFits(t *testing.T) {
	d := newOfflineServer(t, Options{})
	name, _ := packName(nil, "paradisec.example.")
	hash := d.s.cache.hash(name)
	d.ask(question("paradisec.example.", dns.TypeNS), someone)
	_, p, ok := d.s.cache.get(nil, name, hash, dns.TypeNS, maxMessage)
	if !ok || p.additional != 2 {
		t.Fatalf("cached: %v %+v", ok, p)
	}
	for limit := range len(p.body) + 2 {
		_, q, _ := d.s.cache.get(nil, name, hash, dns.TypeNS, limit)
		want := packed{}
		switch {
		case limit >= len(p.body):
			want.answers, want.additional = 2, 2
		case limit >= p.extra:
			want.answers = 2
		default:
			want.tc = true
		}
		if q.answers != want.answers || q.additional != want.additional || q.tc != want.tc || len(q.body) > limit {
			t.Fatalf("limit %d of %d and %d: %+v", limit, p.extra, len(p.body), q)
		}
	}
}

// raw changes bytes of a good question.
func raw(t *testing.T, change func(b []byte) []byte) []byte {
	t.Helper()
	m := question("a.001.ab1.paradisec.example.", dns.TypeNAPTR)
	m.Id = 4711
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return change(wire)
}

func TestBadMessages(t *testing.T) {
	d := newOfflineServer(t, Options{})
	set := func(at int, v uint16) func([]byte) []byte {
		return func(b []byte) []byte { binary.BigEndian.PutUint16(b[at:], v); return b }
	}
	tests := []struct {
		what   string
		change func([]byte) []byte
		want   string
	}{
		{"nothing", func([]byte) []byte { return nil }, "nothing"},
		{"half a header", func(b []byte) []byte { return b[:11] }, "nothing"},
		{"an answer", set(2, flagQR), "nothing"},
		{"an answer to a notification", set(2, flagQR|4<<11), "nothing"},
		{"no question", set(4, 0), "FORMERR"},
		{"a header alone", func(b []byte) []byte { return set(4, 0)(b)[:12] }, "FORMERR"},
		{"two questions", set(4, 2), "FORMERR"},
		{"65535 questions", set(4, 65535), "FORMERR"},
		{"an answer that is not there", set(6, 1), "FORMERR"},
		{"authority that is not there", set(8, 1), "FORMERR"},
		{"additional that is not there", set(10, 1), "FORMERR"},
		{"a question cut short", func(b []byte) []byte { return b[:len(b)-1] }, "FORMERR"},
		{"bytes behind", func(b []byte) []byte { return append(b, 0) }, "FORMERR"},
		{"a pointer to itself", set(12, 0xC00C), "FORMERR"},
		{"a pointer to the header", set(12, 0xC000), "FORMERR"},
		{"a label of a kind unknown", set(12, 0x4100), "FORMERR"},
		{"a name of 256 bytes", func(b []byte) []byte {
			b = b[:12]
			for range 127 {
				b = append(b, 1, 'a')
			}
			return append(b, 1, 'a', 0, 0, 1, 0, 1)
		}, "FORMERR"},
		{"a name of 255 bytes", func(b []byte) []byte {
			b = b[:12]
			for range 127 {
				b = append(b, 1, 'a')
			}
			return append(b, 0, 0, 1, 0, 1)
		}, "REFUSED"},
		{"IQUERY", set(2, 1<<11), "NOTIMP"},
		{"STATUS", set(2, 2<<11), "NOTIMP"},
		{"NOTIFY", set(2, 4<<11), "NOTIMP"},
		{"UPDATE", set(2, 5<<11), "REFUSED"},
		{"opcode 15", set(2, 15<<11), "NOTIMP"},
		{"RD", set(2, flagRD), "NOERROR aa answer:NAPTR answer:NAPTR answer:NAPTR"},
		{"CD, AD and Z", set(2, 0x0070), "NOERROR aa answer:NAPTR answer:NAPTR answer:NAPTR"},
		{"CHAOS", func(b []byte) []byte { b[len(b)-1] = dns.ClassCHAOS; return b }, "REFUSED"},
		{"any class", func(b []byte) []byte { b[len(b)-1] = dns.ClassANY; return b }, "REFUSED"},
		{"class 0", func(b []byte) []byte { b[len(b)-1] = 0; return b }, "REFUSED"},
	}
	for _, test := range tests {
		t.Run(test.what, func(t *testing.T) {
			msg := raw(t, test.change)
			answer := d.send(msg, someone)
			if answer == nil {
				if test.want != "nothing" {
					t.Errorf("nothing, want %s", test.want)
				}
				return
			}
			r := new(dns.Msg)
			if err := r.Unpack(answer); err != nil {
				t.Fatalf("%v: %x", err, answer)
			}
			if got := brief(r); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
			if r.Id != 4711 || !r.Response || r.RecursionAvailable || r.AuthenticatedData || r.CheckingDisabled || r.Zero {
				t.Errorf("header %v", r.MsgHdr)
			}
			if len(answer) > 2*len(msg)+11 && len(r.Answer) == 0 {
				t.Errorf("an error of %d bytes for %d", len(answer), len(msg))
			}
		})
	}
}

func TestVersionIsNobodysBusiness(t *testing.T) {
	d := newOfflineServer(t, Options{})
	for _, name := range []string{"version.bind.", "version.server.", "hostname.bind.", "id.server.", "paradisec.example."} {
		m := question(name, dns.TypeTXT)
		m.Question[0].Qclass = dns.ClassCHAOS
		if got := brief(d.ask(m, someone)); got != "REFUSED" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestFailures(t *testing.T) {
	d := newOfflineServer(t, Options{})
	d.from.fail = errors.New("the disk is gone")
	for range 3 {
		r := d.ask(question("b.paradisec.example.", dns.TypeA), someone)
		if got := brief(r); got != "SERVFAIL" {
			t.Errorf("%s, want SERVFAIL", got)
		}
	}
	if n := strings.Count(d.log.String(), "the disk is gone"); n != 1 {
		t.Errorf("logged %d times in one moment, want once:\n%s", n, d.log.String())
	}
	d.clock.add(complaintEvery * 1e9)
	d.ask(question("b.paradisec.example.", dns.TypeA), someone)
	if !strings.Contains(d.log.String(), "more=2") {
		t.Errorf("the log does not tell of the other failures:\n%s", d.log.String())
	}
	d.from.fail = nil
	if got := brief(d.ask(question("b.paradisec.example.", dns.TypeA), someone)); got != "NXDOMAIN aa authority:SOA" {
		t.Errorf("after the failure: %s", got)
	}
}

// TestSpan: the span of a question has the code of the answer that the client gets.
func TestSpan(t *testing.T) {
	tracer := trace.NewTracer(trace.Options{Sample: 1, IDs: trace.NewIDs([32]byte{7}), Now: time.Now})
	d := newOfflineServer(t, Options{Tracer: tracer})
	for _, tt := range []struct {
		name   string
		fail   error
		rcode  string
		failed bool
	}{
		{"ns1.paradisec.example.", nil, "NOERROR", false},
		{"b.paradisec.example.", nil, "NXDOMAIN", false},
		{"other.example.", nil, "REFUSED", false},
		{"c.paradisec.example.", errors.New("the disk is gone"), "SERVFAIL", true},
	} {
		d.from.fail = tt.fail
		r := d.ask(question(tt.name, dns.TypeA), someone)
		span := <-tracer.Waiting()
		told := make(map[string]string)
		for _, a := range span.Attributes {
			told[a.Key] = a.Text
		}
		if told["dns.rcode"] != tt.rcode || dns.RcodeToString[r.Rcode] != tt.rcode || told["dns.question.type"] != "A" || span.Failed != tt.failed {
			t.Errorf("%s: the answer is %s, and the span %+v", tt.name, dns.RcodeToString[r.Rcode], span)
		}
	}
}

func TestChangesAreSeenAtOnce(t *testing.T) {
	d := newOfflineServer(t, Options{})
	soa := func() uint32 {
		return d.ask(question("paradisec.example.", dns.TypeSOA), someone).Answer[0].(*dns.SOA).Serial
	}
	serial := func(name string) uint32 {
		return d.ask(question(name, dns.TypeA), someone).Ns[0].(*dns.SOA).Serial
	}
	const name, above, other = "n.new.paradisec.example.", "new.paradisec.example.", "other.paradisec.example."
	for _, n := range []string{name, above, other} {
		if got := brief(d.ask(question(n, dns.TypeTXT), someone)); got != "NXDOMAIN aa authority:SOA" {
			t.Fatalf("%s: %s", n, got)
		}
	}
	if soa() != 7 || serial(other) != 7 {
		t.Fatal("the serial is not the zone's")
	}
	d.from.change(t, name, name+" 60 TXT \"new\"")
	if got := brief(d.ask(question(name, dns.TypeTXT), someone)); got != "NOERROR aa answer:TXT" {
		t.Errorf("a new name: %s", got)
	}
	if got := brief(d.ask(question(above, dns.TypeTXT), someone)); got != "NOERROR aa authority:SOA" {
		t.Errorf("the name above it: %s", got)
	}
	asked := d.from.asked
	if soa() != 8 || serial(other) != 8 {
		t.Errorf("serials %d and %d after a change, want 8", soa(), serial(other))
	}
	if d.from.asked > asked+1 { // the SOA record may have fallen with the name above it
		t.Errorf("what did not change was looked up again")
	}
	d.from.change(t, name, "")
	if got := brief(d.ask(question(name, dns.TypeTXT), someone)); got != "NXDOMAIN aa authority:SOA" {
		t.Errorf("a name that is gone: %s", got)
	}
}
