package stele

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// AuditStore keeps the audit trail: who did what to a registry, when, and with which
// outcome. Entries are appended by commits, see [Commit], and by ingests. They are never
// changed. Their numbers begin with 1 and have no gaps. Only a commit that says so (see
// Commit.TrimAudit) removes entries, the oldest ones, and an entry in the same commit
// says up to which number.
type AuditStore interface {
	// Audit yields the entries with a number greater than after, in order.
	Audit(ctx context.Context, after uint64) iter.Seq2[*AuditEntry, error]

	// AuditRange returns the numbers of the first and the last entry that the store has;
	// 0 and 0 if there is none.
	AuditRange(ctx context.Context) (first, last uint64, err error)
}

// AuditEntry is an entry of the audit trail.
type AuditEntry struct {
	// Number is the place in the trail. In a commit it is 0, and the store gives the entry
	// the next number. A caller that copies another trail sets the number that the entry has
	// there: then it must be the next one, or the trail must be empty.
	Number uint64

	// At is when the entry was committed. The store sets it, unless the caller gives a
	// number. It is never earlier than that of the entry before, so that entries can be found
	// by time. Kept to the microsecond.
	At time.Time

	By      string // name of the user; "" if the caller is not known
	Token   string // ID of the token that the user showed; "" for none
	System  string // user of the operating system, for what was done on a folder or a database
	Via     string // the way in, such as "api" or "desk"; package auth lists them
	Address string // from where; only kept if the operator says so

	Operation string       // what was done: "register", "create token"
	Object    string       // to what: an identifier, or "user:ann", "token:7h2k..."
	Namespace NamespaceKey // whose owners may read the entry; zero: administrators only

	Outcome AuditOutcome
	Kind    Kind   // of the error, if the outcome is not AuditDone
	Count   uint64 // how many times, or how many objects; 0 is the same as 1
	Trimmed uint64 // the last number that this commit removed from the trail; 0 for all other operations
	Details string // more; small
}

// AuditOutcome is how an operation ended.
type AuditOutcome string

const (
	AuditDone    AuditOutcome = "done"
	AuditRefused AuditOutcome = "refused" // the caller may not, or is not known
	AuditFailed  AuditOutcome = "failed"  // the caller may, and it was not done
)

// Limits of an entry, in bytes.
const (
	MaxAuditName    = 256 // of each name: user, token, address, operation
	MaxAuditObject  = 1024
	MaxAuditDetails = 2048
)

// Bound shortens the texts of an entry to what is kept.
func (e *AuditEntry) Bound() {
	for _, text := range e.names() {
		*text = shorten(*text, MaxAuditName)
	}
	e.Object = shorten(e.Object, MaxAuditObject)
	e.Details = shorten(e.Details, MaxAuditDetails)
}

func (e *AuditEntry) names() []*string {
	return []*string{&e.By, &e.Token, &e.System, &e.Via, &e.Address, &e.Operation}
}

// shorten cuts a text that is too long, between characters, and marks the place.
func shorten(text string, most int) string {
	const mark = "..."
	if len(text) <= most {
		return text
	}
	cut := most - len(mark)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strings.Clone(text[:cut]) + mark
}

// Check returns an error of kind Invalid if the entry can't be kept.
func (e *AuditEntry) Check() error {
	if e == nil {
		return unfit(ID{}, "audit-entry.nil", "an audit entry is nil; leave it out")
	}
	for _, text := range e.names() {
		if len(*text) > MaxAuditName {
			return unfit(ID{}, "audit-entry.name-too-long", `the audit entry of "{operation}" has a name of {size} bytes; at most {most} are kept`, e.Operation, len(*text), MaxAuditName)
		}
	}
	switch {
	case e.Operation == "":
		return unfit(ID{}, "audit-entry.operation-missing", "an audit entry names no operation; name one")
	case e.Outcome != AuditDone && e.Outcome != AuditRefused && e.Outcome != AuditFailed:
		return unfit(ID{}, "audit-entry.outcome-unknown", `the audit entry of "{operation}" has the outcome "{outcome}", which there is not`, e.Operation, e.Outcome)
	case len(e.Object) > MaxAuditObject || len(e.Details) > MaxAuditDetails:
		return unfit(ID{}, "audit-entry.too-large", `the audit entry of "{operation}" has an object of more than {most-object} bytes, or details of more than {most-details}; shorten them`, e.Operation, MaxAuditObject, MaxAuditDetails)
	case e.Number != 0 && e.At.IsZero():
		return unfit(ID{}, "audit-entry.time-missing", "the audit entry {number} that is copied has no time", e.Number)
	}
	return e.Namespace.Check()
}

// checkAudit makes sure that the audit entries of a commit can be kept, and that what is
// trimmed is said.
func (c *Commit) checkAudit() error {
	said := c.TrimAudit == 0
	for i, e := range c.Audit {
		if err := e.Check(); err != nil {
			return err
		}
		if first := c.Audit[0].Number; first == 0 && e.Number != 0 || first != 0 && e.Number != first+uint64(i) {
			return unfit(ID{}, "audit-entry.number-out-of-sequence", "audit entry {index} of a commit has the number {number}; either none has one, or they follow each other", i, e.Number)
		}
		if e.Number == 0 && e.Trimmed != 0 && e.Trimmed != c.TrimAudit {
			return unfit(ID{}, "audit-entry.trim-differs", "an audit entry says that entries up to {trimmed} were trimmed, and the commit trims up to {trims}", e.Trimmed, c.TrimAudit)
		}
		said = said || e.Trimmed == c.TrimAudit
	}
	if !said {
		return unfit(ID{}, "audit-entry.trim-unrecorded", "the commit trims the audit trail up to {trims}, and no entry says so", c.TrimAudit)
	}
	return nil
}

// AuditByNamespace returns the entries that an ingest appends: each model once for every
// namespace, in order of their keys, with how many records count for it. It is for stores.
func AuditByNamespace(models []*AuditEntry, counts map[NamespaceKey]uint64) (list []*AuditEntry) {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b NamespaceKey) int {
		return cmp.Or(cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(a.Prefix, b.Prefix))
	})
	for _, model := range models {
		for _, key := range keys {
			if counts[key] == 0 {
				continue
			}
			e := *model
			e.Namespace, e.Count = key, counts[key]
			list = append(list, &e)
		}
	}
	return list
}

// CheckModels returns an error of kind Invalid if these can't be the entries of an ingest.
func CheckModels(models []*AuditEntry) error {
	for _, e := range models {
		if err := e.Check(); err != nil {
			return err
		}
		if e.Number != 0 || e.Trimmed != 0 {
			return unfit(ID{}, "audit-entry.ingest-numbered", "an audit entry of an ingest has a number or trims; leave both out")
		}
	}
	return nil
}
