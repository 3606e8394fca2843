package apijson

// Replacement says which beginning of targets is replaced by which.
type Replacement struct {
	From      string `json:"from" maxLength:"2000" doc:"A host, or the beginning of a URL." example:"old.example.org"`
	To        string `json:"to" maxLength:"2000" doc:"What comes instead of it: a host for a host, the beginning of a URL for such a beginning." example:"new.example.org"`
	Namespace string `json:"namespace,omitempty" doc:"The prefix of the namespace whose records change, with the namespaces below it. Without it all records that you may change." example:"ark:12345"`
	Expect    *int   `json:"expect,omitempty" minimum:"0" doc:"How many records will change. If it is another number by now, nothing is written. Without it nothing is written at all: the answer says what would change." example:"1"`
}

// Replaced is a line of the answer to a replacement: what became of a record, or of all.
type Replaced struct {
	ID      string   `json:"id,omitempty" doc:"The record that the line is about."`
	Status  string   `json:"status,omitempty" enum:"changed,refused" doc:"Without expect, what would become of it."`
	Title   string   `json:"title,omitempty"`
	Old     string   `json:"old,omitempty" doc:"The first URL that changes."`
	New     string   `json:"new,omitempty" doc:"What comes instead of it."`
	Judged  int      `json:"judged,omitempty" doc:"How many records were looked at before the first is written."`
	Done    bool     `json:"done,omitempty" doc:"This is the last line: the counts are those of all records."`
	Import  uint64   `json:"import,omitempty" doc:"The number by which the replacement can be reverted, as an import."`
	Changed int      `json:"changed,omitempty"`
	Refused int      `json:"refused,omitempty"`
	Digest  string   `json:"digest,omitempty" doc:"Of acceptMoved: stands for all that would change. Send it to have that written."`
	Problem *Problem `json:"problem,omitempty" doc:"Why a record was refused; without an ID, why the replacement ended before its end. Send the request again to go on."`
}
