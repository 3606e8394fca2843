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
		query: []parameter{
			{name: "group", max: 100, about: "the group of operations that the page describes, or documents for the schemas; without it the page lists all operations", example: "records"},
			{name: "q", max: 200, about: "words; the page lists the operations that have all of them", example: "mint"},
		},
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

// getPage shows the page for people.
func (h *Handler) getPage(c *call) error {
	head := c.w.Header()
	head.Add("Vary", "Accept, Accept-Language, Cookie")
	if accept := strings.Join(c.r.Header.Values("Accept"), ","); strings.Contains(accept, "json") && !strings.Contains(accept, "html") {
		document, err := h.document(c)
		if err != nil {
			return err
		}
		return c.replyJSON(http.StatusOK, document)
	}
	v := *h.view(c.base()) // shared, except what the page shows of it
	v.Frame = web.Frame{Language: h.o.Pages.Language(c.r), Here: c.r.URL.RequestURI(), Section: "api"}
	if !v.Show(c.text("group"), c.text("q")) {
		return invalidf("request.group-unknown", "there is no such group of operations; {path} lists all", Root)
	}
	var b bytes.Buffer
	if err := h.o.Pages.API(&b, &v); err != nil {
		return &stele.Error{Op: c.op.name, Kind: stele.Internal, Err: err}
	}
	head.Set("Content-Language", v.Frame.Language.Tag)
	head.Set("Content-Security-Policy", web.Policy)
	head.Set("Referrer-Policy", "strict-origin-when-cross-origin")
	c.write(http.StatusOK, htmlType, b.Bytes())
	return nil
}

// viewed is what pages show for one address of the server.
type viewed struct {
	base string
	view *web.API
}

// view returns what pages show. The caller must not change it.
func (h *Handler) view(base string) *web.API {
	if made := h.page.Load(); made != nil && made.base == base {
		return made.view
	}
	v := h.described().View(base)
	for _, o := range outcomes {
		v.Problems = append(v.Problems, web.APIProblem{Name: o.name, Status: o.status, Title: o.title})
	}
	for _, status := range slices.Sorted(maps.Keys(refusals)) {
		o := refusals[status]
		v.Problems = append(v.Problems, web.APIProblem{Name: o.name, Status: o.status, Title: o.title})
	}
	h.page.Store(&viewed{base, v})
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
