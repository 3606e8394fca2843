package httpd

import (
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// Bounds of the links that a handle's owner adds to an answer's head.
const (
	maxHandleLinks     = 20
	maxHandleLinkBytes = 4 << 10
)

// appendHandleLinks appends the links that a handle's values of type 10320/links
// and 10320/loc have, each with a relation, to the value of a Link header.
func appendHandleLinks(b []byte, record *stele.Record) []byte {
	if !slices.ContainsFunc(record.Values, func(v stele.HandleValue) bool { return isOpen(v) && isLinks(v) }) {
		return b
	}
	start, count := len(b), 0
	for _, l := range handleLinks(record) {
		one := l.Append(nil)
		if count++; count > maxHandleLinks || len(b)-start+len(one) > maxHandleLinkBytes {
			break
		}
		if len(b) > 0 {
			b = append(b, ", "...)
		}
		b = append(b, one...)
	}
	return b
}

func isLinks(v stele.HandleValue) bool {
	return destination.HasType(v.Type, typeLinks) || isLocations(v)
}

// handleLinks returns the links of a handle's values. It leaves out addresses that the server
// does not redirect to.
func handleLinks(record *stele.Record) (links []describe.Link) {
	handle := bareHandle(record.ID)
	for _, v := range record.Values {
		if !isOpen(v) || !isLinks(v) {
			continue
		}
		list, err := destination.ParseLocations(v.Data)
		if err != nil {
			continue
		}
		for i := range list.List {
			one := &list.List[i]
			href, ok := one.Href(handle)
			if rel := one.Get("rel"); ok && isRelation(rel) {
				anchor, _ := destination.Safe(one.Get("anchor"))
				links = append(links, describe.Link{URL: href, Rel: rel, Type: one.Get("media-type"), Language: one.Get("hreflang"), Anchor: anchor})
			}
		}
		if len(links) >= maxHandleLinks {
			break
		}
	}
	return links
}

// isRelation reports whether a text can stand as a link's relations in a header
// (RFC 8288, section 3.3): names and URLs, with spaces between them.
func isRelation(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
}
