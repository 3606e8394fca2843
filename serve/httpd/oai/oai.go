// Package oai lets other systems harvest the registry by the Open Archives Initiative Protocol for Metadata Harvesting, OAI-PMH
// 2.0: it lists the public records of listed namespaces with their metadata, as Dublin Core and in DataCite's schema.
//
// A set is a listed namespace. A withdrawn record is deleted for harvesters, and is listed as such for ever. Records that are
// reserved, restricted or disavowed, and those of other namespaces, are never shown, and neither is it shown that they exist.
// The package writes nothing, and keeps no state between two requests: a resumption token has all that the next page needs.
package oai

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// Root is the path at which the provider answers.
const Root = "/.oai"

// Registrar says what the public may list.
type Registrar interface {
	// Public returns what the public may list now.
	Public(ctx context.Context) (*registrar.Public, error)
	// ListedSince returns when a namespace was listed.
	ListedSince(ctx context.Context, key stele.NamespaceKey) (time.Time, error)
	// ImportedBy returns by when all records of an import were written, and whether that stays so.
	ImportedBy(ctx context.Context, number uint64) (time.Time, bool, error)
}

// Store is the part of a [stele.Store] that a Handler reads; see there.
type Store interface {
	Record(ctx context.Context, name stele.ID) (*stele.Record, error)
	Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error]
	Count(ctx context.Context, key stele.NamespaceKey) (uint64, error)
	Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error]
	Position(ctx context.Context) (stele.Position, error)
	Generations(ctx context.Context) (stele.Generations, error)
}

// Options are what a Handler needs. Registrar, Store, Schemes and Now must be set.
type Options struct {
	Registrar Registrar
	Store     Store
	Schemes   *stele.Schemes
	Now       func() time.Time
	Log       *slog.Logger // of what an operator should look into; nothing is logged if nil

	Name string // of the repository, for people
	Mail string // address of the operator, which every repository must have

	Page int // how many records an answer has at most; 100 if 0
}

// Handler answers harvesters. It is used by many goroutines at once.
type Handler struct {
	o Options

	mu    sync.Mutex
	since map[stele.NamespaceKey]listedSince // of namespaces that are listed
	ended map[uint64]time.Time               // of imports
}

// maxEnded is how many imports are remembered.
const maxEnded = 10_000

// listedSince is when a version of a namespace was listed.
type listedSince struct {
	version uint64
	at      time.Time
}

// New returns a handler.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Page <= 0 {
		o.Page = 100
	}
	return &Handler{o: o, since: make(map[stele.NamespaceKey]listedSince), ended: make(map[uint64]time.Time)}
}

// Site is one request as the web server sees it.
type Site interface {
	// Base returns the server's public address, without a slash at its end.
	Base() string
	// Subject returns what a description of a record is made of.
	Subject(record *stele.Record, ns *stele.Namespace) describe.Subject
	// Send writes an answer.
	Send(status int, mediaType string, body []byte)
	// Fail answers that the registry can't be read.
	Fail(err error)
	// Spend takes from the client's budget what an answer has cost.
	Spend(records, read int)
}

// mediaType is that of all answers (OAI-PMH 2.0, 3.1.2.1).
const mediaType = "text/xml; charset=utf-8"

// Serve answers a request with these arguments, as the query or the body has them.
func (h *Handler) Serve(r *http.Request, query string, site Site) {
	c := &call{h: h, ctx: r.Context(), site: site}
	body, err := c.answer(query)
	site.Spend(c.written, c.read) // also for an answer that failed, or that the client did not wait for
	if err != nil {
		site.Fail(err)
		return
	}
	site.Send(http.StatusOK, mediaType, body)
}

// call is one request.
type call struct {
	h    *Handler
	ctx  context.Context
	site Site
	args arguments

	public      *registrar.Public
	generations stele.Generations

	written, read int // records: in the answer, and read for it
}

// answer makes the answer. Faults of the request are part of it; an error is one of the registry.
func (c *call) answer(query string) (_ []byte, err error) {
	var w writer
	now := c.h.o.Now()
	parsed, fault := parseArguments(query)
	if c.args = parsed; fault != nil {
		// The request is not repeated if it is not one (3.2).
		return w.document(now, c.site.Base(), nil, fault), nil
	}
	if c.public, err = c.h.o.Registrar.Public(c.ctx); err != nil {
		return nil, err
	}
	if c.generations, err = c.h.o.Store.Generations(c.ctx); err != nil {
		return nil, err
	}
	switch err := c.serve(&w); {
	case errors.As(err, &fault):
		given := &c.args
		if fault.code == badArgument {
			given = nil
		}
		return w.document(now, c.site.Base(), given, fault), nil
	case err != nil:
		return nil, err
	}
	return w.document(now, c.site.Base(), &c.args, nil), nil
}

// serve writes the element of the verb.
func (c *call) serve(w *writer) error {
	switch c.args.verb {
	case "Identify":
		return c.identify(w)
	case "ListMetadataFormats":
		return c.listFormats(w)
	case "ListSets":
		return c.listSets(w)
	case "GetRecord":
		return c.getRecord(w)
	}
	return c.list(w)
}

