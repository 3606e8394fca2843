package httpd

import (
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// lifeScience answers clients of Life Science Identifiers, below /authority/.
func (h *Handler) lifeScience(w http.ResponseWriter, r *http.Request, t requestTarget) {
	if r.Method != http.MethodPost && !h.mayAsk(w, r) {
		return
	}
	if h.o.LSID == nil {
		h.nothing(w, r, t)
		return
	}
	// A client of this protocol may send credentials that are for the assigning service only.
	w, r, ok := h.identifyReader(w, r)
	if !ok || !h.await(w, r) {
		return
	}
	_, path := t.segment()
	h.o.LSID.Serve(w, r, path, t.query, &lifeScienceSite{h: h, w: w, r: r})
}

// lifeScienceSite is a request as package lsid sees it.
type lifeScienceSite struct {
	h *Handler
	w http.ResponseWriter
	r *http.Request

	made func() // gives the turn back; nil if the answer was not charged
}

// Base returns the address under which the client asks: in clear if it does so, since the clients of this protocol are
// of a time before today's versions of TLS, and find servers by an address in clear.
func (s *lifeScienceSite) Base() string {
	if s.r.TLS == nil && IsOwnHost(s.r, s.h.o.OwnName) {
		return "http://" + s.r.Host
	}
	return s.h.base(s.r)
}

// Subject returns what a description of a record is made of.
func (s *lifeScienceSite) Subject(record *stele.Record, ns *stele.Namespace) describe.Subject {
	return s.h.Subject(s.r, record, ns)
}

// Charge takes what an answer costs from the client's budget, and waits for its turn, which Send gives back.
func (s *lifeScienceSite) Charge(cost float64) (done func(), err error) {
	if s.h.o.Costs != nil && cost > 0 && !auth.From(s.r.Context()).Admin {
		if err := s.h.o.Costs.Take(s.h.payer(s.r), cost, s.h.o.Now()); err != nil {
			return nil, err
		}
	}
	if done, err = s.h.o.Turns.Enter(s.r.Context()); err == nil {
		s.made = done
	}
	return done, err
}

// Keep says for how long an answer may be kept.
func (s *lifeScienceSite) Keep(res *resolver.Resolution) {
	note(s.w, "", res.ID.Scheme())
	s.h.about(s.w.Header(), res)
	// Metadata name other authorities too, which change without the record: only the entity tag tells of that.
	delete(s.w.Header(), "Last-Modified")
}

// Send writes an answer. One to GET has an entity tag, and may be 304 instead.
func (s *lifeScienceSite) Send(status int, mediaType string, body []byte) bool {
	w := s.w
	if s.made != nil {
		w = &charged{w, s.made} // others may make their answers while the client reads this one
	}
	if s.r.Method != http.MethodPost {
		return s.h.write(w, s.r, status, mediaType, body)
	}
	return s.h.writeOnce(w, s.r, status, mediaType, body)
}

// Authenticate returns the principal of the token in the request. As a password a token is for clients that know no
// other way; the user is the one whose token it is. A browser sends passwords of itself, so that they count only in
// messages, which no other site can have a browser send. Credentials that could be read on their way are refused.
func (s *lifeScienceSite) Authenticate() (auth.Principal, error) {
	r, user := s.r, ""
	if len(r.Header["Authorization"]) > 0 && auth.IsInClear(r.TLS != nil, s.h.o.Base, ClientAddr(r), r.Header) {
		return auth.Principal{}, auth.ErrInClear
	}
	if name, token, ok := r.BasicAuth(); ok && r.Method == http.MethodPost {
		r = r.Clone(r.Context())
		r.Header["Authorization"] = []string{"Bearer " + token}
		user = name
	}
	if s.h.o.Identify == nil || len(r.Header["Authorization"]) == 0 {
		return auth.Principal{}, &stele.Error{Op: "authenticate", Kind: stele.Unauthenticated, Err: stele.Messagef("request.anonymous", "say who you are; send a token")}
	}
	who, err := s.h.authenticate(r)
	if err == nil && user != "" && user != who.Name {
		return auth.Principal{}, &stele.Error{Op: "authenticate", Kind: stele.Unauthenticated, Err: stele.Messagef("token.of-another-user", `the token is not one of "{user}"; send the name of its user with it`, user)}
	}
	return who, err
}

// mayCount reports whether an answer is one that a reader gets.
func (s *lifeScienceSite) mayCount() bool {
	return s.h.o.Counter != nil && s.r.Method != http.MethodHead && !auth.From(s.r.Context()).IsKnown()
}

// Described counts metadata.
func (s *lifeScienceSite) Described(record *stele.Record) {
	if s.mayCount() {
		s.h.o.Counter.Described(record.ID, ClientAddr(s.r), header(s.r, "User-Agent"))
	}
}

// Delivered counts data, which other clients get by a redirect.
func (s *lifeScienceSite) Delivered(record *stele.Record) {
	if s.mayCount() {
		s.h.o.Counter.Redirected(record.ID, ClientAddr(s.r), header(s.r, "User-Agent"), "")
	}
}

// Failed counts a name that is unknown.
func (s *lifeScienceSite) Failed(id stele.ID) {
	if s.mayCount() {
		s.h.o.Counter.Failed(id, ClientAddr(s.r), header(s.r, "User-Agent"))
	}
}
