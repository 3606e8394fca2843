package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

// writeRecord draws the card of a record for a person.
func writeRecord(b *strings.Builder, rec *stele.Record) {
	fmt.Fprintln(b, printable(destination.Shown(rec)))
	rows(b, "scheme", rec.ID.Scheme())
	if destination.Shown(rec) != rec.ID.String() {
		rows(b, "canonical", rec.ID.String())
	}
	rows(b, "spelling", rec.Spelling)
	for i, alias := range rec.Aliases {
		rows(b, first(i, "alias"), alias.String())
	}
	writeState(b, rec)
	for i, t := range rec.Targets {
		rows(b, first(i, "target"), t.URL)
		if about := aboutTarget(&t); about != "" {
			rows(b, "", "("+about+")")
		}
	}
	for _, key := range fieldOrder(rec.Metadata) {
		rows(b, key, rec.Metadata[key])
	}
	rows(b, "persistence", promise(rec.Persistence))
	rows(b, "statement", rec.Persistence.Statement)
	for i, v := range rec.Values {
		rows(b, first(i, "value"), handleValue(&v))
	}
	for i, s := range rec.Signatures {
		rows(b, first(i, "signed"), signedLine(&s))
		rows(b, "", fmt.Sprintf("SHA-256 %x", s.SHA256))
	}
	rows(b, "readers", strings.Join(rec.Readers, "  "))
	writeKept(b, rec.Version, rec.Created, rec.Modified, rec.By)
}

// writeState tells the state, and the tombstone if there is one.
func writeState(b *strings.Builder, rec *stele.Record) {
	state := string(rec.State)
	switch {
	case rec.Redacted:
		state += "  (what it said was removed by a legal order)"
	case rec.State == stele.Reserved:
		state += "  (the public sees nothing of it)"
	}
	rows(b, "state", state)
	if t := rec.Tombstone; t != nil {
		rows(b, "reason", t.Reason)
		rows(b, "since", moment(t.At))
		if t.Replacement.IsValid() {
			rows(b, "use instead", t.Replacement.String())
		}
	}
}

// writeKept writes what the system keeps, of records and namespaces alike.
func writeKept(b *strings.Builder, version uint64, created, modified time.Time, by string) {
	if version == 0 {
		return
	}
	rows(b, "version", strconv.FormatUint(version, 10))
	rows(b, "created", moment(created))
	last := moment(modified)
	if by != "" {
		last += ", by " + by
	}
	rows(b, "changed", last)
}

// rows writes a name and a value in columns, a row for each line of the value; none
// if there is no value.
func rows(b *strings.Builder, name, value string) {
	if value == "" {
		return
	}
	// A long name keeps a distance from its value.
	if n := utf8.RuneCountInString(name); n > cardColumn-2 {
		name += "  "
	}
	for line := range strings.SplitSeq(value, "\n") {
		row(b, printable(name), printable(line))
		name = ""
	}
}

// first returns the name for the first of several rows, and none for the others.
func first(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

// aboutTarget describes what is not the default in a target.
func aboutTarget(t *stele.Target) string {
	var words []string
	say := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	say(t.Service != stele.N2L, "%s: %s", t.Service, serviceNames[t.Service])
	say(t.Type != "", "%s", t.Type)
	say(t.Language != "", "%s", t.Language)
	say(t.Order != stele.DefaultOrder, "order %d", t.Order)
	say(t.Preference != stele.DefaultPreference, "preference %d", t.Preference)
	say(t.TTL != 0, "TTL %d s", t.TTL)
	say(t.Status != 0, "status %d", t.Status)
	say(t.Partial, "what follows the name is appended")
	return strings.Join(words, ", ")
}

// serviceNames are the services in words.
var serviceNames = map[stele.Service]string{
	stele.N2L: "the thing itself",
	stele.N2C: "its metadata",
	stele.N2S: "its signature",
	stele.N2P: "the statement of its persistence",
}

// fieldOrder returns the keys of the metadata: what, who, when, where, and the others
// in order of the alphabet.
func fieldOrder(m stele.Metadata) []string {
	kernel := []string{stele.Where, stele.When, stele.Who, stele.What}
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(slices.Index(kernel, b)-slices.Index(kernel, a), cmp.Compare(a, b))
	})
}

// promise tells level and date of a promise.
func promise(p stele.Persistence) string {
	switch {
	case p.Until == "":
		return string(p.Level)
	case p.Level == stele.Unstated:
		return "until " + p.Until
	}
	return string(p.Level) + ", until " + p.Until
}

// signedLine tells a signature: when, what, and by which key.
func signedLine(s *stele.Signature) string {
	line := fmt.Sprintf("%s  %d bytes", moment(s.Date), s.Size)
	if s.Type != "" {
		line += " of " + s.Type
	}
	return line + ", by " + s.Key
}

// handleValue tells a handle value: index, type, and data that can be read.
func handleValue(v *stele.HandleValue) string {
	data := string(v.Data)
	if !utf8.ValidString(data) || strings.ContainsFunc(data, func(r rune) bool { return !unicode.IsPrint(r) }) {
		data = fmt.Sprintf("(%d bytes)", len(v.Data))
	}
	return fmt.Sprintf("%d  %s  %s", v.Index, v.Type, data)
}

// moment writes a time for people: to the second.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
