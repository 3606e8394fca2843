// Package datagram is the UDP side of a server: several sockets at one address ([Open]), several datagrams
// with one call of the system ([Batch]), and goroutines for requests that would keep others waiting ([Queue]).
// The name server and the server of the Handle protocol share it.
//
// It knows nothing of what is in a datagram. An answer goes out from the address that the request was sent to, as far as
// the system tells which that was.
package datagram

// readBuffer is how many bytes of requests may wait while the processor is busy.
const readBuffer = 4 << 20
