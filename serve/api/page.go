package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/web"
)

// pageOperations are the operations that describe the API itself.
func (h *Handler) pageOperations() []operation {
	const group = "This interface"
	return []operation{{
		name: "getPage", method: http.MethodGet, path: "", group: group,
		summary: "Show all operations, for people",
		about:   "A client that accepts JSON and not HTML gets what getOpenAPI shows.",
		asks:    anyone, scope: anyScope,
		answers: []answer{
			{status: 200, about: "A page in HTML, or the document.", media: htmlType},
			{status: 200, about: "The document.", media: apijson.JSON},
		},
		serve: h.getPage,
	}, {
		name: "getOpenAPI", method: http.MethodGet, path: "openapi.json", group: group,
		summary: "Show all operations, for programs",
		about:   "This interface as OpenAPI 3.1 describes it.",
		asks:    anyone, scope: anyScope, headers: []parameter{ifNoneMatch},
		answers: []answer{
			{status: 200, about: "The document.", media: apijson.JSON, headers: []parameter{entityTag}},
			{status: 304, about: "It has one of the tags in If-None-Match.", headers: []parameter{entityTag}},
		},
		serve: h.getOpenAPI,
	}}
}

// getOpenAPI shows the OpenAPI document.
func (h *Handler) getOpenAPI(c *call) error {
	on, err := c.conditions()
	if err != nil {
		return err
	}
	document, err := h.document(c)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(document)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	c.w.Header().Set("ETag", tag)
	if on.noneMatch.has(tag) {
		c.replyEmpty(http.StatusNotModified)
		return nil
	}
	return c.replyJSON(http.StatusOK, document)
}

// document returns a copy of the OpenAPI document.
func (h *Handler) document(c *call) ([]byte, error) {
	text, err := h.described().JSON()
	if err != nil {
		return nil, &stele.Error{Op: c.op.name, Kind: stele.Internal, Err: err}
	}
	return text, nil
}

// rendered is the page for one address of the server.
type rendered struct {
	base string
	page []byte
}

// getPage shows the page for people.
func (h *Handler) getPage(c *call) error {
	head := c.w.Header()
	head.Add("Vary", "Accept")
	if accept := strings.Join(c.r.Header.Values("Accept"), ","); strings.Contains(accept, "json") && !strings.Contains(accept, "html") {
		document, err := h.document(c)
		if err != nil {
			return err
		}
		return c.replyJSON(http.StatusOK, document)
	}
	base := c.base()
	made := h.page.Load()
	if made == nil || made.base != base {
		var b bytes.Buffer
		if err := h.o.Pages.API(&b, h.view(base)); err != nil {
			return &stele.Error{Op: c.op.name, Kind: stele.Internal, Err: err}
		}
		made = &rendered{base, b.Bytes()}
		h.page.Store(made)
	}
	head.Set("Content-Security-Policy", web.Policy)
	head.Set("Referrer-Policy", "strict-origin-when-cross-origin")
	c.write(http.StatusOK, htmlType, made.page)
	return nil
}

// view returns what the page shows.
func (h *Handler) view(base string) *web.API {
	v := h.described().View(base)
	for _, o := range outcomes {
		v.Problems = append(v.Problems, web.APIProblem{Name: o.name, Status: o.status, Title: o.title})
	}
	for _, status := range slices.Sorted(maps.Keys(refusals)) {
		o := refusals[status]
		v.Problems = append(v.Problems, web.APIProblem{Name: o.name, Status: o.status, Title: o.title})
	}
	return v
}

// base returns the address of this server for examples. It uses the request's Host only if
// that is the server's.
func (c *call) base() string {
	switch {
	case c.h.o.Base != "":
		return c.h.o.Base
	case c.h.o.OwnHost == nil || !c.h.o.OwnHost(c.r):
		return "https://id.example.org"
	case c.r.TLS != nil:
		return "https://" + c.r.Host
	}
	return "http://" + c.r.Host
}
