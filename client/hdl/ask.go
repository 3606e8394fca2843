package hdlclient

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/internal/endpoint"
	"github.com/stele-id/stele/wire/hdl"
)

// request is what a server is asked for.
type request struct {
	operation hdl.Operation
	handle    string // for the trace, and for the path in HTTP
	flags     hdl.Flags
	body      hdl.Body
	admin     bool // only interfaces for administrators will do
	write     bool // it changes something, so it is not sent twice unnoticed
	streamed  bool // the answer may be several messages: UDP will not do

	session *session      // in which it is sent; nil: none
	seal    bool          // in a session: encrypted
	uncoded bool          // in a session: without a code, as answers to challenges are
	pending uint32        // the session of a challenge that this is the answer to, outside of one
	answers hdl.Operation // the operation of the answer, if it is another one

	each  func(*reply) error // is handed each message of an answer but the last; may be nil
	begun bool               // it was handed one, so that the request is not sent again
}

// reply is an answer that was verified.
type reply struct {
	m         hdl.Message
	sent      *hdl.Message // the request
	digest    hdl.Digest
	body      hdl.Body
	certified bool
	proved    bool // it is a failure that the server certified, for this request
	from      string
}

func (got *reply) code() hdl.ResponseCode { return got.m.Header.Response }

// errStray says that a message is not the answer to a request. Over UDP it is ignored: it may be late, or forged.
var errStray error = stele.Messagef("hdlclient.stray", "the message is not an answer to this request")

// errMaybeDone is within the error of a change that was sent, and to which no answer came.
const errMaybeDone = mark("maybe done")

// mark is an error that callers look for, and users do not see.
type mark string

func (m mark) Error() string { return string(m) }

// unverified says that an answer failed verification.
type unverified struct{ err error }

func (u unverified) Error() string { return u.err.Error() }
func (u unverified) Unwrap() error { return u.err }

func isUnverified(err error) bool {
	_, ok := errors.AsType[unverified](err)
	return ok
}

// transports are names of transports.
var transports = map[hdl.Transport]string{hdl.UDP: "udp", hdl.TCP: "tcp", hdl.HTTP: "http", hdl.HTTPS: "https"}

// operations are names of operations, for the trace.
var operations = map[hdl.Operation]string{
	hdl.Resolve: "resolve", hdl.GetSiteInfo: "site", hdl.CreateHandle: "create", hdl.DeleteHandle: "delete", hdl.AddValue: "add",
	hdl.RemoveValue: "remove", hdl.ModifyValue: "modify", hdl.ListHandles: "list", hdl.AnswerChallenge: "answer", hdl.HomePrefix: "home",
	hdl.UnhomePrefix: "unhome", hdl.ListPrefixes: "prefixes", hdl.SetUpSession: "session", hdl.EndSession: "end", hdl.VerifyAnswer: "verify",
}

// ask asks a server over its interfaces, one after the other until it answers. The response code 2 means that the
// next one is tried (section 1 of the specification).
func (c *Client) ask(ctx context.Context, w *walk, s *server, r *request) (*reply, error) {
	var failed error
	var last *reply
	for _, d := range c.doors(s, r) {
		for _, addr := range s.addrs {
			at := netip.AddrPortFrom(addr, uint16(d.Port))
			step := Step{Operation: operations[r.operation], Handle: r.handle, Server: at.String(), Transport: transports[d.Protocol]}
			if w.asks++; w.asks > maxAsks {
				return nil, refuse(stele.Unavailable, "hdlclient.too-many-messages", "{messages} messages were sent, and there is no answer yet; that is enough", maxAsks)
			}
			got, err := c.exchange(ctx, s, r, d.Protocol, at)
			if errors.Is(err, errEnough) {
				return nil, err
			}
			if err != nil {
				step.Error = stele.Reason(err).Error()
				w.tell(step)
				if failed = worse(failed, err); ctx.Err() != nil || isUnverified(err) || errors.Is(err, errMaybeDone) || r.begun {
					return nil, err
				}
				continue
			}
			step.Response, step.Meaning, step.Certified = uint32(got.code()), Meaning(got.code()), got.certified
			if b, ok := got.body.(*hdl.ValuesBody); ok {
				step.Values = len(b.Values)
			}
			w.tell(step)
			if r.write && isFailureOf(got.code()) && !got.proved {
				// An attacker on the way may have made the answer, after the server made the change.
				return nil, &stele.Error{Op: "ask", Kind: stele.Unavailable, Err: maybeDone{stele.Messagef("hdlclient.maybe-done-unproved",
					"the change was sent, and it is not certain that the answer is the server's ({cause}); look whether the change was made before you repeat it", got.failure())}}
			}
			if got.code() != hdl.ServerError {
				return got, nil
			}
			last = got
		}
	}
	switch {
	case last != nil:
		return last, nil
	case failed == nil:
		failed = refuse(stele.Unavailable, "hdlclient.no-interface", "the site says of no interface of {server} that this may be asked over it", s.name)
	}
	return nil, failed
}

