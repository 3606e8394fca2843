package handle

import (
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// sessionAnswer describes a session.
type sessionAnswer struct {
	ID    string `json:"sessionId,omitempty"`
	Nonce string `json:"nonce,omitempty"`
	serverProof
	Authenticated *bool  `json:"authenticated,omitempty"`
	Who           string `json:"id,omitempty"`
	Error         string `json:"error,omitempty"`
}

// session answers below /api/sessions.
func (h *Handler) session(w http.ResponseWriter, r *http.Request, q Request, rest string) {
	begins := rest == ""
	switch {
	case !begins && rest != "this":
		h.unknown(w, r, q)
		return
	case r.TLS == nil:
		empty(w, http.StatusForbidden)
		return
	case begins && r.Method != http.MethodPost && r.Method != http.MethodOptions:
		w.Header().Set("Allow", "POST, TRACE, OPTIONS")
		empty(w, http.StatusMethodNotAllowed)
		return
	case !h.method(w, r, q, map[bool]string{true: "POST", false: "GET, HEAD, PUT, POST, DELETE"}[begins]):
		return
	}
	c, f := h.identify(r)
	if f != nil {
		h.fail(w, r, q, c, f)
		return
	}
	if c.ambient && c.known && h.cross.Check(r) != nil {
		h.refuse(w, r, q, "", &handles.Refusal{Code: hdl.NotPermitted, Text: "A page of another site sent this request"})
		return
	}
	switch r.Method {
	case http.MethodDelete:
		h.sessions.end(c.session, h.o.Now())
		empty(w, http.StatusNoContent)
	case http.MethodPut, http.MethodPost:
		h.authenticate(w, r, q, c, begins)
	default:
		h.describe(w, r, q, http.StatusOK, c, "")
	}
}

// authenticate begins a session, or has a client prove in one who it is: by what the body says or by the header.
func (h *Handler) authenticate(w http.ResponseWriter, r *http.Request, q Request, c caller, begins bool) {
	fields, ok := h.readFields(w, r, q)
	if !ok {
		return
	}
	if begins {
		s, err := h.sessions.begin(h.o.Now())
		if err != nil {
			h.refuse(w, r, q, "", err)
			return
		}
		c.session = s
		if fields.SessionID = s.id; c.known {
			if f := h.know(r, s, &c); f != nil {
				h.fail(w, r, q, c, f)
				return
			}
		}
	}
	if fields.SessionID == "" && c.session != nil {
		fields.SessionID = c.session.id
	}
	if fields.SessionID != "" && (!begins || fields.hasProof() || fields.CNonce != nil) {
		proving, f := h.byFields(r, fields)
		switch {
		case f != nil && f.text != "" && f.session != nil:
			// The session is as it was before. The reference says 200 if a client was known in it, which no program
			// can tell from success; here that is 401 too.
			proving.session = f.session
			proving.who, proving.known = f.session.who, f.session.known
			if h.offer(w, r, q, &proving, f.text) {
				h.describe(w, r, q, http.StatusUnauthorized, proving, f.text)
			}
			return
		case f != nil:
			h.fail(w, r, q, proving, f)
			return
		}
		if proving.known {
			c.who, c.known = proving.who, true
		}
		c.session, c.cnonce = proving.session, proving.cnonce
	}
	if c.session == nil { // PUT without a session, by password or certificate
		h.describe(w, r, q, http.StatusOK, c, "")
		return
	}
	if !begins {
		if c.known && !c.session.known {
			if f := h.know(r, c.session, &c); f != nil {
				h.fail(w, r, q, c, f)
				return
			}
		}
		h.describe(w, r, q, http.StatusOK, c, "")
		return
	}
	w.Header().Set("Location", "/api/sessions/this")
	h.describe(w, r, q, http.StatusCreated, c, "")
}

// readFields reads the fields in the body of a request; none, if the body is not JSON. It returns false if the request
// is answered.
func (h *Handler) readFields(w http.ResponseWriter, r *http.Request, q Request) (*Fields, bool) {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.Body == nil || media != "application/json" {
		return &Fields{}, true
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxAuthorization+1))
	if err == nil && len(text) <= maxAuthorization {
		if fields, err := parseJSON(text); err == nil {
			return fields, true
		}
	}
	h.refuse(w, r, q, "", &handles.Refusal{Code: hdl.ProtocolError, Text: errMalformed.Error()})
	return nil, false
}

// describe answers with the session that a request names, and who is known in it.
func (h *Handler) describe(w http.ResponseWriter, r *http.Request, q Request, status int, c caller, text string) {
	a := sessionAnswer{Error: text}
	if c.session != nil {
		a.ID, a.Nonce = c.session.id, base64.StdEncoding.EncodeToString(c.session.nonce)
		proof, err := h.sign(r, c.session, c.cnonce)
		if err != nil {
			w.Header().Del("Location")
			h.refuse(w, r, q, "", err)
			return
		}
		a.serverProof = proof
	}
	if c.known {
		a.Who = c.who.String()
	}
	if c.known || c.session == nil {
		a.Authenticated = &c.known
	}
	h.answer(w, r, q, status, a)
}

// verification says whether a proof is right: of a secret that this server knows, over nonces that another server and
// its client have chosen. It is a way to guess secrets like any other one, and is counted as such.
func (h *Handler) verification(w http.ResponseWriter, r *http.Request, q Request, rest string) {
	if !h.method(w, r, q, "GET, HEAD, POST") {
		return
	}
	given := make(map[string]string)
	for _, name := range []string{"cnonce", "alg", "signature", "salt", "iterations", "length"} {
		given[name] = q.Query.Get(name)
	}
	nonce, err := base64.StdEncoding.DecodeString(q.Query.Get("nonce"))
	fields, err2 := newFields(given)
	switch {
	case err != nil || err2 != nil || len(nonce) > maxNonce:
		h.refuse(w, r, q, "", &handles.Refusal{Code: hdl.ProtocolError, Text: "Malformed parameters in verification request"})
		return
	case rest == "" || !q.Query.Has("nonce") || !q.Query.Has("cnonce") || fields.Alg == "" || fields.Signature == nil:
		h.refuse(w, r, q, "", &handles.Refusal{Code: hdl.ProtocolError, Text: "Missing parameters in verification request"})
		return
	}
	if _, err := h.o.Handles.ParseIdentity(rest); err != nil {
		h.refuse(w, r, q, "", &handles.Refusal{Code: hdl.InvalidHandle, Err: err})
		return
	}
	fields.ID = rest
	_, f := h.prove(r.WithContext(handles.AtHome(r.Context())), fields, nonce, handles.TypeSecretKey)
	if f != nil && f.text == "" {
		h.fail(w, r, q, caller{}, f)
		return
	}
	h.answer(w, r, q, http.StatusOK, verificationAnswer{hdl.Success, f == nil, withoutIndex(rest)})
}

// withoutIndex returns the handle of an identity, as the client wrote it.
func withoutIndex(identity string) string {
	if index, handle, ok := strings.Cut(identity, ":"); ok && strings.Trim(index, "0123456789") == "" {
		return handle
	}
	return identity
}

type verificationAnswer struct {
	Code   hdl.ResponseCode `json:"responseCode"`
	Valid  bool             `json:"isValid"`
	Handle string           `json:"handle"`
}
