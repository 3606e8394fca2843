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
