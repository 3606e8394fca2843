package dnsd

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
	"github.com/stele-id/stele/publish/zonekey"
)

// noticeTaker is a name server that takes notices, and answers as a test says.
type noticeTaker struct {
	addr string
	got  chan *dns.Msg // what came with a good signature, if it has to have one
}

// takeNotices answers notices with a response code. With a key it wants signatures, and
// signs.
func takeNotices(t *testing.T, code int, k *zonekey.TSIGKey) *noticeTaker {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &noticeTaker{addr: pc.LocalAddr().String(), got: make(chan *dns.Msg, 100)}
	s := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, m *dns.Msg) {
		r := new(dns.Msg).SetRcode(m, code)
		if k != nil {
			if m.IsTsig() == nil || w.TsigStatus() != nil {
				return
			}
			r.SetTsig(k.Name, k.Algorithm+".", 300, time.Now().Unix())
		}
		n.got <- m
		_ = w.WriteMsg(r)
	})}
	s.MsgAcceptFunc = func(dns.Header) dns.MsgAcceptAction { return dns.MsgAccept }
	if k != nil {
		s.TsigSecret = map[string]string{k.Name: base64.StdEncoding.EncodeToString(k.Secret)}
	}
	var running sync.WaitGroup
	running.Go(func() { _ = s.ActivateAndServe() })
	t.Cleanup(func() {
		_ = s.Shutdown()
		running.Wait()
	})
	return n
}

// next waits for a notice and returns its serial.
func (n *noticeTaker) next(t *testing.T, zone string) uint32 {
	t.Helper()
	select {
	case m := <-n.got:
		soa, ok := m.Answer[0].(*dns.SOA)
		if !ok || m.Opcode != dns.OpcodeNotify || !m.Authoritative || m.Question[0].Name != zone || m.Question[0].Qtype != dns.TypeSOA {
			t.Fatalf("got %v", m)
		}
		return soa.Serial
	case <-time.After(waitForIt):
		t.Fatal("no notice came")
		return 0
	}
}

func TestNotify(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	p := publishtest.New(t)
	p.Paradisec()
	k := p.AddTSIGKey("one.example.org", zonekey.TSIGSHA384)
	signed, plain, unwilling := takeNotices(t, dns.RcodeSuccess, k), takeNotices(t, dns.RcodeSuccess, nil), takeNotices(t, dns.RcodeNotAuth, nil)
	p.SetSecondaries("urn:paradisec",
		stele.Secondary{Key: k.Name, Notify: []string{signed.addr}},
		stele.Secondary{Network: "127.0.0.1", Notify: []string{plain.addr, unwilling.addr}},
		stele.Secondary{Key: "none.example.", Notify: []string{"127.0.0.1:9"}},
	)
	s := serve(p, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.NotifySecondaries(ctx) })
	defer running.Wait()
	defer cancel()
	const zone = "paradisec.example."
	first := signed.next(t, zone)
	for _, n := range []*noticeTaker{plain, unwilling} {
		if serial := n.next(t, zone); serial != first {
			t.Errorf("serial %d, and %d", serial, first)
		}
	}
	var last uint32
	for i := range 50 { // in less than a second, if the machine is not too slow
		p.Register(fmt.Sprintf("urn:paradisec:AB1:1:n%d", i), "https://example.org/")
		last = p.Serial(zone)
	}
	for _, n := range []*noticeTaker{signed, plain, unwilling} {
		for n.next(t, zone) != last {
		}
	}
	deadline := time.After(waitForIt)
	for {
		st := s.Stats()
		if st.Confirmed >= 4 && st.Unwanted >= 2 {
			if st.GivenUp != 0 || st.Notices < 6 || st.Notices > 3*51 {
				t.Errorf("%+v", st)
			}
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%+v", st)
		case <-time.After(time.Millisecond):
		}
	}
}

// stillClock is a clock that stands still.
type stillClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *stillClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *stillClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// TestNobodyConfirms has a thousand zones whose secondaries never confirm anything: each
// gets its notice noticeTries times, and then the notifier forgets it. However often a zone
// changes, there is one notice a second.
func TestNobodyConfirms(t *testing.T) {
	p := publishtest.New(t)
	const zones = 1000
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for i := range zones {
		p.Namespace(fmt.Sprintf("urn:z%d", i), func(ns *stele.Namespace) {
			ns.Publication = stele.Publication{Zone: fmt.Sprintf("z%d.example.", i), Layout: stele.LayoutNames, Separator: ":", Parts: 1,
				Servers:     []stele.NameServer{{Name: "ns.example."}},
				Secondaries: []stele.Secondary{{Network: "127.0.0.1", Notify: []string{silent.LocalAddr().String()}}}}
		})
	}
	clock := &stillClock{at: time.Now()}
	s := New(Options{Zones: p.Zones, Now: clock.now})
	defer func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := p.Zones.All(p.Ctx); err != nil { // or else it says that all may have changed
		t.Fatal(err)
	}
	n := s.newNotifier()
	var readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	n.open(ctx, &readers)
	defer func() {
		cancel()
		for _, c := range n.sockets {
			c.Close()
		}
		readers.Wait()
	}()
	round := func() {
		n.plan(ctx)
		n.sendDue(ctx)
	}
	round()
	if got := s.Stats().Notices; got != zones {
		t.Fatalf("%d notices", got)
	}
	for i := range 30 { // one zone goes on changing, within one second
		p.Register(fmt.Sprintf("urn:z7:n%d", i), "https://example.org/")
		clock.pass(30 * time.Millisecond)
		round()
	}
	if got := s.Stats().Notices; got != zones {
		t.Errorf("%d notices within a second", got)
	}
	clock.pass(200 * time.Millisecond)
	round()
	if got := s.Stats().Notices; got != zones+1 {
		t.Errorf("%d notices after a second", got)
	}
	for range 200 {
		clock.pass(time.Second)
		round()
	}
	st := s.Stats()
	if st.Notices != zones*noticeTries+1 || st.GivenUp != zones || st.Confirmed != 0 || len(n.notices) != 0 || len(n.awaited) != 0 {
		t.Errorf("%d notices and %d replies are waited for: %+v", len(n.notices), len(n.awaited), st)
	}
}
