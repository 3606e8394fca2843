package lsid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
)

// dataService is the service of the targets that have the data of a name. What N2L leads to, such as a page, may
// change, so it is not taken for data.
const dataService stele.Service = "N2D"

// Limits of data.
const (
	defaultMaxData = 16 << 20
	fetchPatience  = 20 * time.Second // for all locations of a file; less than clients wait for an answer
)

// Data keeps which bytes records stand for: a [registrar.Registrar]. The principal in the context is the server.
type Data interface {
	// FixedData returns which bytes a record stands for; nil if that is open.
	FixedData(ctx context.Context, id stele.ID) (*registrar.FixedData, error)
	// FixData says which these are, for ever, and returns what holds from now on: what was said first. Conflict if the
	// record has another version by now.
	FixData(ctx context.Context, rec *stele.Record, d registrar.FixedData) (*registrar.FixedData, error)
}

// locations are the targets of a record that have its data, in order. Absent says that the owner declares that there
// are none, for ever: the only target has the status 410.
func locations(rec *stele.Record) (list []stele.Target, absent bool) {
	if rec.State != stele.Active || rec.Redacted {
		return nil, false
	}
	for _, t := range rec.Targets {
		switch {
		case t.Service != dataService:
		case t.Status == http.StatusGone:
			absent = true
		case t.Status != http.StatusNotFound:
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b stele.Target) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Preference, b.Preference))
	})
	return list, absent && len(list) == 0
}

// fixed returns which bytes a record stands for; nil if that is open. If the owner declares that there are none, that is
// stored now. If the registry can't be written to at present it stays open, and the next request stores it.
func (c *call) fixed(rec *stele.Record, absent bool) (*registrar.FixedData, error) {
	d, err := c.o.Data.FixedData(c.server(), rec.ID)
	if err != nil || d != nil || !absent {
		return d, err
	}
	d, err = c.fix(rec, registrar.FixedData{Absent: true})
	if errors.Is(err, stele.ErrSealed) || errors.Is(err, stele.Unavailable) || errors.Is(err, errHandedOver) || errors.Is(err, errReadOnly) {
		return nil, nil
	}
	return d, err
}

// errChanged says that a record was replaced by another version while its data were fetched, which takes a while. They
// may be those that its owner has just corrected, and must not be stored for ever.
var errChanged error = &fault{internal, "the record was changed while this request was answered; please try again"}

// errHandedOver says that a name is another registry's now, which says what it stands for.
var errHandedOver error = &fault{internal, "the namespace of this name was handed over to another registry before its data were first given here; ask that registry"}

// errReadOnly says that another registry decides which bytes a name stands for, and has not said it yet.
var errReadOnly error = &fault{internal, "this registry has taken over the name for reading only, and does not know yet which bytes it stands for; ask the registry from which it comes"}

// fix stores which bytes a record stands for.
func (c *call) fix(rec *stele.Record, d registrar.FixedData) (*registrar.FixedData, error) {
	kept, err := c.o.Data.FixData(c.server(), rec, d)
	if m, ok := errors.AsType[*stele.Message](err); ok {
		switch m.Code {
		case "record.namespace-sealed":
			return nil, errHandedOver
		case "record.namespace-read-only":
			return nil, errReadOnly
		}
	}
	if isConflict(err) {
		return nil, errChanged
	}
	return kept, err
}

// hasData reports whether the services of a name include those of data. It stores nothing, so that the question has an
// answer while the registry can't be written to.
func (c *call) hasData(rec *stele.Record) (bool, error) {
	list, _ := locations(rec)
	if c.o.Data == nil || len(list) == 0 {
		return false, nil
	}
	d, err := c.o.Data.FixedData(c.server(), rec.ID)
	if err != nil {
		return false, err
	}
	return d == nil || !d.Absent, nil
}

