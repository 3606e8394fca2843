package httpd

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

// base returns the server's public address, without a slash at its end. It is "" where
// that is not set and the Host of the request is not known to be the server's; links are
// relative then.
func (h *Handler) base(r *http.Request) string {
	switch {
	case h.o.Base != "":
		return h.o.Base
	case !IsOwnHost(r, h.o.OwnName):
		return ""
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// self returns the identifier's URL at this resolver.
func (h *Handler) self(r *http.Request, id stele.ID) string { return h.base(r) + "/" + h.path(r, id) }

// page returns the URL of one of the server's own pages about an identifier.
func (h *Handler) page(r *http.Request, folder string, id stele.ID) string {
	return h.base(r) + "/" + folder + "/" + h.path(r, id)
}

// path returns what follows the slash in an identifier's URL: its text, or for a name that is
// itself a URL under this server's hosts, the path of that.
func (h *Handler) path(r *http.Request, id stele.ID) string {
	text := id.String()
	if isURL(text) {
		_, rest, _ := strings.Cut(text, "://")
		// It is encoded as it should be; but two of the server's hosts can have the
		// same path.
		if host, path, ok := strings.Cut(rest, "/"); ok && h.isOwn(r, host) && h.reads(r, path, id) {
			return path
		}
	}
	if isPlain(text) {
		return text
	}
	// The scheme decides whether a percent sign is one or begins an encoded byte: the right
	// spelling is the one that it reads as the identifier.
	if path := escape(text, true); h.reads(r, path, id) {
		return path
	}
	return escape(text, false)
}

// shownPath is path for an answer from a record: where the identifier is the record's own it
// is in its owner's letters, as people see it.
func (h *Handler) shownPath(r *http.Request, id stele.ID, record *stele.Record) string {
	if record == nil || record.ID != id {
		return h.path(r, id)
	}
	shown := destination.Shown(record)
	switch {
	case shown == id.String():
	case isPlain(shown):
		return shown
	default:
		for _, literal := range [...]bool{true, false} {
			if path := escape(shown, literal); h.reads(r, path, id) {
				return path
			}
		}
	}
	return h.path(r, id)
}

// reads reports whether a path of this server, at its public address, is read as
// the identifier before any other.
func (h *Handler) reads(r *http.Request, path string, id stele.ID) bool {
	x := reading{h: h, host: r.Host, text: path}
	if h.o.Base != "" {
		x.host = hostOf(h.o.Base)
	}
	got, ok := x.next()
	return ok && got == id
}

// isOwn reports whether a host, perhaps with a port, is this server: the request's, that of
// the public address, or that of the option Host.
func (h *Handler) isOwn(r *http.Request, host string) bool {
	host = withoutPort(host)
	return host != "" && (strings.EqualFold(host, withoutPort(r.Host)) || strings.EqualFold(host, h.names[0]) || strings.EqualFold(host, h.names[1]))
}

// withoutPort cuts the ports off a host that are the protocols' own.
func withoutPort(host string) string {
	return strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
}

// hostOf returns the host of a URL, with its port; "" if it has none.
func hostOf(location string) string {
	_, rest, ok := strings.Cut(location, "://")
	if !ok {
		return ""
	}
	rest = rest[:authorityEnd(rest)]
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// authorityEnd returns where the host of a URL ends; rest begins at that host.
func authorityEnd(rest string) int {
	for i := range len(rest) {
		if c := rest[i]; c == '/' || c == '?' || c == '#' {
			return i
		}
	}
	return len(rest)
}

// ownNames returns the identifiers that a location names at this very server; nothing if it
// leads elsewhere.
func (h *Handler) ownNames(r *http.Request, location string) (ids []stele.ID) {
	host := hostOf(location)
	if !h.isOwn(r, host) {
		return nil
	}
	_, rest, _ := strings.Cut(location, "://")
	_, path, _ := strings.Cut(rest, "/")
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	x := reading{h: h, host: host, text: path}
	for id, ok := x.next(); ok; id, ok = x.next() {
		ids = append(ids, id)
	}
	return ids
}

// global returns the URL of an identifier at its scheme's global resolver, which gets the
// names that no namespace here has; "" if there is none, or it is this server.
func (h *Handler) global(r *http.Request, id stele.ID, t requestTarget) string {
	template := h.o.Global[id.Scheme()]
	if !isTemplate(template) || h.isOwn(r, hostOf(template)) {
		return ""
	}
	before, after, _ := strings.Cut(template, "{id}")
	name := h.path(r, id)
	if strings.Contains(before, "?") {
		name = url.QueryEscape(id.String())
	}
	location := before + name + after
	if t.asked && !strings.Contains(location, "?") {
		location += "?" + escapeQuery(t.query)
	}
	return location
}

// isTemplate reports whether a text is the URL of another resolver with a place for an
// identifier after its host.
func isTemplate(template string) bool {
	before, after, ok := strings.Cut(template, "{id}")
	if !ok || strings.ContainsAny(before+after, "{}# ") {
		return false
	}
	u, err := url.Parse(before)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && destination.IsHost(u.Host) && u.User == nil && u.Path != ""
}

// isBase reports whether a text is a server's address without a path.
func isBase(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && destination.IsHost(u.Host) && text == u.Scheme+"://"+u.Host
}

// isPlain reports whether a text can stand in a URL's path as it is.
func isPlain(text string) bool {
	for i := range len(text) {
		if !destination.InPath(text[i]) {
			return false
		}
	}
	return true
}

// escape returns a text as it stands in a path; if already, bytes that are encoded stay as
// they are.
func escape(text string, already bool) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(text)+16)
	for i := range len(text) {
		c := text[i]
		if destination.InPath(c) || already && c == '%' && i+2 < len(text) && isHex(text[i+1]) && isHex(text[i+2]) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// escapeQuery returns a query as it may stand in a URL. What is encoded stays so.
func escapeQuery(query string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(query)+16)
	for i := range len(query) {
		if c := query[i]; destination.InPath(c) || c == '?' || c == '%' {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

func isAlphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }
