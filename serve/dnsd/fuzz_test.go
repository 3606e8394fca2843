package dnsd

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// seeds are messages to begin with.
func seeds(f *testing.F) [][]byte {
	f.Helper()
	edns := question("Large.Paradisec.example.", dns.TypeTXT)
	edns.SetEdns0(700, true)
	compact := question("none.Paradisec.example.", dns.TypeNSEC)
	compact.SetEdns0(1232, true)
	compact.IsEdns0().SetCo()
	chained := question("none.inner.paradisec.example.", dns.TypeRRSIG)
	chained.SetEdns0(1232, true)
	update := new(dns.Msg)
	update.SetUpdate("paradisec.example.")
	notify := new(dns.Msg)
	notify.SetNotify("paradisec.example.")
	ixfr := new(dns.Msg)
	ixfr.SetIxfr("paradisec.example.", 3, "ns1.paradisec.example.", "hostmaster.paradisec.example.")
	signed := question("paradisec.example.", dns.TypeSOA)
	signed.SetEdns0(1232, false)
	signed.SetTsig("key.", dns.HmacSHA256, 300, 1_700_000_000)
	version := question("paradisec.example.", dns.TypeSOA)
	version.SetEdns0(1232, false)
	version.IsEdns0().SetVersion(3)
	answer := question("paradisec.example.", dns.TypeSOA)
	answer.Response = true
	two := question("paradisec.example.", dns.TypeSOA)
	two.Question = append(two.Question, two.Question[0])
	list := []*dns.Msg{
		question("a.001.ab1.paradisec.example.", dns.TypeNAPTR),
		question("paradisec.example.", dns.TypeNS),
		question("nothing.paradisec.example.", dns.TypeA),
		question("example.org.", dns.TypeA),
		question("paradisec.example.", dns.TypeANY),
		question("paradisec.example.", dns.TypeAXFR),
		withCookie(question("paradisec.example.", dns.TypeSOA), "2464c4abcf10c957"),
		withCookie(new(dns.Msg), "2464c4abcf10c957010000005cf79f111f8130c3eee29480"),
		edns, compact, chained, update, notify, ixfr, signed, version, answer, two,
	}
	var wires [][]byte
	for _, m := range list {
		wire, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		wires = append(wires, wire)
	}
	loop := append([]byte(nil), wires[0]...)
	return append(wires, append(loop[:12], 0xC0, 12, 0, 1, 0, 1), wires[0][:20], make([]byte, 12))
}

// FuzzHandle has anything answered.
func FuzzHandle(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s, false)
		f.Add(s, true)
	}
	d := newOfflineServer(f, Options{Rate: RateLimit{Same: 60_000, All: 60_000}, Signatures: 1 << 30})
	d.sign("paradisec.example.", zonesign.Online, newRing(f, "paradisec.example.", zonekey.Ed25519, false, d.clock.Now()))
	d.sign("inner.paradisec.example.", zonesign.Transfer, newRing(f, "inner.paradisec.example.", zonekey.Ed25519, false, d.clock.Now()))
	f.Fuzz(func(t *testing.T, msg []byte, tcp bool) {
		if len(msg) > maxMessage {
			return
		}
		from := someone
		if tcp {
			from = caller
		}
		d.clock.add(time.Second) // or the rate limit would hold
		before := append([]byte(nil), msg...)
		answer := d.send(msg, from)
		if !bytes.Equal(before, msg) {
			t.Fatal("the message was changed")
		}
		if strings.Contains(d.log.String(), "fault") {
			t.Fatal(d.log.String())
		}
		checkAnswer(t, msg, answer, tcp)
		// What is known by now is answered in the same way.
		if again := d.send(msg, from); !bytes.Equal(answer, again) {
			t.Fatalf("first\n%x\nthen\n%x", answer, again)
		}
	})
}

