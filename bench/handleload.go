package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele/wire/hdl"
)

const (
	udpClients = 4  // sockets of the load; the requests that wait for their answers are shared out among them
	tcpClients = 16 // connections at once

	// lostAfter is how long the load waits for an answer over UDP before it sends other requests in the place of
	// those that were lost.
	lostAfter = time.Second
)

// loader is the setting of the process that sends prepared requests to a server: dnsperf does not speak the Handle protocol, and
// only the same load shows what the answers of two protocols cost.
type loader struct {
	way      string // udp-dns, udp-hdl, tcp
	address  string
	requests string // file
	times    int
}

// sentLoad is what the load saw, and what it cost the server.
type sentLoad struct {
	number int
	took   time.Duration
	cpu    time.Duration
}

// each returns what an answer costs, in microseconds of CPU time.
func (s sentLoad) each() float64 { return s.cpu.Seconds() * 1e6 / float64(s.number) }

// send has another process, on a core of its own, send all requests so many times.
func (l loader) send(ctx context.Context, core int, s *server) (a sentLoad, err error) {
	program, err := os.Executable()
	if err != nil {
		return a, err
	}
	before := usedBy(s.pid())
	out, err := pinned(ctx, core, program, "-load", l.way, "-address", l.address, "-requests", l.requests, "-times", strconv.Itoa(l.times)).Output()
	a.cpu = usedBy(s.pid()) - before
	if err != nil {
		if failed, ok := errors.AsType[interface {
			error
			ExitCode() int
		}](err); ok {
			return a, fmt.Errorf("the load ended with the code %d: %s", failed.ExitCode(), bytes.TrimSpace(out))
		}
		return a, err
	}
	var lost int
	if _, err := fmt.Sscan(string(out), &a.number, &lost, &a.took); err != nil {
		return a, fmt.Errorf("the load says something else than it should: %q", out)
	}
	if a.number == 0 || lost > a.number/100 {
		return a, fmt.Errorf("%d requests were answered, and %d were not", a.number, lost)
	}
	return a, nil
}

// run sends the requests, and prints how many were answered, how many were not, and how long it took.
func (l loader) run(ctx context.Context, out io.Writer) error {
	all, err := readRequests(l.requests)
	if err != nil {
		return err
	}
	var good, lost atomic.Int64
	begin := time.Now()
	send, clients := l.overTCP, tcpClients
	if protocol, ok := strings.CutPrefix(l.way, "udp-"); ok {
		clients = udpClients
		send = func(ctx context.Context, list [][]byte, good, lost *atomic.Int64) error {
			return l.overUDP(ctx, protocol == "dns", list, good, lost)
		}
	}
	var wg sync.WaitGroup
	errs := make([]error, clients)
	for i := range clients {
		part := all[len(all)*i/clients : len(all)*(i+1)/clients]
		wg.Go(func() {
			for range l.times {
				if errs[i] = send(ctx, part, &good, &lost); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintln(out, good.Load(), lost.Load(), time.Since(begin))
	return nil
}

// overUDP sends requests from one socket. As many as its part of outstanding wait for their answers.
func (l loader) overUDP(ctx context.Context, isDNS bool, list [][]byte, good, lost *atomic.Int64) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", l.address)
	if err != nil {
		return err
	}
	defer c.Close()
	answer := make([]byte, 64<<10)
	waiting, next := 0, 0
	for next < len(list) || waiting > 0 {
		for ; waiting < outstanding/udpClients && next < len(list); waiting++ {
			if _, err := c.Write(list[next]); err != nil {
				return err
			}
			next++
		}
		if err := c.SetReadDeadline(time.Now().Add(lostAfter)); err != nil {
			return err
		}
		n, err := c.Read(answer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			lost.Add(int64(waiting))
			waiting = 0
			continue
		}
		if err != nil {
			return err
		}
		if err := judge(answer[:n], isDNS); err != nil {
			return err
		}
		good.Add(1)
		waiting--
	}
	return nil
}

// overTCP sends each request over a connection of its own, as clients of the Handle protocol do, and reads until
// the server closes it.
func (l loader) overTCP(ctx context.Context, list [][]byte, good, _ *atomic.Int64) error {
	var d net.Dialer
	answer := make([]byte, 4<<10)
	for _, request := range list {
		c, err := d.DialContext(ctx, "tcp", l.address)
		if err != nil {
			return err
		}
		_, err = c.Write(request)
		n := 0
		for err == nil {
			var m int
			m, err = c.Read(answer[n:])
			n += m
		}
		c.Close()
		if err != io.EOF {
			return err
		}
		if err := judge(answer[:n], false); err != nil {
			return err
		}
		good.Add(1)
	}
	return nil
}

// leastAnswer is how many octets an answer with a response code has.
const leastAnswer = hdl.EnvelopeSize + hdl.HeaderSize

// judge makes sure that an answer is a good one.
func judge(answer []byte, isDNS bool) error {
	switch {
	case isDNS && len(answer) > 12 && answer[3]&15 == 0 && binary.BigEndian.Uint16(answer[6:]) > 0:
	case !isDNS && len(answer) >= leastAnswer && binary.BigEndian.Uint32(answer[24:]) == 1:
	default:
		return fmt.Errorf("an answer is an error: %x", answer)
	}
	return nil
}

// writeRequests writes n requests to a file, each after its length.
func writeRequests(path string, n int, request func(i int) ([]byte, error)) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range n {
		b, err := request(i)
		if err != nil {
			return errors.Join(err, f.Close())
		}
		_, _ = w.Write(binary.BigEndian.AppendUint16(nil, uint16(len(b)))) // Flush has the error
		_, _ = w.Write(b)
	}
	return errors.Join(w.Flush(), f.Close())
}

// readRequests reads what writeRequests has written.
func readRequests(path string) (list [][]byte, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for len(b) > 2 {
		n := int(binary.BigEndian.Uint16(b))
		if len(b) < 2+n {
			return nil, io.ErrUnexpectedEOF
		}
		list, b = append(list, b[2:2+n]), b[2+n:]
	}
	return list, nil
}

// serveConnections accepts connections, reads as many bytes as a request has, writes as many as its answer has, closes the connection,
// and does nothing else.
func serveConnections(ctx context.Context, address string, request, answer int) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	if answer < leastAnswer {
		return fmt.Errorf("an answer has %d octets at least", leastAnswer)
	}
	said := make([]byte, answer)
	binary.BigEndian.PutUint32(said[16:], uint32(answer-hdl.EnvelopeSize))
	said[27] = 1 // what the load takes for a good answer
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			asked := make([]byte, request)
			if _, err := io.ReadFull(c, asked); err == nil {
				_, _ = c.Write(said[:answer])
			}
		}()
	}
}
