package client

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/ddds"
)

// Way is a way to resolve names. It is used by many goroutines at once.
type Way interface {
	// Resolve finds the location that a name leads to. Errors are of Kind NotFound if the
	// name, or what was asked for, is unknown; Gone if it was withdrawn; Unavailable if no
	// server could answer, so that the caller may try again; Invalid if the request is
	// wrong; Conflict, with a [dnssec.Bogus] in it, if an answer fails validation. With an
	// error, the Result has the trace and nothing else.
	Resolve(ctx context.Context, q Request) (Result, error)
}

// Request says what is wanted.
type Request struct {
	Name string // an identifier, in any spelling

	Service stele.Service     // N2L if empty; any that rules can offer, see [ddds.ParseService]
	Accept  []ddds.Preference // media types, or algorithms for N2S; none: any

	// Protocols of the location in order of preference, such as https. Others are good
	// enough too, unless OnlyProtocols is set.
	Protocols     []string
	OnlyProtocols bool

	// Flags are those of the rule at which a walk in the DNS may end, see
	// [ddds.ParseWantedFlag]; none: any.
	Flags []ddds.Flag

	Trace bool // tell every step
}

// Via says which way an answer came.
type Via string

// The ways. Local is for programs that have the registry open.
const (
	ViaDNS    Via = "dns"
	ViaHTTP   Via = "http"
	ViaHandle Via = "hdl"
	ViaLocal  Via = "local"
)

// Found says what a Result's location is.
type Found string

const (
	FoundLocation Found = "location" // a URL of what was asked for
	FoundServer   Found = "server"   // a resolver, which is to be asked; Note says how
)

// Result is where a name leads. Its JSON has stable names.
type Result struct {
	ID       stele.ID      `json:"id"`
	Found    Found         `json:"found"`
	Location string        `json:"location"`
	Service  stele.Service `json:"service"`
	Type     string        `json:"type,omitempty"`     // media type or algorithm, if it is known
	Protocol string        `json:"protocol,omitempty"` // of the location, or to speak with the server
	TTL      uint32        `json:"ttl"`                // seconds for which it holds; 0 if the server did not say
	Via      Via           `json:"via"`
	Flag     ddds.Flag     `json:"flag,omitempty"` // of the rule that led here
	Note     string        `json:"note,omitempty"` // what people should know of it

	Addresses []string `json:"addresses,omitempty"` // of a server, in the order to try them
	Others    []string `json:"others,omitempty"`    // other locations that would do, the best first

	// Equals are those of Others that would do just as well: chance, or the order in
	// which records came, put the location before them.
	Equals []string `json:"equals,omitempty"`

	// DNSSEC is the weakest status of the DNS answers that led here; Insecure says why
	// they are not secure. DNSSEC is Unchecked if the caller did not ask for validation.
	DNSSEC   dnssec.Status `json:"dnssec,omitempty"`
	Insecure string        `json:"insecure,omitempty"`

	// Certified says that servers of the Handle System signed the answer and all that led to it, from a key on that the
	// caller gave.
	Certified bool `json:"certified,omitempty"`

	Trace *Trace `json:"trace,omitempty"` // nil unless it was asked for
}

// maxOthers is how many other locations a Result tells.
const maxOthers = 32

// check fills in defaults, and refuses requests that are wrong.
func (q Request) check() (Request, error) {
	service, err := ddds.ParseService(string(cmp.Or(q.Service, stele.N2L)))
	if err != nil {
		return q, err
	}
	q.Service = service
	protocols := make([]string, len(q.Protocols))
	for i, p := range q.Protocols {
		protocols[i] = strings.ToLower(p)
	}
	q.Protocols = protocols
	if q.OnlyProtocols && len(protocols) == 0 {
		return q, &stele.Error{Op: "resolve", Kind: stele.Invalid, Err: stele.Messagef("resolve.protocol-missing", "no protocol is allowed; name at least one")}
	}
	return q, nil
}

