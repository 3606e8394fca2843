package pebble

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/stele-id/stele"
	stored "github.com/stele-id/stele/store/binary"
	"github.com/stele-id/stele/store/refusal"
)

// trail is where the audit trail begins and ends.
type trail struct {
	first, last uint64 // numbers of entries; 0 if there is none
	at          time.Time
}

func auditKey(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{familyAudit}, number)
}

// appendAudit appends the value of an entry, whose binary form is given.
func appendAudit(b []byte, at time.Time, body []byte) []byte {
	b = binary.AppendVarint(b, at.Unix())
	b = binary.AppendUvarint(b, uint64(at.Nanosecond()))
	return append(b, body...)
}

var errAudit = stele.Messagef("audit.entry-damaged", "an entry of the audit trail is damaged")

// parseAudit reads a key and value of the trail.
func parseAudit(key, value []byte) (*stele.AuditEntry, error) {
	if len(key) != 9 {
		return nil, errAudit
	}
	sec, n := binary.Varint(value)
	if n <= 0 {
		return nil, errAudit
	}
	nsec, body, err := cutUvarint(value[n:])
	if err != nil || nsec > 999_999_999 {
		return nil, errAudit
	}
	e := &stele.AuditEntry{Number: binary.BigEndian.Uint64(key[1:]), At: time.Unix(sec, int64(nsec)).UTC()}
	return e, stored.UnmarshalAudit(body, e)
}

// readTrail finds out where the trail begins and ends.
func readTrail(db pebbledb.Reader) (t trail, err error) {
	it, err := db.NewIter(&pebbledb.IterOptions{LowerBound: []byte{familyAudit}, UpperBound: []byte{familyAudit + 1}})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return t, nil
	}
	if len(it.Key()) != 9 {
		return t, errKey
	}
	t.first = binary.BigEndian.Uint64(it.Key()[1:])
	if !it.Last() {
		return t, nil
	}
	e, err := parseAudit(it.Key(), it.Value())
	if err != nil {
		return t, err
	}
	t.last, t.at = e.Number, e.At
	return t, nil
}

// Audit implements [stele.Store].
func (s *Store) Audit(ctx context.Context, after uint64) iter.Seq2[*stele.AuditEntry, error] {
	some := after+1 != 0
	return items(ctx, s, "read audit trail", some, auditKey(after+1), []byte{familyAudit + 1}, func(key, value []byte) (*stele.AuditEntry, bool, error) {
		e, err := parseAudit(key, value)
		if err != nil {
			return nil, false, refuse("read audit trail", stele.ID{}, stele.Internal, "store.key-unreadable", "{key} can't be read: {cause}", describeKey(key), err)
		}
		return e, true, nil
	})
}

// AuditRange implements [stele.Store].
func (s *Store) AuditRange(ctx context.Context) (first, last uint64, err error) {
	err = s.read(ctx, "read audit trail", func(v *view) error {
		t, err := readTrail(v.snap)
		if err != nil {
			return v.opening.damage("read audit trail", stele.ID{}, err)
		}
		first, last = t.first, t.last
		return nil
	})
	return first, last, err
}

// auditPart is what a commit does to the audit trail.
type auditPart struct {
	trim    uint64
	entries []auditEntry
}

// auditEntry is an entry on its way to the committer.
type auditEntry struct {
	number uint64 // 0: the next one
	at     time.Time
	body   []byte
}

// newAuditPart encodes entries that were checked.
func newAuditPart(list []*stele.AuditEntry, trim uint64) (a auditPart, size int, err error) {
	a.trim = trim
	for _, e := range list {
		body := stored.MarshalAudit(e)
		a.entries = append(a.entries, auditEntry{e.Number, e.At, body})
		size += len(body)
	}
	return a, size, nil
}

// check checks the conditions of a commit on the trail.
func (t *trail) check(a *auditPart) error {
	if a.trim > 0 && (t.last == 0 || a.trim < t.first || a.trim > t.last) {
		return refusal.AuditTrim(a.trim, t.first, t.last)
	}
	if len(a.entries) > 0 {
		if number := a.entries[0].number; number != 0 && t.last != 0 && number != t.last+1 {
			return refusal.AuditOrder(number, t.last)
		}
	}
	return nil
}

// next gives an entry its number and time, and returns its key and value.
func (t *trail) next(e *auditEntry, now time.Time) (key, value []byte) {
	if e.number != 0 {
		t.last, t.at = e.number, e.at.UTC().Round(0)
	} else {
		t.last++
		if now = now.UTC().Round(0).Truncate(time.Microsecond); now.After(t.at) {
			t.at = now
		}
	}
	if t.first == 0 {
		t.first = t.last
	}
	return auditKey(t.last), appendAudit(nil, t.at, e.body)
}

// putAudit trims the trail and appends what a commit has for it, whose conditions hold.
func (g *group) putAudit(a *auditPart) {
	if a.trim > 0 {
		g.note(g.batch.DeleteRange(auditKey(g.trail.first), auditKey(a.trim+1), nil))
		g.trail.first = a.trim + 1 // the entry that says so comes later, whatever else is left
	}
	for i := range a.entries {
		key, value := g.trail.next(&a.entries[i], g.at)
		g.note(g.batch.Set(key, value, nil))
	}
}

// auditKeys adds the entries of an ingest to what it sets. The trail is that before it.
func (in *ingest) auditKeys(set map[string][]byte, t trail, at time.Time) (trail, error) {
	if len(in.models) == 0 {
		return t, nil
	}
	counts := make(map[stele.NamespaceKey]uint64)
	for i := range in.entries {
		if in.refused[i] == nil {
			counts[in.entries[i].counted.Namespace]++
		}
	}
	a, _, err := newAuditPart(stele.AuditByNamespace(in.models, counts), 0)
	for i := range a.entries {
		key, value := t.next(&a.entries[i], at)
		set[string(key)] = value
	}
	return t, err
}

// audit checks that the trail has no gaps, that each entry can be read, and that an entry
// says what was trimmed.
func (c *checker) audit() error {
	var t trail
	var trimmed uint64
	err := c.walk([]byte{familyAudit}, []byte{familyAudit + 1}, func(key, value []byte) {
		e, err := parseAudit(key, value)
		switch {
		case err != nil:
			c.problem("verify.key-unreadable", "{key} can't be read: {cause}.", describeKey(key), err)
			return
		case t.last != 0 && e.Number != t.last+1:
			c.problem("verify.audit-entry-out-of-order", "entry {number} of the audit trail follows entry {before}.", e.Number, t.last)
		case e.At.Before(t.at):
			c.problem("verify.audit-entry-earlier", "entry {number} of the audit trail is earlier than the one before it.", e.Number)
		}
		if t.first == 0 {
			t.first = e.Number
		}
		t.last, t.at, trimmed = e.Number, e.At, max(trimmed, e.Trimmed)
	})
	if t.first > 1 && trimmed < t.first-1 {
		c.problem("verify.audit-beginning-missing", "the audit trail begins with entry {first}, and no entry says that those before were trimmed.", t.first)
	}
	return err
}
