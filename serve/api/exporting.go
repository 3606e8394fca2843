package api

import (
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/api/openapi"
)

func (h *Handler) exportOperations() []operation {
	return []operation{{
		name: "exportRecords", method: http.MethodGet, path: "export", group: "Many records",
		summary: "Export records",
		about: "One a line, by scheme and then in the order of their identifiers, as importRecords reads them: without their version, which counts the changes in one registry. " +
			"A user with the role reader where the prefix belongs may export; without a prefix, or with that of a scheme, an administrator. " +
			"An answer that ends in the middle of a line, or whose connection breaks, is not whole.",
		asks: reader, scope: auth.ScopeRead,
		query: []parameter{
			prefixParameter,
			{name: "history", kind: flagKind, usual: "false", about: "all versions of each record, the oldest first; that is for reading, not for import"},
			{name: "namespaces", kind: flagKind, usual: "false", about: "namespaces too, before the records, how far their minters are, and which bytes names stand for, where a protocol promises that these never change"},
		},
		answers: []answer{{status: 200, about: "The records.", value: openapi.RecordLine{}, media: apijson.Lines, lines: true}},
		serve:   h.exportRecords,
	}}
}

// exportRecords writes records, and namespaces before them.
func (h *Handler) exportRecords(c *call) error {
	var key stele.NamespaceKey
	if prefix := c.text("prefix"); prefix != "" {
		var err error
		if key, err = h.beginning(prefix); err != nil {
			return amiss(c, "prefix", err)
		}
	}
	held := int64(exportHeld)
	if c.flag("history") {
		held = historyHeld
	}
	release, err := c.hold(held)
	if err != nil {
		return err
	}
	defer release()
	_, stop := c.running()
	defer stop()
	records := h.o.Registrar.Scan(c.ctx, key, "")
	if key.Scheme == "" {
		var err error
		if records, err = h.scanAll(c, ""); err != nil {
			return err
		}
	}
	x := &exporting{c: c, history: c.flag("history")}
	if c.flag("namespaces") {
		// A caller that may not list gets an error before the first line, as without
		// namespaces.
		next, end := iter.Pull2(records)
		first, err, ok := next()
		if ok && err != nil {
			end()
			return err
		}
		defer end()
		if x.fixed, err = h.o.Registrar.FixedDataReader(c.ctx); err != nil {
			return err
		}
		if err := x.namespaces(key); err != nil {
			return err
		}
		records = startingWith(first, ok, next)
	}
	for rec, err := range records {
		if err != nil {
			return x.ended(err)
		}
		if c.r.Method == http.MethodHead {
			break // the caller may list, and HEAD has no body
		}
		if err := x.record(rec); err != nil {
			return x.ended(err)
		}
	}
	return x.flush()
}

// startingWith yields the record that was pulled already, and the records after it.
func startingWith(first *stele.Record, ok bool, next func() (*stele.Record, error, bool)) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for rec, err := first, error(nil); ok; rec, err, ok = next() {
			if !yield(rec, err) {
				return
			}
		}
	}
}

// About how much an export holds in memory while the client does not read: a page of the
// store, a line, and so many versions of a history.
const (
	exportHeld    = 2 << 20
	historyHeld   = 8 << 20
	versionsAhead = 4
)

// exportPace is after how many lines an export pauses, if it has to.
const exportPace = 1000

// exporting is an export under way.
type exporting struct {
	c       *call
	history bool
	out     *stream // nil until the first line
	buf     []byte
	count   int
	fixed   *registrar.FixedDataReader // nil unless namespaces are asked for
}

// write writes a line. Now and then it checks that the caller still has the right, and keeps
// to its rate.
func (x *exporting) write(line []byte) error {
	if x.out == nil {
		x.out = x.c.stream(apijson.Lines)
	}
	if x.count++; x.count%exportPace == 0 {
		if err := x.c.ctx.Err(); err != nil {
			return err
		}
		if err := x.c.pace(exportPace); err != nil {
			return err
		}
	}
	_, err := x.out.Write(line)
	return err
}

// flush sends what is left. An export without records is a valid answer too.
func (x *exporting) flush() error {
	if x.out == nil {
		x.out = x.c.stream(apijson.Lines)
	}
	return x.out.flush()
}

// ended returns why an export ended early: perhaps the server ends.
func (x *exporting) ended(err error) error {
	if x.c.ctx.Err() != nil && x.c.r.Context().Err() == nil {
		return &stele.Error{Op: x.c.op.name, Kind: stele.Unavailable, Err: errEnding}
	}
	return err
}

// namespaces writes the namespaces that a user made or changed and that the caller may see, with how far their minters are.
func (x *exporting) namespaces(key stele.NamespaceKey) error {
	for ns, err := range x.c.h.o.Registrar.Namespaces(x.c.ctx) {
		if err != nil {
			return err
		}
		if ns.Version == 0 || key.Scheme != "" && (ns.Scheme != key.Scheme || !strings.HasPrefix(ns.Prefix, key.Prefix)) {
			continue
		}
		progress, err := x.c.h.o.Registrar.MinterProgress(x.c.ctx, ns)
		if err != nil {
			return err
		}
		x.buf = registrar.AppendNamespaceProgress(x.buf[:0], ns, progress)
		if err := x.write(x.buf); err != nil {
			return err
		}
	}
	return nil
}

// record writes a record, or all its versions.
func (x *exporting) record(rec *stele.Record) (err error) {
	if !x.history {
		var fixed *registrar.FixedData
		if x.fixed != nil {
			if fixed, err = x.fixed.Of(x.c.ctx, rec.ID); err != nil {
				return err
			}
		}
		rec.Version, rec.Import, rec.Withheld = 0, 0, stele.Withheld{}
		x.buf = append(registrar.AppendFixedData(document.AppendRecord(x.buf[:0], rec), fixed), '\n')
		return x.write(x.buf)
	}
	// The registry has the newest version first, and an export the oldest. A record may
	// have thousands, so only some are in memory at a time.
	for done := uint64(0); done < rec.Version; done += versionsAhead {
		if err := x.versions(rec.ID, done, min(done+versionsAhead, rec.Version)); err != nil {
			return err
		}
	}
	return nil
}

// versions writes the versions of a record after one and up to another.
func (x *exporting) versions(id stele.ID, after, upTo uint64) error {
	var some []*stele.Record
	for v, err := range x.c.h.o.Registrar.HistoryBefore(x.c.ctx, id, upTo+1) {
		if err != nil {
			return err
		}
		if v.Version <= after {
			break
		}
		some = append(some, v)
	}
	for _, v := range slices.Backward(some) {
		x.buf = append(document.AppendRecord(x.buf[:0], v), '\n')
		if err := x.write(x.buf); err != nil {
			return err
		}
	}
	return nil
}
