package httpd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/resolver"
)

// explanation says how an identifier is resolved.
type explanation struct {
	Asked     string           `json:"asked"`
	ID        string           `json:"identifier,omitempty"`
	Scheme    string           `json:"scheme,omitempty"`
	Form      string           `json:"form,omitempty"`
	Parts     stele.Parts      `json:"parts,omitempty"`
	Spellings []stele.Spelling `json:"spellings,omitempty"`
	Warnings  []string         `json:"warnings,omitempty"`
	Steps     []step           `json:"steps"`
	Answer    string           `json:"answer,omitempty"` // the kind of it
	URL       string           `json:"url,omitempty"`
	Status    int              `json:"status"`
	Error     string           `json:"error,omitempty"`

	said error // what Error says, for pages in other languages
}

type step struct {
	Name   string `json:"name"`
	Result string `json:"result"`

	said *stele.Message // the result, for pages in other languages
}

func newStep(name string, said *stele.Message) step { return step{name, legible(said.Error()), said} }

// explain answers ?explain: how the text is read, what is found, what is chosen.
// The status is 200, whatever the answer would have been.
func (h *Handler) explain(w http.ResponseWriter, r *http.Request, t requestTarget, q *resolver.Request, res *resolver.Resolution, err error) {
	w, done, ok := h.charge(w, r, costDescription)
	if !ok {
		return
	}
	defer done()
	var last *step
	if err == nil {
		last, err = h.predict(r, q, res)
	}
	x := explanation{Asked: legible(t.path), Status: res.Status, Steps: []step{}}
	for _, s := range res.Trace {
		x.Steps = append(x.Steps, newStep(s.Name, s.Result))
	}
	if last != nil {
		x.Steps = append(x.Steps, *last)
	}
	id := res.ID
	if err != nil {
		if x.Status = statusOf(err); x.Status >= http.StatusInternalServerError && x.Status != http.StatusLoopDetected {
			h.fail(w, r, err)
			return
		}
		x.Error, x.said = legible(err.Error()), err
		if !id.IsValid() {
			reading := h.reading(r, t.path)
			id, _ = reading.next()
		}
	} else {
		x.Answer, x.URL = res.Kind.String(), res.URL
	}
	if id.IsValid() {
		note(w, "", id.Scheme())
		x.ID, x.Scheme = id.String(), id.Scheme()
		// The scheme can read its own text; if it could not, the explanation would be
		// shorter.
		if told, err := h.o.Resolver.Explain(r.Context(), x.ID); err == nil {
			x.Form, x.Parts, x.Spellings, x.Warnings = told.Form, told.Parts, told.Spellings, told.Warnings
		}
	}
	head := w.Header()
	vary(head)
	head["Cache-Control"], head["Access-Control-Allow-Origin"] = notKept, anyOrigin
	h.writeExplanation(w, r, &x)
}

// predict turns what the resolver found into what the request without ?explain would get:
// that depends on the values of a handle and the client's Accept too. It returns a step that
// says so, nil where there is nothing to add.
func (h *Handler) predict(r *http.Request, q *resolver.Request, res *resolver.Resolution) (*step, error) {
	if res.Rule != nil {
		return nil, h.predictRule(r, res)
	}
	if res.Kind != resolver.Redirect && res.Kind != resolver.Description {
		return nil, nil
	}
	found := res.Kind
	best, err := h.decide(r, q.Query, q, res)
	switch {
	case err != nil:
		return nil, err
	case best.way == byCopy:
		other, err := h.findCopy(r, q, res)
		if err != nil {
			return nil, err
		}
		res.Kind, res.URL, res.Status = other.Kind, other.URL, other.Status
		return answered(stele.Messagef("trace.redirect-description", "redirect to {url}, status {status}: the owner's description in what Accept likes best", res.URL, res.Status)), nil
	case best.way == byTarget && h.isLoop(r, res):
		return nil, &stele.Error{Op: "resolve", ID: res.ID, Kind: stele.Conflict, Err: resolver.ErrLoop}
	case best.way == byTarget && found == resolver.Redirect:
		return nil, nil
	case best.way == byTarget:
		return answered(stele.Messagef("trace.redirect-values", "redirect to {url}, status {status}, by the handle's values", res.URL, res.Status)), nil
	case best.way == noWay:
		return nil, refused(http.StatusNotAcceptable, "request.not-acceptable", "There is nothing of the types that the request accepts.")
	}
	media := htmlType
	if best.way == byFormat {
		media = best.format.Served
	}
	res.Kind, res.URL, res.Status = resolver.Description, "", http.StatusOK
	return answered(stele.Messagef("trace.description-as", "description as {type}, status {status}", media, res.Status)), nil
}

// answered is the step that says the answer.
func answered(said *stele.Message) *step {
	s := newStep("answer", said)
	return &s
}

func (h *Handler) writeExplanation(w http.ResponseWriter, r *http.Request, x *explanation) {
	var b bytes.Buffer
	form := h.problemForm(r)
	switch form {
	case htmlType:
		if err := h.explainPage(&b, r, x); err != nil {
			h.fail(w, r, err)
			return
		}
		spoken(w.Header(), h.o.Pages.Language(r))
	case problemType:
		form = "application/json"
		text, err := json.Marshal(x)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		b.Write(append(text, '\n'))
	default:
		x.appendText(&b)
	}
	h.write(w, r, http.StatusOK, form, b.Bytes())
}

// appendText writes the explanation for a terminal.
func (x *explanation) appendText(b *bytes.Buffer) {
	fmt.Fprintf(b, "asked: %s\n", x.Asked)
	if x.ID != "" {
		fmt.Fprintf(b, "identifier: %s\nscheme: %s\n", x.ID, x.Scheme)
	}
	for _, p := range x.Parts {
		fmt.Fprintf(b, "%s: %s\n", p.Name, legible(fmt.Sprint(p.Value)))
	}
	for _, s := range x.Steps {
		fmt.Fprintf(b, "  %s: %s\n", s.Name, s.Result)
	}
	if x.Error != "" {
		fmt.Fprintf(b, "error: %s\n", x.Error)
	}
	fmt.Fprintf(b, "status: %d\n", x.Status)
	for _, warning := range x.Warnings {
		fmt.Fprintf(b, "note: %s\n", warning)
	}
}
