package httpd

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/resolver"
)

// thttpServices are the services of RFC 2169 and RFC 2483, and of the EDDDS, that
// are asked for at /uri-res/.
const thttpServices = "N2L, N2Ls, N2R, N2Rs, N2C, N2Cs, N2N, N2Ns (I2L and so on are the same), N2S, N2P, I=I, L2Ns, L2Ls and L2C"

// newService reads the name of a service. Case does not count (RFC 2483, section 2.1), and
// I2L is what RFC 2169 calls N2L: a URN is a URI.
func newService(name string) stele.Service {
	name = strings.ToUpper(name)
	if strings.HasPrefix(name, "I2") {
		name = "N" + name[1:]
	}
	return stele.Service(name)
}

const (
	uriListType = "text/uri-list"
	maxPointing = 1000 // names that are looked at for a location
)

// thttp answers GET /uri-res/<service>?<uri> (RFC 2169). The server never fetches what a name
// leads to: where the RFC returns the thing itself, the server redirects the client to it,
// and where the RFC returns several, the server lists where they are.
func (h *Handler) thttp(w http.ResponseWriter, r *http.Request, t requestTarget) {
	_, service := t.segment()
	c := thttpCall{h: h, w: w, r: r, uri: t.query}
	answer := c.service(strings.TrimSuffix(service, "/"))
	switch {
	case answer == nil:
		h.fail(w, r, refused(http.StatusNotFound, "thttp.service-unknown", `"{service}" is not a service here; there are {services}, as in /uri-res/N2L?urn:isbn:9780140449136.`, service, thttpServices))
	case t.query == "":
		h.fail(w, r, refused(http.StatusBadRequest, "thttp.name-missing", "There is no name; write it after the question mark, as in /uri-res/N2L?urn:isbn:9780140449136."))
	case strings.HasPrefix(string(newService(service)), "L2"):
		w, done, ok := h.charge(w, r, costReverse)
		if !ok {
			return
		}
		defer done()
		c.w = w
		c.service(strings.TrimSuffix(service, "/"))()
	default:
		answer()
	}
}

// thttpCall is one request for a service.
type thttpCall struct {
	h   *Handler
	w   http.ResponseWriter
	r   *http.Request
	uri string // as it was sent
}

// service returns the method that answers for a service; nil if there is none.
func (c *thttpCall) service(name string) func() {
	switch service := newService(name); service {
	case "N2L", "N2R":
		return c.location
	case "N2LS", "N2RS":
		return c.locations
	case "N2C":
		return func() { c.choose(stele.N2C) }
	case "N2P":
		return func() { c.choose(stele.N2P) }
	case "N2CS":
		return c.descriptions
	case "N2NS":
		return c.names
	case "N2N":
		return c.urn
	case "I=I":
		return c.equal
	case "N2S":
		return c.signature
	case "L2NS":
		return c.namesAt
	case "L2LS":
		return c.locationsAt
	case "L2C":
		return c.descriptionAt
	default:
		if service.IsValid() {
			return func() { c.other(service) }
		}
	}
	return nil
}

// request is the request to the resolver for a service.
func (c *thttpCall) request(service stele.Service) resolver.Request {
	return resolver.Request{
		Service:   service,
		Accept:    c.h.accepts.of(c.r.Header, "Accept"),
		Languages: c.h.languages.of(c.r.Header, "Accept-Language"),
		Who:       auth.From(c.r.Context()),
	}
}

// find resolves the name that was sent: as it is or, if it leads nowhere so, decoded, since
// many programs encode a name as a whole before they send it. It returns false if the request
// is answered: the name does not exist, or not any more, or another resolver knows it.
func (c *thttpCall) find(q *resolver.Request) (res resolver.Resolution, ok bool) {
	var err error
	var t requestTarget
	var a ask
	for _, text := range c.readings() {
		id, bad := c.h.o.Schemes.Parse(text)
		if bad != nil {
			if !errors.Is(err, stele.NotFound) {
				err = bad
			}
			continue
		}
		note(c.w, "", id.Scheme())
		q.ID, q.Given = id, text
		if t, a, err = c.components(text, q); err != nil {
			break
		}
		if res, err = c.h.o.Resolver.Resolve(c.r.Context(), *q); !errors.Is(err, stele.NotFound) {
			break
		}
	}
	switch {
	case errors.Is(err, stele.NotFound):
		c.h.unknown(c.w, c.r, requestTarget{path: c.uri}, err)
	case err != nil:
		c.h.failAbout(c.w, c.r, c.uri, err)
	case res.Kind == resolver.Tombstone:
		c.h.tombstone(c.w, c.r, q.Accept, &res)
	case res.Kind == resolver.Gone:
		c.h.gone(c.w, c.r, &res)
	case res.Kind == resolver.Delegation:
		c.h.passOn(c.w, c.r, t, &a, q, &res)
	case res.Rule != nil && q.Service != stele.N2L: // the owner's own, since nothing is described here
		c.h.byRule(c.w, c.r, t, &ask{}, q, &res)
	default:
		c.h.about(c.w.Header(), &res)
		return res, true
	}
	return res, false
}

// components reads the components of a URN (RFC 8141, section 2.3) into the request:
// the r-component may name a media type, and targets get the q-component. The service
// is the one in the path, whatever the r-component says. t and a are what the request
// for the name's own URL would be, for another resolver that gets all of it.
func (c *thttpCall) components(text string, q *resolver.Request) (t requestTarget, a ask, err error) {
	if !strings.Contains(text, "?") {
		return t, a, nil
	}
	x, err := c.h.o.Schemes.Explain(text)
	if err != nil {
		return t, a, err
	}
	for _, part := range []struct{ name, mark string }{{"r", "+"}, {"q", "="}} {
		value, _ := x.Parts.Get(part.name).(string)
		if value == "" {
			continue
		}
		if t.query != "" {
			t.query += "?"
		}
		t.query += part.mark + value
	}
	if a, err = readAsk(t); err != nil {
		return t, a, err
	}
	q.Query, q.Component = a.query, a.component
	if a.media != "" {
		if q.Accept, err = resolver.ParseAccept(a.media); err != nil {
			err = refused(http.StatusBadRequest, "request.component-type", "Behind ?+t= stands a media type, such as text/csv.")
		}
	}
	return t, a, err
}

// readings returns the texts that the query may mean, the likeliest first.
func (c *thttpCall) readings() []string {
	decoded, err := url.PathUnescape(c.uri)
	if err != nil || decoded == c.uri {
		return []string{c.uri}
	}
	return []string{c.uri, decoded}
}

// locate finds where the thing is, from a handle's values too if they say so, or answers why it
// can't.
func (c *thttpCall) locate() (resolver.Resolution, bool) {
	q := c.request(stele.N2L)
	res, ok := c.find(&q)
	if !ok {
		return res, false
	}
	if err := c.h.redirectByValues(c.r, &res, nil); err != nil {
		c.h.fail(c.w, c.r, err)
		return res, false
	}
	return res, true
}

// location answers N2L and N2R: 302, or what the target says.
func (c *thttpCall) location() {
	res, ok := c.locate()
	if !ok {
		return
	}
	if res.Kind != resolver.Redirect {
		c.without(&res, "location")
		return
	}
	c.h.land(c.w, c.r, &res)
}

// without answers for a record that has nothing for the service.
func (c *thttpCall) without(res *resolver.Resolution, what string) {
	c.h.failAbout(c.w, c.r, c.uri, &stele.Error{Op: "resolve", ID: res.ID, Kind: stele.NotFound, Err: stele.Messagef(
		"resolve.service-data-missing", "it is registered, but has no {missing}; ask N2C for what is known of it", what)})
}

// locations answers N2Ls and N2Rs.
func (c *thttpCall) locations() {
	res, ok := c.locate()
	if !ok {
		return
	}
	c.h.keep(c.w.Header(), &res)
	c.list(locationsOf(&res))
}

// locationsOf returns the URLs of an answer's targets, the best first.
func locationsOf(res *resolver.Resolution) (list []string) {
	for _, t := range res.Targets {
		if t.Status != http.StatusNotFound && t.Status != http.StatusGone {
			list = append(list, t.URL)
		}
	}
	return list
}

