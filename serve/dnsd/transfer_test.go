package dnsd

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/publish/zonesign"
)

// serve answers for the zones of a registry on real sockets.
func serve(p *publishtest.Registry, o Options) *Server {
	p.T.Helper()
	o.Zones, o.Now = p.Zones, time.Now
	p.SetClock(time.Now)
	s := New(o)
	if err := s.Listen(p.T.Context(), "127.0.0.1:0"); err != nil {
		p.T.Fatal(err)
	}
	p.T.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			p.T.Error(err)
		}
	})
	return s
}

// take takes a zone as a secondary does: all of it, or from a serial on what changed.
// It returns the records in the order in which they came, and the number of messages.
func take(s *Server, zone string, serial uint32, k *zonekey.TSIGKey) ([]dns.RR, int, error) {
	m := new(dns.Msg).SetAxfr(zone)
	if serial > 0 {
		m.SetIxfr(zone, serial, "ns.", "mail.")
	}
	t := &dns.Transfer{DialTimeout: waitForIt, ReadTimeout: waitForIt}
	if k != nil {
		m.SetTsig(k.Name, k.Algorithm+".", 300, time.Now().Unix())
		t.TsigSecret = map[string]string{k.Name: base64.StdEncoding.EncodeToString(k.Secret)}
	}
	in, err := t.In(m, s.Addr().String())
	if err != nil {
		return nil, 0, err
	}
	var list []dns.RR
	n := 0
	for e := range in {
		if e.Error != nil {
			err = e.Error
			continue
		}
		n++
		list = append(list, e.RR...)
	}
	return list, n, err
}

// TestTransfer takes zones of all kinds: what comes is what the zone has.
func TestTransfer(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.Publish("urn:inner", "inner.paradisec.example.", ":", 1)
	p.Publish("ark:12345", "ark.example.", "/", 1) // where case counts
	for _, prefix := range []string{"urn:", "urn:paradisec", "urn:inner", "ark:12345"} {
		p.SetSecondaries(prefix, publishtest.Local())
	}
	for i := range 300 {
		p.Register(fmt.Sprintf("urn:paradisec:c%d:%d:n%d.x", i%3, i%7, i), "N2L https://example.org/"+strings.Repeat("x", i*3))
		p.Register(fmt.Sprintf("ark:/12345/%s%d", []string{"a", "A"}[i%2], i/2), fmt.Sprintf("N2L https://example.org/%d", i))
	}
	s := serve(p, Options{})
	for _, zone := range []string{"paradisec.example.", "inner.paradisec.example.", "urn.example.", "ark.example."} {
		list, n, err := take(s, zone, 0, nil)
		if err != nil {
			t.Fatalf("%s: %v", zone, err)
		}
		publishtest.Ends(t, list)
		if diff := cmp.Diff(p.Lines(zone), publishtest.Lines(t, list)); diff != "" {
			t.Errorf("%s (-zone +taken):\n%s", zone, diff)
		}
		if zone == "paradisec.example." && n < 3 {
			t.Errorf("%d records came in %d messages", len(list), n)
		}
	}
	if st := s.Stats(); st.Whole != 4 || st.Declined != 0 {
		t.Errorf("%+v", st)
	}
}

