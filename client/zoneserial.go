package client

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// Dial opens a connection, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// askSOA asks a server for the SOA record of a zone.
func askSOA(ctx context.Context, dial Dial, network, zone string, at netip.AddrPort, patience time.Duration) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := dial(ctx, network, at.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	q := new(dns.Msg).SetQuestion(zone, dns.TypeSOA)
	q.RecursionDesired = false
	c := &dns.Client{Net: network, Timeout: patience}
	reply, _, err := c.ExchangeWithConnContext(ctx, q, &dns.Conn{Conn: conn})
	return reply, err
}

// AskSerial asks a secondary for the serial of its copy of a zone. It asks over TCP, where
// an answer can't easily be forged, and over UDP if TCP fails. Each takes no longer than
// patience, which is 2 s if 0. Dial opens connections: a server, whose users name the
// secondaries, passes one with a rule.
func AskSerial(ctx context.Context, dial Dial, zone string, at netip.AddrPort, patience time.Duration) stele.SecondaryAnswer {
	answer := stele.SecondaryAnswer{Zone: zone, At: at.String(), State: stele.SecondarySilent}
	for _, network := range []string{"tcp", "udp"} {
		reply, err := askSOA(ctx, dial, network, zone, at, cmp.Or(patience, 2*time.Second))
		if err != nil {
			if answer.Why == "" || network == "tcp" {
				answer.Why = err.Error()
			}
			continue
		}
		answer.Why = ""
		switch serial, err := serialOf(reply, zone); {
		case reply.Rcode == dns.RcodeRefused || reply.Rcode == dns.RcodeNotAuth:
			answer.State, answer.Why = stele.SecondaryRefuses, rcodeError(reply).Error()
		case reply.Rcode != dns.RcodeSuccess:
			answer.State, answer.Why = stele.SecondaryLame, rcodeError(reply).Error()
		case err != nil:
			answer.State, answer.Why = stele.SecondaryLame, err.Error()
		case !reply.Authoritative:
			answer.State, answer.Why = stele.SecondaryLame, "it does not answer for the zone by itself"
		default:
			answer.State, answer.Serial = stele.SecondaryAnswers, serial
		}
		break
	}
	return answer
}
