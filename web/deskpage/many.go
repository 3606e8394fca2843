package deskpage

import "time"

// Many is the page on which a curator sends many rows at once.
type Many struct {
	Frame
	Choice     Choice // of the namespace in which names are made
	Update     bool
	Systems    []Option // that the file may come from
	Prefix     Field    // stands before names that are not identifiers in a file of another system
	Text, File Field
	Folder     Field // of files
	Tree       bool  // never: the form can't know yet what is sent
	Spaces     bool  // namespaces are made that the rules of a folder need
	Open       []Upload
	Most       string // bytes that a file may have, with a unit
	MostRows   int
}

// Upload is a file that was sent and not used yet.
type Upload struct {
	Name, URL string
	Created   time.Time
}

// Preview is what would become of the rows of a file.
type Preview struct {
	Frame
	ID, Name   string
	Encoding   string // that was found, in words
	Foreign    int    // lines with characters that are not UTF-8
	Separator  string // in words; "" for JSON
	System     string // that the file comes from, in words; "" for rows of our own forms
	Systems    []Option
	Prefix     Field
	Notes      []string // what else is to be told of the file of another system
	Tree       bool     // it may be a folder, with rules
	Files      int      // in that folder
	Spaces     bool     // namespaces are made that its rules need
	Root       Field    // the folder in it after which names begin
	Namespace  string   // in which names are made; "" if none is chosen
	Choice     Choice
	Encodings  []Option
	Update     bool
	Headless   bool
	Columns    []Column
	Open       bool // the form about columns is open
	Judged     bool // the numbers are there
	All        int
	Kinds      []KindCount
	Nameless   int
	Good       int // rows that would be written
	Refused    int
	Unchanged  int
	Rows       []ManyRow
	Next       string // URL of the next page; "" on the last one
	Kind       string // that is shown; "" for all
	RejectsURL string // of the rows that can't be used, as a file
	Mine       string // URL of the page
	Seen       string // mark of the file and its settings as they are shown
	New        int    // records that are made
	Changed    int    // records that change
	Typed      Field  // that number, which is typed for a great change
	Confirm    bool   // it has to be typed
}

// Column is a column of a sheet.
type Column struct {
	Number  int
	Name    string
	Samples []string
	Field   Field
	Choices []Option
}

// KindCount is how many rows there are of a kind.
type KindCount struct {
	Kind, Text, URL string
	Count           int
	Shown           bool
}

// ManyRow is a row of a sheet, and what becomes of it.
type ManyRow struct {
	Line             int
	Title, URL, Name string
	NameURL          string // of its record; "" if there is none yet
	Kind, Result     string
	Changes          []FieldChange
	More             int      // changes that are not shown
	Problems         []string // why it is refused
}

// FieldChange is a field that gets another value.
type FieldChange struct{ Field, Old, New string }

// JobRow is a job in a list.
type JobRow struct {
	URL, Name, By, State, StateText string
	Created                         time.Time
	Done, Total                     int
}

// Jobs is the list of jobs.
type Jobs struct {
	Frame
	List []JobRow
	All  bool // of all users
}

// Job is the page of a job.
type Job struct {
	Frame
	JobRow
	Open      bool   // it has not ended
	Refresh   string // seconds after which the page is read again; "" if it has ended
	Percent   int
	Cancelled bool // a user has asked for its end
	Facts     []KindCount
	Problem   string // why it failed
	Notes     []string
	Ended     time.Time
	Import    uint64
	Result    string // URL of the result as a file
	Rejects   string // URL of what was refused, as a file
	Undo      string // URL of the page that undoes it; "" if it can't be
	UndoneBy  string // URL of the job that undid it
	Of        string // URL of the job that it undoes
	Log       []JobEvent
	Rows      []ManyRow // some of what was refused
	Namespace string
}

// JobEvent is a line of the log of a job.
type JobEvent struct {
	At           time.Time
	Text, Server string
}

// Undo is the page that shows what undoing a job would do.
type Undo struct {
	Frame
	URL                       string // of the job
	Name                      string
	Withdrawn, Reverted, Left int
	Rules, RulesLeft          int // namespaces that get their former rules, and those whose rules were changed since
	All                       int // records and namespaces that change
	Steps                     []UndoStep
	Typed                     Field
	Confirm                   bool
}

// UndoStep is what undoing does to a record.
type UndoStep struct{ ID, URL, Text, Why string }

// Replace is the page that replaces a host or another beginning of targets.
type Replace struct {
	Frame
	From, To Field
	Choice   Choice
	Judged   bool
	Count    int
	Good     int
	Refused  int
	Samples  []ReplaceSample
	Typed    Field
	Confirm  bool
	Once     string // ID of the job that the form starts, so that it starts one
}

// ReplaceSample is what a replacement does to a record.
type ReplaceSample struct {
	ID, Title, URL, Old, New string
	Problems                 []string
}
