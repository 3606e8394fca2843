package card

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
	"github.com/stele-id/stele/internal/terminal"
	"github.com/stele-id/stele/internal/wording"
)

// Record draws the card of a record.
func Record(rec *stele.Record) string {
	var text strings.Builder
	b := &text
	fmt.Fprintln(b, terminal.Printable(destination.Shown(rec)))
	Rows(b, "scheme", rec.ID.Scheme())
	if destination.Shown(rec) != rec.ID.String() {
		Rows(b, "canonical", rec.ID.String())
	}
	Rows(b, "spelling", rec.Spelling)
	for i, alias := range rec.Aliases {
		Rows(b, First(i, "alias"), alias.String())
	}
	writeState(b, rec)
	for i, t := range rec.Targets {
		Rows(b, First(i, "target"), t.URL)
		if about := wording.Target(&t); about != "" {
			Rows(b, "", "("+about+")")
		}
	}
	for _, key := range wording.FieldOrder(rec.Metadata) {
		Rows(b, key, rec.Metadata[key])
	}
	Rows(b, "persistence", wording.Promise(rec.Persistence))
	Rows(b, "statement", rec.Persistence.Statement)
	for i, v := range rec.Values {
		Rows(b, First(i, "value"), handleValue(&v))
	}
	for i, s := range rec.Signatures {
		Rows(b, First(i, "signed"), signedLine(&s))
		Rows(b, "", fmt.Sprintf("SHA-256 %x", s.SHA256))
	}
	Rows(b, "readers", strings.Join(rec.Readers, "  "))
	writeKept(b, rec.Version, rec.Created, rec.Modified, rec.By)
	return text.String()
}

// writeState tells the state, and the tombstone if there is one.
func writeState(b *strings.Builder, rec *stele.Record) {
	state := string(rec.State)
	switch {
	case rec.Redacted:
		state += "  (its content was removed by a legal order)"
	case rec.State == stele.Reserved:
		state += "  (hidden from the public)"
	}
	Rows(b, "state", state)
	if t := rec.Tombstone; t != nil {
		Rows(b, "reason", t.Reason)
		Rows(b, "since", wording.Moment(t.At))
		if t.Replacement.IsValid() {
			Rows(b, "use instead", t.Replacement.String())
		}
	}
}

// writeKept writes what the system keeps, of records and namespaces alike.
func writeKept(b *strings.Builder, version uint64, created, modified time.Time, by string) {
	if version == 0 {
		return
	}
	Rows(b, "version", strconv.FormatUint(version, 10))
	Rows(b, "created", wording.Moment(created))
	last := wording.Moment(modified)
	if by != "" {
		last += ", by " + by
	}
	Rows(b, "changed", last)
}

// Rows writes a name and a value in columns, a row for each line of the value; none
// if there is no value.
func Rows(b *strings.Builder, name, value string) {
	if value == "" {
		return
	}
	// A long name keeps a distance from its value.
	if n := utf8.RuneCountInString(name); n > column-2 {
		name += "  "
	}
	for line := range strings.SplitSeq(value, "\n") {
		Row(b, terminal.Printable(name), terminal.Printable(line))
		name = ""
	}
}

// First returns the name for the first of several rows, and none for the others.
func First(i int, name string) string {
	if i > 0 {
		return ""
	}
	return name
}

// signedLine tells a signature: when, what, and by which key.
func signedLine(s *stele.Signature) string {
	line := fmt.Sprintf("%s  %d bytes", wording.Moment(s.Date), s.Size)
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
