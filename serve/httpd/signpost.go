package httpd

import (
	"net/http"

	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// The most bytes of an identifier's URL for which all links are sent. Headers have
// a limit everywhere, and few people say which.
const maxLinked = 512

// signpost adds the links of FAIR Signposting (https://signposting.org/FAIR/) to an
// answer: how the thing is cited, where it is described, and where the set of all
// links is, which has those for which a header is too small. With them go
// Memento's, since an identifier's URL is its own TimeGate (RFC 7089, section 4.1).
func (h *Handler) signpost(head http.Header, r *http.Request, res *resolver.Resolution) {
	base, path := h.base(r), h.path(r, res.Record.ID)
	var room [1024]byte
	b := appendLink(room[:0], base, "/", path, "", `>; rel="cite-as"`)
	b = appendLink(b, base, "/.info/", path, "?format=linkset", `>; rel="linkset"; type="application/linkset+json"`)
	if len(base)+len(path) <= maxLinked {
		b = appendLink(b, base, "/.info/", path, "?format=jsonld", `>; rel="describedby"; type="application/ld+json"`)
		b = appendLink(b, base, "/", path, "", `>; rel="original timegate"`)
		b = appendLink(b, base, "/.timemap/", path, "", `>; rel="timemap"; type="application/link-format"`)
	}
	if len(res.Record.Values) > 0 {
		b = appendHandleLinks(b, res.Record)
	}
	head["Link"] = []string{string(b)}
}

// signpostAll adds all links that there are of the record, but for those of which
// there are too many.
func (h *Handler) signpostAll(head http.Header, s describe.Subject) {
	var b []byte
	for _, l := range describe.Links(s) {
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = l.Append(b)
	}
	head["Link"] = []string{string(b)}
}

// appendLink appends a link of a Link header (RFC 8288). The path is encoded.
func appendLink(b []byte, base, folder, path, query, rest string) []byte {
	if len(b) > 0 {
		b = append(b, ", "...)
	}
	b = append(b, '<')
	b = append(b, base...)
	b = append(b, folder...)
	b = append(b, path...)
	b = append(b, query...)
	return append(b, rest...)
}