// content answers getData, and with a range getDataByRange, which is sent under the same name (section 4).
func (c *call) content() error {
	done, err := c.site.Charge(costData)
	if err != nil {
		return err
	}
	done() // while a site is asked for the data, others may make their answers; to hash the data takes a turn of its own
	f, err := c.find()
	if err != nil {
		return err
	}
	data, err := c.data(&f)
	if err != nil {
		return err
	}
	part, err := c.arguments.within(data)
	if err != nil {
		return err
	}
	// To copy large data into a message takes a turn again.
	if done, err = c.site.Charge(0); err != nil {
		return err
	}
	defer done()
	c.site.Keep(&f.res)
	var sent bool
	if c.soap {
		sent = c.sendAttachment(part)
	} else {
		head := c.w.Header() // the bytes are the owner's: a browser must not run them as a page of this server
		head.Set("Content-Disposition", "attachment")
		head.Set("Content-Security-Policy", "default-src 'none'; sandbox")
		sent = c.site.Send(http.StatusOK, "application/octet-stream", part)
	}
	if sent {
		c.site.Delivered(f.res.Record)
	}
	return nil
}

// data returns the bytes that a name stands for. The first time they are fetched from the record's target their digest
// is stored, and from then on other bytes are refused, wherever they come from: clients may cache data for ever
// (section 6). If the record has signatures, the first bytes must be those that its owner signed.
func (c *call) data(f *found) ([]byte, error) {
	rec := f.res.Record
	if f.res.Kind == resolver.Tombstone || rec.State == stele.Withdrawn {
		return nil, failf(noData, "%s was withdrawn, and its data with it; its metadata say why", f.id)
	}
	list, absent := locations(rec)
	if c.o.Data == nil {
		return nil, failf(noData, "%s has no data", f.id)
	}
	d, err := c.fixed(rec, absent)
	switch {
	case err != nil:
		return nil, err
	case d != nil && d.Absent:
		return nil, failf(noData, "%s has no data, and will have none", f.id)
	case d != nil && len(list) == 0:
		return nil, failf(internal, "%s has data, but its record no longer says where they are; its owner must register a target with the service %s", f.id, dataService)
	case len(list) == 0:
		return nil, failf(noData, "%s has no data", f.id)
	}
	if d != nil {
		if data, ok := c.store.get(d.SHA256); ok {
			return data, nil
		}
	}
	return c.fetchFirst(f, list, d)
}

// fetchFirst returns the bytes of the first location that has the right ones.
func (c *call) fetchFirst(f *found, list []stele.Target, d *registrar.FixedData) (data []byte, err error) {
	var first error
	for i := range list {
		// The locations share the time, with that of waiting for a place: one that does not answer leaves the others theirs.
		ctx, cancel := context.WithTimeout(c.r.Context(), c.o.Patience/time.Duration(len(list)))
		var digest string
		data, digest, err = c.fetch(ctx, f, &list[i], d)
		cancel()
		if err == nil {
			data, err = c.check(f, &list[i], data, digest, d)
		}
		if err == nil {
			return data, nil
		}
		if first == nil {
			first = err
		}
		if _, ours := errors.AsType[*fault](err); !ours || errors.Is(err, errChanged) {
			return nil, err // it is not the location that failed
		}
	}
	return nil, first
}

// check compares fetched bytes with those that the name stands for, and stores their digest if they are the first.
func (c *call) check(f *found, t *stele.Target, data []byte, digest string, d *registrar.FixedData) ([]byte, error) {
	rec := f.res.Record
	if d == nil {
		if len(rec.Signatures) > 0 && !slices.ContainsFunc(rec.Signatures, func(s stele.Signature) bool { return hex.EncodeToString(s.SHA256[:]) == digest }) {
			return nil, failf(internal, "the bytes at %s are not those that the owner of %s signed: their SHA-256 digest is %s", host(t), f.id, digest)
		}
		var err error
		if d, err = c.fix(rec, registrar.FixedData{SHA256: digest, Size: uint64(len(data))}); err != nil {
			return nil, err
		}
	}
	switch {
	case d.Absent:
		return nil, failf(noData, "%s has no data, and will have none", f.id)
	case d.SHA256 != digest:
		c.o.Log.WarnContext(c.r.Context(), "data of an LSID have changed at their location; the right bytes must be put back there, or a new revision registered",
			"id", rec.ID.String(), "location", t.URL, "expected", d.SHA256, "found", digest)
		return nil, failf(internal, "the bytes at %s have changed, and the data of %s never change: their SHA-256 digest is %s, and must be %s; the owner must put the right bytes back, or register a new revision", host(t), f.id, digest, d.SHA256)
	}
	c.store.put(digest, data)
	return data, nil
}

