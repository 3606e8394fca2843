package registrar

import (
	"context"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// AuditQuery says which entries of the audit trail are asked for. The zero value asks for
// all.
type AuditQuery struct {
	After        uint64    // only entries with greater numbers
	Since, Until time.Time // only entries of that time or later, and of before; zero: any
	By           string    // only those of this user; for a command on a folder, of the operating system's user
	Operation    string
	Outcome      stele.AuditOutcome
	Via          string             // only those of this way in, such as "api" or "desk"
	Namespace    stele.NamespaceKey // only those in this namespace, and in what begins with its prefix
}

func (q *AuditQuery) matches(e *stele.AuditEntry) bool {
	switch {
	case q.By != "" && e.By != q.By && (e.System == "" || e.System != q.By):
	case q.Operation != "" && e.Operation != q.Operation:
	case q.Outcome != "" && e.Outcome != q.Outcome:
	case q.Via != "" && e.Via != q.Via:
	case q.Namespace != (stele.NamespaceKey{}) && (e.Namespace.Scheme != q.Namespace.Scheme || !strings.HasPrefix(e.Namespace.Prefix, q.Namespace.Prefix)):
	default:
		return true
	}
	return false
}

// Audit yields the entries of the audit trail that a query asks for, in order. An
// administrator sees all. An owner of a namespace sees those about that namespace and what
// is below it, without addresses and names of the operating system. Forbidden for others.
//
// Entries that are passed over are yielded as places without an entry, so that a caller
// can end a page there; see [AuditItem].
func (r *Registrar) Audit(ctx context.Context, q AuditQuery) iter.Seq2[AuditItem, error] {
	const op = "read audit trail"
	return func(yield func(AuditItem, error) bool) {
		s, err := r.view(ctx)
		if err == nil {
			err = s.mayAudit(ctx, op, q.Namespace)
		}
		after := q.After
		if err == nil && !q.Since.IsZero() {
			var from uint64
			from, err = r.auditBefore(ctx, q.Since)
			after = max(after, from)
		}
		if err != nil {
			yield(AuditItem{}, tell(op, err))
			return
		}
		for e, err := range r.store.Audit(ctx, after) {
			if err != nil {
				yield(AuditItem{}, tell(op, err))
				return
			}
			if !q.Until.IsZero() && !e.At.Before(q.Until) {
				return
			}
			item := AuditItem{Number: e.Number}
			if q.matches(e) {
				item.Entry = s.audible(ctx, e)
			}
			if !yield(item, nil) {
				return
			}
		}
	}
}

// auditStep is how many entries AuditBack reads at a time.
const auditStep = 256

// AuditBack is Audit from the end of the trail to its beginning, the newest entry first. If before
// is not 0, only entries with smaller numbers are yielded.
func (r *Registrar) AuditBack(ctx context.Context, q AuditQuery, before uint64) iter.Seq2[AuditItem, error] {
	const op = "read audit trail"
	return func(yield func(AuditItem, error) bool) {
		s, err := r.view(ctx)
		if err == nil {
			err = s.mayAudit(ctx, op, q.Namespace)
		}
		var first, last uint64
		if err == nil {
			first, last, err = r.auditSpan(ctx, q, before)
		}
		for err == nil && last > 0 && last >= first {
			from := max(first, last-min(last, auditStep)+1)
			items := make([]AuditItem, 0, last-from+1)
			for e, ierr := range r.store.Audit(ctx, from-1) {
				if err = ierr; err != nil || e.Number > last {
					break
				}
				item := AuditItem{Number: e.Number}
				if q.matches(e) {
					item.Entry = s.audible(ctx, e)
				}
				items = append(items, item)
			}
			if err != nil {
				break
			}
			for _, item := range slices.Backward(items) {
				if !yield(item, nil) {
					return
				}
			}
			last = from - 1
		}
		if err != nil {
			yield(AuditItem{}, tell(op, err))
		}
	}
}

// auditSpan returns the numbers of the first and the last entry that a query can ask for.
func (r *Registrar) auditSpan(ctx context.Context, q AuditQuery, before uint64) (first, last uint64, err error) {
	if first, last, err = r.store.AuditRange(ctx); err != nil {
		return 0, 0, err
	}
	first = max(first, q.After+1)
	if before > 0 {
		last = min(last, before-1)
	}
	if !q.Since.IsZero() {
		n, err := r.auditBefore(ctx, q.Since)
		if err != nil {
			return 0, 0, err
		}
		first = max(first, n+1)
	}
	if !q.Until.IsZero() {
		n, err := r.auditBefore(ctx, q.Until)
		if err != nil {
			return 0, 0, err
		}
		last = min(last, n)
	}
	return first, last, nil
}

// AuditItem is a place in the audit trail. Entry is nil if the query does not ask for the
// entry there, or if the caller may not see it.
type AuditItem struct {
	Number uint64
	Entry  *stele.AuditEntry
}

// mayAudit makes sure that the caller may read some of the trail.
func (s *namespaceTree) mayAudit(ctx context.Context, op string, key stele.NamespaceKey) error {
	who := auth.From(ctx)
	switch {
	case !who.IsKnown():
		return refuse(op, stele.ID{}, stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	case who.Admin:
		return nil
	case key != (stele.NamespaceKey{}):
		if auth.MayManage(who, s.ancestorsAt(key)...) {
			return nil
		}
		return refuse(op, stele.ID{}, stele.Forbidden, "audit.not-owner-of-namespace", `"{user}" does not own the namespace {namespace}; its owners and administrators read what is in the audit trail about it`, who.Name, key)
	}
	for _, sp := range s.All() {
		if sp.Prefix != "" && auth.MayManage(who, s.Ancestors(sp)...) {
			return nil
		}
	}
	return refuse(op, stele.ID{}, stele.Forbidden, "audit.owner-of-no-namespace", `"{user}" owns no namespace; administrators read the audit trail, and owners what is in it about their namespaces`, who.Name)
}

// audible returns an entry as the caller may see it; nil if the caller may not.
func (s *namespaceTree) audible(ctx context.Context, e *stele.AuditEntry) *stele.AuditEntry {
	who := auth.From(ctx)
	if who.Admin {
		return e
	}
	if e.Namespace.Prefix == "" || !auth.MayManage(who, s.ancestorsAt(e.Namespace)...) {
		return nil
	}
	e.Address, e.System = "", ""
	return e
}

// auditBefore returns the number of the last entry that is earlier than a time; 0 if
// there is none. Times never go back in the trail, so that they can be searched.
func (r *Registrar) auditBefore(ctx context.Context, t time.Time) (uint64, error) {
	first, last, err := r.store.AuditRange(ctx)
	if err != nil || last == 0 {
		return 0, err
	}
	n := sort.Search(int(last-first+1), func(i int) bool {
		for e, ierr := range r.store.Audit(ctx, first+uint64(i)-1) {
			if ierr != nil {
				err = ierr
				return true
			}
			return !e.At.Before(t)
		}
		return true
	})
	return first + uint64(n) - 1, err
}

// Trimming in steps keeps transactions short. The tail of what is old waits until it is
// worth an entry of its own.
const (
	trimStep  = 20_000
	trimWorth = 1000
	trimLate  = 24 * time.Hour
)

// TrimAudit removes entries of before a time from the audit trail, and appends an entry that
// says which. It is for servers, and does nothing if another server has done it, or if fewer
// than 1000 entries are at most a day too old. It returns how many were removed.
func (r *Registrar) TrimAudit(ctx context.Context, before time.Time) (removed uint64, err error) {
	const op = "trim audit trail"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return 0, err
	}
	end, err := r.auditBefore(ctx, before)
	if err != nil {
		return 0, tell(op, err)
	}
	late, err := r.auditBefore(ctx, before.Add(-trimLate))
	if err != nil {
		return 0, tell(op, err)
	}
	for {
		first, _, err := r.store.AuditRange(ctx)
		if err != nil || first == 0 || first > end || end-first+1 < trimWorth && late < first {
			return removed, tell(op, err)
		}
		upTo := min(end, first+trimStep-1)
		e := entry(ctx, op, "entries:"+strconv.FormatUint(first, 10)+"-"+strconv.FormatUint(upTo, 10))
		e.Trimmed, e.Count, e.Details = upTo, upTo-first+1, "all before "+before.UTC().Format(time.RFC3339)
		err = r.store.Apply(ctx, &stele.Commit{TrimAudit: upTo, Audit: []*stele.AuditEntry{e}})
		if stele.KindOf(orNone(err)) == stele.Conflict {
			return removed, nil // another server does it
		}
		if err != nil {
			return removed, tell(op, err)
		}
		removed += e.Count
	}
}

// orNone is for asking for the kind of an error that may be nil.
func orNone(err error) error {
	if err == nil {
		return stele.Internal
	}
	return err
}

const opSent = "note audit export"

// sentCells is what the names of cells begin with that say how far the trail was sent.
const sentCells = "audit sent "

// AuditSent returns up to which number the trail was sent to a place; 0 if it never was.
func (r *Registrar) AuditSent(ctx context.Context, place string) (uint64, error) {
	value, err := r.store.Cell(ctx, sentCells+place)
	if err != nil {
		return 0, tell(opSent, err)
	}
	n, _ := strconv.ParseUint(string(value), 10, 64) // what can't be read is sent again
	return n, nil
}

// NoteAuditSent keeps up to which number the trail was sent to a place.
func (r *Registrar) NoteAuditSent(ctx context.Context, place string, number uint64) error {
	name := sentCells + place
	before, err := r.store.Cell(ctx, name)
	if err != nil {
		return tell(opSent, err)
	}
	return r.commit(ctx, opSent, &stele.Commit{Cells: []stele.CellChange{{Name: name, Before: before, After: strconv.AppendUint(nil, number, 10)}}})
}
