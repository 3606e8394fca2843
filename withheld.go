package stele

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// Withheld says which earlier versions of a record are not shown, and why. Every version
// carries it forward from the version before. The current version therefore decides for
// every earlier one: a reader that fetches one old version fetches the current version
// with it, and reads no others.
type Withheld struct {
	// Redacted is the highest version that was redacted by a legal order; 0 if none was.
	// Versions before it are never shown.
	Redacted uint64

	// Erased is the highest version whose content the store has removed; 0 if there is
	// none. Of the versions up to this one only an entry is left; see [Record.Entry].
	Erased uint64

	// Disavowed are the versions that an owner declared wrong, in the order in which
	// that was done. Their content is not shown to the public, and no client is redirected
	// to their targets.
	Disavowed []Disavowal
}

// Disavowal is the statement of an owner that versions of a record are not to be used:
// an intruder changed the record, or an editor made a mistake.
type Disavowal struct {
	First, Last uint64 // the versions, both included
	Reason      string // the public reads it
	At          time.Time
	By          string
}

// Equal reports whether two disavowals say the same.
func (d *Disavowal) Equal(other Disavowal) bool {
	return d.First == other.First && d.Last == other.Last && d.Reason == other.Reason && d.At.Equal(other.At) && d.By == other.By
}

// Limits on disavowals.
const (
	MaxDisavowals      = 100
	MaxDisavowalReason = 1000 // bytes
)

// IsZero reports whether no version is withheld.
func (w *Withheld) IsZero() bool {
	return w.Redacted == 0 && w.Erased == 0 && len(w.Disavowed) == 0
}

// Hides reports whether the content is hidden from all of a version: it was erased, or a later
// version was redacted.
func (w *Withheld) Hides(version uint64) bool {
	return version < w.Redacted || version <= w.Erased
}

// Disavowal returns the last statement that disavows a version; nil if there is none.
func (w *Withheld) Disavowal(version uint64) *Disavowal {
	for i := range slices.Backward(w.Disavowed) {
		if d := &w.Disavowed[i]; d.First <= version && version <= d.Last {
			return d
		}
	}
	return nil
}

// Clone returns a copy that shares nothing with w.
func (w *Withheld) Clone() Withheld {
	c := *w
	c.Disavowed = slices.Clone(w.Disavowed)
	return c
}

// Following returns what the next version of a record withholds that adds w to what the
// version before withheld.
func (w *Withheld) Following(before *Withheld) Withheld {
	next := before.Clone()
	next.Redacted, next.Erased = max(w.Redacted, before.Redacted), max(w.Erased, before.Erased)
	for _, d := range w.Disavowed {
		if !slices.ContainsFunc(next.Disavowed, d.Equal) {
			next.Disavowed = append(next.Disavowed, d)
		}
	}
	// A reason may be a part of what has to be removed.
	next.Disavowed = slices.DeleteFunc(next.Disavowed, func(d Disavowal) bool { return d.Last <= next.Erased })
	if len(next.Disavowed) == 0 {
		next.Disavowed = nil
	}
	return next
}

// Entry returns what is left of an erased version: the identifier, the state, when and
// by whom it was made. It is marked as redacted. The entry of an entry is the same.
func (r *Record) Entry() *Record {
	e := &Record{ID: r.ID, State: r.State, Version: r.Version, Created: r.Created, Modified: r.Modified, By: r.By, Redacted: true}
	if r.Tombstone != nil {
		e.Tombstone = &Tombstone{At: r.Tombstone.At}
	}
	return e
}

// CheckFollows returns an error of kind Invalid if the record can't be the version after
// before because it does not carry forward what is withheld. Every store asks it. A
// disavowal of versions that are erased may be left out: its reason may be a part of
// what has to be removed.
func (r *Record) CheckFollows(before *Record) error {
	w, old := &r.Withheld, &before.Withheld
	if old.IsZero() {
		return nil
	}
	if w.Redacted < old.Redacted || w.Erased < old.Erased {
		return unfit(r.ID, "withheld.redaction-dropped", "version {version} does not carry forward that earlier versions are redacted or erased; copy what the version before withholds", r.Version)
	}
	for i := range old.Disavowed {
		if d := &old.Disavowed[i]; d.Last > w.Erased && !slices.ContainsFunc(w.Disavowed, d.Equal) {
			return unfit(r.ID, "withheld.disavowal-dropped", "version {version} does not carry forward that the versions {first} to {last} are disavowed; copy what the version before withholds", r.Version, d.First, d.Last)
		}
	}
	return nil
}

// checkWithheld refuses what can't be withheld by a version of this number.
func (r *Record) checkWithheld() error {
	w := &r.Withheld
	if w.IsZero() {
		return nil
	}
	if w.Redacted > r.Version || w.Erased >= r.Version || r.Version == 1 {
		return unfit(r.ID, "withheld.not-earlier", "version {version} says that version {redacted} is redacted and version {erased} erased; it can speak of earlier versions only", r.Version, w.Redacted, w.Erased)
	}
	for _, d := range w.Disavowed {
		if d.First == 0 || d.First > d.Last || d.Last >= r.Version {
			return unfit(r.ID, "withheld.disavows-not-earlier", "version {version} disavows the versions {first} to {last}; it can speak of earlier versions only", r.Version, d.First, d.Last)
		}
	}
	return nil
}

// check is what [Record.Validate] asks of what is withheld.
func (w *Withheld) check(p *Report) {
	if len(w.Disavowed) > MaxDisavowals {
		p.Addf("withheld.disavowed", "withheld.too-many-disavowals", "has {count} entries; {most} are the most", len(w.Disavowed), MaxDisavowals)
	}
	for i, d := range w.Disavowed {
		path := fmt.Sprintf("withheld.disavowed[%d]", i)
		if d.First == 0 || d.First > d.Last {
			p.Addf(path, "withheld.version-range-invalid", "names the versions {first} to {last}; the first is at least 1 and not after the last", d.First, d.Last)
		}
		if d.Reason == "" || len(d.Reason) > MaxDisavowalReason {
			p.Addf(path+".reason", "withheld.reason-wrong-size", "has {size} bytes; 1 to {most} are needed", len(d.Reason), MaxDisavowalReason)
		}
		checkTime(p, path+".at", d.At)
		checkName(p, path+".by", d.By)
	}
}

// AppendTimeKey appends 12 bytes that stand for a time and are ordered as times are, to
// the nanosecond. Stores use it in the keys by which they find a version by its time.
func AppendTimeKey(b []byte, t time.Time) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(t.Unix())^1<<63)
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}
