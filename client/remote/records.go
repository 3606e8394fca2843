package remote

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
)

// maxAttempts is how often a change is tried when other writers are faster.
const maxAttempts = 100

// Get returns the record that has this name, or NotFound if there is none that the user
// may see.
func (r *Registry) Get(ctx context.Context, name stele.ID) (*stele.Record, error) {
	return r.record(ctx, &ask{method: http.MethodGet, path: pathOf("records", name.String()), again: true})
}

// At returns the version of a record that was current at a time.
func (r *Registry) At(ctx context.Context, name stele.ID, t time.Time) (*stele.Record, error) {
	return r.record(ctx, &ask{method: http.MethodGet, path: pathOf("records", name.String()), again: true,
		query: url.Values{"at": {t.UTC().Format(time.RFC3339Nano)}}})
}

// Version returns one version of a record.
func (r *Registry) Version(ctx context.Context, name stele.ID, version uint64) (*stele.Record, error) {
	rec, err := r.record(ctx, &ask{method: http.MethodGet, path: pathOf("records", name.String()), again: true,
		query: url.Values{"version": {strconv.FormatUint(version, 10)}}})
	if err != nil {
		return nil, under("show", name, err)
	}
	return rec, nil
}

// record sends a request that is answered with a record.
func (r *Registry) record(ctx context.Context, q *ask) (*stele.Record, error) {
	a, err := r.call(ctx, q)
	if err != nil {
		return nil, err
	}
	return r.readRecord(a.body)
}

// readRecord reads a record from an answer. It does not validate the record: the server
// leaves out the content of redacted versions.
func (r *Registry) readRecord(text []byte) (*stele.Record, error) {
	rec, err := document.DecodeStored(r.o.Schemes, text)
	if err != nil {
		return nil, unread(stele.Reason(err))
	}
	return rec, nil
}

// History yields all versions of the record that has this name, the newest first.
func (r *Registry) History(ctx context.Context, name stele.ID) iter.Seq2[*stele.Record, error] {
	q := &ask{method: http.MethodGet, path: pathOf("history", name.String()), query: url.Values{"limit": {strconv.Itoa(pageSize)}}, again: true}
	return r.pages(ctx, "history", q, 0)
}

// Register adds a record.
func (r *Registry) Register(ctx context.Context, record *stele.Record) (*stele.Record, error) {
	const op = "register"
	if !record.ID.IsValid() {
		return nil, refuse(op, record.ID, stele.Invalid, "record.identifier-missing-in-answer", "the record has no identifier")
	}
	if record.State == stele.Withdrawn {
		return nil, refuse(op, record.ID, stele.Invalid, "record.initial-state-wrong", "a record begins as active or reserved; withdraw it later")
	}
	if record.State == "" {
		active := *record
		active.State = stele.Active
		record = &active
	}
	if err := valid(op, record.ID, record); err != nil {
		return nil, err
	}
	a, err := r.call(ctx, put(record, "If-None-Match", "*"))
	switch {
	case err == nil:
		return r.readRecord(a.body)
	case mayBeOwn(err):
		if have := r.written(ctx, record, 1); have != nil {
			return have, nil
		}
	case errors.Is(err, stele.Invalid):
		// A registrar looks for the owner of the name first, and reports nothing else then.
		if have, getErr := r.Get(ctx, record.ID); getErr == nil && have.ID != record.ID {
			return nil, refuse(op, record.ID, stele.Conflict, "record.name-taken-at-server", "the name is taken by {id}; no name is ever given away", have.ID)
		}
	}
	if isPrecondition(err) {
		return nil, refuse(op, record.ID, stele.Conflict, "record.registered-already-at-server", "it is registered already; no name is ever given away")
	}
	return nil, under(op, record.ID, err)
}

// put makes the request that writes a record, on a condition.
func put(record *stele.Record, condition, tag string) *ask {
	return &ask{
		method: http.MethodPut, path: pathOf("records", record.ID.String()), again: true,
		header: http.Header{condition: {tag}}, media: apijson.JSON, body: said(record),
	}
}

// said returns the document of a record as its owner writes it, without the fields that
// the server sets.
func said(record *stele.Record) []byte {
	c := *record
	c.Version, c.By, c.Redacted, c.Import, c.Withheld = 0, "", false, 0, stele.Withheld{}
	c.Created, c.Modified = time.Time{}, time.Time{}
	return document.AppendRecord(nil, &c)
}

// written returns the record if it has this version and the content to be written: an
// earlier attempt, whose answer was lost, wrote it then.
func (r *Registry) written(ctx context.Context, record *stele.Record, version uint64) *stele.Record {
	have, err := r.Get(ctx, record.ID)
	if err != nil || have.ID != record.ID || have.Version != version || !bytes.Equal(said(have), said(record)) {
		return nil
	}
	return have
}

// Update changes the record that has this name. It calls change again, with the record as
// it is then, when another writer was faster.
func (r *Registry) Update(ctx context.Context, name stele.ID, ifVersion uint64, change func(*stele.Record) error) (*stele.Record, error) {
	const op = "update"
	for attempt := 1; ; attempt++ {
		before, err := r.Get(ctx, name)
		if err != nil {
			return nil, notThere(op, err)
		}
		next, err := r.revision(op, name, before, ifVersion, change)
		if err != nil {
			return nil, err
		}
		a, err := r.call(ctx, put(next, "If-Match", r.tagOf(before.Version)))
		switch {
		case err == nil:
			return r.readRecord(a.body)
		case !isPrecondition(err):
			return nil, under(op, name, err)
		case mayBeOwn(err) && r.written(ctx, next, before.Version+1) != nil:
			return r.Get(ctx, name)
		case ifVersion != 0:
			return nil, r.versionConflict(ctx, op, name, ifVersion, err)
		case attempt == maxAttempts:
			return nil, refuse(op, name, stele.Conflict, "record.changed-by-others", "others changed it {times} times meanwhile; try again", attempt)
		}
	}
}

