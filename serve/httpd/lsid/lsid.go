// Package lsid answers clients of Life Science Identifiers below /authority/: the authority service, the metadata and
// data services, foreign authority notices and the assigning service, each by SOAP with attachments and, where the
// specification has it, by HTTP GET (Life Sciences Identifiers Specification, OMG dtc/04-05-01; numbers in comments
// are sections of the description of the protocol as its clients were seen to speak it).
//
// It decodes, asks the resolver and the registrar, and encodes. It shows only what the resolver shows: a reserved or
// restricted record is unknown here. It never gives other bytes for a name than those that it gave first; see
// [Handler.data].
package lsid

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// scheme is the name of the scheme of LSIDs, and mark what they begin with.
const (
	scheme = "lsid"
	mark   = "urn:lsid:"
)

// Options are what a Handler needs. Resolver, Schemes and Now must be set.
type Options struct {
	Resolver *resolver.Resolver
	Schemes  *stele.Schemes
	Now      func() time.Time
	Log      *slog.Logger // of what an operator should look into; nothing is logged if nil

	// Data keeps the digests of data; nil: no name has data here. Fetch fetches them. MaxData is how many bytes data may have; 16 MiB if 0.
	Data    Data
	Fetch   Fetcher
	MaxData int64

	// Patience is how long a request waits for data, from all of their locations together; 20 seconds if 0.
	Patience time.Duration

	// Foreign stores which other authorities know of names; nil: they can't give notice.
	Foreign Foreign

	// Names assigns names; nil: there is no assigning service.
	Names Names

	// Frozen is the error by which what changes something is refused, if the registry is a frozen archive ([stele.Frozen]); nil: it is not.
	Frozen error

	// Address returns the address of a client as the audit trail keeps it. nil: it keeps none.
	Address func(r *http.Request) string
}

// Fetcher fetches files. It must reach only addresses that the server may ask on behalf of users, after redirects too,
// and its errors are Forbidden if an address is another one.
type Fetcher interface {
	Do(r *http.Request) (*http.Response, error)
}

// Site is the web server, for one request.
type Site interface {
	// Base returns the address of the server as the client should see it, without a slash at its end; "" if it is
	// not known.
	Base() string
	// Subject returns what a description of a record is made of.
	Subject(record *stele.Record, ns *stele.Namespace) describe.Subject
	// Charge takes what an answer costs from the client's budget, and waits until it may be made. The caller calls
	// done when it is made, and Send does so before it writes. The error says that the client asks too much.
	Charge(cost float64) (done func(), err error)
	// Keep says in the head for how long an answer may be kept.
	Keep(res *resolver.Resolution)
	// Send writes an answer, and reports whether the client gets all of it.
	Send(status int, mediaType string, body []byte) bool
	// Authenticate returns the principal whose token is in the request, as bearer token or as password. The error is
	// Unauthenticated if there is none.
	Authenticate() (auth.Principal, error)

	// Described counts metadata, Delivered data, and Failed a name that is unknown.
	Described(record *stele.Record)
	Delivered(record *stele.Record)
	Failed(id stele.ID)
}

// What answers cost, in the units of the server's other answers.
const (
	costServices = 1
	costMetadata = 1
	costData     = 5
	costAssign   = 5
)

// Handler answers requests. It is used by many goroutines at once.
type Handler struct {
	o     Options
	store *contents
}

// New makes a handler.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxData == 0 {
		o.MaxData = defaultMaxData
	}
	if o.Patience == 0 {
		o.Patience = fetchPatience
	}
	return &Handler{o: o, store: newContents(o.MaxData)}
}

// call is one request, by HTTP GET or by SOAP.
type call struct {
	*Handler
	w    http.ResponseWriter
	r    *http.Request
	site Site

	operation string
	space     string // the namespace of the operation in a SOAP request, which the answer repeats
	soap      bool
	arguments arguments
}

