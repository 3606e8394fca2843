package hdld

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/trace"
	"github.com/stele-id/stele/wire/hdl"
)

// transport is the way by which a request came.
type transport uint8

const (
	viaUDP transport = iota
	viaTCP
	viaHTTP
)

// call is a request that is being answered.
type call struct {
	raw  []byte // all of it
	from netip.AddrPort
	via  transport
	sent int                  // octets that the client sent
	send func(b []byte) error // sends one message of the answer

	renew func() // gives the request more time, because its client has read a part of the answer

	m       hdl.Message
	session *session // in which it came; nil: none
	proved  bool     // the client is where it says it is
	major3  bool     // DO-IRP 3.0: fragments are marked

	// Of the answer. The operation is that of the request which was challenged, if this one is the answer
	// to a challenge.
	operation hdl.Operation
	answerIn  uint32    // the session that the answer names
	keep      hdl.Flags // flags of the challenged request that the answer has too
}

// copied are the flags of a request that its answer has too (section 3).
const copied = hdl.Certify | hdl.CacheCertify | hdl.Encrypt | hdl.PublicOnly | hdl.DoNotRefer | hdl.ReturnDigest

// lifetime is for how long an answer is good: a client refuses one whose time is over.
const lifetime = 12 * time.Hour

func (s *Server) expiration() uint32 { return expirationAt(s.o.Now()) }

func expirationAt(now time.Time) uint32 { return uint32(now.Add(lifetime).Unix()) }

// unreadable returns the answer to octets that are not a message. The texts are those of the reference.
func (s *Server) unreadable(err error) []byte {
	s.stats.unreadable.Add(1)
	code, text := hdl.ServerError, "Server error processing request, see server logs"
	if wrong, ok := errors.AsType[*hdl.Error](err); ok && wrong.Response == hdl.ProtocolError {
		code, text = hdl.ProtocolError, "Invalid message length"
	}
	m := hdl.Unparsable(code, text, s.expiration())
	return m.Append(nil)
}

// answer answers a request, with what is kept if it can. It reports whether the octets are a message.
func (s *Server) answer(ctx context.Context, q *call) bool {
	if answer, ok := s.known(nil, q.raw, s.o.Now()); ok {
		_ = q.send(answer)
		return true
	}
	return s.work(ctx, q)
}

