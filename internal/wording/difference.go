package wording

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// Differences tells in words how a version of a record differs from the one before
// it, which is nil for the first.
func Differences(before, rec *stele.Record) []string {
	if before == nil {
		words := "registered"
		if rec.State == stele.Reserved {
			words = "reserved"
		}
		if rec.Redacted {
			words += " (its content was removed)"
		}
		return []string{words}
	}
	var d difference
	d.state(before, rec)
	for _, alias := range rec.Aliases {
		if !before.Redacted && !slices.Contains(before.Aliases, alias) {
			d.addf("alias %s added", alias)
		}
	}
	d.disavowed(before, rec)
	if !rec.Redacted && !before.Redacted {
		d.targets(before.Targets, rec.Targets)
		d.metadata(before.Metadata, rec.Metadata)
		d.rest(before, rec)
	}
	if len(d) == 0 {
		if rec.Redacted {
			return []string{"changed (its content was removed)"}
		}
		return []string{"changed"}
	}
	return d
}

// disavowed says that the version itself is disavowed, and which ones it disavows.
func (d *difference) disavowed(before, rec *stele.Record) {
	if by := rec.Withheld.Disavowal(rec.Version); by != nil {
		d.addf("disavowed: %s", Shorten(by.Reason))
	}
	for _, by := range rec.Withheld.Disavowed {
		if by.At.After(before.Modified) && !by.At.After(rec.Modified) {
			d.addf("versions %d to %d disavowed", by.First, by.Last)
		}
	}
}

// difference is a list of changes in words.
type difference []string

func (d *difference) addf(format string, args ...any) {
	*d = append(*d, fmt.Sprintf(format, args...))
}

func (d *difference) state(before, rec *stele.Record) {
	t := rec.Tombstone
	old := before.Tombstone
	switch {
	// A version from before a redaction comes without its reason.
	case rec.Redacted && t != nil && t.Reason != "" && (old == nil || old.Reason == ""):
		d.addf("redacted: %s", Shorten(t.Reason))
	case rec.State == before.State && t != nil && old != nil:
		if t.Reason != old.Reason {
			d.addf("reason changed: %s", Shorten(t.Reason))
		}
		d.replacement(old.Replacement, t.Replacement)
		return
	case rec.State == before.State:
		return
	case rec.State == stele.Withdrawn && t != nil && t.Reason != "":
		d.addf("withdrawn: %s", Shorten(t.Reason))
	case before.State == stele.Withdrawn:
		d.addf("reinstated")
	case before.State == stele.Reserved && rec.State == stele.Active:
		d.addf("activated")
	default:
		d.addf("%s", rec.State)
	}
	if t != nil {
		d.replacement(stele.ID{}, t.Replacement)
	}
}

func (d *difference) replacement(before, now stele.ID) {
	switch {
	case before == now:
	case now.IsValid():
		d.addf("replaced by %s", now)
	default:
		d.addf("no longer replaced by %s", before)
	}
}

// targets tells which targets were moved, changed, added and removed. A removed one and
// an added one with the same service, type and language are a move.
func (d *difference) targets(before, now []stele.Target) {
	came, went := slices.Clone(now), []stele.Target(nil)
	for _, old := range before {
		at := slices.IndexFunc(came, func(t stele.Target) bool { return t.URL == old.URL && t.Service == old.Service })
		if at < 0 {
			went = append(went, old)
			continue
		}
		if came[at] != old {
			d.addf("target %s changed (%s)", old.URL, cmp.Or(Target(&came[at]), "as usual"))
		}
		came = slices.Delete(came, at, at+1)
	}
	for _, old := range went {
		at := slices.IndexFunc(came, func(t stele.Target) bool {
			return t.Service == old.Service && t.Type == old.Type && t.Language == old.Language
		})
		if at < 0 {
			d.addf("target %s removed", old.URL)
			continue
		}
		d.addf("target %s moved to %s", old.URL, came[at].URL)
		came = slices.Delete(came, at, at+1)
	}
	for _, t := range came {
		d.addf("target %s added", t.URL)
	}
}

func (d *difference) metadata(before, now stele.Metadata) {
	for _, key := range FieldOrder(now) {
		if old, ok := before[key]; !ok {
			d.addf("%s set", key)
		} else if old != now[key] {
			d.addf("%s changed", key)
		}
	}
	for _, key := range FieldOrder(before) {
		if _, ok := now[key]; !ok {
			d.addf("%s removed", key)
		}
	}
}

// rest names the other fields that changed.
func (d *difference) rest(before, rec *stele.Record) {
	if before.Persistence != rec.Persistence {
		d.addf("persistence %s", cmp.Or(Promise(rec.Persistence), "changed"))
	}
	if !sameValues(before.Values, rec.Values) {
		d.addf("handle values changed")
	}
	d.signatures(before.Signatures, rec.Signatures)
	if before.Spelling != rec.Spelling {
		d.addf("spelling changed")
	}
	if !slices.Equal(before.Readers, rec.Readers) {
		if rec.IsPublic() {
			d.addf("opened to everybody")
		} else {
			d.addf("readers changed")
		}
	}
}

func (d *difference) signatures(before, now []stele.Signature) {
	for _, s := range now {
		if !slices.Contains(before, s) {
			d.addf("signed by %s on %s", s.Key, s.Date.UTC().Format(time.DateOnly))
		}
	}
	for _, s := range before {
		if !slices.Contains(now, s) {
			d.addf("signature of %s by %s removed", s.Date.UTC().Format(time.DateOnly), s.Key)
		}
	}
}

func sameValues(a, b []stele.HandleValue) bool {
	return slices.EqualFunc(a, b, func(x, y stele.HandleValue) bool {
		return x.Index == y.Index && x.Type == y.Type && bytes.Equal(x.Data, y.Data) &&
			x.TTL == y.TTL && x.TTLAbsolute == y.TTLAbsolute && x.Timestamp == y.Timestamp &&
			x.Permissions == y.Permissions && slices.Equal(x.References, y.References)
	})
}
