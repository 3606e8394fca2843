//go:build !linux

package main

import "net"

// refuseNew does nothing where no filter can be set on a socket: connections that
// nobody has accepted when the listener closes are reset.
func refuseNew(net.Listener) error { return nil }

// backlog returns how many connections wait to be accepted, which this system does not tell.
func backlog(net.Listener) int { return 0 }
