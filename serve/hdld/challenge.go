package hdld

import (
	"context"
	"encoding/binary"
	"io"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// operation is what an administrator asks for. The reference judges the rights of the identity that a client
// claims before it judges the proof of it (section 7), and so does this server.
type operation interface {
	begin(ctx context.Context) error
	claim(ctx context.Context, who handles.Identity) error // as authorise, for a client that has proved nothing yet
	authorise(ctx context.Context, who handles.Identity) error
	run(ctx context.Context, q *call, who handles.Identity) error
}

// administrate does what an administrator asks for: at once in a session in which the client has proved who it is,
// and else after a challenge.
func (s *Server) administrate(ctx context.Context, q *call, op operation) error {
	if q.via == viaUDP && !s.o.AdminUDP && q.operation != hdl.Resolve {
		return errNotAdmin
	}
	if s.o.Frozen != nil {
		return refuse(hdl.NotPermitted, stele.Reason(s.o.Frozen).Error())
	}
	if err := op.begin(ctx); err != nil {
		return err
	}
	if q.session != nil {
		if who, ok := q.session.identity(); ok {
			if err := s.stillProves(ctx, q.session, who); err != nil {
				return err
			}
			if _, ok := op.(*change); !ok { // whose Commit asks for the rights
				if err := op.authorise(ctx, who); err != nil {
					return err
				}
			}
			return op.run(ctx, q, who)
		}
	}
	if open, ok := op.(*change); ok {
		if public, err := open.c.IsPublic(ctx); err != nil || public {
			if err != nil {
				return err
			}
			return op.run(ctx, q, handles.Public())
		}
	}
	return s.challenge(ctx, q, op)
}

// challenge asks the client to prove who it is.
func (s *Server) challenge(ctx context.Context, q *call, op operation) error {
	now, v := s.o.Now(), q.version()
	c := &challenge{op: op, what: q.operation, flags: q.m.Header.Flags, ends: now.Add(challengeLife), octets: decoded*len(q.raw) + 512, from: q.from.Addr(),
		forgeable: q.via == viaUDP,
		nonce:     make([]byte, nonceSize), digest: hdl.RequestDigest(hdl.DigestFor(v), &q.m).Sum}
	if _, err := readRandom(s.o.Rand, c.nonce); err != nil {
		return err
	}
	if err := s.challenges.add(c, s.number, now); err != nil {
		return err
	}
	o := replyOptions{challenge: true, session: c.id}
	if q.session != nil {
		if before := q.session.wait(c.id); before != 0 {
			s.challenges.take(before, now)
		}
		o.session = 0 // it is the session's
	}
	s.stats.challenged.Add(1)
	body := hdl.ChallengeBody{Nonce: c.nonce, MD5: c.digest}
	return s.reply(ctx, q, hdl.Challenged, body.Append(nil, v), o)
}

// decoded is how many times the octets of a request the values in memory take, at most.
const decoded = 6

// stillProves makes sure that the key by which the client of a session proved who it is is still theirs.
func (s *Server) stillProves(ctx context.Context, in *session, who handles.Identity) error {
	now, err := s.o.Handles.Stamp(ctx, who)
	if err != nil {
		return err
	}
	if now == "" || now != in.stamp() {
		s.sessions.end(in)
		return refuse(hdl.SessionExpired, textNoSession)
	}
	return nil
}

// number returns a random number for a session or a challenge.
func (s *Server) number() (uint32, error) {
	for {
		var b [4]byte
		if _, err := readRandom(s.o.Rand, b[:]); err != nil {
			return 0, err
		}
		// Clients read it as a signed number.
		if id := binary.BigEndian.Uint32(b[:]) &^ (1 << 31); id != 0 && !s.sessions.has(id) {
			return id, nil
		}
	}
}

func readRandom(r io.Reader, b []byte) (int, error) {
	n, err := io.ReadFull(r, b)
	if err != nil {
		return n, &handles.Refusal{Code: hdl.ServerBusy, Err: err}
	}
	return n, nil
}

// answered does what was asked for before a challenge, if the answer proves who the client is.
func (s *Server) answered(ctx context.Context, q *call) error {
	var body hdl.AnswerRequest
	if err := body.Decode(q.m.Body); err != nil {
		return err
	}
	var c *challenge
	number := q.m.Envelope.Session
	if q.session != nil {
		number = q.session.wait(0)
	}
	c = s.challenges.take(number, s.o.Now())
	if c == nil {
		return refuse(hdl.ChallengeTimeout, "")
	}
	q.operation, q.keep = c.what, c.flags&hdl.DoNotRefer
	claimed, err := s.o.Handles.Identity(body.Identity.Handle, body.Identity.Index)
	if err != nil {
		return refuse(hdl.NotAuthenticated, "")
	}
	if err := c.op.claim(ctx, claimed); err != nil && claimed.Index != 0 {
		return err
	}
	proof := &handles.Proof{Version: q.version(), Type: string(body.Type), Nonce: c.nonce, Digest: c.digest, Answer: body.Answer}
	who, stamp, err := s.proveIn(ctx, q, claimed, proof)
	if err != nil {
		s.stats.refused.Add(1)
		return err
	}
	s.stats.proved.Add(1)
	q.proved = c.from == q.from.Addr()
	if err := c.op.authorise(ctx, who); err != nil {
		return err
	}
	if q.session != nil && setsUp(c.what) {
		if stamp != "" { // another server keeps the secret, and verifies each proof
			q.session.prove(who, stamp)
		}
	}
	return c.op.run(ctx, q, who)
}

// proveIn verifies an answer to a challenge and returns, for a session, the stamp of the key that proved it. The stamp is read before the
// key: one that is replaced in between ends the session, and does not go on in it under the stamp of the next.
func (s *Server) proveIn(ctx context.Context, q *call, claimed handles.Identity, p *handles.Proof) (who handles.Identity, stamp string, err error) {
	for range 2 {
		if q.session != nil && claimed.Index != 0 {
			if stamp, err = s.o.Handles.Stamp(ctx, claimed); err != nil {
				return handles.Identity{}, "", err
			}
		}
		if who, err = s.prove(ctx, q, claimed, p); err != nil || q.session == nil || claimed == who {
			break
		}
		claimed = who // it was claimed without an index, and is proved again by the value that fits
	}
	return who, stamp, err
}

// setsUp reports whether the proof for an operation holds for the rest of the session. Clients send other operations outside of
// sessions, so that an attacker between client and server could have them proved in a session of its own.
func setsUp(op hdl.Operation) bool {
	switch op {
	case hdl.CreateHandle, hdl.DeleteHandle, hdl.AddValue, hdl.RemoveValue, hdl.ModifyValue, hdl.HomePrefix, hdl.UnhomePrefix:
		return true
	}
	return false
}

// prove verifies an answer to a challenge. Derived secrets take computing time, so that few are verified at once, and no client may try
// many.
func (s *Server) prove(ctx context.Context, q *call, claimed handles.Identity, p *handles.Proof) (handles.Identity, error) {
	if err := s.guesses.Take(limit.Client(q.from.Addr()), 1, s.o.Now()); err != nil {
		return handles.Identity{}, &handles.Refusal{Code: hdl.ServerBusy, Err: err}
	}
	p.Enter = func(ctx context.Context) (func(), error) { return s.turn(ctx, q, s.proofs) }
	switch p.Type {
	case hdl.TypePublicKey, hdl.TypeSecretKey:
		who, err := s.o.Handles.Verify(ctx, claimed, p)
		if err == nil && p.Type == hdl.TypePublicKey {
			// A right proof is not a guess, and verifying a signature costs little: a client that reads many handles sends one for each.
			s.guesses.Spend(limit.Client(q.from.Addr()), -1, s.o.Now())
		}
		return who, err
	}
	return handles.Identity{}, refuse(hdl.CannotAuthenticate, "Keys are of the types HS_PUBKEY and HS_SECKEY")
}
