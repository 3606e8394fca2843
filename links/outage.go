package links

import "time"

// When no host answers, it is the way out of this server that is broken, or its resolver, and not all of the hosts.
const (
	outageFails   = 20 // failures in a row to reach hosts that did not count as down
	outageDomains = 10 // of so many domains
	outagePause   = 10 * time.Minute
	ownWait       = time.Hour // until a target is asked again that could not be asked because of this server
)

// outage notices that this server reaches no host.
type outage struct {
	since   time.Time // zero: hosts answer
	until   time.Time // when the next host is tried
	fails   int
	domains map[string]bool
}

// Outage returns since when this server has reached no host at all; zero: it reaches some.
func (l *Line) Outage() time.Time { return l.out.since }

// SetOutage says that this server reached no host, since a time, when it worked last. The next answer decides whether it still is so.
func (l *Line) SetOutage(since time.Time) { l.out.since = since }

// Rests returns until when no host is asked since none answered; zero: some are.
func (l *Line) Rests(now time.Time) (until time.Time) {
	if l.out.since.IsZero() || !now.Before(l.out.until) {
		return time.Time{}
	}
	return l.out.until
}

// add takes over an answer of a host, or a missing one. It says in the evidence that it is this server's fault if no host answers.
func (o *outage) add(host string, known *Host, e *Evidence, now time.Time) {
	if !e.Cause.ofHost() || e.Redirected {
		if e.Status != 0 || e.Weight == Good || e.Cause == BadCertificate || e.Redirected {
			*o = outage{}
		}
		return
	}
	if o.since.IsZero() {
		if known.Down.IsZero() { // of the others it is known
			if o.fails++; o.domains == nil {
				o.domains = make(map[string]bool)
			}
			if len(o.domains) < outageDomains {
				o.domains[Domain(host)] = true
			}
		}
		if o.fails < outageFails || len(o.domains) < outageDomains {
			return
		}
		o.since = now
	}
	o.until = now.Add(outagePause)
	*e = Evidence{Cause: OwnFault, Wait: ownWait}
}
