package client

import (
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/outbound"
)

// Secondaries are asked at addresses that the rule allows, and several at once.
func TestAskSecondaries(t *testing.T) {
	const zone = "zone.example."
	with := func(serial int) string {
		return oneServer(t, func(q *dns.Msg, _ bool) *dns.Msg {
			return records(t, q, zone+" 60 SOA ns1.zone.example. h.example. "+strconv.Itoa(serial)+" 1 1 1 1")
		}).String()
	}
	refusing := func(rcode int) string {
		return oneServer(t, func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, rcode) }).String()
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	may := outbound.Rule{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	var list []stele.SecondaryAnswer
	for _, at := range []string{with(7), with(9), refusing(dns.RcodeRefused), refusing(dns.RcodeServerFailure), silent, "127.0.0.2:53", "here"} {
		list = append(list, stele.SecondaryAnswer{Zone: zone, At: at})
	}
	list = append(list, stele.SecondaryAnswer{Zone: zone, At: "192.0.2.0/24", State: stele.SecondaryUnasked, Why: "no address"})
	AskSecondaries(t.Context(), may, list)
	want := []stele.SecondaryState{"answers", "answers", "refuses", "lame", "silent", "unasked", "unasked", "unasked"}
	for i, a := range list {
		if a.State != want[i] || a.HasSerial() != (i < 2) || (a.Why == "") != (i < 2) {
			t.Errorf("%s: %+v, want %s", a.At, a, want[i])
		}
	}
	if list[0].Serial != 7 || list[1].Serial != 9 {
		t.Errorf("serials %d and %d", list[0].Serial, list[1].Serial)
	}
}