// identify says who the repository is (4.2).
func (c *call) identify(w *writer) error {
	w.begin("Identify")
	w.text("repositoryName", c.h.o.Name)
	w.text("baseURL", c.site.Base()+Root)
	w.text("protocolVersion", "2.0")
	w.text("adminEmail", c.h.o.Mail)
	w.text("earliestDatestamp", stamp(c.earliest()))
	w.text("deletedRecord", "persistent")
	w.text("granularity", "YYYY-MM-DDThh:mm:ssZ")
	w.end("Identify")
	return nil
}

// listFormats lists the formats, which are the same for all records (4.4).
func (c *call) listFormats(w *writer) error {
	if c.args.has("identifier") {
		if _, _, err := c.find(); err != nil {
			return err
		}
	}
	w.begin("ListMetadataFormats")
	for _, f := range formats {
		w.begin("metadataFormat")
		w.text("metadataPrefix", f.prefix)
		w.text("schema", f.schema)
		w.text("metadataNamespace", f.space)
		w.end("metadataFormat")
	}
	w.end("ListMetadataFormats")
	return nil
}

// listSets lists the listed namespaces (4.6). There are few, so that they come at once.
func (c *call) listSets(w *writer) error {
	if c.args.has("resumptionToken") {
		return faultf(badResumptionToken, "sets are listed at once, so that there is no token of a list of sets; leave it out")
	}
	list := c.public.Namespaces()
	if len(list) == 0 {
		return faultf(noSetHierarchy, "no namespace of this registry is listed")
	}
	w.begin("ListSets")
	for _, ns := range list {
		w.begin("set")
		w.text("setSpec", setSpec(ns.Key()))
		name := ns.Title
		if name == "" {
			name = ns.Key().String()
		}
		w.text("setName", name)
		w.end("set")
	}
	w.end("ListSets")
	return nil
}

// getRecord answers with one record (4.1).
func (c *call) getRecord(w *writer) error {
	f, err := c.format()
	if err != nil {
		return err
	}
	rec, ns, err := c.find()
	if err != nil {
		return err
	}
	at, err := c.datestamp(rec, ns)
	if err != nil {
		return err
	}
	w.begin("GetRecord")
	if err := c.record(w, rec, ns, at, f); err != nil {
		return err
	}
	w.end("GetRecord")
	return nil
}

// find returns the record that the argument identifier names, and its namespace. An alias is not an identifier here: each record
// is listed once.
func (c *call) find() (*stele.Record, *stele.Namespace, error) {
	unknown := faultf(idDoesNotExist, "there is no record with this identifier here")
	id, ok := parseIdentifier(c.h.o.Schemes, c.args.get("identifier"))
	if !ok || c.public.Of(id) == nil {
		return nil, nil, unknown
	}
	rec, err := c.h.o.Store.Record(c.ctx, id)
	switch {
	case errors.Is(err, stele.NotFound):
		return nil, nil, unknown
	case err != nil:
		return nil, nil, err
	case rec.ID != id || !c.public.Shows(rec):
		return nil, nil, unknown
	}
	c.read++
	return rec, c.public.Of(rec.ID), nil
}

// earliest returns the lower limit of all datestamps: when the present generation of the registry began. A restore may bring
// back what records were before, so that harvesters have to read all of them again.
func (c *call) earliest() time.Time { return c.generations.Last().Began }

// floor returns the lower limit of the datestamps of a namespace: its records were not to be harvested before it was listed.
func (c *call) floor(ns *stele.Namespace) (time.Time, error) {
	h, key := c.h, ns.Key()
	h.mu.Lock()
	known, ok := h.since[key]
	h.mu.Unlock()
	if !ok || known.version != ns.Version {
		at, err := h.o.Registrar.ListedSince(c.ctx, key)
		if err != nil {
			return at, err
		}
		known = listedSince{ns.Version, at}
		h.mu.Lock()
		h.since[key] = known
		h.mu.Unlock()
	}
	if earliest := c.earliest(); known.at.Before(earliest) {
		return earliest, nil
	}
	return known.at, nil
}

// datestamp returns when a record changed for harvesters, in whole seconds. An imported record may say that it was changed long
// before it came here: its datestamp is not before the end of its import, or harvesters that ask for changes would miss it.
func (c *call) datestamp(rec *stele.Record, ns *stele.Namespace) (time.Time, error) {
	at, err := c.floor(ns)
	if rec.Modified.After(at) {
		at = rec.Modified
	}
	if err == nil && rec.Import != 0 {
		var by time.Time
		if by, err = c.importedBy(rec.Import); by.After(at) {
			at = by
		}
	}
	return at.UTC().Truncate(time.Second), err
}

// importedBy returns by when all records of an import were written.
func (c *call) importedBy(number uint64) (time.Time, error) {
	h := c.h
	h.mu.Lock()
	by, ok := h.ended[number]
	h.mu.Unlock()
	if ok {
		return by, nil
	}
	by, final, err := h.o.Registrar.ImportedBy(c.ctx, number)
	if err == nil && final {
		h.mu.Lock()
		if len(h.ended) >= maxEnded {
			clear(h.ended)
		}
		h.ended[number] = by
		h.mu.Unlock()
	}
	return by, err
}