// First resolves a name by the first way that knows it. A way that does not know it,
// or does not answer, or is not for such names, leaves it to the next. If none
// answers, the error is of Kind Unavailable if that is true of one of them: then the
// name may exist. First tries no other way after an answer that fails validation: an
// attacker could force that.
//
// The Result's trace is that of the way that answered, with the steps of those before
// it.
func First(ctx context.Context, q Request, ways ...Way) (Result, error) {
	steps := []Step{}
	var failed error
	for i, way := range ways {
		res, err := way.Resolve(ctx, q)
		if res.Trace != nil {
			steps = append(steps, res.Trace.Steps...)
			res.Trace.Steps = steps
		}
		if err == nil || stele.KindOf(err) == stele.Gone || isBogus(err) {
			return res, err
		}
		if i < len(ways)-1 {
			steps = append(steps, Step{Note: err.Error()})
		}
		failed = worse(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	res := Result{}
	if q.Trace {
		res.Trace = &Trace{Name: q.Name, Service: q.Service, Accept: q.Accept, Steps: steps}
	}
	if failed == nil {
		failed = &stele.Error{Op: "resolve", Kind: stele.Invalid, Err: stele.Messagef("resolve.no-way-to-try", "there is no way to try")}
	}
	if res.Trace != nil {
		res.Trace.Error = failed.Error()
	}
	return res, failed
}

// worse returns the error that says more about why there is no location: that an answer
// fails validation, or else that the name was withdrawn, or else that no server could
// answer, or else that there is none, or else the first.
func worse(a, b error) error {
	if a == nil || isBogus(b) && !isBogus(a) {
		return b
	}
	if isBogus(a) {
		return a
	}
	for _, kind := range []stele.Kind{stele.Gone, stele.Unavailable, stele.NotFound} {
		if stele.KindOf(a) == kind {
			return a
		}
		if stele.KindOf(b) == kind {
			return b
		}
	}
	return a
}

// aboutName adds the identifier to an error and keeps its kind.
func aboutName(id stele.ID, err error) error {
	return &stele.Error{Op: "resolve", ID: id, Kind: stele.KindOf(err), Err: stele.Reason(err)}
}

// asks returns the service by which locations are asked for over HTTP: a single location
// does not say which others there are.
func (q *Request) asks() string {
	if q.Service == stele.N2L && len(q.Protocols) > 0 {
		return "N2Ls"
	}
	return string(q.Service)
}

// wantsNames reports whether the request asks for names instead of locations.
func (q *Request) wantsNames() bool {
	return strings.HasPrefix(string(q.Service), "N2N") || strings.HasPrefix(string(q.Service), "L2N")
}

// isResource reports whether a service gives the resource itself, in the words of a rule.
func isResource(service string) bool {
	return strings.HasPrefix(service, "N2R") || strings.HasPrefix(service, "I2R")
}

// allows reports whether a location may have its protocol.
func (q *Request) allows(location string) bool {
	return !q.OnlyProtocols || slices.Contains(q.Protocols, protocolOf(location))
}

// protocolOf returns the protocol of a URL in lower case, "" if it has none.
func protocolOf(location string) string {
	protocol, _, ok := strings.Cut(location, ":")
	if !ok {
		return ""
	}
	return strings.ToLower(protocol)
}

// checkLocation returns a location as it may be shown and sent, or says why it is not
// one: it must be an absolute URL with a host, in visible ASCII. What is not ASCII
// is encoded.
func checkLocation(text string) (string, error) {
	if text == "" {
		return "", stele.Messagef("resolve.answer-without-location", "there is no location")
	}
	safe, err := encodeURI(text)
	if err != nil {
		return "", err
	}
	if len(safe) > stele.MaxURL {
		return "", stele.Messagef("resolve.location-too-long", "the location is too long")
	}
	u, err := url.Parse(safe)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return "", stele.Messagef("resolve.location-not-an-absolute-url", "the location is not an absolute URL with a host")
	}
	return safe, nil
}

// checkName returns a name as it may be shown, or says why it is not one: it must be an
// absolute URI.
func checkName(text string) (string, error) {
	safe, err := encodeURI(text)
	if err != nil {
		return "", err
	}
	if u, err := url.Parse(safe); err != nil || u.Scheme == "" {
		return "", stele.Messagef("resolve.name-not-a-uri", "the name is not a URI")
	}
	return safe, nil
}

// encodeURI percent-encodes what is not ASCII, and what RFC 3986 has no place for.
// It refuses control characters: only a malicious server sends them.
func encodeURI(text string) (string, error) {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(text))
	for i := range len(text) {
		c := text[i]
		switch {
		case c < ' ' || c == 0x7f:
			return "", stele.Messagef("resolve.location-has-control-character", "there is a control character in the location")
		case c > '~' || strings.IndexByte(" \"<>\\^`{|}", c) >= 0:
			b = append(b, '%', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return string(b), nil
}
