package web

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/stele-id/stele"
)

// maxPhrases is how many phrases describe one change.
const maxPhrases = 12

// Difference says in a few phrases what changed from one version of a record to the next;
// before is nil for the first. Of a version with content that may not be shown it says only
// that.
func Difference(before, after *stele.Record) []string {
	if after == nil {
		return nil
	}
	if after.Redacted {
		return []string{"content removed by order"}
	}
	var d difference
	if before == nil {
		d.say("registered")
		if after.State == stele.Reserved {
			d.say("reserved, not public yet")
		}
		return d
	}
	d.state(before, after)
	d.names(before, after)
	d.targets(before.Targets, after.Targets)
	d.metadata(before.Metadata, after.Metadata)
	if before.Persistence != after.Persistence {
		d.say("promise changed")
	}
	if !slices.EqualFunc(before.Values, after.Values, sameValue) {
		d.say("handle values changed")
	}
	if !slices.Equal(before.Signatures, after.Signatures) {
		d.signatures(before.Signatures, after.Signatures)
	}
	if !slices.Equal(before.Readers, after.Readers) {
		d.say("visibility changed")
	}
	if len(d) == 0 {
		d.say("nothing that is shown")
	}
	if more := len(d) - maxPhrases; more > 0 {
		d = append(d[:maxPhrases], fmt.Sprintf("%d more changes", more))
	}
	return d
}

// difference is a list of phrases.
type difference []string

func (d *difference) say(format string, args ...any) { *d = append(*d, fmt.Sprintf(format, args...)) }

func (d *difference) state(before, after *stele.Record) {
	switch {
	case before.State == after.State:
	case after.State == stele.Withdrawn:
		d.say("withdrawn")
	case after.State == stele.Active && before.State == stele.Withdrawn:
		d.say("no longer withdrawn")
	case after.State == stele.Active:
		d.say("published")
	default:
		d.say("%s", after.State)
	}
	if t := after.Tombstone; t != nil && before.Tombstone != nil && *t != *before.Tombstone {
		d.say("reason for the withdrawal changed")
	}
}

func (d *difference) names(before, after *stele.Record) {
	if !slices.Equal(before.Aliases, after.Aliases) {
		had := make(map[stele.ID]bool, len(before.Aliases))
		for _, alias := range before.Aliases {
			had[alias] = true
		}
		for _, alias := range after.Aliases {
			if !had[alias] {
				d.say("also named %s", alias)
			}
		}
	}
	if before.Spelling != after.Spelling {
		d.say("spelling changed")
	}
}

func (d *difference) targets(before, after []stele.Target) {
	if slices.Equal(before, after) {
		return
	}
	said, locationsBefore, locationsAfter := len(*d), locations(before), locations(after)
	for i := range after {
		if !locationsBefore[after[i].URL] {
			d.say("now leads to %s", after[i].URL)
		}
	}
	for i := range before {
		if !locationsAfter[before[i].URL] {
			d.say("no longer leads to %s", before[i].URL)
		}
	}
	if len(*d) == said {
		d.say("targets arranged otherwise")
	}
}

// locations returns the URLs of targets. Records may have many, and a page shows
// many versions.
func locations(targets []stele.Target) map[string]bool {
	set := make(map[string]bool, len(targets))
	for i := range targets {
		set[targets[i].URL] = true
	}
	return set
}

func (d *difference) signatures(before, after []stele.Signature) {
	said := len(*d)
	for _, s := range after {
		if !slices.Contains(before, s) {
			d.say("signed on %s", s.Date.UTC().Format("2006-01-02"))
		}
	}
	if len(*d) == said {
		d.say("signatures removed")
	}
}

func (d *difference) metadata(before, after stele.Metadata) {
	var keys []string
	for key, value := range after {
		if old, ok := before[key]; !ok || old != value {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		_, was := before[key]
		switch _, is := after[key]; {
		case was && is:
			d.say("%s changed", key)
		case is:
			d.say("%s added", key)
		default:
			d.say("%s removed", key)
		}
	}
}

func sameValue(a, b stele.HandleValue) bool {
	return a.Index == b.Index && a.Type == b.Type && bytes.Equal(a.Data, b.Data) && a.TTL == b.TTL &&
		a.TTLAbsolute == b.TTLAbsolute && a.Permissions == b.Permissions && slices.Equal(a.References, b.References)
}
