package httpd

import (
	"hash/maphash"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/stele-id/stele/resolver"
)

// memory reads a header that says what a client likes, and remembers what it read: most
// clients of a server send one of a few. It has a fixed number of places, so that a client
// that sends many different ones only makes it forget.
type memory struct {
	parse  func(header string) ([]resolver.Preference, error)
	places [128]atomic.Pointer[remembered]
}

type remembered struct {
	header string
	liked  []resolver.Preference
}

var memorySeed = maphash.MakeSeed()

// of returns what a client likes; nil if the header is missing, can't be read, or accepts
// anything.
func (m *memory) of(head http.Header, name string) []resolver.Preference {
	values := head[name]
	switch {
	case len(values) == 0 || len(values) == 1 && (values[0] == "*/*" || values[0] == "*"):
		return nil
	case len(values) == 1:
		return m.read(values[0])
	}
	return m.read(strings.Join(values[:min(len(values), 64)], ","))
}

func (m *memory) read(header string) []resolver.Preference {
	if len(header) > maxAccept {
		return nil
	}
	place := &m.places[maphash.String(memorySeed, header)%uint64(len(m.places))]
	if r := place.Load(); r != nil && r.header == header {
		return r.liked
	}
	liked, err := m.parse(header)
	if err != nil {
		liked = nil
	}
	place.Store(&remembered{header, liked})
	return liked
}

// wantsPage reports whether a page for people is among the types that the client likes most,
// as for a browser.
func wantsPage(liked []resolver.Preference) bool {
	best, page := 0, 0
	for _, p := range liked {
		best = max(best, p.Q)
		if isPageRange(p.Range) {
			page = max(page, p.Q)
		}
	}
	return page > 0 && page == best
}

func isPageRange(media string) bool {
	name, _, _ := strings.Cut(media, ";")
	return name == "text/html" || name == "application/xhtml+xml" || name == "text/*"
}
