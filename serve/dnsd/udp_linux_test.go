package dnsd

import (
	"net/netip"
	"testing"

	"github.com/miekg/dns"
)

// TestAnswersFromWhereItWasAsked asks at an address that is not the one the system
// would choose to answer from.
func TestAnswersFromWhereItWasAsked(t *testing.T) {
	for _, lookups := range []int{0, 2} {
		s, _ := listen(t, ":0", Options{Sockets: 2, Lookups: lookups})
		checkOrigins(t, s)
	}
}

func checkOrigins(t *testing.T, s *Server) {
	t.Helper()
	for _, ip := range []string{"127.0.0.1", "127.0.0.2", "127.8.8.8", "::1"} {
		at := netip.AddrPortFrom(netip.MustParseAddr(ip), s.Addr().Port())
		for _, network := range []string{"udp", "tcp"} { // the client's socket takes answers from at only
			if got := brief(exchange(t, network, at, question(network+".paradisec.example.", dns.TypeSOA))); got != "NXDOMAIN aa authority:SOA" {
				t.Errorf("%s: %s", ip, got)
			}
		}
	}
}
