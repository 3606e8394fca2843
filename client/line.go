package client

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// lineIdle is how long an idle connection is kept; the server may name another time, up to
// lineIdleMax.
const (
	lineIdle    = 5 * time.Second
	lineIdleMax = 30 * time.Second
)

// maxPending is how many questions on a connection wait for their answers.
const maxPending = 256

// line is a connection to a name server. Questions on it do not wait for each other, and
// answers come in any order (RFC 7766, section 6.2.1.1; RFC 7858, section 3.3).
type line struct {
	conn net.Conn
	gone sync.WaitGroup // of the goroutine that reads

	mu      sync.Mutex
	pending map[uint16]*pending // by ID
	retired bool                // no more questions
	over    error               // why it ended; nil while it did not
	idle    *time.Timer
	keep    time.Duration // how long it may be idle
	strays  int
}

// pending is a question that waits for its answer.
type pending struct {
	asked *dns.Msg
	reply chan *dns.Msg // closed without one when the line ends
}

func newLine(conn net.Conn) *line {
	l := &line{conn: conn, pending: make(map[uint16]*pending), keep: lineIdle}
	l.idle = time.AfterFunc(lineIdle, l.leave)
	l.gone.Go(l.read)
	return l
}

// isUsable reports whether a question can be asked.
func (l *line) isUsable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over == nil && !l.retired && len(l.pending) < maxPending
}

func (l *line) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over != nil
}

// exchange asks and waits for the answer.
func (l *line) exchange(ctx context.Context, m *dns.Msg) (*dns.Msg, error) {
	p, err := l.add(m)
	if err != nil {
		return nil, err
	}
	defer l.remove(m.Id)
	packed, err := m.Pack()
	if err != nil {
		return nil, stele.Messagef("dns.question-not-askable", "the question can't be asked: {cause}", err)
	}
	// After a question that is half written the line can't be used any more.
	stop := context.AfterFunc(ctx, func() { l.end(ctx.Err()) })
	_, err = l.conn.Write(frame(packed))
	if stop(); err != nil {
		l.end(err)
		return nil, l.why()
	}
	select {
	case reply := <-p.reply:
		if reply == nil {
			return nil, l.why()
		}
		return reply, nil
	case <-ctx.Done():
		l.retire() // it may be dead; the next question uses another connection
		return nil, ctx.Err()
	}
}

// add adds a question, with an ID that no other pending one has.
func (l *line) add(m *dns.Msg) (*pending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over != nil {
		return nil, l.over
	}
	for l.pending[m.Id] != nil {
		var chance [2]byte
		_, _ = rand.Read(chance[:]) // it does not fail
		m.Id = binary.BigEndian.Uint16(chance[:])
	}
	l.idle.Stop()
	p := &pending{m, make(chan *dns.Msg, 1)}
	l.pending[m.Id] = p
	return p, nil
}

// remove removes a question, and starts the idle timer if it was the last.
func (l *line) remove(id uint16) {
	l.mu.Lock()
	delete(l.pending, id)
	leave := len(l.pending) == 0 && (l.retired || l.keep <= 0)
	if len(l.pending) == 0 && l.over == nil {
		l.idle.Reset(l.keep)
	}
	l.mu.Unlock()
	if leave {
		l.end(net.ErrClosed)
	}
}

// retire accepts no more questions. The line ends when the pending ones are answered.
func (l *line) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
}

// leave ends an idle line.
func (l *line) leave() {
	l.mu.Lock()
	idle := len(l.pending) == 0
	l.mu.Unlock()
	if idle {
		l.end(net.ErrClosed)
	}
}

// end closes the connection and tells the callers that wait.
func (l *line) end(why error) {
	l.mu.Lock()
	if l.over == nil {
		l.over = why
		l.idle.Stop()
		for id, p := range l.pending {
			delete(l.pending, id)
			close(p.reply)
		}
	}
	l.mu.Unlock()
	_ = l.conn.Close() // the line has ended already, so an error does not matter
}

// why returns why the line ended.
func (l *line) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// read hands answers to the callers that wait for them, until the line ends.
func (l *line) read() {
	for {
		buffer, err := readFrame(l.conn)
		if err != nil {
			l.end(err)
			return
		}
		reply := new(dns.Msg)
		if len(buffer) < headerSize || reply.Unpack(buffer) != nil {
			l.end(errMalformed)
			return
		}
		if !l.deliver(reply) {
			l.end(errStrays)
			return
		}
	}
}

// deliver gives an answer to the caller that asked. It reports false after too many
// unsolicited answers; some are late.
func (l *line) deliver(reply *dns.Msg) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pending[reply.Id]
	if p == nil || !answers(p.asked, reply) {
		l.strays++
		return l.strays <= maxStrays
	}
	if opt := reply.IsEdns0(); opt != nil {
		for _, option := range opt.Option {
			if keepalive, ok := option.(*dns.EDNS0_TCP_KEEPALIVE); ok { // RFC 7828, section 3.2.2
				l.keep = min(time.Duration(keepalive.Timeout)*100*time.Millisecond, lineIdleMax)
			}
		}
	}
	select {
	case p.reply <- reply:
	default: // it has one already
	}
	return true
}
