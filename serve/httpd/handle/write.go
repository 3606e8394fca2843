package handle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/wire/hdl"
)

// anyIndex is the parameter index of a request that writes the values in its body, whichever they are.
const anyIndex = "various"

// wrong refuses a request that can't be understood.
func wrong(text string) *handles.Refusal {
	return &handles.Refusal{Code: hdl.ProtocolError, Text: text}
}

// put writes a handle, or some of its values. The body is read only of a client that has proved who it is, or where everybody may
// change values.
func (h *Handler) put(w http.ResponseWriter, r *http.Request, q Request, handle string) {
	mint := IsTrue(q.Query, "mintNewSuffix")
	if !h.checked(w, r, q, handle, mint) || h.putPublic(w, r, q, handle) {
		return
	}
	who, ok := h.administrator(w, r, q, handle)
	if !ok {
		return
	}
	c := &handles.Change{Operation: hdl.CreateHandle, Handle: handle, Overwrite: !isFalse(q.Query, "overwrite"), Mint: mint}
	if err := h.readPut(r, q, c); err != nil {
		h.refuse(w, r, q, "", err)
		return
	}
	if !h.commit(w, r, q, c, who) {
		return
	}
	status := http.StatusCreated
	if c.Replaced {
		status = http.StatusOK
	}
	h.answer(w, r, q, status, refusal{Code: hdl.Success, Handle: c.Handle})
}

// checked makes sure that a name is a handle for which this server answers: everybody may know that. It returns
// false if the request is answered.
func (h *Handler) checked(w http.ResponseWriter, r *http.Request, q Request, handle string, mint bool) bool {
	name := handle
	if mint {
		name += "0" // what is minted follows
	}
	var err error
	if handle == "" {
		err = &handles.Refusal{Code: hdl.InvalidHandle, Text: "Empty handle invalid"}
	} else {
		err = h.o.Handles.Check(r.Context(), name)
	}
	if err == nil {
		return true
	}
	// Who sends wrong credentials learns that first, as in the reference.
	if c, f := h.identify(r); f != nil {
		h.fail(w, r, q, c, f)
		return false
	}
	h.refuse(w, r, q, handle, err)
	return false
}

// commit makes a change. It returns false if the request is answered: with a refusal.
func (h *Handler) commit(w http.ResponseWriter, r *http.Request, q Request, c *handles.Change, who handles.Identity) bool {
	err := h.o.Handles.Begin(r.Context(), c)
	if err == nil {
		err = c.Commit(h.witnessed(r), who) // it asks for the rights first
	}
	if err != nil {
		h.refuse(w, r, q, c.Handle, err)
	}
	return err == nil
}

// witnessed returns the context of a change, which says to the audit trail how it came in.
func (h *Handler) witnessed(r *http.Request) context.Context {
	from := auth.Origin{Via: "handle"}
	if h.o.Addresses {
		from.Address = limit.Client(h.o.Client(r))
	}
	return auth.WithOrigin(r.Context(), from)
}

// readPut reads the values of a request, and what is to be done with them.
func (h *Handler) readPut(r *http.Request, q Request, c *handles.Change) error {
	written := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(written); err != nil || media != "application/json" {
		return wrong("Unsupported media type " + brief(written))
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, stele.MaxDocument+1))
	switch {
	case err != nil:
		return wrong("The body ended too early")
	case len(body) > stele.MaxDocument:
		return wrong("The body has more than " + strconv.Itoa(stele.MaxDocument) + " bytes")
	}
	name, values, err := handlejson.DecodeRecord(body)
	if err != nil {
		return wrong("Invalid JSON in PUT request: " + whyNot(body, err))
	}
	if name != "" && !c.Mint && !h.isSame(name, c.Handle) {
		return wrong("Mismatched handle in PUT request")
	}
	for i := range values {
		if values[i].Type == "" {
			return wrong("Invalid JSON in PUT request: values[" + strconv.Itoa(i) + "] has no type")
		}
	}
	c.Values = values
	given := q.Query["index"]
	if len(given) == 0 {
		return nil
	}
	c.Operation = hdl.AddValue
	if c.Mint {
		return wrong("mintNewSuffix makes a whole handle; leave index out")
	}
	if len(given) == 1 && given[0] == anyIndex {
		return nil
	}
	indexes, err := readIndexes(given)
	if err != nil {
		return err
	}
	var have []uint32
	for i := range values {
		have = append(have, values[i].Index)
	}
	if !slices.Equal(set(have), set(indexes)) {
		return wrong("Mismatched indexes in PUT request")
	}
	return nil
}

// whyNot says what is wrong with a body, in a line.
func whyNot(body []byte, err error) string {
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) == 0 || first[0] != '{' && first[0] != '[' {
		return "give a list of values, an object with them, or one value"
	}
	if problems, ok := errors.AsType[stele.Problems](err); ok {
		var texts []string
		for _, p := range problems {
			if len(texts) == 5 {
				texts = append(texts, "...")
				break
			}
			texts = append(texts, p.Error())
		}
		return brief(strings.Join(texts, "; "))
	}
	return brief(stele.Reason(err).Error())
}

// isSame reports whether two texts are the same handle.
func (h *Handler) isSame(a, b string) bool {
	x, err := h.o.Handles.Parse(a)
	y, err2 := h.o.Handles.Parse(b)
	return err == nil && err2 == nil && x == y
}

// readIndexes reads the parameters index.
func readIndexes(texts []string) (list []uint32, err error) {
	for _, text := range texts {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, wrong("index is not a number: " + brief(text))
		}
		list = append(list, uint32(n))
	}
	return list, nil
}

// set returns the numbers of a list, each once and in order.
func set(list []uint32) []uint32 {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// delete deletes a handle, or some of its values.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request, q Request, handle string) {
	if !h.checked(w, r, q, handle, false) {
		return
	}
	who, ok := h.administrator(w, r, q, handle)
	if !ok {
		return
	}
	c := &handles.Change{Operation: hdl.DeleteHandle, Handle: handle}
	if given := q.Query["index"]; len(given) > 0 {
		indexes, err := readIndexes(given)
		if err != nil {
			h.refuse(w, r, q, "", err)
			return
		}
		c.Operation, c.Indexes = hdl.RemoveValue, indexes
	}
	if h.commit(w, r, q, c, who) {
		h.answer(w, r, q, http.StatusOK, refusal{Code: hdl.Success, Handle: handle})
	}
}
