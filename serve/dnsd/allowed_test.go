package dnsd

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/publish/publishtest"
)

// TestNotifyAllowed checks that the running name server sends notices only to addresses
// that the operator allows, whatever secondaries an owner names.
func TestNotifyAllowed(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	allowed := takeNotices(t, dns.RcodeSuccess, nil)
	other, err := net.ListenPacket("udp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	p.SetSecondaries("urn:paradisec", stele.Secondary{Network: "127.0.0.2", Notify: []string{other.LocalAddr().String()}},
		stele.Secondary{Network: "127.0.0.1", Notify: []string{allowed.addr}})
	rule, err := outbound.ParseRule([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	s := serve(p, Options{Notify: &rule})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.NotifySecondaries(ctx) })
	const zone = "paradisec.example."
	allowed.next(t, zone)
	p.Register("urn:paradisec:AB1:1:next", "https://example.org/")
	allowed.next(t, zone)
	cancel()
	running.Wait()
	// The notifier has ended, so whatever it sent over loopback is there: before the packet
	// that the test sends itself.
	own, err := net.Dial("udp", other.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := own.Write([]byte("end")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 512)
	if n, _, err := other.ReadFrom(buf); err != nil || string(buf[:n]) != "end" {
		t.Errorf("a notice of %d bytes came to an address that is not allowed (%v)", n, err)
	}
}

// TestTransferAllowed checks that the server transfers zones only to addresses that the
// operator allows, whatever secondaries an owner names.
func TestTransferAllowed(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.SetSecondaries("urn:paradisec", stele.Secondary{Network: "127.0.0.0/8"})
	for _, test := range []struct {
		allow []string
		good  bool
	}{{nil, false}, {[]string{"127.0.0.2"}, false}, {[]string{"10.0.0.0/8", "::1"}, false}, {[]string{"127.0.0.1"}, true}, {[]string{"127.0.0.0/8"}, true}} {
		rule, err := outbound.ParseRule(test.allow)
		if err != nil {
			t.Fatal(err)
		}
		s := serve(p, Options{Transfer: &rule})
		for _, serial := range []uint32{0, 1} {
			list, _, err := take(s, "paradisec.example.", serial, nil)
			if good := err == nil && len(list) > 2; good != test.good {
				t.Errorf("%v, serial %d: %d records, %v", test.allow, serial, len(list), err)
			}
		}
	}
}
