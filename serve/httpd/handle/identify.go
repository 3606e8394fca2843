package handle

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

const errExhausted = stele.Exhausted

// What an answer 401 says of credentials that were refused.
const (
	notVerified   = "Identity not verified"
	fieldsMissing = "Missing fields in authentication data"
)

// caller is the sender of a request.
type caller struct {
	who   handles.Identity
	known bool // it has proved that it is who

	// ambient says that a browser may have sent the proof of itself, without the user's intention.
	ambient bool

	session *session // that the request names; nil: none
	cnonce  []byte   // by which the client asks for the server's signature; nil: it does not
	other   bool     // the request has an Authorization header that is not Basic
}

// failure says that a request has credentials which prove nothing.
type failure struct {
	text    string   // "": the session that the request names is not there
	session *session // nil: a new one begins
	limited *limit.Refusal
	err     error // ours; nil otherwise
}

// identify finds out who sent a request. Credentials that come in clear are ignored (section 8), as those of other
// interfaces are.
func (h *Handler) identify(r *http.Request) (caller, *failure) {
	if r.TLS == nil {
		return caller{}, nil
	}
	values := r.Header["Authorization"]
	if len(values) == 0 {
		return h.byCertificate(r, false)
	}
	c := caller{other: true}
	if len(values) > 1 {
		return c, &failure{text: errMalformed.Error()}
	}
	a, err := ParseAuthorization(values[0])
	switch {
	case a == nil:
		return c, nil
	case a.Basic != nil || err != nil && a.Handle == nil && hasScheme(values[0], "Basic"):
		return h.byPassword(r, a.Basic)
	case err != nil:
		return c, &failure{text: err.Error()}
	case a.Handle.ClientCert && a.Handle.SessionID == "":
		return h.byCertificate(r, true)
	}
	return h.byFields(r, a.Handle)
}

func hasScheme(value, scheme string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(value, " \t"), " ")
	return strings.EqualFold(first, scheme)
}

// byPassword identifies a client by a secret that it sent.
func (h *Handler) byPassword(r *http.Request, b *Basic) (caller, *failure) {
	c := caller{ambient: true}
	if b == nil {
		return c, &failure{text: notVerified}
	}
	who, f := h.try(r, b.User, 0, func(ctx context.Context, who handles.Identity) (handles.Identity, error) {
		return h.o.Handles.VerifySecret(ctx, who, []byte(b.Password))
	})
	c.who, c.known = who, f == nil
	return c, f
}

// byFields identifies a client by a session, or by a proof in one.
func (h *Handler) byFields(r *http.Request, f *Fields) (caller, *failure) {
	c := caller{other: true}
	if f.Version != "" && f.Version != "0" {
		return c, &failure{}
	}
	c.cnonce = f.CNonce
	if f.SessionID != "" {
		c.session = h.sessions.find(f.SessionID, h.o.Now())
	}
	if err := h.stillProved(r.Context(), &c); err != nil {
		return c, failed(err)
	}
	switch {
	case c.session == nil && (f.SessionID != "" || f.hasProof()):
		return c, &failure{}
	case !f.hasProof():
		if c.session != nil {
			c.who, c.known = c.session.who, c.session.known
		}
		return c, nil
	case !f.isComplete():
		return c, &failure{text: fieldsMissing, session: c.session}
	case len(f.CNonce) > maxProved:
		return c, &failure{text: errMalformed.Error(), session: c.session}
	}
	c.cnonce = nil // it is part of the proof
	who, stamp, wrong := h.proveStamped(r, f, c.session.nonce)
	if wrong != nil {
		wrong.session = c.session
		return c, wrong
	}
	h.sessions.prove(c.session, who, stamp, h.o.Now())
	c.who, c.known = who, c.session.known
	return c, nil
}

// stillProved ends the session of a caller if the key or the secret that proved its identity was replaced or removed.
func (h *Handler) stillProved(ctx context.Context, c *caller) error {
	if c.session == nil || !c.session.known {
		return nil
	}
	stamp, err := h.o.Handles.Stamp(ctx, c.session.who)
	if err == nil && (stamp == "" || stamp != c.session.stamp) {
		h.sessions.end(c.session, h.o.Now())
		c.session = nil
	}
	return err
}

