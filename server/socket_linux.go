package server

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lacking is what this system can't do for a server: nothing.
const lacking = ""

// onlyBegun is a packet filter that drops packets that begin a connection, and passes all
// others. It sees a packet from its TCP header on; byte 13 has the flags SYN (2) and ACK
// (16); see socket(7), SO_ATTACH_FILTER.
var onlyBegun = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13},
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 2 | 16},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 2, Jt: 0, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0xffff},
}

// backlog returns how many connections wait to be accepted at a listener; 0 if that is not
// known. For a listener the kernel reports it in the field tcpi_unacked (tcp(7)).
func backlog(l net.Listener) int {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = int(info.Unacked)
		}
	})
	if err != nil {
		return 0
	}
	return n
}

// refuseNew lets no new connection begin at a listener. Those that have begun can be accepted
// when their handshake is done. Closing a listener right away would reset connections that
// the server has not accepted yet, and whose requests may have arrived already.
func refuseNew(l net.Listener) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), syscall.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(onlyBegun)), Filter: &onlyBegun[0]})
	})
	if err == nil {
		err = failed
	}
	return err
}

// monotonic returns the time of the clock that never steps.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