// Serve answers a request. The path is what follows /authority/, and the query what follows the question mark, both as
// they were sent. The method is GET, HEAD or POST.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, path, query string, site Site) {
	c := &call{Handler: h, w: w, r: r, site: site}
	w.Header()["Access-Control-Allow-Origin"] = []string{"*"}
	path = strings.TrimSuffix(path, "/")
	if r.Method == http.MethodPost {
		c.soap = true
		c.answerSOAP(path)
		return
	}
	q, err := readQuery(query)
	if c.arguments = q; err != nil {
		c.fail(err)
		return
	}
	switch {
	case path == "" && len(q) == 0:
		c.authority()
	case path == "":
		c.do("getAvailableServices")
	case path == "metadata":
		c.do("getMetadata")
	case path == "data":
		c.do("getData")
	case path == "notify":
		c.do("notifyForeignAuthority")
	case path == "revoke":
		c.do("revokeNotificationForeignAuthority")
	case c.file(path):
	default:
		c.fail(failf(noMethod, "there is nothing here; ask /authority/?lsid=, /authority/metadata?lsid= or /authority/data?lsid="))
	}
}

// do answers an operation.
func (c *call) do(operation string) {
	c.operation = operation
	var err error
	switch operation {
	case "getAvailableServices":
		err = c.services()
	case "getMetadata":
		err = c.metadata()
	case "getData", "getDataByRange": // clients send the range under the first name (section 4); programs made from the WSDL use the second
		err = c.content()
	case "notifyForeignAuthority":
		err = c.notice(true)
	case "revokeNotificationForeignAuthority":
		err = c.notice(false)
	case "getMetadataSubset":
		err = failf(notImplemented, "parts of metadata are not selected here; ask getMetadata for all of them")
	default:
		err = failf(noMethod, `"%s" is not an operation here`, brief(operation))
	}
	if err != nil {
		c.fail(err)
	}
}

// found is a name that is registered, and its record.
type found struct {
	id  stele.ID
	res resolver.Resolution
}

// find resolves the name in the argument lsid. A name in a query may be encoded or not: clients do both (section 3).
func (c *call) find() (f found, err error) {
	texts, err := c.arguments.names()
	if err != nil {
		return f, err
	}
	var first error
	var known stele.ID
	for _, text := range texts {
		if f.id, err = c.parse(text); err == nil {
			if known == (stele.ID{}) {
				known = f.id
			}
			f.res, err = c.resolve(f.id)
		}
		if err == nil {
			return f, nil
		}
		// Of two readings, the error of the one that is a name says more.
		if first == nil || codeOf(first) == malformed {
			first = err
		}
	}
	if known.IsValid() && codeOf(first) == unknown {
		c.site.Failed(known)
	}
	return f, first
}

// parse reads a name. It must be written as an LSID: this protocol knows no other spelling.
func (c *call) parse(text string) (stele.ID, error) {
	if len(text) < len(mark) || !strings.EqualFold(text[:len(mark)], mark) {
		return stele.ID{}, failf(malformed, "%q is not an LSID; it is written urn:lsid:authority:namespace:object, and may end with :revision", brief(text))
	}
	id, err := c.o.Schemes.Parse(text)
	switch {
	case err != nil:
		return stele.ID{}, failf(malformed, "%q is not an LSID: %s", brief(text), reason(err))
	case id.Scheme() != scheme:
		return stele.ID{}, failf(malformed, "%q is not an LSID", brief(text))
	}
	return id, nil
}

// reason returns why a text is not a name, without repeating it.
func reason(err error) string {
	if s, ok := errors.AsType[*stele.SyntaxError](err); ok {
		return s.Reason.Error()
	}
	return err.Error()
}

// resolve returns the record of a name. A name is registered itself: that of a part, such as a revision, is not
// answered by what it is a part of, whose data are others.
func (c *call) resolve(id stele.ID) (resolver.Resolution, error) {
	// No location is wanted; the statement of persistence is what hardly any record leads elsewhere for.
	res, err := c.o.Resolver.Resolve(c.r.Context(), resolver.Request{ID: id, Service: stele.N2P, Who: auth.From(c.r.Context())})
	switch {
	case errors.Is(err, stele.NotFound), errors.Is(err, stele.Invalid):
		return res, failf(unknown, "%s is not registered here", id)
	case err != nil:
		return res, err
	case res.Kind == resolver.Delegation:
		return res, failf(unknown, "another resolver answers for %s; ask at %s", id, res.URL)
	case res.Record == nil || res.Matched != id.String():
		return res, failf(unknown, "%s is not registered here", id)
	}
	return res, nil
}

// server returns the context of the request with the server as the principal, who stores what no user decides.
func (c *call) server() context.Context { return auth.With(c.r.Context(), auth.Local()) }

// brief returns a text from a request for a message, cut to a length.
func brief(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
