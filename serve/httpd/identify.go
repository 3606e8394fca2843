package httpd

import (
	"errors"
	"io"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
)

// identify authenticates the client, if the request has credentials, and returns a request
// with the principal in its context. The answer is private from then on, and the writer that
// it returns says so to caches. It returns false if the credentials are wrong and the request
// is answered.
func (h *Handler) identify(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, bool) {
	if h.o.Identify == nil || len(r.Header["Authorization"]) == 0 {
		return w, r, true
	}
	own := &personal{ResponseWriter: w}
	who, err := h.authenticate(r)
	if err != nil {
		h.refuse(own, r, err)
		return own, r, false
	}
	return own, r.WithContext(auth.With(r.Context(), who)), true
}

// identifyReader is identify for an interface whose clients send the credentials of another
// system with every request, as handle clients do: credentials that prove nothing make the
// request one of the public, and never fail it. Tokens are not guessed at full speed here
// either.
func (h *Handler) identifyReader(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, bool) {
	if _, err := auth.Bearer(r.Header["Authorization"]); h.o.Identify == nil || err != nil {
		return w, r, true // nothing that could be a token
	}
	who, err := h.authenticate(r)
	switch {
	case errors.Is(err, stele.Unauthenticated), errors.Is(err, stele.Forbidden):
		return w, r, true
	case err != nil:
		h.refuse(w, r, err)
		return w, r, false
	}
	return &personal{ResponseWriter: w}, r.WithContext(auth.With(r.Context(), who)), true
}

// authenticate returns the principal of a request that has an Authorization header. It
// charges wrong credentials to the client's address, which limits the rate of guessing.
func (h *Handler) authenticate(r *http.Request) (auth.Principal, error) {
	who, err := h.o.Identify(r)
	if h.o.Costs != nil && errors.Is(err, stele.Unauthenticated) {
		if limited := h.o.Costs.Take("address "+limit.Client(ClientAddr(r)), costDescription, h.o.Now()); limited != nil {
			return who, limited
		}
	}
	return who, err
}

// personal is a ResponseWriter for the answer to a token. It replaces the handlers' headers
// on caching, which are those of public answers.
type personal struct {
	http.ResponseWriter
	begun bool
}

func (w *personal) WriteHeader(status int) {
	if !w.begun {
		w.begun = true
		head := w.Header()
		vary(head)
		head["Cache-Control"] = privately
		if status == http.StatusUnauthorized {
			head["Www-Authenticate"] = bearer
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// bearer is the challenge to a client that sent a wrong token (RFC 6750, section 3.1).
var bearer = []string{`Bearer realm="stele", error="invalid_token"`}

func (w *personal) Write(b []byte) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(b)
}

// WriteString is Write without a copy.
func (w *personal) WriteString(s string) (int, error) {
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return io.WriteString(w.ResponseWriter, s)
}

// Unwrap is for [http.ResponseController].
func (w *personal) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// maySee reports whether the client may see what a version of a record said. Where a
// disavowed version led is never shown here: its editors read it through the API.
func (h *Handler) maySee(r *http.Request, v *stele.Record) bool {
	return h.mayKnow(r, v) && v.Withheld.Disavowal(v.Version) == nil
}

// mayKnow reports whether the client may see what a version of a record said, if it is
// not disavowed.
func (h *Handler) mayKnow(r *http.Request, v *stele.Record) bool {
	sees, err := h.o.Resolver.MaySee(r.Context(), auth.From(r.Context()), v)
	return err == nil && sees && !v.Redacted
}
