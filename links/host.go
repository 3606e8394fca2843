package links

import (
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
)

const (
	breakAfter = 5             // failures of a host in a row after which it is probed only
	probeEvery = time.Hour     // then
	probeDown  = 6 * time.Hour // of a host that is known to be down
)

// Host is what is known of a host as a whole. A host that does not answer is one finding, however many names
// lead there.
type Host struct {
	Row      Row       // of failures to reach it
	Answered time.Time // last, with any status
	Cause    Cause     // of the last failure
	Down     time.Time // since when it counts as down; zero: it does not
	Streak   uint8     // failures to reach it in a row
	Probe    time.Time // when it is asked again, if it did not answer
}

// Add takes over what an answer says about the host.
func (h *Host) Add(e *Evidence, now time.Time) {
	if !e.Cause.ofHost() || e.Redirected {
		if e.Status != 0 || e.Weight == Good || e.Cause == BadCertificate || e.Redirected {
			*h = Host{Answered: now}
		}
		return
	}
	h.Row.add(e.Cause, now)
	h.Cause, h.Streak = e.Cause, inc(h.Streak)
	if h.Down.IsZero() && h.Row.isOver() {
		h.Down = now
	}
	switch {
	case !h.Down.IsZero():
		h.Probe = now.Add(probeDown)
	case h.IsOpen():
		h.Probe = now.Add(probeEvery)
	}
}

// IsOpen reports whether the host is only probed.
func (h *Host) IsOpen() bool { return h.Streak >= breakAfter || !h.Down.IsZero() }

// Domain returns the part of a host's name that one owner has registered, or an address as it is. Hosts of
// one domain are asked one after the other.
func Domain(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	if d, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return d
	}
	return host
}
