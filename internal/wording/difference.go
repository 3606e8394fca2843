package wording

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Differences tells in English how a version of a record differs from the one before
// it, which is nil for the first.
func Differences(before, rec *stele.Record) []string {
	changes := Changes(before, rec)
	words := make([]string, len(changes))
	for i, m := range changes {
		words[i] = m.Error()
	}
	return words
}

// Changes tells how a version of a record differs from the one before it, which is nil for
// the first, by messages that can be said in other languages.
func Changes(before, rec *stele.Record) []*stele.Message {
	var d difference
	if before == nil {
		switch {
		case rec.State == stele.Reserved && rec.Redacted:
			d.addf("change.reserved-redacted", "reserved (its content was removed)")
		case rec.State == stele.Reserved:
			d.addf("change.reserved", "reserved")
		case rec.Redacted:
			d.addf("change.registered-redacted", "registered (its content was removed)")
		default:
			d.addf("change.registered", "registered")
		}
		return d
	}
	d.state(before, rec)
	if !before.Redacted && !slices.Equal(before.Aliases, rec.Aliases) {
		had := make(map[stele.ID]bool, len(before.Aliases))
		for _, alias := range before.Aliases {
			had[alias] = true
		}
		for _, alias := range rec.Aliases {
			if !had[alias] {
				d.addf("change.alias-added", "alias {alias} added", alias)
			}
		}
	}
	d.disavowed(before, rec)
	if !rec.Redacted && !before.Redacted {
		d.targets(before.Targets, rec.Targets)
		d.metadata(before.Metadata, rec.Metadata)
		d.rest(before, rec)
	}
	switch {
	case len(d) > 0:
	case rec.Redacted:
		d.addf("change.something-redacted", "changed (its content was removed)")
	default:
		d.addf("change.something", "changed")
	}
	return d
}

// disavowed says that the version itself is disavowed, and which ones it disavows.
func (d *difference) disavowed(before, rec *stele.Record) {
	if by := rec.Withheld.Disavowal(rec.Version); by != nil {
		d.addf("change.disavowed", "disavowed: {reason}", Shorten(by.Reason))
	}
	for _, by := range rec.Withheld.Disavowed {
		if by.At.After(before.Modified) && !by.At.After(rec.Modified) {
			d.addf("change.versions-disavowed", "versions {first} to {last} disavowed", by.First, by.Last)
		}
	}
}

// difference is a list of changes.
type difference []*stele.Message

func (d *difference) addf(code, text string, args ...any) {
	*d = append(*d, stele.Messagef(code, text, args...))
}

func (d *difference) state(before, rec *stele.Record) {
	t := rec.Tombstone
	old := before.Tombstone
	switch {
	// A version from before a redaction comes without its reason.
	case rec.Redacted && t != nil && t.Reason != "" && (old == nil || old.Reason == ""):
		d.addf("change.redacted", "redacted: {reason}", Shorten(t.Reason))
	case rec.State == before.State && t != nil && old != nil:
		if t.Reason != old.Reason {
			d.addf("change.reason-changed", "reason changed: {reason}", Shorten(unended(t.Reason)))
		}
		d.replacement(old.Replacement, t.Replacement)
		return
	case rec.State == before.State:
		return
	case rec.State == stele.Withdrawn && t != nil && t.Reason != "":
		d.addf("change.withdrawn", "withdrawn: {reason}", Shorten(unended(t.Reason)))
	case before.State == stele.Withdrawn:
		d.addf("change.reinstated", "reinstated")
	case before.State == stele.Reserved && rec.State == stele.Active:
		d.addf("change.activated", "activated")
	default:
		d.addf("change.state", "{state}", rec.State)
	}
	if t != nil {
		d.replacement(stele.ID{}, t.Replacement)
	}
}

// unended returns a sentence without its full stop, since other changes follow it.
func unended(text string) string { return strings.TrimSuffix(strings.TrimSpace(text), ".") }

func (d *difference) replacement(before, now stele.ID) {
	switch {
	case before == now:
	case now.IsValid():
		d.addf("change.replaced", "replaced by {name}", now)
	default:
		d.addf("change.not-replaced", "no longer replaced by {name}", before)
	}
}

