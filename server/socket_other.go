//go:build !linux

package server

import (
	"net"
	"time"
)

// lacking is what this system can't do for a server, which the log says when it starts.
const lacking = "this system is for trials; run servers on Linux. Missing here: connections that wait are reset when the server stops, " +
	"a restore replaces the registry in two steps, free space of the disk is not checked, and the DNS takes one datagram at a time"

// refuseNew does nothing where no filter can be set on a socket: connections that
// the server has not accepted when the listener closes are reset.
func refuseNew(net.Listener) error { return nil }

// backlog returns how many connections wait to be accepted, which this system does not
// report.
func backlog(net.Listener) int { return 0 }

// monotonic returns 0: only systemd asks for it.
func monotonic() time.Duration { return 0 }
