package handle

import (
	"container/list"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// Bounds of sessions.
const (
	sessionIdle = 30 * time.Minute // without a request (section 8)
	sessionLife = 24 * time.Hour   // whatever happens
	maxSessions = 10_000           // of clients that have proved who they are
	maxEach     = 100              // of one identity

	nonceSize = 16
	codeSize  = 16
	tokenSize = 8 + nonceSize + codeSize
)

// session is one that a client has named, or one that begins.
type session struct {
	id    string
	nonce []byte
	who   handles.Identity
	known bool   // the client has proved that it is who
	stamp string // of the key or the secret that proved it
}

// sessions are those of the REST interface. The name of a session has in it when it began and its nonce, with a code
// of the server's, so that the server keeps nothing of a session in which the client has proved nothing: a flood of
// requests that are challenged takes no memory, and displaces no other client.
type sessions struct {
	random io.Reader
	key    [32]byte
	most   int

	mu    sync.Mutex
	byID  map[string]*list.Element
	order list.List // of *proved, the one that was used last at its end
	each  map[handles.Identity]int
}

// proved is a session whose client has proved who it is.
type proved struct {
	id    string
	who   handles.Identity
	stamp string // of the key or the secret that proved it
	used  time.Time
	ended bool // the client has ended it: its name is not good for anything any more
}

func newSessions(random io.Reader, most int) (*sessions, error) {
	s := &sessions{random: random, most: most, byID: make(map[string]*list.Element), each: make(map[handles.Identity]int)}
	if _, err := io.ReadFull(random, s.key[:]); err != nil {
		return nil, err
	}
	return s, nil
}

var tokenText = base64.RawURLEncoding.Strict()

// begin returns a new session.
func (s *sessions) begin(now time.Time) (*session, error) {
	token := binary.BigEndian.AppendUint64(make([]byte, 0, tokenSize), uint64(now.Unix()))
	nonce := make([]byte, nonceSize)
	if _, err := io.ReadFull(s.random, nonce); err != nil {
		return nil, &handles.Refusal{Code: hdl.ServerBusy, Err: err}
	}
	token = append(token, nonce...)
	return &session{id: tokenText.EncodeToString(append(token, s.code(token)...)), nonce: nonce}, nil
}

// code returns the code over the parts of a name.
func (s *sessions) code(parts []byte) []byte {
	h := hmac.New(sha256.New, s.key[:])
	_, _ = h.Write(parts)
	return h.Sum(nil)[:codeSize]
}

// find returns the session of a name; nil if the server did not make the name, or the session has ended.
func (s *sessions) find(id string, now time.Time) *session {
	if len(id) != tokenText.EncodedLen(tokenSize) {
		return nil
	}
	token, err := tokenText.DecodeString(id)
	if err != nil || !hmac.Equal(s.code(token[:8+nonceSize]), token[8+nonceSize:]) {
		return nil
	}
	began := time.Unix(int64(binary.BigEndian.Uint64(token)), 0)
	found := &session{id: id, nonce: token[8 : 8+nonceSize]}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[id]; e != nil {
		p := e.Value.(*proved)
		switch {
		case p.ended || now.Sub(began) >= sessionLife:
			return nil
		case now.Sub(p.used) >= sessionIdle:
			s.drop(e)
			return nil
		}
		p.used = now
		s.order.MoveToBack(e)
		found.who, found.known, found.stamp = p.who, true, p.stamp
		return found
	}
	if now.Sub(began) >= sessionIdle {
		return nil // the client has proved nothing in it, or that was forgotten
	}
	return found
}

// prove notes that the client of a session has proved who it is, by a key or a secret with this stamp.
func (s *sessions) prove(n *session, who handles.Identity, stamp string, now time.Time) {
	n.who, n.known, n.stamp = who, true, stamp
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[n.id]; e != nil {
		if e.Value.(*proved).ended {
			n.known = false // another request has ended it meanwhile
			return
		}
		s.drop(e)
	}
	for e := s.order.Front(); e != nil && now.Sub(e.Value.(*proved).used) >= sessionIdle; e = s.order.Front() {
		s.drop(e)
	}
	if s.each[who] >= maxEach {
		for e := s.order.Front(); e != nil; e = e.Next() {
			if e.Value.(*proved).who == who {
				s.drop(e)
				break
			}
		}
	}
	if len(s.byID) >= s.most {
		s.drop(s.order.Front())
	}
	s.byID[n.id] = s.order.PushBack(&proved{id: n.id, who: who, stamp: stamp, used: now})
	s.each[who]++
}

// end ends a session. Its name is remembered for as long as it would be good otherwise.
func (s *sessions) end(n *session, now time.Time) {
	if n == nil || !n.known {
		return // nothing is kept of it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[n.id]; e != nil {
		p := e.Value.(*proved)
		p.ended, p.used = true, now
		s.order.MoveToBack(e)
	}
}

// drop forgets a session. The caller holds the lock.
func (s *sessions) drop(e *list.Element) {
	p := s.order.Remove(e).(*proved)
	delete(s.byID, p.id)
	if s.each[p.who]--; s.each[p.who] <= 0 {
		delete(s.each, p.who)
	}
}

// count returns how many sessions are kept.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID)
}
