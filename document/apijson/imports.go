package apijson

import "time"

// Batch is what became of a batch.
type Batch struct {
	Counts
	Items []Item `json:"items" doc:"What became of each record, in the order in which they came."`
}

// Counts is how many records were what.
type Counts struct {
	Created   int `json:"created" doc:"Records that are new."`
	Updated   int `json:"updated" doc:"Records that have a new version."`
	Unchanged int `json:"unchanged" doc:"Records that were registered like this already."`
	Refused   int `json:"refused" doc:"Records of which nothing was written."`
}

// The statuses of records in an Item or an Imported.
const (
	StatusCreated   = "created"
	StatusUpdated   = "updated"
	StatusUnchanged = "unchanged"
	StatusRefused   = "refused"
)

// Count counts a record by its status.
func (n *Counts) Count(status string) {
	switch status {
	case StatusCreated:
		n.Created++
	case StatusUpdated:
		n.Updated++
	case StatusUnchanged:
		n.Unchanged++
	case StatusRefused:
		n.Refused++
	}
}

// Item is what became of a record.
type Item struct {
	ID      string   `json:"id,omitempty" doc:"The identifier, if it could be read."`
	Status  string   `json:"status" enum:"created,updated,unchanged,refused"`
	Version uint64   `json:"version,omitempty" doc:"The version that it has now, unless it was refused."`
	Problem *Problem `json:"problem,omitempty" doc:"Why it was refused."`
}

// Import is how far an import is. All counts are those of the whole import.
type Import struct {
	Lines int `json:"lines" doc:"How many lines are done: go on after them." minimum:"0"`
	Counts
	Namespaces int    `json:"namespaces,omitempty" doc:"Namespaces that were made or changed."`
	Earlier    int    `json:"earlier,omitempty" doc:"Earlier versions that were written with new records."`
	LeftOut    int    `json:"earlierLeftOut,omitempty" doc:"Earlier versions that were left out: the record is registered already, or keep is not given."`
	Import     uint64 `json:"import,omitempty" doc:"The number of the import, by which it can be reverted."`
	Done       bool   `json:"done,omitempty" doc:"All that was sent is imported."`
	Bookmark   string `json:"bookmark,omitempty" doc:"What the client gave as bookmark; then nothing else is known here."`
}

// Imported is a line of the answer to an import: how far it is, or what became
// of a line, or why it ended.
type Imported struct {
	Lines      *int          `json:"lines,omitempty" doc:"How many lines are done. In a line like this all counts are those of the whole import."`
	Created    *int          `json:"created,omitempty"`
	Updated    *int          `json:"updated,omitempty"`
	Unchanged  *int          `json:"unchanged,omitempty"`
	Refused    *int          `json:"refused,omitempty"`
	Namespaces *int          `json:"namespaces,omitempty"`
	LeftOut    *int          `json:"earlierLeftOut,omitempty" doc:"Earlier versions that were left out: the record is registered already, or keep is not given."`
	Import     uint64        `json:"import,omitempty" doc:"The number of the import, by which it can be reverted; see revertImport."`
	Done       bool          `json:"done,omitempty" doc:"This is the last line: all that was sent is imported."`
	Line       int           `json:"line,omitempty" doc:"The number of a line, from 1: the rest says what became of it."`
	ID         string        `json:"id,omitempty" doc:"The identifier in it, if it could be read."`
	Status     string        `json:"status,omitempty" enum:"created,updated,unchanged,refused"`
	Version    uint64        `json:"version,omitempty"`
	Earlier    int           `json:"earlier,omitempty" doc:"Earlier versions that were written with a new record, or with all of them."`
	Changes    []FieldChange `json:"changes,omitempty" doc:"In a dry run: every field that the line would change."`
	Problem    *Problem      `json:"problem,omitempty" doc:"Why the line was refused. Without a line: why the import ended before its end."`
}

// FieldChange is a field that a change gives another value.
type FieldChange struct {
	Path string `json:"path" doc:"Where it is in the record." example:"metadata.who"`
	Old  string `json:"old,omitempty" doc:"What it is; left out if it is not there."`
	New  string `json:"new,omitempty" doc:"What it would be; left out if it is removed."`
}

// ImportInfo is what the registry keeps of an import.
type ImportInfo struct {
	Number    uint64    `json:"number" doc:"Its number, which each version that it wrote has as import." minimum:"1"`
	Label     string    `json:"label,omitempty" doc:"What was imported."`
	By        string    `json:"by,omitempty" doc:"Who imported it."`
	Began     time.Time `json:"began,omitzero"`
	Ended     time.Time `json:"ended,omitzero" doc:"Left out while it is under way, or if it was cut off."`
	Created   int       `json:"created,omitempty" doc:"Records that it registered."`
	Updated   int       `json:"updated,omitempty" doc:"Records that it changed."`
	Unchanged int       `json:"unchanged,omitempty" doc:"Records that were registered like this already."`
	Refused   int       `json:"refused,omitempty" doc:"Records of which nothing was written."`
	Reverts   uint64    `json:"reverts,omitempty" doc:"The import that it is the revert of."`
	Reverted  uint64    `json:"reverted,omitempty" doc:"The number of its own revert."`
}

// ImportPage is a part of the list of imports.
type ImportPage struct {
	Items []ImportInfo `json:"items"`
	Next  uint64       `json:"next,omitempty" doc:"Ask again with this as after; without it this is the last page."`
}

// ImportInput is an import that begins.
type ImportInput struct {
	Label string `json:"label,omitempty" maxLength:"1000" doc:"What is imported, such as the name of a file." example:"maps.csv"`
}

// RevertInput says which version a record gets back to.
type RevertInput struct {
	To uint64 `json:"to" minimum:"1" doc:"The version whose contents it gets." example:"1"`
}

// Reverted is a line of the answer to a revert: what became of a record, or of all.
type Reverted struct {
	ID        string   `json:"id,omitempty" doc:"The record that the line is about."`
	Status    string   `json:"status,omitempty" enum:"withdrawn,reverted,left"`
	To        uint64   `json:"to,omitempty" doc:"The version whose contents it has again."`
	Why       string   `json:"why,omitempty" doc:"Why it was left."`
	Done      bool     `json:"done,omitempty" doc:"This is the last line: the counts are those of all records."`
	Number    uint64   `json:"number,omitempty" doc:"The number of the revert, which can be reverted, too."`
	Withdrawn int      `json:"withdrawn,omitempty"`
	Reverted  int      `json:"reverted,omitempty"`
	Left      int      `json:"left,omitempty"`
	Problem   *Problem `json:"problem,omitempty" doc:"Why the revert ended before its end. Send the request again to go on."`
}