// proveStamped checks a proof for a session, and returns the stamp of the key or the secret. It reads the stamp before it
// verifies the proof, so that a key that is replaced meanwhile does not get the stamp of its successor.
func (h *Handler) proveStamped(r *http.Request, f *Fields, nonce []byte) (handles.Identity, string, *failure) {
	claim := *f
	claimed, err := h.o.Handles.ParseIdentity(f.ID)
	if err == nil && claimed.Index == 0 { // the first verification finds the value
		var wrong *failure
		if claimed, wrong = h.prove(r, f, nonce, f.Type); wrong != nil {
			return handles.Identity{}, "", wrong
		}
		claim.ID = claimed.String()
	}
	var stamp string
	if err == nil {
		if stamp, err = h.o.Handles.Stamp(r.Context(), claimed); err != nil {
			return handles.Identity{}, "", failed(err)
		}
	}
	who, wrong := h.prove(r, &claim, nonce, f.Type) // it refuses what is not an identity
	return who, stamp, wrong
}

// know notes in a session the identity that the header of a request has proved. It identifies the client again after it read the stamp,
// for the reason that proveStamped has.
func (h *Handler) know(r *http.Request, s *session, c *caller) *failure {
	stamp, err := h.o.Handles.Stamp(r.Context(), c.who)
	if err != nil {
		return failed(err)
	}
	again, f := h.identify(r)
	switch {
	case f != nil:
		return f
	case !again.known || again.who != c.who:
		return &failure{text: notVerified}
	}
	h.sessions.prove(s, c.who, stamp, h.o.Now())
	return nil
}

// prove checks a proof over the server's nonce and the client's.
func (h *Handler) prove(r *http.Request, f *Fields, nonce []byte, kind string) (handles.Identity, *failure) {
	p := handles.Proof{Version: hdl.Version{Major: 2, Minor: 11}, Type: kind, Nonce: nonce, Digest: f.CNonce}
	rounds := uint64(0)
	switch kind {
	case handles.TypePublicKey:
		p.Answer = hdl.KeyAnswer(f.Alg, f.Signature)
	case handles.TypeSecretKey:
		answer, err := hdl.SecretAnswer(f.Alg, f.Signature, f.Derivation)
		if err != nil {
			return handles.Identity{}, &failure{text: notVerified}
		}
		p.Answer, rounds = answer, hdl.AnswerRounds(f.Alg, f.Derivation)
	default:
		return handles.Identity{}, &failure{text: notVerified}
	}
	if rounds > 0 {
		p.Enter = h.dear.Enter
	}
	return h.try(r, f.ID, rounds, func(ctx context.Context, who handles.Identity) (handles.Identity, error) {
		return h.o.Handles.Verify(ctx, who, &p)
	})
}

// roundsOfGuess is how many rounds of a derivation cost as much as one wrong guess more.
const roundsOfGuess = 10_000

// try verifies a claim, unless the client's address has claimed too much that was wrong.
func (h *Handler) try(r *http.Request, claim string, rounds uint64, verify func(ctx context.Context, who handles.Identity) (handles.Identity, error)) (handles.Identity, *failure) {
	address, now := limit.Client(h.o.Client(r)), h.o.Now()
	if err := h.guesses.Take(address, 0, now); err != nil {
		return handles.Identity{}, failed(err)
	}
	who, err := h.o.Handles.ParseIdentity(claim)
	if err == nil {
		who, err = verify(handles.WithClient(r.Context(), address), who)
		if err == nil {
			return who, nil
		}
		if handles.CodeOf(err) != hdl.NotAuthenticated {
			return handles.Identity{}, failed(err)
		}
	}
	h.guesses.Spend(address, float64(1+rounds/roundsOfGuess), now)
	return handles.Identity{}, &failure{text: notVerified}
}

// failed makes a failure of an error that is not the client's.
func failed(err error) *failure {
	if limited, ok := errors.AsType[*limit.Refusal](err); ok {
		return &failure{limited: limited}
	}
	return &failure{err: err}
}

// fail answers a request whose credentials prove nothing: 401 without a body.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, q Request, c caller, f *failure) {
	switch {
	case f.limited != nil:
		h.limited(w, r, q, f.limited)
	case f.err != nil:
		h.refuse(w, r, q, "", f.err)
	default:
		c.session = f.session
		if h.offer(w, r, q, &c, f.text) {
			empty(w, http.StatusUnauthorized)
		}
	}
}

// Identify finds out who reads a handle; nil: the public. It returns false if the request has credentials that prove
// nothing, and is answered.
func (h *Handler) Identify(w http.ResponseWriter, r *http.Request, q Request) (*handles.Identity, bool) {
	if r.TLS == nil || len(r.Header["Authorization"]) == 0 && len(r.TLS.PeerCertificates) == 0 {
		return nil, true
	}
	c, f := h.identify(r)
	switch {
	case f != nil:
		h.fail(w, r, q, c, f)
		return nil, false
	case !c.known:
		return nil, true
	}
	return &c.who, true
}

