package bulk

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// Columns finds out which columns some records need. The caller adds each record before
// it writes the first row.
type Columns struct {
	used map[string]bool
}

// Add adds the columns of a record.
func (c *Columns) Add(rec *stele.Record) {
	if c.used == nil {
		c.used = make(map[string]bool)
	}
	for name, cell := range cellsOf(rec) {
		if cell != "" {
			c.used[name] = true
		}
	}
}

// Header returns the columns: the usual ones, metadata of the owners' own, the others.
func (c *Columns) Header() Header {
	h := Header(slices.Clone(usual))
	for _, name := range slices.Sorted(maps.Keys(c.used)) {
		if strings.HasPrefix(name, meta) {
			h = append(h, name)
		}
	}
	for _, name := range further {
		if c.used[name] {
			h = append(h, name)
		}
	}
	return h
}

// Cells returns the row of a record, as [Header.Document] reads it. An error if the
// record says something that there is no column for.
func (h Header) Cells(rec *stele.Record) ([]string, error) {
	all := cellsOf(rec)
	row := make([]string, len(h))
	for i, name := range h {
		row[i] = Neutralise(all[name])
		delete(all, name)
	}
	for name, cell := range all {
		if cell != "" {
			return nil, stele.Messagef("export.column-new", "{id} has a column {column}, which no record had when the export began", rec.ID, name)
		}
	}
	return row, nil
}

// cellsOf returns what a record says, by column. The version and the number of the
// import belong to one registry and are left out.
func cellsOf(rec *stele.Record) map[string]string {
	cells := make(map[string]string, 24)
	cells["id"] = rec.ID.String()
	if rec.Spelling != "" {
		cells["id"] = rec.Spelling
	}
	aliases := make([]string, len(rec.Aliases))
	for i, alias := range rec.Aliases {
		aliases[i] = alias.String()
	}
	cells["aliases"], cells["readers"] = listCell(aliases), listCell(rec.Readers)
	if rec.State != stele.Active {
		cells["state"] = string(rec.State)
	}
	if t := rec.Tombstone; t != nil {
		cells["reason"], cells["withdrawn"], cells["replacement"] = t.Reason, timeCell(t.At), t.Replacement.String()
	}
	targetCells(cells, rec.Targets)
	var odd map[string]string // a cell can't tell an empty text from none
	for key, value := range rec.Metadata {
		switch {
		case value == "":
			if odd == nil {
				odd = make(map[string]string)
			}
			odd[key] = ""
		case slices.Contains(usual[len(usual)-4:], key):
			cells[key] = value
		default:
			cells[meta+key] = value
		}
	}
	if odd != nil {
		text, _ := json.Marshal(odd) // it is made of texts
		cells["metadata"] = string(text)
	}
	p := rec.Persistence
	cells["persistence.level"], cells["persistence.until"], cells["persistence.statement"] = string(p.Level), p.Until, p.Statement
	if len(rec.Values) > 0 || len(rec.Signatures) > 0 {
		only := stele.Record{ID: rec.ID, Values: rec.Values, Signatures: rec.Signatures}
		cells["values"], cells["signatures"] = member(&only, "values"), member(&only, "signatures")
	}
	if rec.Redacted {
		cells["redacted"] = "true"
	}
	cells["created"], cells["modified"], cells["by"] = timeCell(rec.Created), timeCell(rec.Modified), rec.By
	return cells
}

// targetCells adds the first target's cells, and all following targets in one cell.
func targetCells(cells map[string]string, list []stele.Target) {
	if len(list) == 0 {
		return
	}
	t := &list[0]
	number := func(name string, n, usual uint64) {
		if n != usual {
			cells[name] = strconv.FormatUint(n, 10)
		}
	}
	cells["url"], cells["type"], cells["language"] = t.URL, t.Type, t.Language
	if t.Service != stele.N2L {
		cells["service"] = string(t.Service)
	}
	number("order", uint64(t.Order), stele.DefaultOrder)
	number("preference", uint64(t.Preference), stele.DefaultPreference)
	number("ttl", uint64(t.TTL), 0)
	number("redirect", uint64(t.Status), 0)
	if t.Partial {
		cells["partial"] = "true"
	}
	if len(list) > 1 {
		cells["targets"] = member(&stele.Record{Targets: list[1:]}, "targets")
	}
}

// member returns a member of a record's document.
func member(rec *stele.Record, name string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(document.AppendRecord(nil, rec), &object) != nil { // it was written just now
		return ""
	}
	return string(object[name])
}

func timeCell(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// listCell writes a list as listOf reads it.
func listCell(list []string) string {
	if len(list) == 0 {
		return ""
	}
	text := strings.Join(list, " ")
	if strings.HasPrefix(text, "[") || !slices.Equal(strings.Fields(text), list) {
		quoted, _ := json.Marshal(list) // it is made of texts
		return string(quoted)
	}
	return text
}
