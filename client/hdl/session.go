package hdlclient

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// session is a key that the client shares with a server (section 6 of the specification).
type session struct {
	id        uint32
	key       []byte
	algorithm hdl.Algorithm

	mu      sync.Mutex
	counter uint32

	// turn has one element while no client is challenged: a session has one challenge at a time, and a later one
	// would end the one before it.
	turn   chan struct{}
	proved atomic.Bool // a challenge was answered rightly, so that none will follow
}

// enter waits for the turn of a request that may be challenged. The caller calls leave after its answer came.
func (n *session) enter(ctx context.Context) (leave func(), err error) {
	if n == nil || n.proved.Load() {
		return func() {}, nil
	}
	select {
	case <-n.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	leave = sync.OnceFunc(func() { n.turn <- struct{}{} })
	if n.proved.Load() {
		leave()
	}
	return leave, nil
}

// next returns the counter of the next message. Zero is not one.
func (n *session) next() uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counter++
	return n.counter
}

// sessionSeconds is for how long a session is asked for; the server decides.
const sessionSeconds = 24 * 60 * 60

// setUp agrees on a key with a server. The server signs its half of it, so its key must be known: otherwise an attacker between
// the two could agree with both.
func (c *Client) setUp(ctx context.Context, w *walk, s *server, who hdl.Reference) (*session, error) {
	if s.key == nil {
		return nil, refuse(stele.Unavailable, "hdlclient.session-without-key", "{server} has no key by which it could prove who it is, and so no session can be set up; set up its site first", s.name)
	}
	p, g := hdl.OakleyGroup()
	ours, err := hdl.NewDH(p, g, c.o.Rand)
	if err != nil {
		return nil, refuse(stele.Internal, "", "{cause}", err)
	}
	public := hdl.PublicKey{DH: &ours.Public}
	got, err := c.ask(ctx, w, s, &request{operation: hdl.SetUpSession, handle: who.Handle, admin: true, flags: hdl.Certify,
		body: &hdl.SessionRequest{Mode: hdl.KeyExchangeDH, Timeout: sessionSeconds, Identity: who, Key: public.Append(nil), Rest: []byte{0, 0}}})
	if err != nil {
		return nil, err
	}
	if got.code() != hdl.Success {
		return nil, got.failure()
	}
	body, ok := got.body.(*hdl.SessionResponse)
	if !ok || got.m.Envelope.Session == 0 {
		return nil, got.odd()
	}
	if body.Algorithm != hdl.AES {
		return nil, refuse(stele.Unavailable, "hdlclient.session-cipher", "{server} chooses a cipher for the session that does not protect it (number {cipher}, AES is {aes}); bring the server up to date, or work without sessions", got.from, uint32(body.Algorithm), uint32(hdl.AES))
	}
	n := &session{id: got.m.Envelope.Session, algorithm: body.Algorithm, turn: make(chan struct{}, 1)}
	n.turn <- struct{}{}
	if n.key, err = agreed(ours, body); err != nil {
		return nil, refuse(stele.Conflict, "hdlclient.session-key", "{server} answers with a key that no session can have: {cause}", got.from, err)
	}
	return n, nil
}

// agreed returns the key of a session.
func agreed(ours *hdl.DHPrivate, body *hdl.SessionResponse) ([]byte, error) {
	theirs, err := hdl.ParsePublicKey(body.Key)
	if err != nil {
		return nil, err
	}
	if theirs.DH == nil {
		return nil, stele.Messagef("hdlclient.session-key-type", "it is not a key of Diffie and Hellman's method")
	}
	secret, err := ours.Shared(theirs.DH)
	if err != nil {
		return nil, err
	}
	return body.Algorithm.SessionKey(secret)
}