// administrator returns who sends a request that only an administrator may send. It returns false if the request is
// answered. It does not judge what the identity may do.
func (h *Handler) administrator(w http.ResponseWriter, r *http.Request, q Request, handle string) (who handles.Identity, ok bool) {
	c, f := h.identify(r)
	switch {
	case f != nil:
		h.fail(w, r, q, c, f)
	case !c.known:
		h.challenge(w, r, q, &c, handle)
	case c.ambient && h.cross.Check(r) != nil:
		// A page of another site made a browser send it, with a password or a certificate that the browser has.
		h.refuse(w, r, q, handle, &handles.Refusal{Code: hdl.NotPermitted, Text: "A page of another site sent this request"})
	default:
		return c.who, true
	}
	return handles.Identity{}, false
}

// Challenge answers a request for which the client must prove who it is: with 401 and what it needs for that or, in
// clear, with 403.
func (h *Handler) Challenge(w http.ResponseWriter, r *http.Request, q Request, handle string) {
	c := caller{other: len(r.Header["Authorization"]) > 0}
	if r.TLS != nil {
		if known, f := h.identify(r); f == nil {
			c = known
		}
	}
	h.challenge(w, r, q, &c, handle)
}

func (h *Handler) challenge(w http.ResponseWriter, r *http.Request, q Request, c *caller, handle string) {
	answer := refusal{Code: hdl.Challenged, Handle: handle}
	if r.TLS == nil {
		h.answer(w, r, q, http.StatusForbidden, answer)
		return
	}
	if h.offer(w, r, q, c, "") {
		h.answer(w, r, q, http.StatusUnauthorized, answer)
	}
}

// offer says in the head how a client can prove who it is: in its session, or in a new one. Scripts in browsers do not
// want the browser to ask for a password. It returns false if the request is answered.
func (h *Handler) offer(w http.ResponseWriter, r *http.Request, q Request, c *caller, text string) bool {
	s := c.session
	if s == nil {
		var err error
		if s, err = h.sessions.begin(h.o.Now()); err != nil {
			h.refuse(w, r, q, "", err)
			return false
		}
	}
	signed, err := h.sign(r, s, c.cnonce)
	if err != nil {
		h.refuse(w, r, q, "", err)
		return false
	}
	head := w.Header()
	if !c.other && r.Header.Get("X-Requested-With") != "XMLHttpRequest" {
		head.Add("WWW-Authenticate", `Basic realm="handle"`)
	}
	value := `Handle sessionId="` + s.id + `", nonce="` + base64.StdEncoding.EncodeToString(s.nonce) + `"`
	if signed.Alg != "" {
		value += `, serverAlg="` + signed.Alg + `", serverSignature="` + signed.Signature + `"`
	}
	if text != "" {
		value += `, error="` + text + `"`
	}
	head.Add("WWW-Authenticate", value)
	return true
}

// serverProof is the server's signature over both nonces.
type serverProof struct {
	Alg       string `json:"serverAlg,omitempty"`
	Signature string `json:"serverSignature,omitempty"`
}

// sign proves the server to a client that asks for it by a nonce of its own. Anyone may ask, so it takes from the
// client's budget, and few are made at once.
func (h *Handler) sign(r *http.Request, s *session, cnonce []byte) (serverProof, error) {
	key := h.o.Site().Key
	if key == nil || len(cnonce) == 0 {
		return serverProof{}, nil
	}
	if h.o.Costs != nil {
		if err := h.o.Costs.Take("address "+limit.Client(h.o.Client(r)), costOfSign, h.o.Now()); err != nil {
			return serverProof{}, err
		}
	}
	leave, err := h.dear.Enter(r.Context())
	if err != nil {
		return serverProof{}, err
	}
	defer leave()
	alg, signature, err := key.SignNonces(s.nonce, cnonce, h.o.Rand)
	if err != nil {
		return serverProof{}, &handles.Refusal{Code: hdl.ServerError, Err: err}
	}
	return serverProof{alg, base64.StdEncoding.EncodeToString(signature)}, nil
}

// MayRead makes sure that an identity may read the values of a handle that are not for the public, and returns the
// principal that reads them.
func (h *Handler) MayRead(ctx context.Context, who handles.Identity, id stele.ID) (auth.Principal, error) {
	return h.o.Handles.MayRead(ctx, who, id)
}