// work makes the answer to a request. It reports whether the octets are a message.
func (s *Server) work(ctx context.Context, q *call) bool {
	defer func() {
		if fault := recover(); fault != nil { // it ends one answer, and not the server
			s.o.Log.Error("a request of the Handle protocol broke off", "fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithCancel(handles.WithClient(ctx, limit.Client(q.from.Addr())))
	defer cancel()
	timer := time.AfterFunc(s.o.Limits.Work, cancel)
	defer timer.Stop()
	q.renew = func() { timer.Reset(s.o.Limits.Work) }
	var err error
	if q.m, err = hdl.Parse(q.raw); err != nil {
		_ = q.send(s.unreadable(err))
		return false
	}
	if q.via == viaUDP && !q.m.Envelope.Encrypted && q.m.Header.Response != 0 {
		return true // it is an answer: two servers that answered each other's would never end
	}
	q.major3 = isMajor3(&q.m)
	if q.sent == 0 {
		q.sent = len(q.raw)
	}
	ctx, span := s.o.Tracer.Begin(ctx, trace.Server, "handle")
	if err = s.enter(q); err == nil {
		q.operation = q.m.Header.Operation
		err = s.dispatch(ctx, q)
	}
	span.Number("stele.handle.operation", int64(q.operation))
	span.End(err)
	if err != nil {
		s.fail(ctx, q, err)
	}
	return true
}

// enter finds the session of a request, decrypts the request, and makes sure that it is the session's own.
func (s *Server) enter(q *call) error {
	q.operation = q.m.Header.Operation
	id := q.m.Envelope.Session
	if id == 0 {
		if q.m.Envelope.Encrypted {
			return refuse(hdl.SessionExpired, textNoSession)
		}
		return nil
	}
	in := s.sessions.find(id, s.o.Now())
	if q.m.Envelope.Encrypted {
		if in == nil {
			q.answerIn = id
			return refuse(hdl.SessionExpired, textNoSession)
		}
		if err := in.open(&q.m); err != nil {
			return s.distrust(in)
		}
		q.operation = q.m.Header.Operation
	}
	switch q.operation {
	case hdl.AnswerChallenge: // it has no code, and proves itself
		q.session = in
		if in != nil {
			q.answerIn = id
		}
		return nil
	case hdl.EndSession:
		if in == nil {
			q.answerIn = id
			return refuse(hdl.SessionExpired, "Can not get session info.")
		}
	}
	if in == nil {
		q.answerIn = id
		return refuse(hdl.SessionExpired, textNoSession)
	}
	if err := q.m.VerifyMAC(in.key); err != nil {
		if q.m.Envelope.Encrypted {
			return s.distrust(in)
		}
		return err
	}
	q.session, q.answerIn, q.proved = in, id, q.from.Addr() == in.from
	return in.count(q.m.Envelope.Version, q.m.Credential)
}

// distrust answers an encrypted message that is not right, whatever is wrong with it: a client that learns whether the padding was
// right learns the text. A session with several of them ends.
func (s *Server) distrust(in *session) error {
	if in.wrong.Add(1) >= maxWrong {
		s.sessions.end(in)
	}
	return refuse(hdl.SessionFailed, "The message can't be decrypted, or was changed")
}

const textNoSession = "Invalid session id or session time out. Please try again."

// refuse returns an error with a response code.
func refuse(code hdl.ResponseCode, text string) error {
	return &handles.Refusal{Code: code, Text: text}
}

// fail answers with an error.
func (s *Server) fail(ctx context.Context, q *call, err error) {
	if referral, ok := errors.AsType[*handles.Referral](err); ok {
		body := hdl.ReferralBody{Values: handles.WireValues(referral.Values)}
		_ = s.reply(ctx, q, referral.Code, body.Append(nil, q.version()), replyOptions{})
		return
	}
	if errors.Is(err, errNotAdmin) || errors.Is(err, errUnknown) {
		wrong, _ := errors.AsType[*hdl.Error](err)
		m := hdl.Unparsable(wrong.Response, wrong.Text, s.expiration())
		if errors.Is(err, errNotAdmin) {
			m.Header.Operation = q.operation
		}
		_ = q.send(m.Append(nil))
		return
	}
	code, text := hdl.ServerError, "Internal Error"
	if refused, ok := errors.AsType[*handles.Refusal](err); ok {
		code, text = refused.Code, refused.Text
	} else if wrong, ok := errors.AsType[*hdl.Error](err); ok {
		code, text = wrong.Response, wrong.Error()
	}
	if code == hdl.ServerError {
		s.o.Log.Error("a request of the Handle protocol failed", "operation", uint32(q.operation), "request", q.m.Envelope.Request, "err", err) // the id is the client's own
	}
	body := hdl.ErrorBody{Text: []byte(text)}
	octets := body.Append(nil, q.version())
	if err := s.reply(ctx, q, code, octets, replyOptions{}); handles.CodeOf(err) == hdl.ServerBusy && err != nil {
		_ = s.reply(ctx, q, hdl.ServerBusy, octets, replyOptions{plain: true}) // there was no turn to sign it
	}
}

// version returns the version of the answer.
func (q *call) version() hdl.Version { return q.m.Envelope.AnswerVersion() }

// replyOptions are what few answers have.
type replyOptions struct {
	flags      hdl.Flags
	restricted bool // it has values that are not for the public
	challenge  bool
	plain      bool   // it is not certified
	session    uint32 // a new session or challenge
}

// reply sends one message of the answer: with the digest of the request if the client asked for it,
// certified if it asked for that, and encrypted in a session where it must be.
func (s *Server) reply(ctx context.Context, q *call, code hdl.ResponseCode, body []byte, o replyOptions) error {
	site, v := s.o.Site(), q.version()
	flags := answerFlags(q.m.Header.Flags, site) | q.keep | o.flags
	if o.challenge {
		flags |= hdl.ReturnDigest
	}
	if v.Before(1) {
		flags &^= hdl.ReturnDigest
	}
	if flags&hdl.ReturnDigest != 0 {
		body = append(hdl.RequestDigest(hdl.DigestFor(v), &q.m).Append(nil), body...)
	}
	m := hdl.Message{
		Envelope: hdl.Envelope{Version: v, Suggested: hdl.Latest(), Session: q.answerIn, Request: q.m.Envelope.Request},
		Header:   hdl.Header{Operation: q.operation, Response: code.In(v), Flags: flags, SiteSerial: site.Serial, Expiration: s.expiration()},
		Body:     body,
	}
	if o.session != 0 {
		m.Envelope.Session = o.session
	}
	if !o.plain {
		if err := s.certify(ctx, q, &m, site); err != nil {
			return err
		}
	}
	if q.session != nil && (flags&hdl.Encrypt != 0 || o.restricted && !v.Before(8)) {
		iv := make([]byte, q.session.algorithm.BlockSize())
		if _, err := readRandom(s.o.Rand, iv); err != nil {
			return err
		}
		if err := m.Seal(q.session.algorithm, q.session.key, iv); err != nil {
			return err
		}
	}
	return q.send(m.Append(nil))
}

// certify gives the answer a credential, if the client asked for it: in a session the session's code, elsewhere
// the signature of the site's key.
func (s *Server) certify(ctx context.Context, q *call, m *hdl.Message, site *Site) error {
	switch {
	case m.Header.Flags&hdl.Certify == 0:
		return nil
	case q.session != nil:
		m.AddMAC(q.session.key, q.session.next())
		return nil
	}
	key := s.keyFor(q, site)
	if key == nil {
		return nil
	}
	leave, err := s.turn(ctx, q, s.signatures)
	if err != nil {
		return err
	}
	defer leave()
	return m.Sign(key, 0, s.o.Rand)
}
