package httpd

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
)

// requestTarget is what a request line asks for, as it was sent: nothing is decoded, no
// slash is merged, no dot segment removed.
type requestTarget struct {
	path  string // without its first slash
	query string // without its question mark
	asked bool   // the target has a question mark: ARK's empty ? has a meaning
}

// readTarget reads the request target, in origin form (/ark:12345/x1) or in
// absolute form (http://id.example.org/ark:12345/x1), as proxies send it.
func readTarget(r *http.Request) requestTarget {
	raw := r.RequestURI
	if raw == "" { // made by hand, in a test or a program
		raw = r.URL.RequestURI()
	}
	if !strings.HasPrefix(raw, "/") {
		if _, rest, ok := strings.Cut(raw, "://"); ok {
			if i := strings.IndexAny(rest, "/?"); i >= 0 {
				raw = rest[i:]
			} else {
				raw = "/"
			}
		}
	}
	var t requestTarget
	t.path, t.query, t.asked = strings.Cut(strings.TrimPrefix(raw, "/"), "?")
	return t
}

// segment returns the first segment of the path, and what follows its slash.
func (t requestTarget) segment() (first, rest string) {
	first, rest, _ = strings.Cut(t.path, "/")
	return first, rest
}

// reading is the way from a text in a request to the identifiers that it may be,
// the likelier first: mostly one, and two where a path of a PURL host could be a
// bare handle as well. The second is looked for only when the first leads nowhere.
//
// The text is read as the path of a link to the host at first, since the schemes
// know how their names stand in links; then as it is, decoded: a name that some
// program encoded as a whole. With a text that begins with a digit, or is a whole
// URL, it is the other way round: bare handles begin so, and few paths of PURLs.
type reading struct {
	h          *Handler
	host, text string
	tried      int
	found      stele.ID // the first
	err        error    // the first of a scheme that claims the text
}

func (h *Handler) reading(r *http.Request, text string) reading {
	return reading{h: h, host: r.Host, text: text}
}

// next returns the next identifier; false after the last one.
func (x *reading) next() (id stele.ID, ok bool) {
	for x.tried < 2 {
		asLink := (x.tried == 0) != isMarked(x.text)
		x.tried++
		if asLink {
			id, ok = x.link()
		} else {
			id, ok = x.plain()
		}
		// A second reading by the same scheme would be a second decoding.
		if ok && (!x.found.IsValid() || id.Scheme() != x.found.Scheme()) {
			if !x.found.IsValid() {
				x.found = id
			}
			return id, true
		}
	}
	return stele.ID{}, false
}

// link reads the text as the path of a link to the request's host, or else to the
// one that stands in the configuration.
func (x *reading) link() (stele.ID, bool) {
	if x.host != "" {
		if id, ok := x.parse("https://"+x.host+"/"+x.text, len("https:///")+len(x.host)); ok {
			return id, true
		}
	}
	if own := x.h.o.Host; own != "" && own != x.host {
		return x.parse("https://"+own+"/"+x.text, len("https:///")+len(own))
	}
	return stele.ID{}, false
}

// plain decodes the text and reads it as a name.
func (x *reading) plain() (stele.ID, bool) {
	text := x.text
	if decoded, err := url.PathUnescape(text); err == nil {
		text = decoded
	}
	return x.parse(text, 0)
}

// parse reads a text that begins with the address of a server, which has so many bytes. It is [stele.Schemes.Parse], but makes no error where no
// scheme claims the text: that is common here, and costs more than the reading.
func (x *reading) parse(whole string, start int) (stele.ID, bool) {
	if err := stele.CheckText("", whole); err != nil {
		x.refuse(err, start)
		return stele.ID{}, false
	}
	for _, s := range x.h.schemes {
		id, err := s.Parse(whole)
		switch {
		case err == nil:
			return id, true
		case err != stele.ErrForeign:
			x.refuse(err, start)
			return stele.ID{}, false
		}
	}
	return stele.ID{}, false
}

// refuse keeps the first error, with its position in the text itself.
func (x *reading) refuse(err error, offset int) {
	if x.err != nil {
		return
	}
	x.err = err
	if syntax, ok := errors.AsType[*stele.SyntaxError](err); ok && offset > 0 {
		own := *syntax
		own.Pos = max(0, own.Pos-offset)
		x.err = &stele.Error{Op: "parse", Kind: stele.Invalid, Err: &own}
	}
}

// why returns why the text is not an identifier.
func (x *reading) why() error {
	if x.err != nil {
		return x.err
	}
	if x.text == "" {
		return stele.Invalidf("", 0, "resolve.identifier-missing-in-path", "there is no identifier; write one after the slash")
	}
	text, err := url.PathUnescape(x.text)
	if err != nil {
		text = x.text
	}
	if _, err = x.h.o.Schemes.Parse(text); err != nil {
		return err
	}
	return stele.Invalidf("", 0, "resolve.scheme-unknown", "this is an identifier of no known scheme")
}

// isMarked reports whether a text is more likely a name than the path of a link to one.
func isMarked(text string) bool { return text != "" && '0' <= text[0] && text[0] <= '9' || isURL(text) }

// isURL reports whether a text begins as a URL of the web does.
func isURL(text string) bool {
	if len(text) < len("http:/") || text[0]|0x20 != 'h' {
		return false
	}
	protocol, _, ok := strings.Cut(text[:min(len(text), len("https://"))], "://")
	return ok && (strings.EqualFold(protocol, "http") || strings.EqualFold(protocol, "https"))
}