// revision returns what change makes of a record. It refuses records that cannot be
// changed at all before it calls change; the server judges the rest.
func (r *Registry) revision(op string, name stele.ID, before *stele.Record, ifVersion uint64, change func(*stele.Record) error) (*stele.Record, error) {
	switch {
	case ifVersion != 0 && before.Version != ifVersion:
		return nil, outdated(op, name, before.Version, ifVersion)
	case before.State == stele.Withdrawn:
		return nil, refuse(op, before.ID, stele.Gone, "record.withdrawn", "it is withdrawn; reinstate it first")
	}
	next := *before
	next.Targets, next.Aliases = slices.Clone(before.Targets), slices.Clone(before.Aliases)
	if err := change(&next); err != nil {
		return nil, tell(op, err)
	}
	if next.ID != before.ID {
		return nil, refuse(op, before.ID, stele.Invalid, "record.identifier-changed", "the identifier of a record never changes; add an alias, or register another record")
	}
	if next.State == stele.Withdrawn {
		return nil, refuse(op, next.ID, stele.Invalid, "record.withdrawn-by-update", "a record is not withdrawn by an update; withdraw it, with a reason")
	}
	next.Tombstone = nil
	return &next, valid(op, next.ID, &next)
}

// notThere sets the operation of the error of reading a record that is to be changed.
func notThere(op string, err error) error {
	if e, ok := errors.AsType[*stele.Error](err); ok && e.Kind == stele.NotFound {
		return &stele.Error{Op: op, ID: e.ID, Kind: e.Kind, Err: e.Err}
	}
	return err
}

// valid returns all that is wrong with a record or a namespace, in the words of a
// registrar: the server would refuse the document when it decodes it, with other words.
func valid(op string, id stele.ID, v interface{ Validate() error }) error {
	problems, ok := errors.AsType[stele.Problems](v.Validate())
	if !ok {
		return nil
	}
	return &stele.Error{Op: op, ID: id, Kind: stele.Invalid, Err: problems}
}

// outdated returns the error of a record that has another version than its writer has seen.
func outdated(op string, name stele.ID, has, supposed uint64) error {
	return refuse(op, name, stele.Conflict, "record.version-not-expected", "it has version {version}, not {expected}; look at it again", has, supposed)
}

// versionConflict returns the error of outdated after the server has refused a version.
func (r *Registry) versionConflict(ctx context.Context, op string, name stele.ID, supposed uint64, err error) error {
	if now, failed := r.Get(ctx, name); failed == nil && now.Version != supposed {
		return outdated(op, name, now.Version, supposed)
	}
	return under(op, name, err)
}

// Withdraw ends the use of a record.
func (r *Registry) Withdraw(ctx context.Context, name stele.ID, ifVersion uint64, reason string, replacement stele.ID) (*stele.Record, error) {
	body := apijson.Withdrawal{Reason: reason}
	if replacement.IsValid() {
		body.Replacement = replacement.String()
	}
	// It is idempotent: to withdraw it again for the same reason changes nothing.
	return r.revise(ctx, "withdraw", name, ifVersion, body, ifVersion == 0)
}

// Reinstate makes a withdrawn record active again.
func (r *Registry) Reinstate(ctx context.Context, name stele.ID, ifVersion uint64) (*stele.Record, error) {
	return r.revise(ctx, "reinstate", name, ifVersion, nil, false)
}

// Disavow declares that versions of a record are not to be used.
func (r *Registry) Disavow(ctx context.Context, name stele.ID, ifVersion, first, last uint64, reason string) (*stele.Record, error) {
	return r.revise(ctx, "disavow", name, ifVersion, apijson.Disavow{First: first, Last: last, Reason: reason}, false)
}

// Purge removes from the files of the server's store what was erased.
func (r *Registry) Purge(ctx context.Context) error {
	return r.fetch(ctx, "compact", &ask{method: http.MethodPost, path: "compact", again: true}, nil)
}

// Redact removes what a record says, by a legal order.
func (r *Registry) Redact(ctx context.Context, name stele.ID, ifVersion uint64, reason string) (*stele.Record, error) {
	return r.revise(ctx, "redact", name, ifVersion, apijson.Redaction{Reason: reason}, false)
}

// revise changes the state of a record.
func (r *Registry) revise(ctx context.Context, op string, name stele.ID, ifVersion uint64, document any, again bool) (*stele.Record, error) {
	q := &ask{method: http.MethodPost, path: pathOf(op, name.String()), document: document, again: again}
	if ifVersion != 0 {
		if r.mark.Load() == nil { // the answer has it; the request below reports errors
			_, _ = r.Get(ctx, name)
		}
		q.header = http.Header{"If-Match": {r.tagOf(ifVersion)}}
	}
	rec, err := r.record(ctx, q)
	if isPrecondition(err) {
		return nil, r.versionConflict(ctx, op, name, ifVersion, err)
	}
	if err != nil {
		return nil, under(op, name, err)
	}
	return rec, nil
}

// refuse makes an error.
func refuse(op string, id stele.ID, kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, ID: id, Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// tell returns err as a [stele.Error].
func tell(op string, err error) error {
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	return &stele.Error{Op: op, Kind: stele.Internal, Err: err}
}
