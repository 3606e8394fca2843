//go:build !linux

package datagram

import (
	"context"
	"net"
	"net/netip"
)

// Open opens one socket, whatever number is wished for: how several share a port
// differs from system to system.
func Open(ctx context.Context, addr string, _ int) ([]*net.UDPConn, error) {
	var lc net.ListenConfig
	c, err := lc.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	u := c.(*net.UDPConn)           // what net returns for "udp"
	_ = u.SetReadBuffer(readBuffer) // the system may allow less
	return []*net.UDPConn{u}, nil
}

// Batch reads and writes one datagram at a time: that is what all systems can. On a machine with
// several addresses a server should listen at each of them: an answer goes out from the one that
// the system chooses.
type Batch struct {
	c        *net.UDPConn
	in, out  []byte
	message  []byte
	from     netip.AddrPort
	waiting  bool
	answered []byte
}

// NewBatch returns a batch for a socket, with room for requests of in bytes and answers of out bytes.
func NewBatch(c *net.UDPConn, _, in, out int) (*Batch, error) {
	return &Batch{c: c, in: make([]byte, in+1), out: make([]byte, 0, out)}, nil
}

// Receive waits for messages and returns how many there are.
func (b *Batch) Receive() (int, error) {
	n, from, err := b.c.ReadFromUDPAddrPort(b.in)
	if err != nil {
		return 0, err
	}
	b.message, b.waiting = b.in[:n], false
	b.from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	if n == len(b.in) {
		b.message = nil
	}
	return 1, nil
}

// Message returns a message that was received and its sender, or nil if it is longer than
// any that is answered.
func (b *Batch) Message(int) ([]byte, netip.AddrPort) { return b.message, b.from }

// Room is where the next answer is written.
func (b *Batch) Room() []byte { return b.out[:0] }

// Answer sends an answer, when the batch is flushed. It copies the answer.
func (b *Batch) Answer(_ int, answer []byte) {
	b.answered, b.waiting = append(b.answered[:0], answer...), true
}

// Origin says, for an answer to message i, to which address that was sent.
func (b *Batch) Origin(int) []byte { return nil }

// IsFull reports whether there is no room for another answer before the batch is flushed.
func (b *Batch) IsFull() bool { return b.waiting }

// Flush sends the answers. One that the system does not take is left out: a client that
// misses it asks again.
func (b *Batch) Flush() error {
	if !b.waiting {
		return nil
	}
	b.waiting = false
	_, err := b.c.WriteToUDPAddrPort(b.answered, b.from)
	return err
}
