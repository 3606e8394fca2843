package hdld

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stele-id/stele/wire/hdl"
)

// chunks is a connection on which octets arrive in two pieces.
type chunks struct {
	net.Conn
	pieces [][]byte
}

func (c *chunks) Read(b []byte) (int, error) {
	for len(c.pieces) > 0 && len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	if len(c.pieces) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(b, c.pieces[0])
	c.pieces[0] = c.pieces[0][n:]
	return n, nil
}

// addSeeds gives a target the requests of the recordings, whole and damaged.
func addSeeds(f *testing.F, add func(octets []byte)) {
	f.Helper()
	count := 0
	for _, x := range exchanges(f, "wire-9.2.0.txt") {
		for _, s := range x.steps {
			add(s.request)
			count++
		}
	}
	if count < 10 {
		f.Fatalf("only %d requests are recorded", count)
	}
	body := (&hdl.ResolveRequest{Handle: []byte("20.500.99999/ABC-1")}).Append(nil, hdl.Latest())
	m := hdl.Message{Envelope: hdl.Envelope{Version: hdl.Latest(), Suggested: hdl.Latest(), Request: 1}, Header: hdl.Header{Operation: hdl.Resolve}, Body: body}
	octets := m.Append(nil)
	add(octets)
	add(octets[:len(octets)-1])
	add(octets[:hdl.EnvelopeSize])
	add(nil)
}

// FuzzReadRequest: a request of a connection is the same however its octets arrive.
func FuzzReadRequest(f *testing.F) {
	addSeeds(f, func(octets []byte) { f.Add(octets, uint16(len(octets)/2)); f.Add(octets, uint16(1)) })
	f.Fuzz(func(t *testing.T, octets []byte, at uint16) {
		cut := min(int(at), len(octets))
		whole, err := readRequest(&chunks{pieces: [][]byte{bytes.Clone(octets)}}, make([]byte, firstRead))
		parts, partsErr := readRequest(&chunks{pieces: [][]byte{bytes.Clone(octets[:cut]), bytes.Clone(octets[cut:])}}, make([]byte, firstRead))
		if (err == nil) != (partsErr == nil) || !bytes.Equal(whole, parts) {
			t.Fatalf("whole %x, %v; in two pieces %x, %v", whole, err, parts, partsErr)
		}
		if err == nil && !bytes.HasPrefix(octets, whole) {
			t.Fatalf("%x is not what came: %x", whole, octets)
		}
	})
}

// FuzzAnswer: the server answers any octets with messages, or not at all; it does not break off, and what
// an address that may be forged gets in place of a long answer is short.
func FuzzAnswer(f *testing.F) {
	addSeeds(f, func(octets []byte) { f.Add(octets, true); f.Add(octets, false) })
	var faults bytes.Buffer // work reports them; one goroutine makes all answers here
	s := newFixture(f, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&faults, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	f.Fuzz(func(t *testing.T, octets []byte, datagram bool) {
		q := &call{raw: bytes.Clone(octets), from: netip.MustParseAddrPort("192.0.2.1:5000"), via: viaTCP}
		if datagram {
			q.via = viaUDP
		}
		q.send = func(answer []byte) error {
			if _, err := hdl.Parse(answer); err != nil {
				t.Errorf("the answer %x is not a message: %v", answer, err)
			}
			if datagram && !q.proved {
				// What replaces an answer that is too long is short.
				if b := s.bounded(answer, &q.m, q.from, len(octets), time.Now()); !bytes.Equal(b, answer) && len(b) > amplification*len(octets) {
					t.Errorf("%d octets are answered with %d", len(octets), len(b))
				}
			}
			return nil
		}
		s.answer(t.Context(), q)
		if faults.Len() > 0 {
			t.Fatalf("%x: %s", octets, &faults)
		}
	})
}
