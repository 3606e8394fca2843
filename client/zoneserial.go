package client

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// AskSerial asks a secondary for the serial of its copy of a zone. It asks over TCP, where
// an answer can't easily be forged, and over UDP if the server is not reached so. Each
// takes no longer than patience, which is 2 s if 0.
func AskSerial(ctx context.Context, zone string, at netip.AddrPort, patience time.Duration) stele.SecondaryAnswer {
	answer := stele.SecondaryAnswer{Zone: zone, At: at.String(), State: stele.SecondarySilent}
	d := &Delegations{Timeout: cmp.Or(patience, 2*time.Second)}
	for _, network := range []string{"tcp", "udp"} {
		reply, err := d.exchange(ctx, at, network, zone, dns.TypeSOA, false)
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
