package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
)

// shownChanges is how many fields that change a dry run prints for people. With --json
// all are printed.
const shownChanges = 200

// changeReport prints what an update would change.
type changeReport struct {
	out     io.Writer
	json    bool
	records int
	fields  int
	err     error
}

// changeLine is a field that changes, as a line of JSON.
type changeLine struct {
	Line int    `json:"line"`
	ID   string `json:"id"`
	Path string `json:"path"`
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// add prints the fields of a record that change.
func (r *changeReport) add(row *bulk.Row, fields []registrar.FieldChange) {
	if len(fields) == 0 {
		return
	}
	r.records++
	id := row.Record.ID.String()
	for i, f := range fields {
		r.fields++
		switch {
		case r.err != nil:
		case r.json:
			var text []byte
			if text, r.err = json.Marshal(changeLine{row.Line, id, f.Path, f.Old, f.New}); r.err == nil {
				_, r.err = fmt.Fprintf(r.out, "%s\n", text)
			}
		case r.fields <= shownChanges:
			if i == 0 {
				fmt.Fprintf(r.out, "%s (line %d)\n", printable(id), row.Line)
			}
			_, r.err = fmt.Fprintf(r.out, "  %s: %s -> %s\n", printable(f.Path), shownValue(f.Old), shownValue(f.New))
		}
	}
}

// end prints how much would change in all.
func (r *changeReport) end() error {
	if r.err != nil || r.json || r.fields == 0 {
		return r.err
	}
	if r.fields > shownChanges {
		fmt.Fprintf(r.out, "and %s fields more; --json prints all\n", grouped(int64(r.fields-shownChanges)))
	}
	_, err := fmt.Fprintf(r.out, "%s fields of %s records change\n", grouped(int64(r.fields)), grouped(int64(r.records)))
	return err
}

// shownValue returns the value of a field for people.
func shownValue(value string) string {
	if value == "" {
		return "(nothing)"
	}
	return fmt.Sprintf("%q", shorten(value))
}
