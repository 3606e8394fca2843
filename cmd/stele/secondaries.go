package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
)

// Bounds of asking secondaries: an owner of a namespace says how many there are, and they
// may be slow.
const (
	secondariesAtOnce  = 16
	secondariesAsked   = 512              // altogether
	secondariesTimeout = 20 * time.Second // altogether
)

// allowFlag adds the flag that says which secondaries may be asked beside public ones.
func (p *program) allowFlag(cmd *cobra.Command) {
	s := config.Find("notify-allow")
	cmd.Flags().StringVar(&p.askAllow, s.Name, os.Getenv(s.Variable()), "`addresses` and networks, beside public ones, at which secondaries may be asked, with commas between them (environment: "+s.Variable()+")")
	_ = cmd.RegisterFlagCompletionFunc(s.Name, cobra.NoFileCompletions)
}

// mayAsk returns where secondaries may be asked: where a server may notify them.
func (p *program) mayAsk() (outbound.Rule, error) {
	if p.notify != nil {
		return *p.notify, nil
	}
	list := strings.FieldsFunc(p.askAllow, func(r rune) bool { return r == ',' || r == ' ' })
	allowed, err := outbound.ParseRule(list)
	if err != nil {
		return allowed, refuse("ask secondaries", stele.Invalid, "notify-allow: %w", err)
	}
	return allowed, nil
}

// secondariesOf asks the secondaries of all zones that stores publish for the serials of
// their copies. A store that is nil has none.
func (p *program) secondariesOf(ctx context.Context, stores ...stele.Store) ([]stele.SecondaryAnswer, error) {
	may, err := p.mayAsk()
	if err != nil {
		return nil, err
	}
	var open []stele.Store
	for _, store := range stores {
		if store == nil {
			continue
		}
		// A registry that is replaced may be damaged, which is told elsewhere.
		if _, err := registrar.Secondaries(ctx, store); err != nil && stele.KindOf(err) != stele.Internal {
			return nil, err
		} else if err == nil {
			open = append(open, store)
		}
	}
	list, err := registrar.Secondaries(ctx, open...)
	if err != nil {
		return nil, err
	}
	askSecondaries(ctx, may, list)
	return list, nil
}

// secondariesOfZone asks the secondaries of one zone.
func (p *program) secondariesOfZone(ctx context.Context, store stele.Store, zone string) ([]stele.SecondaryAnswer, error) {
	may, err := p.mayAsk()
	if err != nil {
		return nil, err
	}
	list, err := registrar.Secondaries(ctx, store)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(a stele.SecondaryAnswer) bool { return a.Zone != zone })
	askSecondaries(ctx, may, list)
	return list, nil
}

// askSecondaries asks those of a list that are in no state yet, several at once.
func askSecondaries(ctx context.Context, may outbound.Rule, list []stele.SecondaryAnswer) {
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

// askSecondary asks one secondary, if it may be asked and there is time.
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
		*one = client.AskSerial(ctx, (&outbound.Dialer{Rule: may}).DialContext, one.Zone, at, 0)
	}
}

// secondaryCheck is a secondary as programs see it.
type secondaryCheck struct {
	At     string               `json:"at"`
	State  stele.SecondaryState `json:"state"`
	Serial *uint32              `json:"serial,omitempty"`
	Why    string               `json:"why,omitempty"`
}

func newSecondaryCheck(a stele.SecondaryAnswer) secondaryCheck {
	c := secondaryCheck{At: a.At, State: a.State, Why: a.Why}
	if a.HasSerial() {
		c.Serial = &a.Serial
	}
	return c
}

// secondaryWords says what a secondary has, in words, of a zone whose serial is given.
func secondaryWords(a stele.SecondaryAnswer, serial uint32) string {
	at := "the secondary " + a.At
	switch a.State {
	case stele.SecondarySame:
		return fmt.Sprintf("%s has serial %d, as the zone", at, a.Serial)
	case stele.SecondaryBehind:
		return fmt.Sprintf("%s has serial %d, below that of the zone (%d); it takes the zone when it asks next", at, a.Serial, serial)
	case stele.SecondaryAhead:
		return fmt.Sprintf("%s has serial %d, above that of the zone (%d): it keeps other contents and takes no changes; raise the zone: stele zone raise %s --above %d", at, a.Serial, serial, a.Zone, a.Serial)
	case stele.SecondaryFar:
		return fmt.Sprintf("%s has serial %d, too far from that of the zone (%d) to be compared: have it drop its copy and transfer the zone anew (BIND: rndc retransfer)", at, a.Serial, serial)
	case stele.SecondaryRefuses:
		return fmt.Sprintf("%s refuses to say its serial: %s", at, a.Why)
	case stele.SecondaryLame:
		return fmt.Sprintf("%s answers, and does not have the zone: %s", at, a.Why)
	case stele.SecondaryUnasked:
		return fmt.Sprintf("%s was not asked for its serial: %s", at, a.Why)
	}
	return fmt.Sprintf("%s does not answer: %s", at, a.Why)
}

// shutWords says what to do about a zone that is not transferred.
func shutWords(zone string) string {
	return "its secondaries get no transfers, since it came from a backup and it is not known which serials they have; ask each for its SOA record, and name the highest serial: stele zone raise " + zone + " --above SERIAL"
}
