//go:build !linux

package server

import (
	"net"
	"time"
)

// refuseNew does nothing where no filter can be set on a socket: connections that
// the server has not accepted when the listener closes are reset.
func refuseNew(net.Listener) error { return nil }

// backlog returns how many connections wait to be accepted, which this system does not
// report.
func backlog(net.Listener) int { return 0 }

// monotonic returns 0: only systemd asks for it.
func monotonic() time.Duration { return 0 }
