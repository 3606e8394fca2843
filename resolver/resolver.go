package resolver

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Options are what a Resolver needs beside the registry. The zero Options are valid:
// nothing is kept in memory then, and targets of equal rank stay in the record's order.
type Options struct {
	// Now is the clock by which what is kept in memory grows old. Without one
	// nothing does, and of unknown names nothing is kept.
	Now func() time.Time

	// Random returns a number from 0 to n-1 and may be called by many goroutines
	// at once. It shares the load between targets of equal rank.
	Random func(n int) int

	// CacheBytes is how much memory records may take, about; none are kept if it
	// is 0. Namespaces are always kept, all of them.
	CacheBytes uint64

	// RedirectBytes is how much memory the redirect cache may take, whose entries are much
	// smaller than records; see [Resolver.Load]. None are kept if it is 0, or if there is
	// a CacheAge.
	RedirectBytes uint64

	// CacheAge is how long records and namespaces are kept, for stores that other
	// processes write to; 0 is without limit.
	CacheAge time.Duration

	// Lagging says that what is read from the store at present may be older than what
	// was read before, since it comes from a copy, and when that began; once it is over,
	// when it began last. What is read then is not kept. May be nil.
	Lagging func() (since time.Time, yes bool)

	// Hosts are those, with their port if it is not the usual one, whose links lead
	// to this resolver. A target that is such a link to a name is followed inside.
	Hosts []string

	// Origins are the servers that are trusted to answer for the names that they made; nil: none.
	Origins *Origins

	DefaultTTL    uint32 // of answers, in seconds, where neither target nor namespace says
	DefaultStatus int    // of redirects, likewise; 302 if 0
}

// Store is the part of a [stele.Store] that a Resolver reads.
type Store interface {
	stele.Records
	stele.Namespaces
}

// Resolver answers requests. It is used by many goroutines at once.
type Resolver struct {
	schemes    *stele.Schemes
	records    *cache
	namespaces *directory
	random     func(n int) int
	hosts      map[string]bool // in lower case
	origins    *Origins
	ttl        uint32
	status     int
}

// New makes a resolver over a store.
func New(store Store, schemes *stele.Schemes, o Options) *Resolver {
	hosts := make(map[string]bool, len(o.Hosts))
	for _, host := range o.Hosts {
		hosts[strings.ToLower(host)] = true
	}
	return &Resolver{
		schemes:    schemes,
		records:    newCache(store, o),
		namespaces: newDirectory(store, schemes, o),
		random:     o.Random,
		hosts:      hosts,
		origins:    o.Origins,
		ttl:        o.DefaultTTL,
		status:     cmp.Or(o.DefaultStatus, http.StatusFound),
	}
}

// Invalidate forgets what is kept under all names of the records. The writer calls it
// with the new versions, once they are committed and before any client is told: no
// request that begins after it returned sees an older version. It is also called where
// the store does not know whether it committed.
func (r *Resolver) Invalidate(records ...*stele.Record) {
	for _, record := range records {
		r.records.forget(record.ID)
		for _, alias := range record.Aliases {
			r.records.forget(alias)
		}
	}
}

// InvalidateUnknown forgets which names are not registered: another process has
// registered some. It is for writes of other processes whose contents are not known
// yet; for a new record nothing else has to be forgotten.
func (r *Resolver) InvalidateUnknown() { r.records.forgetUnknown() }

// InvalidateAll forgets everything: it is not known what other processes wrote.
func (r *Resolver) InvalidateAll() {
	r.records.forgetAll()
	r.namespaces.forget() // after it: this ends all epochs, also those taken while the records were still there
}

// Close returns the memory of the redirect cache to the system. Requests are answered
// afterwards, too.
func (r *Resolver) Close() {
	if r.records.redirects != nil {
		r.records.redirects.close()
	}
}

// InvalidateNamespaces forgets what is kept of namespaces. It is called like
// Invalidate, after a commit that changed one.
func (r *Resolver) InvalidateNamespaces() { r.namespaces.forget() }

// Request says what is wanted.
type Request struct {
	ID    stele.ID
	Given string // ID as it was written, for the trace; may be empty
	Query string // what followed a question mark; passed on with partial targets

	// Component says that Query is a URN's q-component: targets that are not partial
	// get it too (RFC 8141, section 2.3.2).
	Component bool

	Service   stele.Service // N2L if empty
	Accept    []Preference  // media types, see ParseAccept; none: any
	Languages []Preference  // see ParseAcceptLanguage; none: any

	// Protocols are the schemes of URLs in order of preference, such as https. Others
	// are allowed too, unless OnlyProtocols is set.
	Protocols     []string
	OnlyProtocols bool

	Who   auth.Principal // the client; the zero Principal is the public
	Trace bool           // tell how the answer was found

	// Brief says that only where to go is wanted, for the name itself and without a
	// query. The answer's record may lack all but names, version and targets of N2L.
	Brief bool
}