// doors returns the interfaces of a server over which a request may be sent, in the order to try them.
func (c *Client) doors(s *server, r *request) (list []hdl.Interface) {
	order := c.o.Transports
	switch {
	case len(order) > 0:
	case r.admin || r.streamed:
		order = []hdl.Transport{hdl.TCP, hdl.HTTP, hdl.UDP}
	default:
		order = []hdl.Transport{hdl.UDP, hdl.TCP, hdl.HTTP}
	}
	for _, t := range append(slices.Clone(order), hdl.HTTPS) {
		if t == hdl.UDP && r.streamed || t == hdl.HTTPS && s.tunnel == "" {
			// Certificates of servers in HS_SITE name no host: without a rule whom to trust, HTTPS adds nothing to HTTP.
			continue
		}
		for _, d := range s.doors {
			need := hdl.InterfaceQuery
			if r.admin {
				need = hdl.InterfaceAdmin
			}
			if d.Protocol == t && d.Type&need != 0 && d.Port > 0 && d.Port <= 65535 && !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}
	return list
}

// exchange sends a request over one interface and returns the last message of the answer.
func (c *Client) exchange(ctx context.Context, s *server, r *request, t hdl.Transport, at netip.AddrPort) (*reply, error) {
	if !s.given && c.o.Permit != nil {
		if err := c.o.Permit(at); err != nil {
			return nil, refuse(stele.Forbidden, "hdlclient.not-permitted", "{address} is not permitted: {cause}", at, err)
		}
	}
	m, err := c.message(s, r)
	if err != nil {
		return nil, err
	}
	var got *reply
	x := exchange{c: c, at: at, pack: func() ([]byte, error) { return c.pack(m, r) }}
	x.take = func(raw []byte) (more bool, err error) {
		next, err := c.read(s, r, m, raw, at)
		if err != nil {
			return false, err
		}
		got = next
		if more = r.streamed && got.m.Header.Flags&hdl.Continuous != 0; more && r.each != nil {
			r.begun = true
			return more, r.each(got)
		}
		return more, nil
	}
	switch t {
	case hdl.UDP:
		err = x.overUDP(ctx)
	case hdl.TCP:
		err = x.overTCP(ctx)
	default:
		err = x.overHTTP(ctx, s, r.handle, t == hdl.HTTPS)
	}
	if err == nil {
		return got, nil
	}
	maybe := r.write && x.sent
	if _, ok := errors.AsType[*stele.Error](err); ok && !(maybe && stele.KindOf(err) == stele.Unavailable) || errors.Is(err, errEnough) {
		return nil, err
	}
	if maybe { // also after an answer that cannot be read, which an attacker on the way may have made
		return nil, &stele.Error{Op: "ask", Kind: stele.Unavailable, Err: maybeDone{stele.Messagef("hdlclient.maybe-done",
			"{server} got the change, and no answer came that can be used ({cause}); look whether it was made before you repeat it", at, endpoint.Timely(ctx, plain(err)))}}
	}
	return nil, refuse(stele.Unavailable, "hdlclient.no-answer", "{server} over {transport}: {cause}; try again", at, transports[t], endpoint.Timely(ctx, plain(err)))
}

// maybeDone is the error of a change to which no answer came.
type maybeDone struct{ *stele.Message }

func (m maybeDone) Is(target error) bool { return target == errMaybeDone }
func (m maybeDone) Unwrap() error        { return m.Message }

// plain returns an error in the words that people see.
func plain(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return endpoint.ErrNoAnswer
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return stele.Messagef("hdlclient.connection-ended", "it ended the connection before its answer was whole")
	}
	return err
}

