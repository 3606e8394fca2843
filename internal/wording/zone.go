package wording

import (
	"fmt"

	"github.com/stele-id/stele"
)

// Secondary says what a secondary has of a zone whose serial is given.
func Secondary(a stele.SecondaryAnswer, serial uint32) string {
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

// ShutZone says what to do about a zone that is not transferred.
func ShutZone(zone string) string {
	return "its secondaries get no transfers, since it came from a backup and it is not known which serials they have; ask each for its SOA record, and name the highest serial: stele zone raise " + zone + " --above SERIAL"
}
