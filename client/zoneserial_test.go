package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// A secondary is asked over TCP, and over UDP if TCP fails, only by connections that dial
// opens.
func TestAskSerial(t *testing.T) {
	const soa = "zone.example. 60 SOA ns1.zone.example. h.example. 7 1 1 1 1"
	open := (&net.Dialer{}).DialContext
	only := func(want string) Dial {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			if network != want {
				return nil, errors.New("not over " + network)
			}
			return open(ctx, network, address)
		}
	}
	for name, test := range map[string]struct {
		dial   Dial
		answer func(q *dns.Msg, tcp bool) *dns.Msg
		state  stele.SecondaryState
		why    string
	}{
		"both":  {open, func(q *dns.Msg, _ bool) *dns.Msg { return records(t, q, soa) }, stele.SecondaryAnswers, ""},
		"tcp":   {only("tcp"), func(q *dns.Msg, _ bool) *dns.Msg { return records(t, q, soa) }, stele.SecondaryAnswers, ""},
		"udp":   {only("udp"), func(q *dns.Msg, _ bool) *dns.Msg { return records(t, q, soa) }, stele.SecondaryAnswers, ""},
		"none":  {only("none"), func(q *dns.Msg, _ bool) *dns.Msg { return records(t, q, soa) }, stele.SecondarySilent, "not over tcp"},
		"other": {open, func(q *dns.Msg, _ bool) *dns.Msg { return records(t, q, strings.Replace(soa, "zone.", "other.", 1)) }, stele.SecondaryLame, "no SOA"},
		"no authority": {open, func(q *dns.Msg, _ bool) *dns.Msg {
			m := records(t, q, soa)
			m.Authoritative = false
			return m
		}, stele.SecondaryLame, "by itself"},
		"refused": {open, func(q *dns.Msg, _ bool) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) }, stele.SecondaryRefuses, "REFUSED"},
	} {
		t.Run(name, func(t *testing.T) {
			got := AskSerial(t.Context(), test.dial, "zone.example.", oneServer(t, test.answer), 10*time.Second)
			if got.State != test.state || !strings.Contains(got.Why, test.why) || got.HasSerial() && got.Serial != 7 || got.HasSerial() != (got.Why == "") {
				t.Errorf("%+v, want %s, %q", got, test.state, test.why)
			}
		})
	}
}