// requestLife is what requests say about how long they are good, as those of the reference do.
const requestLife = 12 * time.Hour

// message makes the message of a request, without a credential.
func (c *Client) message(s *server, r *request) (*hdl.Message, error) {
	var id [4]byte
	if _, err := io.ReadFull(c.o.Rand, id[:]); err != nil {
		return nil, refuse(stele.Internal, "hdlclient.no-random-octets", "there are no random octets: {cause}", err)
	}
	v := s.version
	if v.Before(1) && !s.given {
		v.Major, v.Minor = 2, 1 // only the user may say that answers need no digest
	}
	if newer(v, c.o.Version) || v.Major != c.o.Version.Major {
		v = c.o.Version
	}
	m := &hdl.Message{
		Envelope: hdl.Envelope{Version: v, Suggested: c.o.Version, Session: r.pending, Request: binary.BigEndian.Uint32(id[:]) &^ (1 << 31)},
		Header: hdl.Header{Operation: r.operation, Flags: r.flags | hdl.CacheCertify | hdl.ReturnDigest, SiteSerial: s.serial,
			Expiration: uint32(c.o.Now().Add(requestLife).Unix())},
		Body: r.body.Append(nil, v),
	}
	if v.Before(1) {
		m.Header.Flags &^= hdl.ReturnDigest
	}
	if r.session != nil || s.key != nil && !c.o.Uncertified {
		m.Header.Flags |= hdl.Certify
	}
	if r.session != nil {
		m.Envelope.Session = r.session.id
	}
	if n := hdl.HeaderSize + len(m.Body) + 4; n > hdl.MaxMessage-maxOverhead {
		return nil, refuse(stele.Invalid, "hdlclient.request-too-long", "the request has {octets} octets, and at most {most} are allowed; send the values in several requests", n, hdl.MaxMessage-maxOverhead)
	}
	return m, nil
}

// maxOverhead is how many octets a credential and encryption add at most.
const maxOverhead = 512

// newer reports whether v is above w.
func newer(v, w hdl.Version) bool {
	return v.Major > w.Major || v.Major == w.Major && v.Minor > w.Minor
}

// pack returns the octets of a message. In a session each repeat has a code of its own, with another counter, so that it is not
// taken for one that an attacker repeats.
func (c *Client) pack(m *hdl.Message, r *request) ([]byte, error) {
	out := *m
	if n := r.session; n != nil && !r.uncoded {
		out.AddMAC(n.key, n.next())
		if r.seal {
			iv := make([]byte, n.algorithm.BlockSize())
			if _, err := io.ReadFull(c.o.Rand, iv); err != nil {
				return nil, refuse(stele.Internal, "hdlclient.no-random-octets", "there are no random octets: {cause}", err)
			}
			if err := out.Seal(n.algorithm, n.key, iv); err != nil {
				return nil, err
			}
		}
	}
	return out.Append(nil), nil
}

