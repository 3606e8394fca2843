package client

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/outbound"
)

// Bounds of asking secondaries: an owner of a namespace decides how many there are, and
// they may be slow.
const (
	secondariesAtOnce  = 16
	secondariesAsked   = 512              // altogether
	secondariesTimeout = 20 * time.Second // altogether
)

// AskSecondaries asks those secondaries of a list that have no state yet for the serials of
// their copies, several at once, at addresses that the rule allows.
func AskSecondaries(ctx context.Context, may outbound.Rule, list []stele.SecondaryAnswer) {
	ctx, cancel := context.WithTimeout(ctx, secondariesTimeout)
	defer cancel()
	next := make(chan *stele.SecondaryAnswer)
	var askers sync.WaitGroup
	for range min(secondariesAtOnce, len(list)) {
		askers.Go(func() {
			for one := range next {
				askSecondary(ctx, may, one)
			}
		})
	}
	asked := 0
	for i := range list {
		one := &list[i]
		if one.State != "" {
			continue
		}
		if asked++; asked > secondariesAsked {
			one.State, one.Why = stele.SecondaryUnasked, fmt.Sprintf("no more than %d secondaries are asked at a time", secondariesAsked)
			continue
		}
		next <- one
	}
	close(next)
	askers.Wait()
}

// askSecondary asks one secondary, if the rule allows it and there is time.
func askSecondary(ctx context.Context, may outbound.Rule, one *stele.SecondaryAnswer) {
	at, err := netip.ParseAddrPort(one.At)
	switch {
	case err != nil:
		one.State, one.Why = stele.SecondaryUnasked, "its settings have no address with a port"
	case !may.May(at.Addr()):
		one.State, one.Why = stele.SecondaryUnasked, "it is not at a public address; allow it with notify-allow ("+at.Addr().String()+")"
	case ctx.Err() != nil:
		one.State, one.Why = stele.SecondaryUnasked, "there was no time left to ask it"
	default:
		*one = AskSerial(ctx, (&outbound.Dialer{Rule: may}).DialContext, one.Zone, at, 0)
	}
}
