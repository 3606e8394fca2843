// Package limit keeps the work of a server within bounds: how often a client may ask
// (Rate), how many bytes of answers wait for clients to read them (Held), and how many
// large answers are made at the same time (Turns).
//
// It counts and refuses. It never waits for a client, never reads a clock, and does not
// know HTTP: a caller turns a [Refusal] into the status of its protocol.
package limit

import (
	"net/netip"
	"time"

	"github.com/stele-id/stele"
)

// Refusal says that a limit is reached. Its kind is Exhausted if the client itself has
// reached it, and Unavailable if all clients together have.
type Refusal struct {
	Kind    stele.Kind
	After   time.Duration // when to try again; it is more than 0
	Message *stele.Message
}

func (r *Refusal) Error() string { return r.Message.Error() }

// Unwrap returns the message, with its code.
func (r *Refusal) Unwrap() error { return r.Message }

// Is reports whether target is the kind.
func (r *Refusal) Is(target error) bool { return target == r.Kind }

// Client returns the name under which requests from an address are counted: the address,
// or for IPv6 its network of 64 bits, all of which one client has.
func Client(a netip.Addr) string { return Network(a).String() }

// Network returns the same as an address: the first one of the network.
func Network(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if a.Is6() {
		if network, err := a.Prefix(64); err == nil {
			a = network.Addr()
		}
	}
	return a
}