// read reads an answer and verifies it: that it belongs to the request, by its number, its operation and the digest of the request,
// and that the server certified it, if its key is known.
func (c *Client) read(s *server, r *request, sent *hdl.Message, raw []byte, at netip.AddrPort) (*reply, error) {
	m, err := hdl.Parse(raw)
	if err != nil {
		return nil, odd(at, err)
	}
	got := &reply{sent: sent, from: at.String()}
	if m.Envelope.Request != sent.Envelope.Request {
		if m.Envelope.Request == 0xffffffff && !m.Envelope.Encrypted && isFailureOf(m.Header.Response) {
			// The server could not read the request at all, or does not take it on this interface.
			got.m = m
			_, got.body, err = hdl.ParseResponse(&m)
			return got, err
		}
		return nil, errStray
	}
	if m.Envelope.Encrypted {
		if r.session == nil {
			return nil, odd(at, stele.Messagef("hdlclient.encrypted-without-session", "it is encrypted, and there is no session"))
		}
		if err := m.Open(r.session.algorithm, r.session.key); err != nil {
			return nil, disbelieve(at, err)
		}
	}
	got.m = m
	if newer(m.Envelope.Version, sent.Envelope.Suggested) {
		return nil, odd(at, stele.Messagef("hdlclient.version-too-new", "it is of version {version}, which was not asked for", version(m.Envelope.Version)))
	}
	if got.digest, got.body, err = hdl.ParseResponse(&m); err != nil {
		return nil, odd(at, err)
	}
	if err := c.verify(s, r, got, at); err != nil {
		return nil, err
	}
	want := sent.Header.Operation
	if r.answers != 0 {
		want = r.answers
	}
	if m.Header.Operation != want && !isFailureOf(got.code()) {
		return nil, odd(at, stele.Messagef("hdlclient.other-operation", "it answers another operation"))
	}
	return got, nil
}

// verify verifies that an answer belongs to its request, and who made it. A server that is out of order may be unable to
// certify that; all that an attacker gains by saying so is that the client asks elsewhere.
//
// Signatures below 2.6 do not cover the version, and answers of 2.0 have no digest of the request, so that an attacker could send
// an old answer again as one of 2.0. A server answers in the version of its site or in a higher one (section 2 of the
// specification), and the client sends in no higher one than that, so that nothing below is accepted.
func (c *Client) verify(s *server, r *request, got *reply, at netip.AddrPort) error {
	m, asked := &got.m, got.sent.Header.Flags
	failure := isFailureOf(got.code())
	if asked&hdl.Certify != 0 {
		var err error
		if r.session != nil {
			err = m.VerifyMAC(r.session.key)
		} else {
			err = m.VerifySignature(s.key)
		}
		if got.certified = err == nil; err != nil && !failure {
			return disbelieve(at, err)
		}
		if failure {
			// A server that does not know the session signs by its key.
			by := got.certified || r.session != nil && s.key != nil && m.VerifySignature(s.key) == nil
			got.proved = by && got.sent.MatchesDigest(got.digest) && !newer(got.sent.Envelope.Version, m.Envelope.Version)
		}
	}
	switch {
	case failure:
	case asked&hdl.ReturnDigest != 0 && m.Envelope.Version.Before(1), got.certified && newer(got.sent.Envelope.Version, m.Envelope.Version):
		return disbelieve(at, stele.Messagef("hdlclient.version-too-old", "it is of version {version}, and {expected} was asked for, so it may be an old one that was sent again; if the server speaks only {version}, give the client a site file that says so",
			version(m.Envelope.Version), version(got.sent.Envelope.Version)))
	case asked&hdl.ReturnDigest != 0 && !got.sent.MatchesDigest(got.digest):
		return disbelieve(at, stele.Messagef("hdlclient.digest-wrong", "it has no digest of the request, or that of another one"))
	case got.certified && int64(m.Header.Expiration) < c.o.Now().Unix():
		return disbelieve(at, stele.Messagef("hdlclient.answer-expired", "it has expired, so it may be an old one that was sent again; check the clocks of both machines"))
	}
	if r.session == nil && !s.trusted {
		got.certified = false // the key proves only that the same server made all answers
	}
	return nil
}

// disbelieve is the error for an answer that fails verification.
func disbelieve(at netip.AddrPort, err error) error {
	return &stele.Error{Op: "ask", Kind: stele.Conflict, Err: unverified{stele.Messagef("hdlclient.answer-unverified", "the answer of {server} fails verification: {cause}", at, err)}}
}

// odd is the error for an answer that cannot be read.
func odd(at netip.AddrPort, err error) error {
	return refuse(stele.Unavailable, "hdlclient.answer-unreadable", "the answer of {server} cannot be used: {cause}", at, err)
}

func version(v hdl.Version) string {
	return strconv.Itoa(int(v.Major)) + "." + strconv.Itoa(int(v.Minor))
}
