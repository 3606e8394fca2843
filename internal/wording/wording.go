// Package wording says in English what is kept of a name: how one version of a record differs
// from the next, what a target is, what is promised. The command line and pages for people
// use the same words. It makes no page and prints nothing.
package wording

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Target describes what is not the default in a target; "" if nothing is.
func Target(t *stele.Target) string {
	var words []string
	say := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	say(t.Service != stele.N2L, "%s: %s", t.Service, services[t.Service])
	say(t.Type != "", "%s", t.Type)
	say(t.Language != "", "%s", t.Language)
	say(t.Order != stele.DefaultOrder, "order %d", t.Order)
	say(t.Preference != stele.DefaultPreference, "preference %d", t.Preference)
	say(t.TTL != 0, "TTL %d s", t.TTL)
	say(t.Status != 0, "status %d", t.Status)
	say(t.Partial, "what follows the name is appended")
	return strings.Join(words, ", ")
}

// properties says what is not the default in a target, as messages.
func properties(t *stele.Target) *stele.Message {
	var all []*stele.Message
	say := func(is bool, m *stele.Message) {
		if is {
			all = append(all, m)
		}
	}
	say(t.Service != stele.N2L, stele.Messagef("property.service", "service {service}", t.Service))
	say(t.Type != "", stele.Messagef("property.type", "type {type}", t.Type))
	say(t.Language != "", stele.Messagef("property.language", "language {language}", t.Language))
	say(t.Order != stele.DefaultOrder, stele.Messagef("property.order", "order {number}", t.Order))
	say(t.Preference != stele.DefaultPreference, stele.Messagef("property.preference", "preference {number}", t.Preference))
	say(t.TTL != 0, stele.Messagef("property.ttl", "TTL {seconds} s", t.TTL))
	say(t.Status != 0, stele.Messagef("property.status", "status {status}", t.Status))
	say(t.Partial, stele.Messagef("property.partial", "what follows the name is appended"))
	if len(all) == 0 {
		return stele.Messagef("property.none", "as usual")
	}
	last := all[len(all)-1]
	for i := len(all) - 2; i >= 0; i-- {
		last = stele.Messagef("property.list", "{first}, {others}", all[i], last)
	}
	return last
}

// promised says level and date of a promise, as a message.
func promised(p stele.Persistence) *stele.Message {
	var level *stele.Message
	switch p.Level {
	case stele.Permanent:
		level = stele.Messagef("promised.permanent", "permanent")
	case stele.Unchanging:
		level = stele.Messagef("promised.unchanging", "unchanging")
	case stele.Stable:
		level = stele.Messagef("promised.stable", "stable")
	case stele.Dynamic:
		level = stele.Messagef("promised.dynamic", "dynamic")
	case stele.NotGuaranteed:
		level = stele.Messagef("promised.not-guaranteed", "not guaranteed")
	}
	switch {
	case level == nil && p.Until == "":
		return stele.Messagef("change.something", "changed")
	case level == nil:
		return stele.Messagef("promised.until", "until {date}", p.Until)
	case p.Until == "":
		return level
	}
	return stele.Messagef("promised.level-until", "{level}, until {date}", level, p.Until)
}

// Service returns in words what a service gives; "" for one that has no words.
func Service(s stele.Service) string { return services[s] }

var services = map[stele.Service]string{
	stele.N2L: "the thing itself",
	stele.N2C: "its metadata",
	stele.N2S: "its signature",
	stele.N2P: "the statement of its persistence",
}

// FieldOrder returns the keys of the metadata: what, who, when, where, and the others
// in order of the alphabet.
func FieldOrder(m stele.Metadata) []string {
	kernel := []string{stele.Where, stele.When, stele.Who, stele.What}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(slices.Index(kernel, b)-slices.Index(kernel, a), cmp.Compare(a, b))
	})
}

// Promise tells level and date of a promise.
func Promise(p stele.Persistence) string {
	switch {
	case p.Until == "":
		return string(p.Level)
	case p.Level == stele.Unstated:
		return "until " + p.Until
	}
	return string(p.Level) + ", until " + p.Until
}

// Moment writes a time for people: to the second.
func Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Shorten cuts a text so that it fits into a line with others.
func Shorten(text string) string {
	const most = 100
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}