// Kind says what a Resolution is.
type Kind uint8

const (
	Redirect    Kind = iota + 1 // go to URL
	Description                 // the record has no such target: show the record itself
	Gone                        // the owner says of the target: Status 404, gone for now, or 410; of a rule, 406 too
	Tombstone                   // the record was withdrawn
	Delegation                  // another resolver knows; ask at URL
)

var kindNames = [...]string{"", "redirect", "description", "gone", "tombstone", "delegation"}

// String returns the kind's name, such as "redirect".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Resolution is the answer. What it points at is shared between answers and must
// not be changed.
type Resolution struct {
	Kind Kind
	ID   stele.ID // as asked for

	// Matched is the name that was found: ID, or its beginning whose record or
	// namespace answers. It is empty for the root of a scheme.
	Matched   string
	Record    *stele.Record    // nil for a Delegation, and for the answer of a rule
	Namespace *stele.Namespace // the record's, or else ID's; nil if there is none

	// Rule is that of the namespace which answers for a name that is not registered; nil if
	// a record or another resolver does. Number is its place, from 1. Kind is Redirect or
	// Gone; then Status may be 406, too.
	Rule   *stele.Rule
	Number int

	URL    string // of the first target; where to go
	Status int    // of the redirect
	TTL    uint32 // in seconds
	Fit    Fit    // of the first target's type to what was asked for

	// Private says that the answer is not for the public: a record on the way to it is
	// restricted. Caches that others use must not keep it.
	Private bool

	// Brief says that the record lacks its description.
	Brief bool

	// Targets are those of the service, the best first. Their URL, TTL and Status
	// are what holds for this request.
	Targets   []stele.Target
	Tombstone stele.Tombstone

	Trace []Step // if asked for
}

// Step is a line of the trace, for people.
type Step struct {
	Name   string         // what was looked at: "name", "record", "prefix", "namespace", "origin", "choice", "answer"
	Result *stele.Message // what was found
}

// Resolve answers a request. Its errors are of Kind NotFound, with an
// [UnknownError] in them, if no name leads anywhere or the client may not know of it;
// Invalid, if the request can't be right or what follows a registered name can't be
// passed on; Conflict, with [ErrLoop], if names lead to each other; and those of the
// store. The Resolution that comes with an error has the trace and nothing else.
func (r *Resolver) Resolve(ctx context.Context, q Request) (Resolution, error) {
	q.Service = cmp.Or(q.Service, stele.N2L)
	switch {
	case !q.ID.IsValid():
		return Resolution{}, invalid(q.ID, "resolve.identifier-missing", "there is no identifier; parse one first")
	case !q.Service.IsValid():
		return Resolution{}, invalid(q.ID, "resolve.service-unknown", `"{service}" is not a service; there are N2L, N2C, N2S and N2P`, string(q.Service))
	}
	w := walk{Resolver: r, q: q}
	if q.Trace {
		w.name()
	}
	res, err := w.answer(ctx)
	if err == nil {
		res, err = w.follow(ctx, res)
	}
	if err != nil {
		if q.Trace {
			w.step("answer", "", "{cause}", err)
		}
		return Resolution{Trace: w.trace}, err
	}
	res.ID = q.ID
	if q.Trace {
		w.trace = append(w.trace, Step{"answer", res.said()})
	}
	res.Trace = w.trace
	return res, nil
}

// String says in a few words what the answer is.
func (res *Resolution) String() string { return res.said().Error() }

// said says the answer, as a message.
func (res *Resolution) said() *stele.Message {
	switch res.Kind {
	case Redirect:
		return stele.Messagef("trace.redirect", "redirect to {url}, status {status}, for {seconds} s", res.URL, res.Status, res.TTL)
	case Delegation:
		return stele.Messagef("trace.delegation", "delegation to {url}, status {status}, for {seconds} s", res.URL, res.Status, res.TTL)
	case Gone:
		return stele.Messagef("trace.gone", "gone, status {status}", res.Status)
	case Tombstone:
		return stele.Messagef("trace.tombstone", "tombstone")
	case Description:
		return stele.Messagef("trace.description", "description")
	}
	return stele.Messagef("trace.kind", "{kind}", res.Kind)
}

// Registered returns those of the texts that are names of records which the principal
// may see, in their order: of the suggestions in a [stele.SyntaxError], those that lead
// somewhere. It looks at the first 32.
func (r *Resolver) Registered(ctx context.Context, texts []string, who auth.Principal) (found []stele.ID, err error) {
	for _, text := range texts[:min(len(texts), maxLookups)] {
		id, err := r.schemes.Parse(text)
		if err != nil || slices.Contains(found, id) {
			continue
		}
		record, err := r.records.peek(ctx, id)
		if err != nil {
			return nil, err
		}
		visible, err := r.MaySee(ctx, who, record)
		if err != nil {
			return nil, err
		}
		if visible {
			found = append(found, id)
		}
	}
	return found, nil
}