// list answers with a list of URIs (RFC 2483, section 5). Lines end with CR LF, and
// the first is a comment with what was asked for.
func (c *thttpCall) list(uris []string) {
	var b bytes.Buffer
	b.WriteString("# " + plainURI(c.uri) + "\r\n")
	seen := make(map[string]bool, len(uris))
	for _, uri := range uris {
		if uri = plainURI(uri); uri != "" && !seen[uri] {
			seen[uri] = true
			b.WriteString(uri + "\r\n")
		}
	}
	c.w.Header()["Access-Control-Allow-Origin"] = anyOrigin
	c.h.write(c.w, c.r, http.StatusOK, uriListType, b.Bytes())
}

// plainURI returns a URI with all that can't stand in one percent-encoded, ends of
// lines above all.
func plainURI(uri string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(uri))
	for i := range len(uri) {
		if c := uri[i]; destination.InURL(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// choose answers N2C and N2P: with a redirect to what the owner registered, or with
// what is known here, in the form that Accept asks for.
func (c *thttpCall) choose(service stele.Service) {
	q := c.request(service)
	if res, ok := c.find(&q); ok {
		c.h.choose(c.w, c.r, requestTarget{}, &q, &res)
	}
}

// descriptions answers N2Cs: where descriptions are, the owner's first.
func (c *thttpCall) descriptions() {
	q := c.request(stele.N2C)
	if res, ok := c.find(&q); ok {
		c.list(append(locationsOf(&res), c.urlOf("N2C", res.ID)))
	}
}

// urlOf returns the URL of a service for a name, at this server.
func (c *thttpCall) urlOf(service string, id stele.ID) string {
	name := id.String()
	if plainURI(name) != name || strings.Contains(name, "#") {
		name = url.PathEscape(name)
	}
	return c.h.base(c.r) + "/uri-res/" + service + "?" + name
}

// names answers N2Ns: all names of the thing, that which it is registered under
// first.
func (c *thttpCall) names() {
	q := c.request(stele.N2L)
	res, ok := c.find(&q)
	switch {
	case !ok:
	case res.Record == nil, res.Matched != res.ID.String(): // the names are those of what it is a part of
		c.list([]string{c.uriOf(res.ID)})
	default:
		c.list(c.namesOf(res.Record))
	}
}

// urn answers I2N: one URN of the thing, and it may be the one that was asked for. Names that
// are not URNs are not an answer (RFC 2483, section 4.7).
func (c *thttpCall) urn() {
	q := c.request(stele.N2L)
	res, ok := c.find(&q)
	if !ok {
		return
	}
	list := []string{c.uriOf(res.ID)}
	if res.Record != nil && res.Matched == res.ID.String() {
		list = c.namesOf(res.Record)
	}
	list = slices.DeleteFunc(list, func(name string) bool { return !strings.HasPrefix(name, "urn:") })
	if len(list) == 0 {
		c.without(&res, "URN")
		return
	}
	c.list(list[:1])
}

// equal answers I=I: whether two URIs name one thing (RFC 2483, section 4.9). They are
// separated by a blank, since that is what no URI has.
func (c *thttpCall) equal() {
	both := strings.Fields(strings.ReplaceAll(c.uri, "%20", " "))
	if len(both) != 2 {
		c.h.fail(c.w, c.r, refused(http.StatusBadRequest, "thttp.two-names", "Behind the question mark stand two names with %20 between them, as in /uri-res/I=I?urn:isbn:0140449132%20urn:isbn:9780140449136."))
		return
	}
	var ids [2]stele.ID
	for i := range both {
		one := thttpCall{h: c.h, w: c.w, r: c.r, uri: both[i]}
		q := one.request(stele.N2L)
		res, ok := one.find(&q)
		if !ok {
			return
		}
		if ids[i] = res.ID; res.Record != nil && res.Matched == res.ID.String() { // all of the thing, and not a part
			ids[i] = res.Record.ID
		}
	}
	word := "FALSE"
	if ids[0] == ids[1] {
		word = "TRUE"
	}
	c.w.Header()["Access-Control-Allow-Origin"] = anyOrigin
	c.h.write(c.w, c.r, http.StatusOK, "text/plain; charset=utf-8", []byte(word+"\r\n"))
}

// other answers for a service that an owner has defined: where its target is.
func (c *thttpCall) other(service stele.Service) {
	q := c.request(service)
	if res, ok := c.find(&q); ok {
		c.h.land(c.w, c.r, &res)
	}
}

// namesOf returns the names of a record as URIs.
func (c *thttpCall) namesOf(record *stele.Record) (list []string) {
	for _, id := range record.Names() {
		list = append(list, c.uriOf(id))
	}
	return list
}

// uriOf returns a name as a URI: as it is, in another spelling that is one, or as
// its URL here.
func (c *thttpCall) uriOf(id stele.ID) string {
	if isURI(id.String()) {
		return id.String()
	}
	for _, s := range c.h.o.Schemes.Spellings(id) {
		if isURI(s.Text) && !isURL(s.Text) {
			return s.Text
		}
	}
	return c.h.self(c.r, id)
}

// isURI reports whether a text begins with a scheme and has only characters that
// may stand in a URI.
func isURI(text string) bool {
	scheme, _, ok := strings.Cut(text, ":")
	if !ok || scheme == "" || scheme[0]|0x20 < 'a' || scheme[0]|0x20 > 'z' {
		return false
	}
	for i := range len(scheme) {
		if c := scheme[i]; !isAlphanumeric(c) && strings.IndexByte("+-.", c) < 0 {
			return false
		}
	}
	return plainURI(text) == text
}

// signature answers N2S.
func (c *thttpCall) signature() {
	q := c.request(stele.N2S)
	res, ok := c.find(&q)
	switch {
	case !ok:
	case isSigned(&res):
		c.h.signatures(c.w, c.r, &res)
	default:
		c.h.land(c.w, c.r, &res)
	}
}

// errPointing says that the search by location is off.
var errPointing = stele.Messagef("reverse.off", "what leads to a location is not told here, since the public could list what a publisher has; the administrator of this server can turn it on")

// at returns what is registered for a location: the records that the client may see and that
// still lead there.
func (c *thttpCall) at() (found []resolver.Resolution, err error) {
	if c.h.o.Pointing == nil {
		return nil, &stele.Error{Op: "look up", Kind: stele.Forbidden, Err: errPointing}
	}
	looked := 0
	for _, location := range c.readings() {
		for id, err := range c.h.o.Pointing(c.r.Context(), stele.Location{URL: location}, stele.ID{}) {
			if err != nil {
				return nil, err
			}
			if looked++; looked > maxPointing {
				break
			}
			res, err := c.h.o.Resolver.Resolve(c.r.Context(), resolver.Request{ID: id, Who: auth.From(c.r.Context())})
			switch {
			case errors.Is(err, stele.NotFound), err == nil && (res.Record == nil || res.Kind == resolver.Tombstone):
			case err != nil:
				return nil, err
			case res.Matched != id.String(): // the record is hidden, and the record that it is a part of answers
			default:
				found = append(found, res)
			}
		}
	}
	if len(found) == 0 {
		return nil, &stele.Error{Op: "look up", Kind: stele.NotFound, Err: stele.Messagef("reverse.nothing", "nothing that is registered here leads to this location; write it exactly as its owner did")}
	}
	return found, nil
}

// namesAt answers L2Ns: the names of what is at a location.
func (c *thttpCall) namesAt() {
	found, err := c.at()
	if err != nil {
		c.h.fail(c.w, c.r, err)
		return
	}
	var list []string
	for i := range found {
		list = append(list, c.namesOf(found[i].Record)...)
	}
	c.list(list)
}

// locationsAt answers L2Ls: the other locations of the thing.
func (c *thttpCall) locationsAt() {
	found, err := c.at()
	if err != nil {
		c.h.fail(c.w, c.r, err)
		return
	}
	var list []string
	for i := range found {
		list = append(list, locationsOf(&found[i])...)
	}
	readings := c.readings()
	c.list(slices.DeleteFunc(list, func(location string) bool { return slices.Contains(readings, location) }))
}

// descriptionAt answers L2C: a description or, where several things are at the
// location, a list of where their descriptions are.
func (c *thttpCall) descriptionAt() {
	found, err := c.at()
	switch {
	case err != nil:
		c.h.fail(c.w, c.r, err)
	case len(found) == 1:
		c.uri = found[0].ID.String()
		c.choose(stele.N2C)
	default:
		var list []string
		for i := range found {
			list = append(list, c.urlOf("N2C", found[i].ID))
		}
		c.list(list)
	}
}