// checkAnswer says what every answer keeps to.
func checkAnswer(t *testing.T, msg, answer []byte, tcp bool) {
	t.Helper()
	if len(msg) < headerSize || msg[2]&0x80 != 0 {
		if answer != nil {
			t.Fatalf("this was answered: %x", msg)
		}
		return
	}
	if len(answer) < headerSize {
		t.Fatalf("no answer: %x", answer)
	}
	if !tcp && len(answer) > maxUDP {
		t.Fatalf("%d bytes", len(answer))
	}
	if binary.BigEndian.Uint16(msg) != binary.BigEndian.Uint16(answer) || answer[2]&0xF8 != 0x80|msg[2]&0x78 {
		t.Fatalf("header %x to %x", answer[:4], msg[:4])
	}
	a := new(dns.Msg)
	if err := a.Unpack(answer); err != nil {
		t.Fatalf("%v: %x", err, answer)
	}
	if a.RecursionAvailable || a.AuthenticatedData || a.CheckingDisabled || a.Zero {
		t.Fatalf("header %v", a.MsgHdr)
	}
	n := len(a.Question)
	if n == 1 && !bytes.Equal(answer[headerSize:skipName(answer, headerSize)+4], msg[headerSize:skipName(answer, headerSize)+4]) {
		t.Fatal("another question")
	}
	if n != 1 && len(a.Answer)+len(a.Ns) > 0 {
		t.Fatal("an answer without a question")
	}
	if q := new(dns.Msg); !tcp && q.Unpack(msg) == nil {
		limit := minUDP
		if o := q.IsEdns0(); o != nil {
			limit = max(limit, int(o.UDPSize()))
		}
		if len(answer) > limit {
			t.Fatalf("%d bytes, and the client takes %d", len(answer), limit)
		}
	}
}

// FuzzQuestion holds what is read by hand against what the library reads.
func FuzzQuestion(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		var q query
		code := q.read(msg)
		if code == dropped || q.opcode != dns.OpcodeQuery {
			return
		}
		m := new(dns.Msg)
		err := m.Unpack(msg)
		if code == dns.RcodeSuccess {
			checkRead(t, &q, m, err)
			return
		}
		if err == nil && code == dns.RcodeFormatError && acceptable(msg, m) {
			t.Fatalf("refused, though it is a question like others: %x\n%v", msg, m)
		}
	})
}

// acceptable reports whether a message that the library has read should be good
// enough for us.
func acceptable(msg []byte, m *dns.Msg) bool {
	if len(m.Question) != 1 || len(m.Answer)+len(m.Ns)+len(m.Extra) > 0 {
		return false // what of this is refused is said in message.go
	}
	end := headerSize + len(m.Question[0].Name) + 1 + 4
	if m.Question[0].Name == "." {
		end--
	}
	plain := !strings.Contains(m.Question[0].Name, `\`)
	return plain && len(msg) == end && bytes.Equal(msg[6:12], make([]byte, 6))
}

// checkRead compares a message that we have read with the library's reading.
func checkRead(t *testing.T, q *query, m *dns.Msg, err error) {
	t.Helper()
	if q.asks {
		name, _, e := dns.UnpackDomainName(q.name, 0)
		if e != nil {
			t.Fatalf("the name %x: %v", q.name, e)
		}
		// The library goes by the record's content, too; the question comes first.
		if err == nil && (len(m.Question) != 1 || m.Question[0].Name != name || m.Question[0].Qtype != q.qtype || m.Question[0].Qclass != q.class) {
			t.Fatalf("%v, read as %q %d %d", m.Question, name, q.qtype, q.class)
		}
	}
	if err != nil {
		return
	}
	o := m.IsEdns0()
	if (o != nil) != q.edns {
		t.Fatalf("EDNS: %v, read as %v", o, q.edns)
	}
	if o == nil {
		return
	}
	if o.Version() != q.version || o.Do() != q.do || o.Co() != q.co || max(int(o.UDPSize()), minUDP) != q.size {
		t.Fatalf("%v, read as %+v", o, q)
	}
	var cookie []byte
	for _, option := range o.Option {
		if c, ok := option.(*dns.EDNS0_COOKIE); ok && cookie == nil {
			cookie = unhex(t, c.Cookie)
		}
	}
	if !bytes.Equal(cookie, q.cookie) {
		t.Fatalf("cookie %x, read as %x", cookie, q.cookie)
	}
}
