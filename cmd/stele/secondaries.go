package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/outbound"
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
