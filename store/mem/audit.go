package mem

import (
	"context"
	"iter"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// trail is the audit trail. States share its array, as they do that of the journal.
type trail struct {
	before  uint64 // how many entries were trimmed
	entries []auditEntry
}

// auditEntry is an entry in binary form, so that no caller has a pointer into what
// is kept.
type auditEntry struct {
	at   time.Time
	body []byte
}

// last returns the number of the last entry; 0 if there is none.
func (t *trail) last() uint64 { return t.before + uint64(len(t.entries)) }

// Audit implements [stele.Store].
func (s *Store) Audit(ctx context.Context, after uint64) iter.Seq2[*stele.AuditEntry, error] {
	return read(ctx, s, "read audit trail", func(st *state, yield func(*stele.AuditEntry, error) bool) {
		from := max(after, st.trail.before) - st.trail.before
		for i := from; i < uint64(len(st.trail.entries)); i++ {
			if !yield(st.trail.entry(i)) {
				return
			}
		}
	})
}

func (t *trail) entry(i uint64) (*stele.AuditEntry, error) {
	kept := t.entries[i]
	e := &stele.AuditEntry{Number: t.before + i + 1, At: kept.at}
	return e, binary.UnmarshalAudit(kept.body, e)
}

// AuditRange implements [stele.Store].
func (s *Store) AuditRange(ctx context.Context) (first, last uint64, err error) {
	st, err := s.view(ctx, "read audit trail")
	if err != nil || len(st.trail.entries) == 0 {
		return 0, 0, err
	}
	return st.trail.before + 1, st.trail.last(), nil
}

// putAudit trims the trail and appends entries.
func (st *state) putAudit(list []*stele.AuditEntry, trim uint64, at time.Time) error {
	t := st.trail
	if trim > 0 {
		if trim <= t.before || trim > t.last() {
			return refusal.AuditTrim(trim, t.before+1, t.last())
		}
		t.entries = append([]auditEntry{}, t.entries[trim-t.before:]...)
		t.before = trim
	}
	at = at.Truncate(time.Microsecond)
	for _, e := range list {
		if e.Number != 0 {
			if t.last() == 0 {
				t.before = e.Number - 1
			}
			if e.Number != t.last()+1 {
				return refusal.AuditOrder(e.Number, t.last())
			}
			at = e.At.UTC().Round(0)
		} else if n := len(t.entries); n > 0 && at.Before(t.entries[n-1].at) {
			at = t.entries[n-1].at
		}
		t.entries = append(t.entries, auditEntry{at, binary.MarshalAudit(e)})
	}
	st.trail = t
	return nil
}

// verifyAudit checks that the trail can be read, and that an entry says what was trimmed.
func (st *state) verifyAudit(report func(problem *stele.Message)) {
	said := st.trail.before == 0
	var at time.Time
	for i := range st.trail.entries {
		e, err := st.trail.entry(uint64(i))
		if err != nil {
			report(stele.Messagef("verify.audit-entry-unreadable", "An entry of the audit trail can't be read: {cause}", err))
			continue
		}
		if e.At.Before(at) {
			report(stele.Messagef("verify.audit-entry-too-early", "An entry of the audit trail is earlier than the one before it."))
		}
		at = e.At
		said = said || e.Trimmed >= st.trail.before
	}
	if !said {
		report(stele.Messagef("verify.audit-trim-unrecorded", "The audit trail does not begin with entry 1, and no entry says that those before were trimmed."))
	}
}
