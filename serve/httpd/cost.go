package httpd

import (
	"net/http"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/limit"
)

// What requests cost, in the units of [Options.Costs]. One is a description that is made
// of one record, about a tenth of a millisecond. Redirects, files of pages and answers
// about names that are not registered cost nothing.
const (
	costDescription = 1
	costMemento     = 2   // and the neighbours of the version
	costInfo        = 2   // and the newest versions
	costReverse     = 5   // many names
	costVersion     = .02 // each version that a list of them reads
)

// charged is a ResponseWriter for an answer that takes its turn to be made, and was paid for.
// Other requests may make theirs as soon as it is written.
type charged struct {
	http.ResponseWriter
	made func()
}

func (w *charged) WriteHeader(status int) {
	w.made()
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *charged) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// charge takes what an answer costs from the client's budget, and waits until it may be
// made. It returns false if the request is answered: with a refusal. The caller writes to
// the writer that it returns, and calls done at its end. An answer is charged once.
func (h *Handler) charge(w http.ResponseWriter, r *http.Request, cost float64) (own http.ResponseWriter, done func(), ok bool) {
	if _, already := w.(*charged); already {
		return w, func() {}, true
	}
	if h.o.Costs != nil && cost > 0 && !auth.From(r.Context()).Admin {
		if err := h.o.Costs.Take(h.payer(r), cost, h.o.Now()); err != nil {
			h.refuse(w, r, err)
			return w, nil, false
		}
	}
	made, err := h.o.Turns.Enter(r.Context())
	if err != nil {
		h.refuse(w, r, err)
		return w, nil, false
	}
	return &charged{w, made}, made, true
}

// spend takes from the budget what an answer has cost beyond its charge.
func (h *Handler) spend(r *http.Request, cost float64) {
	if h.o.Costs != nil && !auth.From(r.Context()).Admin {
		h.o.Costs.Spend(h.payer(r), cost, h.o.Now())
	}
}

// payer returns the budget that a request takes from: that of a user, or of an address.
func (h *Handler) payer(r *http.Request) string {
	if who := auth.From(r.Context()); who.IsKnown() {
		return "principal " + who.Name
	}
	return "address " + limit.Client(ClientAddr(r))
}

// hold counts an answer of n bytes until the client has read it.
func (h *Handler) hold(r *http.Request, n int) (release func(), err error) {
	if h.o.Held == nil || n <= limit.Small {
		return func() {}, nil
	}
	return h.o.Held.Take(limit.Client(ClientAddr(r)), int64(n))
}
