// Package destination finds every place that a record can lead to: its targets, and
// the handle values from which a resolver or a Handle client makes a redirect. The
// registrar checks with it what may be written, and the web server redirects with it, so
// that both mean the same places. It reads values, never the network or a store.
package destination

import (
	"errors"
	"iter"
	"net/url"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// Types of handle values that say where the thing is.
const (
	TypeURL   = "URL"
	TypeAlias = "HS_ALIAS"
	TypeLoc   = "10320/loc"
)

// HandleScheme is the scheme whose names have handle values, and HandleMark what its
// canonical names begin with.
const (
	HandleScheme = "hdl"
	HandleMark   = "hdl:"
)

// Why a handle is withdrawn that the Handle System deletes: a client of its protocol, or one of its batch files.
const (
	DeletedByClient = "deleted by its administrator through the Handle protocol"
	DeletedByBatch  = "deleted by a batch file of the Handle System"
)

// IsDeleted reports whether the Handle System has deleted a handle, so that it may create the handle again. One that was withdrawn in
// another way stays so.
func IsDeleted(r *stele.Record) bool {
	return r.State == stele.Withdrawn && r.Tombstone != nil && (r.Tombstone.Reason == DeletedByClient || r.Tombstone.Reason == DeletedByBatch)
}

// Shown returns the identifier of a record as people see it. For a handle, and so for a DOI,
// it has the owner's spelling, in which it was registered: case does not count there, and the
// canonical form is in upper case. Programs compare canonical forms.
func Shown(r *stele.Record) string {
	canonical := r.ID.String()
	if r.ID.Scheme() != HandleScheme || r.Spelling == "" || r.Redacted {
		return canonical
	}
	bare := strings.TrimPrefix(canonical, HandleMark)
	decoded, err := url.PathUnescape(r.Spelling)
	if err != nil {
		decoded = r.Spelling
	}
	for _, text := range [...]string{r.Spelling, decoded} {
		if at := len(text) - len(bare); at >= 0 && strings.EqualFold(text[at:], bare) {
			return strings.TrimSuffix(canonical, bare) + text[at:]
		}
	}
	return canonical
}

// ParseHandle reads a handle, in any of its spellings or with nothing before it.
func ParseHandle(schemes *stele.Schemes, text string) (stele.ID, error) {
	scheme := schemes.Lookup(HandleScheme)
	if scheme == nil {
		return stele.ID{}, stele.Invalidf("", 0, "locations.handle-scheme-missing", "handles are not among the known schemes")
	}
	id, err := scheme.Parse(HandleMark + text)
	if err == nil {
		return id, nil
	}
	if marked, other := scheme.Parse(text); other == nil {
		return marked, nil
	}
	if syntax, ok := errors.AsType[*stele.SyntaxError](err); ok {
		return stele.ID{}, &stele.Error{Op: "parse", Kind: stele.Invalid, Err: &stele.SyntaxError{
			Scheme: syntax.Scheme, Pos: max(0, syntax.Pos-len(HandleMark)), Reason: syntax.Reason, Suggestions: syntax.Suggestions}}
	}
	return stele.ID{}, err
}

// HasType reports whether the type of a handle value is the wanted one, or one below
// it: URL.OLD is a URL too. Letters count in any case.
func HasType(kind, want string) bool {
	return len(kind) >= len(want) && strings.EqualFold(kind[:len(want)], want) &&
		(len(kind) == len(want) || kind[len(want)] == '.')
}

// Destination is a place that a record can lead to: either a URL, or another handle
// whose destinations become those of the record.
type Destination struct {
	Path   string // where in the record's JSON form: targets[0].url
	URL    string // as a redirect has it; "" if the text is not fit for a redirect
	Handle string // of a value of type HS_ALIAS
	Text   string // as the record has it
}

// Of yields all destinations of a record, in the order of its fields. It yields a value of a
// type that leads to a place even if its text is not fit for a redirect: another client of
// the Handle System may follow it.
func Of(record *stele.Record) iter.Seq[Destination] {
	return func(yield func(Destination) bool) {
		for i := range record.Targets {
			text := record.Targets[i].URL
			safe, _ := Safe(text)
			if !yield(Destination{Path: "targets[" + strconv.Itoa(i) + "].url", URL: safe, Text: text}) {
				return
			}
		}
		for i := range record.Values {
			v := &record.Values[i]
			path := "values[" + strconv.Itoa(i) + "].data"
			for d := range ofValue(v) {
				d.Path = path
				if !yield(d) {
					return
				}
			}
		}
	}
}

// ofValue yields the destinations of one handle value, without their path.
func ofValue(v *stele.HandleValue) iter.Seq[Destination] {
	return func(yield func(Destination) bool) {
		text := strings.TrimSpace(string(v.Data))
		switch {
		case HasType(v.Type, TypeURL):
			safe, _ := Safe(text)
			yield(Destination{URL: safe, Text: text})
		case HasType(v.Type, TypeAlias):
			yield(Destination{Handle: text, Text: text})
		case HasType(v.Type, TypeLoc):
			list, err := ParseLocations(v.Data)
			if err != nil {
				yield(Destination{Text: text})
				return
			}
			for i := range list.List {
				one := &list.List[i]
				if !yield(Destination{URL: one.fixed(), Text: one.Get("href") + one.Get("href_template")}) {
					return
				}
			}
		}
	}
}

// fixed returns where a location leads, with a sample handle in its template; "" if that is
// not fit for a redirect, or if the handle decides the host.
func (l *Location) fixed() string {
	x, ok := l.Href("x")
	y, same := l.Href("y")
	if !ok || !same || Host(x) != Host(y) || Protocol(x) != Protocol(y) {
		return ""
	}
	return x
}

// Host returns the host of a URL that is safe, in lower case, without port, user,
// root dot and the brackets of an IPv6 address.
func Host(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	authority := rest[:authorityEnd(rest)]
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
		host = host[:at]
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
}

// Protocol returns the protocol of a URL that is safe, in lower case.
func Protocol(url string) string {
	protocol, _, _ := strings.Cut(url, "://")
	return strings.ToLower(protocol)
}
