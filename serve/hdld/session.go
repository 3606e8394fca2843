package hdld

import (
	"container/list"
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// Bounds of sessions. One in which the client has proved nothing yet ends soon.
const (
	sessionLife  = 24 * time.Hour
	unprovedLife = 2 * time.Minute
	counters     = 200 // of requests that are remembered, so that none is repeated
)

// session is a key that the server shares with a client.
type session struct {
	id        uint32
	key       []byte
	algorithm hdl.Algorithm
	old       bool         // it was set up before version 2.4, whose messages are encrypted in another way
	from      netip.Addr   // of the client that set it up
	wrong     atomic.Int32 // messages that could not be decrypted

	ends time.Time // the lock of the list of sessions guards it

	mu      sync.Mutex
	proved  bool
	who     handles.Identity
	mark    string // of the value that proved it
	pending uint32 // the challenge that waits for an answer; 0: none
	seen    [counters]uint32
	at      int
	high    uint32        // the highest counter that came
	out     uint32        // counter of our own messages
	element *list.Element // in the list of sessions, whose lock guards it and settled
	settled bool          // it is in the list of those in which the client proved who it is
}

// identity returns who the client has proved to be.
func (n *session) identity() (handles.Identity, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.who, n.proved
}

// prove says that the client has proved who it is, by a value with this stamp.
func (n *session) prove(who handles.Identity, stamp string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.who, n.mark, n.proved = who, stamp, true
}

// stamp returns that of the value by which the client proved who it is.
func (n *session) stamp() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mark
}

// wait notes the challenge that waits for an answer, and returns the one before.
func (n *session) wait(id uint32) (before uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.pending = n.pending, id
	return before
}

// maxWrong is how many messages of a session may be wrong.
const maxWrong = 10

// open decrypts a message. The way of encryption is that of the version in which the session was set up.
func (n *session) open(m *hdl.Message) error {
	if m.Envelope.Version.Before(4) != n.old {
		return refuse(hdl.SessionFailed, "")
	}
	return m.Open(n.algorithm, n.key)
}

// count refuses a request whose number came already, or may have come because it is long past. Versions before 2.5 have no numbers
// (section 6). The codes of 2.5 and 2.6 do not cover the number, so that in these versions who reads the network can repeat a request with
// another one: clients that repeat a request do the same, and must not be refused.
func (n *session) count(v hdl.Version, c *hdl.Credential) error {
	if v.Before(5) && c.Counter == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.Counter == 0 || slices.Contains(n.seen[:], c.Counter) || uint64(c.Counter)+counters <= uint64(n.high) {
		return refuse(hdl.Replayed, "")
	}
	n.seen[n.at] = c.Counter
	n.at = (n.at + 1) % counters
	n.high = max(n.high, c.Counter)
	return nil
}

// next returns the number of the next message that the server makes a code for.
func (n *session) next() uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.out++
	return n.out
}

// sessions are those that have not ended. Those in which the client has proved nothing are forgotten first when
// there are too many, the oldest one first.
type sessions struct {
	most int

	mu     sync.Mutex
	byID   map[uint32]*session
	fresh  list.List // of *session, unproved when they were looked at last; the oldest first
	proven list.List // the least recently used first
}

func newSessions(most int) *sessions { return &sessions{most: most, byID: make(map[uint32]*session)} }

func (l *sessions) has(id uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id] != nil
}

// add keeps a new session.
func (l *sessions) add(n *session, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	for len(l.byID) >= l.most {
		oldest := l.fresh.Front()
		if oldest == nil {
			oldest = l.proven.Front()
		}
		l.forget(oldest.Value.(*session))
	}
	n.ends = now.Add(unprovedLife)
	l.byID[n.id] = n
	n.element = l.fresh.PushBack(n)
}

// find returns a session; nil if there is none.
func (l *sessions) find(id uint32, now time.Time) *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	n := l.byID[id]
	if n == nil {
		return nil
	}
	if _, proved := n.identity(); proved && !n.settled {
		l.settle(n, now)
	} else if n.settled {
		l.proven.MoveToBack(n.element)
	}
	if !now.Before(n.ends) {
		l.forget(n)
		return nil
	}
	return n
}

// settle moves a session to those in which the client proved who it is.
func (l *sessions) settle(n *session, now time.Time) {
	l.fresh.Remove(n.element)
	n.element, n.settled, n.ends = l.proven.PushBack(n), true, now.Add(sessionLife)
}

// end forgets a session.
func (l *sessions) end(n *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[n.id] == n {
		l.forget(n)
	}
}

func (l *sessions) expire(now time.Time) {
	for e := l.fresh.Front(); e != nil; e = l.fresh.Front() {
		n := e.Value.(*session)
		if _, proved := n.identity(); proved {
			l.settle(n, now)
		} else if now.Before(n.ends) {
			return
		} else {
			l.forget(n)
		}
	}
}

func (l *sessions) forget(n *session) {
	if n.settled {
		l.proven.Remove(n.element)
	} else {
		l.fresh.Remove(n.element)
	}
	delete(l.byID, n.id)
}

// setUp sets up a session: client and server agree on a key by the method of Diffie and Hellman. The server
// chooses AES for all clients that know more than DES, as the reference does.
func (s *Server) setUp(ctx context.Context, q *call) error {
	var body hdl.SessionRequest
	if err := body.Decode(q.m.Body); err != nil {
		return err
	}
	if body.Mode != hdl.KeyExchangeDH {
		return refuse(hdl.SetupNotSupported, "Set up a session with the mode 4, Diffie-Hellman")
	}
	if s.o.Site().Key == nil {
		return refuse(hdl.SessionFailed, "This server has no key with which it could prove who it is")
	}
	n, ours, err := s.agree(ctx, q, body.Key)
	if err != nil {
		return err
	}
	s.sessions.add(n, s.o.Now())
	s.stats.sessions.Add(1)
	key := hdl.PublicKey{DH: ours}
	answer := hdl.SessionResponse{Mode: body.Mode, Algorithm: n.algorithm, Key: key.Append(nil), Rest: body.Rest}
	return s.reply(ctx, q, hdl.Success, answer.Append(nil, q.version()), replyOptions{session: n.id})
}

// agree makes a session of the client's key, and returns the key that the client needs.
func (s *Server) agree(ctx context.Context, q *call, key []byte) (*session, *hdl.DHKey, error) {
	leave, err := s.turn(ctx, q, s.agreements)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	theirs, err := hdl.ParsePublicKey(key)
	if err != nil {
		return nil, nil, err
	}
	if theirs.DH == nil {
		return nil, nil, refuse(hdl.InvalidSessionKey, "The key of a session is a DH_PUB_KEY")
	}
	if err := theirs.DH.Check(); err != nil {
		return nil, nil, err
	}
	ours, err := hdl.NewDH(theirs.DH.P, theirs.DH.G, s.o.Rand)
	if err != nil {
		return nil, nil, err
	}
	secret, err := ours.Shared(theirs.DH)
	if err != nil {
		return nil, nil, err
	}
	n := &session{algorithm: hdl.AES, from: q.from.Addr()}
	if q.version().Before(4) {
		n.algorithm, n.old = hdl.DES, true
	}
	if n.key, err = n.algorithm.SessionKey(secret); err != nil {
		return nil, nil, err
	}
	n.id, err = s.number()
	return n, &ours.Public, err
}
