package httpd

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/stele-id/stele"
)

// ask is what a query wants of an identifier.
type ask struct {
	info       bool          // ARK's inflections: tell about it
	explain    bool          // tell how it is resolved
	noredirect bool          // show the record instead of going there
	service    stele.Service // "" if the query names none
	media      string        // the media type that the query names
	query      string        // what is passed on with the name
	component  bool          // query is a q-component, which all targets get
}

// isOwn reports whether the query is one of those that this server answers
// itself.
func (a *ask) isOwn() bool {
	return a.info || a.explain || a.noredirect || a.service != "" || a.media != ""
}

// readAsk reads a query.
//
//	?            ARK's inflections, for every scheme: what is known of it
//	??           the same
//	?info        the same
//	?explain     how it is resolved; further fields are passed on
//	?noredirect  the record, not what it names; further fields are passed on
//	?+s=N2C      a service (RFC 8141's r-component)
//	?+t=text/csv a media type, as if Accept named it alone; both: ?+s=N2C&t=text/csv
//	?=a=b        is passed on to every target (RFC 8141's q-component); after ?+: ?+s=N2L?=a=b
//
// No form sends a query that begins with + or =, so these are read for all schemes.
// Any other query is passed on as it is, where the target allows that something is appended
// to it.
func readAsk(t requestTarget) (a ask, err error) {
	switch t.query {
	case "":
		a.info = t.asked
		return a, nil
	case "?", "info":
		a.info, a.query = true, t.query
		return a, nil
	}
	switch t.query[0] {
	case '=':
		a.query, a.component = t.query[1:], true
		return a, nil
	case '+':
		r, q, _ := strings.Cut(t.query[1:], "?=")
		a.query, a.component = q, true
		return a, a.readResolution(r)
	}
	a.query = t.query
	if rest, ok := cutField(t.query, "explain"); ok {
		a.explain, a.query = true, rest
	} else if rest, ok := cutField(t.query, "noredirect"); ok {
		a.noredirect, a.query = true, rest
	}
	return a, nil
}

// cutField cuts a field without a value from the beginning of a query.
func cutField(query, name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(query, name)
	if !ok || rest != "" && rest[0] != '&' {
		return query, false
	}
	return strings.TrimPrefix(rest, "&"), true
}

// readResolution reads an r-component. Fields that are not known are for other
// resolvers (RFC 8141, section 2.3.1).
func (a *ask) readResolution(r string) error {
	for field := range strings.SplitSeq(r, "&") {
		name, value, _ := strings.Cut(field, "=")
		value, err := url.PathUnescape(value)
		if err != nil {
			return refused(http.StatusBadRequest, "request.component-encoding", "The component after ?+ has a % without two hexadecimal digits.")
		}
		switch name {
		case "s":
			if a.service = newService(value); !a.service.IsValid() {
				return refused(http.StatusBadRequest, "request.component-service", `"{service}" is not a service; after ?+s= there can be N2L, N2C, N2S, N2P, or a service of the owner's.`, value)
			}
		case "t":
			a.media = value
		}
	}
	return nil
}
