package dnsd

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
)

// sink is a connection that keeps what is written to it.
type sink struct {
	net.Conn
	written []byte
}

func (s *sink) Write(b []byte) (int, error) {
	s.written = append(s.written, b...)
	return len(b), nil
}

func (s *sink) SetWriteDeadline(time.Time) error { return nil }

// FuzzTransfer has anything that asks for a zone answered, over TCP and UDP, signed with
// the right key or as it came. Whatever is sent is a message, and no client gets the zone
// without the key.
func FuzzTransfer(f *testing.F) {
	p := publishtest.New(f)
	p.Paradisec()
	k := p.AddTSIGKey("one.example.org", zonekey.TSIGSHA256)
	p.SetSecondaries("urn:paradisec", stele.Secondary{Key: k.Name})
	last, err := p.Store.LastChange(p.Ctx)
	if err != nil {
		f.Fatal(err)
	}
	p.Register("urn:paradisec:AB1:001:B", "https://example.org/")
	axfr := new(dns.Msg).SetAxfr("paradisec.example.")
	unknown := new(dns.Msg).SetIxfr("Paradisec.example.", 1<<31, "ns.", "mail.")
	bare := new(dns.Msg).SetAxfr("paradisec.example.")
	bare.Question[0].Qtype = dns.TypeIXFR
	for _, m := range []*dns.Msg{axfr, new(dns.Msg).SetIxfr("paradisec.example.", uint32(last), "ns.", "mail."), unknown, bare, new(dns.Msg).SetAxfr("urn.example.")} {
		wire, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire, true)
		f.Add(wire, false)
		f.Add(signedBy(f, m, k.Name, dns.HmacSHA256, k.Secret, time.Now()), false)
		f.Add(signedBy(f, m, "two.example.org.", dns.HmacSHA512, k.Secret, time.Now()), false)
	}
	s := New(Options{Zones: p.Zones, Now: time.Now})
	f.Fuzz(func(t *testing.T, msg []byte, sign bool) {
		if len(msg) < headerSize || len(msg) > maxQuery {
			return
		}
		now := time.Now()
		if sign {
			binary.BigEndian.PutUint16(msg[10:], 0)
			msg = newTSIGSigner(k).sign(append([]byte(nil), msg...), now)
		}
		w := s.newWorker(t.Context(), s.tcp)
		c := new(sink)
		if w.q.read(msg) == dns.RcodeSuccess && w.q.isTransfer() {
			out := &stream{s: s, c: c, end: now.Add(time.Hour)}
			if err := out.transfer(w, msg, caller, now); err != nil {
				t.Fatal(err)
			}
			if err := out.flush(); err != nil {
				t.Fatal(err)
			}
		}
		if answer := w.respond(make([]byte, 0, maxMessage), msg, someone, now); answer != nil {
			c.written = append(binary.BigEndian.AppendUint16(c.written, uint16(len(answer))), answer...)
		}
		for rest := c.written; len(rest) > 0; {
			n := 2 + int(binary.BigEndian.Uint16(rest))
			var m dns.Msg
			if err := m.Unpack(rest[2:n]); err != nil {
				t.Fatalf("%v: %x", err, rest[2:n])
			}
			if isZone := m.Rcode == dns.RcodeSuccess && len(m.Answer) > 0 && w.q.isTransfer(); isZone && (m.IsTsig() == nil || m.IsTsig().MACSize == 0) {
				t.Fatalf("without a signature: %v", &m)
			}
			rest = rest[n:]
		}
	})
}
