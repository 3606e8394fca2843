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
// links is, which has those for which a header is too small. An answer of a TimeGate has
// Memento's as well, those that are there already or else its own (RFC 7089, section 4.1).
func (h *Handler) signpost(head http.Header, r *http.Request, res *resolver.Resolution) {
	base, path := h.base(r), h.shownPath(r, res.Record.ID, res.Record)
	var room [1024]byte
	b := appendLink(room[:0], base, "/", path, "", `>; rel="cite-as"`)
	b = appendLink(b, base, "/.info/", path, "?format=linkset", `>; rel="linkset"; type="application/linkset+json"`)
	if len(base)+len(path) <= maxLinked {
		b = appendLink(b, base, "/.info/", path, "?format=jsonld", `>; rel="describedby"; type="application/ld+json"`)
	}
	switch links := head["Link"]; {
	case !isTimeGate(head):
	case len(links) > 0:
		b = append(append(b, ", "...), links[0]...)
	default:
		if res.ID != res.Record.ID {
			path = h.path(r, res.ID)
		}
		b = appendTimeLinks(b, base, path)
	}
	if len(res.Record.Values) > 0 {
		b = appendHandleLinks(b, res.Record)
	}
	head["Link"] = []string{string(b)}
}

// isTimeGate reports whether an answer is one of a TimeGate: its head says so.
func isTimeGate(head http.Header) bool {
	v := head["Vary"]
	return len(v) > 0 && v[0] == timeGateVaries[0]
}

// linkTimeGate adds Memento's links to an answer of a TimeGate that has none yet. All of its
// answers have a link to the original, errors too (RFC 7089, section 2.2.1, and 4.5.2 for what
// is gone).
func (h *Handler) linkTimeGate(head http.Header, r *http.Request, res *resolver.Resolution) {
	if isTimeGate(head) && head["Link"] == nil {
		h.linkMementos(head, r, res, neighbours{})
	}
}

// appendTimeLinks appends the links to the original, which is its own TimeGate, and to its
// TimeMap (RFC 7089, section 2.2). The path is encoded.
func appendTimeLinks(b []byte, base, path string) []byte {
	b = appendLink(b, base, "/", path, "", `>; rel="original timegate"`)
	return appendLink(b, base, "/.timemap/", path, "", `>; rel="timemap"; type="application/link-format"`)
}

// signpostAll adds the links of the record that fit a header (see [describe.Links]) to those
// of a TimeGate.
func (h *Handler) signpostAll(head http.Header, s describe.Subject) {
	var b []byte
	if links := head["Link"]; len(links) > 0 {
		b = append(b, links[0]...)
	}
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
