package datagram

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	nameRoom    = unix.SizeofSockaddrInet6
	controlRoom = 64 // of an in_pktinfo or in6_pktinfo, with its head
)

// mmsghdr is the system's struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

// Batch reads and writes several datagrams at a time, with recvmmsg(2) and sendmmsg(2).
// It is golang.org/x/net's ReadBatch and WriteBatch without the addresses that these
// allocate: an address goes back as it came, and so does what says to which address of
// this machine a datagram was sent.
type Batch struct {
	raw            syscall.RawConn
	maxIn, maxOut  int
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

// NewBatch returns a batch for a socket that has n messages at most, with room for requests of in bytes and answers of out
// bytes.
func NewBatch(c *net.UDPConn, n, in, out int) (*Batch, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	b := &Batch{
		raw: raw, maxIn: in, maxOut: out,
		in: make([]byte, n*in), out: make([]byte, n*out),
		names: make([]byte, n*nameRoom), control: make([]byte, n*controlRoom),
		inVec: make([]unix.Iovec, n), outVec: make([]unix.Iovec, n),
		rx: make([]mmsghdr, n), tx: make([]mmsghdr, n),
		received: n,
	}
	for i := range n {
		b.inVec[i].Base = &b.in[i*in]
		b.inVec[i].SetLen(in)
		b.rx[i].hdr.Iov = &b.inVec[i]
		b.rx[i].hdr.SetIovlen(1)
		b.rx[i].hdr.Name = &b.names[i*nameRoom]
		b.rx[i].hdr.Control = &b.control[i*controlRoom]
		b.outVec[i].Base = &b.out[i*out]
		b.tx[i].hdr.Iov = &b.outVec[i]
		b.tx[i].hdr.SetIovlen(1)
	}
	b.receiver, b.send = b.tryReceive, b.trySend
	return b, nil
}

// Receive waits for messages and returns how many there are: none if it fails. A read deadline of the socket ends it.
func (b *Batch) Receive() (int, error) {
	for i := range b.received { // the system has written into these
		h := &b.rx[i].hdr
		h.Namelen = nameRoom
		h.SetControllen(controlRoom)
		h.Flags = 0
	}
	b.received, b.waiting, b.sent = 0, 0, 0
	if err := b.raw.Read(b.receiver); err != nil {
		return 0, err
	}
	return b.received, b.err
}

func (b *Batch) tryReceive(fd uintptr) bool {
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

// Message returns a message that was received and its sender, or nil if it is longer than
// any that is answered.
func (b *Batch) Message(i int) ([]byte, netip.AddrPort) {
	h := &b.rx[i]
	if h.hdr.Flags&unix.MSG_TRUNC != 0 {
		return nil, netip.AddrPort{}
	}
	return b.in[i*b.maxIn:][:h.n], addrPort(b.names[i*nameRoom:][:nameRoom])
}

// addrPort reads a struct sockaddr_in or sockaddr_in6.
func addrPort(sa []byte) netip.AddrPort {
	port := binary.BigEndian.Uint16(sa[2:])
	if binary.NativeEndian.Uint16(sa) == unix.AF_INET {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(sa[4:8])), port)
	}
	a := netip.AddrFrom16([16]byte(sa[8:24])).Unmap()
	if scope := binary.NativeEndian.Uint32(sa[24:]); scope != 0 && a.IsLinkLocalUnicast() {
		a = a.WithZone(strconv.FormatUint(uint64(scope), 10))
	}
	return netip.AddrPortFrom(a, port)
}

// Room is where the next answer is written. The batch must not be full.
func (b *Batch) Room() []byte {
	return b.out[b.waiting*b.maxOut : b.waiting*b.maxOut : (b.waiting+1)*b.maxOut]
}

// IsFull reports whether there is no room for another answer before the batch is flushed.
func (b *Batch) IsFull() bool { return b.waiting == len(b.tx) }

// Answer sends what was written to the room, when the batch is flushed, to the sender of
// message i, from the address that it was sent to. What was written elsewhere, and is not
// longer, is copied. A message may have several answers.
func (b *Batch) Answer(i int, answer []byte) {
	from, to := &b.rx[i].hdr, &b.tx[b.waiting].hdr
	room := b.out[b.waiting*b.maxOut:][:b.maxOut]
	if len(answer) > 0 && &answer[0] != &room[0] {
		answer = room[:copy(room, answer)]
	}
	b.outVec[b.waiting].SetLen(len(answer))
	b.waiting++
	to.Name, to.Namelen = from.Name, from.Namelen
	to.Control, to.Controllen = nil, 0
	if len(b.Origin(i)) > 0 {
		to.Control, to.Controllen = from.Control, from.Controllen
	}
}

// Origin says, for an answer to message i, to which address that was sent.
func (b *Batch) Origin(i int) []byte {
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

// Flush sends the answers. One that the system does not take is left out: a client that
// misses it asks again.
func (b *Batch) Flush() error {
	if b.waiting == 0 {
		return nil
	}
	b.err = nil
	err := b.raw.Write(b.send)
	b.waiting, b.sent = 0, 0
	if err != nil {
		return err
	}
	return b.err
}

func (b *Batch) trySend(fd uintptr) bool {
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