// targets tells which targets were moved, changed, added and removed. A removed one and
// an added one with the same service, type and language are a move. The work grows with the
// number of targets, not with its square: pages for the public show many versions.
func (d *difference) targets(before, now []stele.Target) {
	if slices.Equal(before, now) {
		return
	}
	type place struct {
		url     string
		service stele.Service
	}
	type sort struct {
		service        stele.Service
		mime, language string
	}
	came := make(map[place][]int, len(now)) // in now, the first one last
	for i := len(now) - 1; i >= 0; i-- {
		at := place{now[i].URL, now[i].Service}
		came[at] = append(came[at], i)
	}
	stayed := make([]bool, len(now))
	var went []stele.Target
	for _, old := range before {
		at := place{old.URL, old.Service}
		list := came[at]
		if len(list) == 0 {
			went = append(went, old)
			continue
		}
		i := list[len(list)-1]
		came[at], stayed[i] = list[:len(list)-1], true
		if now[i] != old {
			d.addf("change.target-changed", "target {url} changed ({properties})", old.URL, properties(&now[i]))
		}
	}
	like := make(map[sort][]int)
	for i := len(now) - 1; i >= 0; i-- {
		if t := &now[i]; !stayed[i] {
			of := sort{t.Service, t.Type, t.Language}
			like[of] = append(like[of], i)
		}
	}
	for _, old := range went {
		of := sort{old.Service, old.Type, old.Language}
		list := like[of]
		if len(list) == 0 {
			d.addf("change.target-removed", "target {url} removed", old.URL)
			continue
		}
		i := list[len(list)-1]
		like[of], stayed[i] = list[:len(list)-1], true
		d.addf("change.target-moved", "target {url} moved to {new-url}", old.URL, now[i].URL)
	}
	for i := range now {
		if !stayed[i] {
			d.addf("change.target-added", "target {url} added", now[i].URL)
		}
	}
}

func (d *difference) metadata(before, now stele.Metadata) {
	if maps.Equal(before, now) {
		return
	}
	for _, key := range FieldOrder(now) {
		if old, ok := before[key]; !ok {
			d.addf("change.field-set", "{field} set", field(key))
		} else if old != now[key] {
			d.addf("change.field-changed", "{field} changed", field(key))
		}
	}
	for _, key := range FieldOrder(before) {
		if _, ok := now[key]; !ok {
			d.addf("change.field-removed", "{field} removed", field(key))
		}
	}
}

// field returns the label of a field of the metadata that people know, and otherwise its key.
func field(key string) any {
	switch key {
	case stele.What:
		return stele.Messagef("field.title", "title")
	case stele.Who:
		return stele.Messagef("field.creator", "creator")
	case stele.When:
		return stele.Messagef("field.date", "date")
	case stele.Where:
		return stele.Messagef("field.location", "location")
	}
	return key
}

// rest names the other fields that changed.
func (d *difference) rest(before, rec *stele.Record) {
	if before.Persistence != rec.Persistence {
		d.addf("change.persistence", "persistence {promise}", promised(rec.Persistence))
	}
	if !sameValues(before.Values, rec.Values) {
		d.addf("change.handle-values", "handle values changed")
	}
	d.signatures(before.Signatures, rec.Signatures)
	if before.Spelling != rec.Spelling {
		d.addf("change.spelling", "spelling changed")
	}
	if !slices.Equal(before.Readers, rec.Readers) {
		if rec.IsPublic() {
			d.addf("change.opened", "opened to the public")
		} else {
			d.addf("change.readers", "readers changed")
		}
	}
}

func (d *difference) signatures(before, now []stele.Signature) {
	for _, s := range now {
		if !slices.Contains(before, s) {
			d.addf("change.signed", "signed by {key} on {date}", s.Key, s.Date.UTC().Format(time.DateOnly))
		}
	}
	for _, s := range before {
		if !slices.Contains(now, s) {
			d.addf("change.signature-removed", "signature of {date} by {key} removed", s.Date.UTC().Format(time.DateOnly), s.Key)
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