// host returns the host of a target, for messages.
func host(t *stele.Target) string { return cmp.Or(t.Host(), "its location") }

// hash returns the SHA-256 digest of data, in a turn.
func (c *call) hash(data []byte) (string, error) {
	done, err := c.site.Charge(0)
	if err != nil {
		return "", err
	}
	defer done()
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// fetch returns the bytes at a target, and their digest. The call waits with the bytes for its turn to hash them while it has its place
// among those that fetch, so that not more bytes are in memory than those have. What the target says of its type must be true,
// so that a page that says that a file is not there is not taken for the file. The first bytes need a length, or a
// signature, so that a transfer that was cut off is not taken for all of them.
func (c *call) fetch(ctx context.Context, f *found, t *stele.Target, d *registrar.FixedData) (data []byte, digest string, err error) {
	u, err := url.Parse(t.URL)
	if err != nil || c.o.Fetch == nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, "", failf(internal, "the data are at %s, which is not asked from here; only http and https are", host(t))
	}
	leave, err := c.store.enter(ctx, t.Host())
	if err != nil {
		return nil, "", errBusy
	}
	defer leave()
	if d != nil {
		if data, ok := c.store.get(d.SHA256); ok { // another request has fetched them in the meantime
			return data, d.SHA256, nil
		}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.URL, nil)
	if err != nil {
		return nil, "", failf(internal, "the data are at %s, which can't be asked", host(t))
	}
	r.Header.Set("Accept-Encoding", "identity") // the digest is that of the bytes as they are
	r.Header.Set("Accept", cmp.Or(t.Type, "*/*"))
	r.Header.Set("User-Agent", "Stele")
	a, err := c.o.Fetch.Do(r)
	switch {
	case errors.Is(err, stele.Forbidden):
		return nil, "", failf(internal, "the data are at %s, whose address the settings of this server do not allow", host(t))
	case err != nil:
		return nil, "", failf(internal, "the data can't be fetched from %s at present; please try again later", host(t))
	}
	defer a.Body.Close()
	kind, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	wanted, _, _ := mime.ParseMediaType(t.Type)
	switch {
	case a.StatusCode != http.StatusOK:
		return nil, "", failf(internal, "the data can't be fetched from %s at present: it answers with status %d", host(t), a.StatusCode)
	case a.Header.Get("Content-Encoding") != "":
		return nil, "", failf(internal, "the data at %s are sent in an encoding that was not asked for", host(t))
	case wanted != "" && kind != wanted:
		return nil, "", failf(internal, "what is at %s has the type %q and not %q, as its record says", host(t), brief(kind), wanted)
	case d == nil && len(f.res.Record.Signatures) == 0 && endsWithConnection(a):
		return nil, "", failf(internal, "%s does not say how long the data are, so that a part of them could be taken for all; it must send Content-Length", host(t))
	case a.ContentLength > c.o.MaxData:
		return nil, "", failf(internal, "the data have %d bytes, and this server gives at most %d", a.ContentLength, c.o.MaxData)
	}
	data, err = io.ReadAll(io.LimitReader(a.Body, c.o.MaxData+1))
	switch {
	case err != nil:
		return nil, "", failf(internal, "the data could not be fetched from %s completely; please try again later", host(t))
	case int64(len(data)) > c.o.MaxData:
		return nil, "", failf(internal, "the data have more than %d bytes, and this server gives no more", c.o.MaxData)
	}
	digest, err = c.hash(data)
	return data, digest, err
}

// endsWithConnection reports whether the end of the body is that of the connection: a client can't tell such a body from
// a part of it (RFC 9112, section 8).
func endsWithConnection(a *http.Response) bool {
	return a.ProtoMajor < 2 && a.ContentLength < 0 && !slices.Contains(a.TransferEncoding, "chunked")
}
