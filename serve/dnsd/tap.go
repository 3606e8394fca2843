package dnsd

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/outbound"
)

// Sizes and times of a tap.
const (
	tapQueue   = 4096 // exchanges that wait to be written; more are not told of
	tapWait    = 5 * time.Second
	tapAgain   = 2 * time.Second // before a collector that went away is tried again
	tapFlush   = time.Second     // how long an exchange waits for others to be written with
	maxControl = 512
)

// tapContent is the type of what is in the frames (dnstap.info).
const tapContent = "protobuf:dnstap.Dnstap"

// Control frames of frame streams.
const (
	tapAccept = 1
	tapStart  = 2
	tapStop   = 3
	tapReady  = 4
)

// tap tells a collector of questions and answers, as dnstap: messages of protocol buffers
// in frame streams, over a socket of this machine. It never makes an answer wait: what the
// collector does not take in time is dropped, and counted.
type tap struct {
	path   string
	frames chan []byte
	lost   atomic.Uint64
}

func newTap(path string) *tap {
	if path == "" {
		return nil
	}
	return &tap{path: path, frames: make(chan []byte, tapQueue)}
}

// Ways in which a question came, as dnstap numbers them.
const (
	tapUDP = 1
	tapTCP = 2
	tapDOT = 3
	tapDOH = 4
)

// note tells the collector of a question, and of its answer if there is one.
func (w *worker) note(from peer, query, answer []byte, asked time.Time) {
	t := w.s.tap
	if t == nil {
		return
	}
	select {
	case t.frames <- appendExchange(make([]byte, 0, len(query)+len(answer)+len(w.s.o.Identity)+128), w.s.o.Identity, w.tapWay(from), from.addr, query, answer, asked, w.s.o.Now()):
	default:
		t.lost.Add(1)
	}
}

func (w *worker) tapWay(from peer) uint64 {
	switch {
	case w.tally == w.s.https:
		return tapDOH
	case from.private:
		return tapDOT
	case from.tcp:
		return tapTCP
	}
	return tapUDP
}

// appendExchange appends a Dnstap message. Ports are left out: operators have no use for
// them, and those of a proxy are not the client's.
func appendExchange(dst []byte, identity string, way uint64, from netip.Addr, query, answer []byte, asked, answered time.Time) []byte {
	kind, family := uint64(1), uint64(1) // AUTH_QUERY, INET
	if answer != nil {
		kind = 2 // AUTH_RESPONSE
	}
	if from.Is6() {
		family = 2
	}
	m := make([]byte, 0, len(query)+len(answer)+96)
	m = appendNumber(m, 1, kind)
	m = appendNumber(m, 2, family)
	m = appendNumber(m, 3, way)
	if from.IsValid() {
		m = appendBytes(m, 4, from.AsSlice())
	}
	m = appendNumber(m, 8, uint64(max(0, asked.Unix())))
	m = appendFixed(m, 9, uint32(asked.Nanosecond()))
	m = appendBytes(m, 10, query)
	if answer != nil {
		m = appendNumber(m, 12, uint64(max(0, answered.Unix())))
		m = appendFixed(m, 13, uint32(answered.Nanosecond()))
		m = appendBytes(m, 14, answer)
	}
	if identity != "" {
		dst = appendBytes(dst, 1, []byte(identity))
	}
	dst = appendBytes(dst, 2, []byte("stele"))
	dst = appendBytes(dst, 14, m)
	return appendNumber(dst, 15, 1) // MESSAGE
}

// Fields of protocol buffers, of the three kinds that dnstap has.

func appendNumber(dst []byte, field int, n uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(field)<<3), n)
}

func appendFixed(dst []byte, field int, n uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(dst, uint64(field)<<3|5), n)
}

func appendBytes(dst []byte, field int, b []byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(dst, uint64(field)<<3|2), uint64(len(b))), b...)
}

// Tap tells the collector of exchanges until ctx ends. A collector that is not there, or
// goes away, is tried again and again.
func (s *Server) Tap(ctx context.Context) {
	if s.tap == nil {
		return
	}
	for ctx.Err() == nil {
		if err := s.tap.run(ctx, s.o.Now); err != nil && ctx.Err() == nil {
			s.untapped.log(s.o.Log, s.o.Now(), "socket", s.tap.path, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(tapAgain):
		}
	}
}

// run writes exchanges to the collector until it goes away, or ctx ends.
func (t *tap) run(ctx context.Context, now func() time.Time) error {
	d := outbound.Dialer{Rule: outbound.Rule{Any: true}, Timeout: tapWait}
	conn, err := d.DialContext(ctx, "unix", t.path)
	if err != nil {
		return err
	}
	defer conn.Close()
	out := &collector{conn: conn, w: bufio.NewWriterSize(conn, 64<<10), now: now}
	if err := out.begin(); err != nil {
		return err
	}
	idle := time.NewTicker(tapFlush)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return errors.Join(t.drain(out), out.end())
		case frame := <-t.frames:
			err = out.write(frame)
		case <-idle.C:
			err = out.flush()
		}
		if err != nil {
			return err
		}
	}
}

// drain writes what waits to be written.
func (t *tap) drain(out *collector) error {
	for {
		select {
		case frame := <-t.frames:
			if err := out.write(frame); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// collector is a connection to the Dnstap collector.
type collector struct {
	conn net.Conn
	w    *bufio.Writer
	now  func() time.Time
}

// begin agrees on what is sent: what we have is offered, accepted, and begun.
func (c *collector) begin() error {
	if err := c.control(tapReady, true); err != nil {
		return err
	}
	kind, err := c.answered()
	if err == nil && kind != tapAccept {
		err = stele.Messagef("dnstap.not-accepted", "the collector does not accept dnstap")
	}
	if err != nil {
		return err
	}
	return c.control(tapStart, true)
}

// end says that nothing more comes, and waits until the collector has it all.
func (c *collector) end() error {
	if err := c.control(tapStop, false); err != nil {
		return err
	}
	_, err := c.answered()
	return err
}

// control sends a control frame.
func (c *collector) control(kind uint32, typed bool) error {
	body := binary.BigEndian.AppendUint32(nil, kind)
	if typed {
		body = binary.BigEndian.AppendUint32(body, 1) // the field for the type of the content
		body = binary.BigEndian.AppendUint32(body, uint32(len(tapContent)))
		body = append(body, tapContent...)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(len(body)))
	if _, err := c.w.Write(append(frame, body...)); err != nil {
		return err
	}
	return c.flush()
}

// answered reads a control frame, and returns its kind.
func (c *collector) answered() (uint32, error) {
	if err := c.conn.SetReadDeadline(c.now().Add(tapWait)); err != nil {
		return 0, err
	}
	var head [8]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(head[4:])
	if binary.BigEndian.Uint32(head[:]) != 0 || n < 4 || n > maxControl {
		return 0, stele.Messagef("dnstap.not-spoken", "what listens there does not speak dnstap")
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c.conn, body); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(body), nil
}

// write writes an exchange.
func (c *collector) write(frame []byte) error {
	if err := c.conn.SetWriteDeadline(c.now().Add(tapWait)); err != nil {
		return err
	}
	if _, err := c.w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(frame)))); err != nil {
		return err
	}
	_, err := c.w.Write(frame)
	return err
}

func (c *collector) flush() error {
	if err := c.conn.SetWriteDeadline(c.now().Add(tapWait)); err != nil {
		return err
	}
	return c.w.Flush()
}
