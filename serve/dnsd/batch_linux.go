package dnsd

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// udpBatch is how many messages are read with one call of the system, and answered
// with another.
const udpBatch = 64

const (
	nameRoom    = unix.SizeofSockaddrInet6
	controlRoom = 64 // of an in_pktinfo or in6_pktinfo, with its head
	answerRoom  = maxUDP + 16
)

// mmsghdr is the system's struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// batch reads and writes several datagrams at a time, with recvmmsg(2) and sendmmsg(2).
// It is golang.org/x/net's ReadBatch and WriteBatch without the addresses that these
// allocate: an address goes back as it came, and so does what says to which address of
// this machine a datagram was sent.
type batch struct {
	in, out        []byte // room for messages
	names, control []byte
	inVec, outVec  []unix.Iovec
	rx, tx         []mmsghdr
	received       int // how many of rx are in use
	waiting        int // how many of tx are answers to send
	sent           int

	err            error
	receiver, send func(fd uintptr) bool // bound once
}

func newBatch(n int) *batch {
	b := &batch{
		in: make([]byte, n*maxQuery), out: make([]byte, n*answerRoom),
		names: make([]byte, n*nameRoom), control: make([]byte, n*controlRoom),
		inVec: make([]unix.Iovec, n), outVec: make([]unix.Iovec, n),
		rx: make([]mmsghdr, n), tx: make([]mmsghdr, n),
		received: n,
	}
	for i := range n {
		b.inVec[i].Base = &b.in[i*maxQuery]
		b.inVec[i].SetLen(maxQuery)
		b.rx[i].hdr.Iov = &b.inVec[i]
		b.rx[i].hdr.SetIovlen(1)
		b.rx[i].hdr.Name = &b.names[i*nameRoom]
		b.rx[i].hdr.Control = &b.control[i*controlRoom]
		b.outVec[i].Base = &b.out[i*answerRoom]
		b.tx[i].hdr.Iov = &b.outVec[i]
		b.tx[i].hdr.SetIovlen(1)
	}
	b.receiver, b.send = b.tryReceive, b.trySend
	return b
}

// receive waits for messages and returns how many there are.
func (b *batch) receive(c syscall.RawConn) (int, error) {
	for i := range b.received { // the system has written into these
		h := &b.rx[i].hdr
		h.Namelen = nameRoom
		h.SetControllen(controlRoom)
		h.Flags = 0
	}
	b.received, b.waiting, b.sent = 0, 0, 0
	if err := c.Read(b.receiver); err != nil {
		return 0, err
	}
	return b.received, b.err
}

func (b *batch) tryReceive(fd uintptr) bool {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.rx[0])), uintptr(len(b.rx)), 0, 0, 0)
		switch errno {
		case 0:
			b.received, b.err = int(n), nil
			return true
		case unix.EAGAIN:
			return false
		case unix.EINTR:
		default:
			b.err = errno
			return true
		}
	}
}

// message returns a message that was received and its sender, or nil if it is longer than
// any that is answered.
func (b *batch) message(i int) ([]byte, netip.AddrPort) {
	h := &b.rx[i]
	if h.hdr.Flags&unix.MSG_TRUNC != 0 {
		return nil, netip.AddrPort{}
	}
	return b.in[i*maxQuery:][:h.n], addrPort(b.names[i*nameRoom:][:nameRoom])
}

// addrPort reads a struct sockaddr_in or sockaddr_in6.
func addrPort(sa []byte) netip.AddrPort {
	port := binary.BigEndian.Uint16(sa[2:])
	if binary.NativeEndian.Uint16(sa) == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(sa[4:8])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(sa[8:24])).Unmap(), port)
}

// room is where the next answer is written.
func (b *batch) room() []byte {
	return b.out[b.waiting*answerRoom : b.waiting*answerRoom : (b.waiting+1)*answerRoom]
}

// answer sends what was written to the room, when the batch is sent, to the sender of
// message i, from the address that it was sent to.
func (b *batch) answer(i int, answer []byte) {
	from, to := &b.rx[i].hdr, &b.tx[b.waiting].hdr
	b.outVec[b.waiting].SetLen(len(answer))
	b.waiting++
	to.Name, to.Namelen = from.Name, from.Namelen
	to.Control, to.Controllen = nil, 0
	if len(b.origin(i)) > 0 {
		to.Control, to.Controllen = from.Control, from.Controllen
	}
}

// origin says, for an answer to message i, to which address that was sent.
func (b *batch) origin(i int) []byte {
	control := b.control[i*controlRoom:][:b.rx[i].hdr.Controllen]
	forgetInterface(control)
	return control
}

// forgetInterface clears the interface in an in_pktinfo or in6_pktinfo: the way back
// may be another. A link-local address means nothing without it.
func forgetInterface(control []byte) {
	head := unix.CmsgLen(0)
	if len(control) < head {
		return
	}
	info := control[head:]
	switch level := binary.NativeEndian.Uint32(control[head-8:]); {
	case level == unix.IPPROTO_IP && len(info) >= unix.SizeofInet4Pktinfo:
		clear(info[:4])
	case level == unix.IPPROTO_IPV6 && len(info) >= unix.SizeofInet6Pktinfo && !netip.AddrFrom16([16]byte(info[:16])).IsLinkLocalUnicast():
		clear(info[16:20])
	}
}

// flush sends the answers. One that the system does not take is left out: a client that
// misses it asks again.
func (b *batch) flush(c syscall.RawConn) error {
	if b.waiting == 0 {
		return nil
	}
	b.err = nil
	if err := c.Write(b.send); err != nil {
		return err
	}
	return b.err
}

func (b *batch) trySend(fd uintptr) bool {
	for b.sent < b.waiting {
		left := b.tx[b.sent:b.waiting]
		n, _, errno := unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&left[0])), uintptr(len(left)), 0, 0, 0)
		switch errno {
		case 0:
			b.sent += int(n)
		case unix.EAGAIN:
			return false
		case unix.EINTR:
		default:
			b.err = errno
			b.sent++
		}
	}
	return true
}
