package handle

import (
	"bufio"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"

	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// list answers with the handles below a prefix.
func (h *Handler) list(w http.ResponseWriter, r *http.Request, q Request) {
	prefix := q.Query.Get("prefix")
	page, paged, err := readPage(q)
	if err != nil {
		h.refuse(w, r, q, "", err)
		return
	}
	p := &handles.Prefix{Operation: hdl.ListHandles, Handle: prefix}
	if h.begin(w, r, q, p) == nil {
		return
	}
	head := listHead{Code: hdl.Success, Prefix: prefix}
	if paged {
		head.Page, head.Size = &page.number, &page.size
	}
	h.stream(w, r, q, head, "handles", p.Handles(r.Context()), page)
}

// begin judges a question about a prefix, and returns who asks; nil if the request is answered.
func (h *Handler) begin(w http.ResponseWriter, r *http.Request, q Request, p *handles.Prefix) *handles.Identity {
	if err := h.o.Handles.BeginPrefix(r.Context(), p); err != nil {
		if c, f := h.identify(r); f != nil {
			h.fail(w, r, q, c, f)
			return nil
		}
		h.refuse(w, r, q, p.Handle, err)
		return nil
	}
	who, ok := h.administrator(w, r, q, p.Handle)
	if !ok {
		return nil
	}
	if err := p.Authorise(r.Context(), who); err != nil {
		h.refuse(w, r, q, p.Handle, err)
		return nil
	}
	return &who
}

// page says which part of a list is wanted.
type page struct{ number, size int }

// has reports whether the nth item of a list is on the page.
func (p page) has(n int) bool {
	return p.size < 0 || p.size > 0 && n/p.size == p.number
}

// readPage reads the parameters page and pageSize. A size below 0 is without limit, as none is.
func readPage(q Request) (p page, given bool, err error) {
	p.size = -1
	for name, to := range map[string]*int{"page": &p.number, "pageSize": &p.size} {
		if text := q.Query.Get(name); text != "" {
			n, err := strconv.ParseInt(text, 10, 32)
			if err != nil || n < 0 && name == "page" {
				return p, false, wrong(name + " is not a number: " + brief(text))
			}
			*to = int(n)
			given = true
		}
	}
	return p, given && p.size >= 0, nil
}

// listHead is what stands before the names of a list.
type listHead struct {
	Code   hdl.ResponseCode `json:"responseCode"`
	Prefix string           `json:"prefix,omitempty"`
	Count  string           `json:"totalCount"`
	Page   *int             `json:"page,omitempty"`
	Size   *int             `json:"pageSize,omitempty"`
}

// flushEvery is after how many names of a list the server gives its client more time to read.
const flushEvery = 1000

// readTime is how long a client may take for so many.
const readTime = 30 * time.Second

// stream answers with names. How many there are stands before them, so that they are counted first; they are never
// all in memory, since a prefix can have many millions.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, q Request, head listHead, member string, names iter.Seq2[string, error], p page) {
	leave, err := h.o.Turns.Enter(r.Context())
	if err != nil {
		h.refuse(w, r, q, "", err)
		return
	}
	defer leave()
	count := 0
	for _, err := range names {
		if err != nil {
			h.refuse(w, r, q, "", err)
			return
		}
		count++
	}
	head.Count = strconv.Itoa(count)
	text, err := json.Marshal(head)
	if err != nil {
		h.refuse(w, r, q, "", err)
		return
	}
	setHead(w.Header())
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	h.writeNames(w, r, append(text[:len(text)-1], `,"`+member+`":[`...), names, p)
}

// writeNames writes the names of a page after the beginning of the answer. A list that fails in its middle is cut
// off, so that it is not JSON: no client takes it for the whole.
func (h *Handler) writeNames(w http.ResponseWriter, r *http.Request, begin []byte, names iter.Seq2[string, error], p page) {
	out := bufio.NewWriterSize(w, 32<<10)
	_, _ = out.Write(begin)
	control := http.NewResponseController(w)
	n, written := -1, 0
	for name, err := range names {
		if err != nil {
			h.o.Log.ErrorContext(r.Context(), "a list of handles was cut off", "error", err)
			_ = out.Flush()
			return
		}
		if n++; !p.has(n) {
			if p.size >= 0 && n/max(p.size, 1) > p.number {
				break
			}
			continue
		}
		if written > 0 {
			_ = out.WriteByte(',')
		}
		if written%flushEvery == 0 {
			_ = control.SetWriteDeadline(h.o.Now().Add(readTime)) // one that can't be set stays as it is
		}
		written++
		quoted, _ := json.Marshal(name) // a text can always be written
		if _, err := out.Write(quoted); err != nil {
			return // the client is gone
		}
	}
	_, _ = out.WriteString("]}")
	_ = out.Flush() // if this fails the client is gone
}

// prefixes answers below /api/prefixes: which prefixes the server answers for, and changes of that.
func (h *Handler) prefixes(w http.ResponseWriter, r *http.Request, q Request, rest string) {
	if !h.method(w, r, q, "GET, HEAD, POST, DELETE") {
		return
	}
	p := &handles.Prefix{Operation: hdl.ListPrefixes, Handle: rest}
	switch r.Method {
	case http.MethodPost:
		p.Operation = hdl.HomePrefix
	case http.MethodDelete:
		p.Operation = hdl.UnhomePrefix
	default:
		if rest != "" {
			h.unknown(w, r, q)
			return
		}
	}
	if p.Handle == "" && p.Operation != hdl.ListPrefixes {
		p.Handle = q.Query.Get("prefix")
	}
	who := h.begin(w, r, q, p)
	if who == nil {
		return
	}
	var err error
	switch p.Operation {
	case hdl.ListPrefixes:
		pg, paged, err := readPage(q)
		if err != nil {
			h.refuse(w, r, q, "", err)
			return
		}
		head := listHead{Code: hdl.Success}
		if paged {
			head.Page, head.Size = &pg.number, &pg.size
		}
		h.stream(w, r, q, head, "prefixes", p.Homed(r.Context()), pg)
		return
	case hdl.HomePrefix:
		err = p.Home(h.witnessed(r), *who)
	default:
		err = p.Unhome(h.witnessed(r), *who)
	}
	if err != nil {
		h.refuse(w, r, q, p.Handle, err)
		return
	}
	h.answer(w, r, q, http.StatusOK, refusal{Code: hdl.Success, Handle: p.Handle})
}