// TestTransferSigned checks that a zone in the mode transfer comes with its signatures, and
// one in the mode online without.
func TestTransferSigned(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.SetSecondaries("urn:paradisec", publishtest.Local())
	for i := range 300 {
		p.Register(fmt.Sprintf("urn:paradisec:c%d:%d:n%d.x", i%3, i%7, i), "N2L https://example.org/")
	}
	const zone = "paradisec.example."
	p.SignZones(zonesign.Transfer, zone)
	s := serve(p, Options{})
	list, _, err := take(s, zone, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	publishtest.Ends(t, list)
	if diff := cmp.Diff(p.Lines(zone), publishtest.Lines(t, list)); diff != "" {
		t.Errorf("(-zone +taken):\n%s", diff)
	}
	p.SignZones(zonesign.Online, zone)
	p.Zones.InvalidateNamespaces()
	if list, _, err = take(s, zone, 0, nil); err != nil {
		t.Fatal(err)
	}
	for _, rr := range list {
		switch rr.Header().Rrtype {
		case dns.TypeRRSIG, dns.TypeDNSKEY, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeCDS, dns.TypeCDNSKEY:
			t.Errorf("%s went out", rr)
		}
	}
}

// TestIncrements keeps a copy of a zone up to date with what is told to have changed, in
// one step for many changes.
func TestIncrements(t *testing.T) {
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Online, zonesign.Transfer} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			p := publishtest.New(t)
			p.Publish("urn:paradisec", "z.example.", ":", 2)
			p.SetSecondaries("urn:paradisec", publishtest.Local())
			if mode != zonesign.Unsigned {
				p.SignZones(mode, "z.example.")
			}
			s := serve(p, Options{})
			whole, _, err := take(s, "z.example.", 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			serial, copied := publishtest.Ends(t, whole), publishtest.Lines(t, whole)
			chance := mathrand.New(mathrand.NewPCG(3, 4))
			for round := range 30 {
				for range chance.IntN(4) {
					p.AnyChange(chance, "urn:paradisec")
				}
				list, _, err := take(s, "z.example.", serial, nil)
				if err != nil {
					t.Fatal(err)
				}
				before := serial
				serial = publishtest.Apply(t, copied, list, serial)
				whole, _, err := take(s, "z.example.", 0, nil)
				if err != nil {
					t.Fatal(err)
				}
				if now := publishtest.Ends(t, whole); now != serial {
					t.Fatalf("round %d: serial %d, and the zone has %d", round, serial, now)
				}
				if diff := cmp.Diff(publishtest.Lines(t, whole), copied); diff != "" {
					t.Fatalf("round %d, from %d to %d (-zone +copy):\n%s", round, before, serial, diff)
				}
			}
			if st := s.Stats(); st.Differences != 30 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestTransferStandsStill takes a zone while it changes: each time it is what the zone
// was at one moment, that of its serial.
func TestTransferStandsStill(t *testing.T) {
	for _, mode := range []zonesign.Mode{zonesign.Unsigned, zonesign.Transfer} {
		p := publishtest.New(t)
		p.Publish("urn:example", "z.example.", ":", 2) // where case counts
		p.SetSecondaries("urn:example", publishtest.Local())
		for i := range 50 {
			p.Register(fmt.Sprintf("urn:example:q:%d", i), "N2L https://example.org/")
		}
		if mode != zonesign.Unsigned {
			p.SignZones(mode, "z.example.")
		}
		s := serve(p, Options{})
		was := map[uint32]map[string]bool{}
		var mu sync.Mutex
		note := func() {
			n, err := p.Store.LastChange(p.Ctx)
			if err != nil {
				t.Error(err)
			}
			now := p.Lines("z.example.")
			mu.Lock()
			was[uint32(n)] = now
			mu.Unlock()
		}
		note()
		var all sync.WaitGroup
		all.Go(func() {
			chance := mathrand.New(mathrand.NewPCG(5, 6))
			for range 60 {
				p.AnyChange(chance, "urn:example")
				note()
			}
		})
		taken := map[uint32]map[string]bool{}
		for range 40 {
			list, _, err := take(s, "z.example.", 0, nil)
			if err != nil {
				t.Fatal(err)
			}
			taken[publishtest.Ends(t, list)] = publishtest.Lines(t, list)
		}
		all.Wait()
		for serial, got := range taken {
			if diff := cmp.Diff(was[serial], got); diff != "" {
				t.Errorf("serial %d (-then +taken):\n%s", serial, diff)
			}
		}
		if len(taken) < 3 {
			t.Errorf("only the serials %v were taken", slices.Sorted(maps.Keys(taken)))
		}
	}
}

// TestTransferAccess checks which clients may have a zone.
func TestTransferAccess(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	one, two := p.AddTSIGKey("one.example.org", zonekey.TSIGSHA256), p.AddTSIGKey("two.example.org", zonekey.TSIGSHA512)
	three := p.AddTSIGKey("three.example.org", zonekey.TSIGSHA384)
	s := serve(p, Options{})
	const zone = "paradisec.example."
	for i, test := range []struct {
		who  stele.Secondary
		key  *zonekey.TSIGKey
		good bool
	}{
		{stele.Secondary{Network: "192.0.2.0/24"}, nil, false},
		{stele.Secondary{Network: "127.0.0.1"}, nil, true},
		{stele.Secondary{Network: "127.0.0.1"}, one, true},
		{stele.Secondary{Network: "127.0.0.0/8", Key: one.Name}, nil, false},
		{stele.Secondary{Network: "127.0.0.0/8", Key: one.Name}, two, false},
		{stele.Secondary{Network: "127.0.0.0/8", Key: one.Name}, one, true},
		{stele.Secondary{Network: "192.0.2.0/24", Key: one.Name}, one, false},
		{stele.Secondary{Key: two.Name}, two, true},
		{stele.Secondary{Key: three.Name}, three, true},
		{stele.Secondary{Key: two.Name}, one, false},
		{stele.Secondary{Network: "::/0"}, nil, false},
	} {
		p.SetSecondaries("urn:paradisec", test.who)
		for _, serial := range []uint32{0, 1} {
			list, _, err := take(s, zone, serial, test.key)
			if good := err == nil && len(list) > 2; good != test.good {
				t.Errorf("%d: %+v, %v: %d records, %v", i, test.who, test.key, len(list), err)
			}
			if !test.good && (err == nil || !strings.Contains(err.Error(), "5")) { // REFUSED
				t.Errorf("%d: %v", i, err)
			}
		}
	}
	if list, _, err := take(s, "nothing.example.", 0, nil); err == nil {
		t.Errorf("got %v", list)
	}
	p.SetSecondaries("urn:paradisec", stele.Secondary{Key: one.Name})
	keys := &zonekey.TSIGManager{Store: p.Registrar, Now: time.Now, Random: rand.Reader}
	if k, err := keys.Retire(p.Ctx, "ONE.example.org"); err != nil || k.Secret != nil || k.Retired.IsZero() {
		t.Errorf("%+v, %v", k, err)
	}
	if list, _, err := take(s, zone, 0, one); err == nil {
		t.Errorf("with a key that was retired: %v", list)
	}
}

// TestUnknownSerials checks that a client with a serial of which the changes are not known
// gets the whole zone, and one with a newer serial nothing.
func TestUnknownSerials(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.SetSecondaries("urn:paradisec", publishtest.Local())
	s := serve(p, Options{})
	p.Register("urn:paradisec:AB1:001:B", "https://example.org/")
	last, err := p.Store.LastChange(p.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	now := uint32(last)
	for _, test := range []struct {
		serial uint32
		want   string
	}{
		{0, "whole"}, {1, "whole"}, {now - 2, "difference"}, // the list of secondaries is not in the zone
		{now - 1, "difference"}, {now, "nothing"}, {now + 1, "nothing"}, {now + 1<<30, "nothing"},
		{now - 1<<30, "whole"}, {now + 1<<31, "whole"}, {now + 1<<31 + 5, "whole"},
	} {
		list, _, err := take(s, "paradisec.example.", test.serial, nil)
		if err != nil {
			t.Fatalf("%d: %v", test.serial, err)
		}
		got := "whole"
		switch {
		case len(list) == 1:
			got = "nothing"
		case list[1].Header().Rrtype == dns.TypeSOA:
			got = "difference"
		}
		if got != test.want {
			t.Errorf("%d, now %d: %s, want %s", test.serial, now, got, test.want)
		}
	}
}

// TestIncrementOverUDP checks that over UDP a delta comes if it fits, and otherwise the SOA
// record.
func TestIncrementOverUDP(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	k := p.AddTSIGKey("one.example.org", zonekey.TSIGSHA256)
	p.SetSecondaries("urn:paradisec", stele.Secondary{Key: k.Name})
	s := serve(p, Options{})
	last, err := p.Store.LastChange(p.Ctx)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(zone string, qtype uint16) *dns.Msg {
		m := new(dns.Msg).SetIxfr(zone, uint32(last), "ns.", "mail.")
		m.Question[0].Qtype = qtype
		m.SetEdns0(4096, false)
		m.SetTsig(k.Name, k.Algorithm+".", 300, time.Now().Unix())
		c := dns.Client{Timeout: waitForIt, TsigSecret: map[string]string{k.Name: base64.StdEncoding.EncodeToString(k.Secret)}}
		r, _, err := c.Exchange(m, s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	const soa, naptr = " answer:SOA", " answer:NAPTR"
	p.Register("urn:paradisec:AB1:001:B", "https://example.org/")
	if got := brief(ask("paradisec.example.", dns.TypeIXFR)); got != "NOERROR aa"+soa+soa+soa+naptr+naptr+" answer:URI"+soa+" additional:OPT additional:TSIG" {
		t.Error(got)
	}
	p.Register("urn:paradisec:AB1:001:C", "https://example.org/"+strings.Repeat("x", 1500))
	if got := brief(ask("paradisec.example.", dns.TypeIXFR)); got != "NOERROR aa"+soa+" additional:OPT additional:TSIG" {
		t.Error(got)
	}
	for _, zone := range []string{"urn.example.", "a.paradisec.example.", "x.example."} {
		if got := brief(ask(zone, dns.TypeIXFR)); got != "REFUSED additional:OPT additional:TSIG" {
			t.Error(zone, got)
		}
	}
	if got := brief(ask("paradisec.example.", dns.TypeAXFR)); got != "REFUSED additional:OPT additional:TSIG" {
		t.Error(got)
	}
	if got := brief(ask("paradisec.example.", dns.TypeSOA)); got != "NOERROR aa"+soa+" additional:OPT additional:TSIG" {
		t.Error(got)
	}
}

// TestTransfersAtOnce checks that the server answers with SERVFAIL if too many transfers
// are under way.
func TestTransfersAtOnce(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.SetSecondaries("urn:paradisec", publishtest.Local())
	s := serve(p, Options{Transfers: TransferLimits{AtOnce: 1}})
	s.slots <- struct{}{}                                                                                      // another transfer's
	if _, _, err := take(s, "paradisec.example.", 0, nil); err == nil || !strings.Contains(err.Error(), "2") { // SERVFAIL
		t.Errorf("got %v", err)
	}
	<-s.slots
	if _, _, err := take(s, "paradisec.example.", 0, nil); err != nil {
		t.Error(err)
	}
}

// TestEnvelopes checks that the messages of a transfer stay within their size, and have all
// records in order.
func TestEnvelopes(t *testing.T) {
	question := []byte("\x01z\x07example\x00\x00\xfc\x00\x01")
	e := newEnvelopes(7, flagQR, question)
	var want []string
	for i := range 2000 {
		rr, err := dns.NewRR(fmt.Sprintf("n%d.z.example. 60 TXT %s", i/3, strings.Repeat("x", i%200)))
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, rr.String())
		if err := e.add(rr); err != nil {
			t.Fatal(err)
		}
	}
	e.close()
	var got []string
	for _, wire := range e.take() {
		var m dns.Msg
		if err := m.Unpack(wire); err != nil || m.Id != 7 || m.Question[0].Name != "z.example." || len(wire) > envelopeSize+1024 {
			t.Fatalf("%d bytes: %v", len(wire), err)
		}
		for _, rr := range m.Answer {
			got = append(got, rr.String())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if other, err := dns.NewRR("y. 60 TXT x"); err != nil || e.add(other) == nil {
		t.Error("a record of another zone was packed")
	}
	if bytes.Contains(e.head, []byte{0xC0}) {
		t.Error("the head was changed")
	}
}

// TestTransferOverTLS transfers a zone over TLS (RFC 9103).
func TestTransferOverTLS(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.SetSecondaries("urn:paradisec", publishtest.Local())
	s := serve(p, Options{})
	server, client := testTLS(t)
	if err := s.ListenTLS(t.Context(), "127.0.0.1:0", server); err != nil {
		t.Fatal(err)
	}
	in, err := (&dns.Transfer{Conn: &dns.Conn{Conn: dialTLS(t, s, client)}}).In(new(dns.Msg).SetAxfr("paradisec.example."), "")
	if err != nil {
		t.Fatal(err)
	}
	var list []dns.RR
	for e := range in {
		if e.Error != nil {
			t.Fatal(e.Error)
		}
		list = append(list, e.RR...)
	}
	publishtest.Ends(t, list)
	if diff := cmp.Diff(p.Lines("paradisec.example."), publishtest.Lines(t, list)); diff != "" {
		t.Errorf("(-zone +taken):\n%s", diff)
	}
}

// TestTransferAliases checks that aliases are in the zone, each once, if the identifiers of
// their records are elsewhere.
func TestTransferAliases(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.SetSecondaries("urn:paradisec", publishtest.Local())
	for i, id := range []string{"urn:aaa:1", "urn:paradisec:AB1:001:Q", "urn:paradisecx:1", "urn:zzz:1", "ark:/12345/x1"} {
		r := &stele.Record{ID: p.ID(id), Aliases: []stele.ID{p.ID(fmt.Sprintf("urn:paradisec:AB1:001:alias%d", i))}, Targets: []stele.Target{publishtest.Target("https://example.org/")}}
		if _, err := p.Registrar.Register(p.Ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	list, _, err := take(serve(p, Options{}), "paradisec.example.", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, rr := range list {
		if rr.Header().Rrtype == dns.TypeURI {
			seen[rr.Header().Name]++
		}
	}
	for i := range 5 {
		if name := fmt.Sprintf("alias%d.001.ab1.paradisec.example.", i); seen[name] != 1 {
			t.Errorf("%s is there %d times", name, seen[name])
		}
	}
}
