package apijson

// UsageLogOptions say how a log file of another server is counted.
type UsageLogOptions struct {
	Name     string `json:"name" maxLength:"4096" doc:"What the file is called, for messages." example:"access.log"`
	Size     int64  `json:"size" minimum:"0" doc:"How many bytes it has."`
	Format   string `json:"format,omitempty" enum:"combined,common" doc:"Of its lines; combined if it is left out."`
	Base     string `json:"base,omitempty" maxLength:"4096" doc:"What stands before names in the paths of requests; a slash if it is left out." example:"/resolve/"`
	Host     string `json:"host,omitempty" maxLength:"255" doc:"The host of the server that wrote it, whose own pages are not referring ones." example:"id.example.org"`
	Cut      bool   `json:"cutAddresses,omitempty" doc:"Tell readers apart by their network only."`
	Masked   bool   `json:"masked,omitempty" doc:"In place of addresses there are other texts: countries are not counted."`
	DryRun   bool   `json:"dryRun,omitempty" doc:"Say what would be counted, and write nothing."`
	NewLists bool   `json:"newLists,omitempty" doc:"Finish a file of which a part was counted with other lists of robots or countries."`
}

// UsageLog is a log file that is sent to the server.
type UsageLog struct {
	ID   string `json:"id" doc:"Its name at the server. It is a secret." example:"6f1c0a5d"`
	Size int64  `json:"size" doc:"How many bytes the server has."`
}

// UsageLogCounted is a line of how a log file is counted.
type UsageLogCounted struct {
	Lines   int              `json:"lines,omitempty" doc:"Lines that were read since the last one that says so; the file is read twice."`
	Done    bool             `json:"done,omitempty" doc:"This is the last line: all is counted."`
	Summary *UsageLogSummary `json:"summary,omitempty"`
	Problem *Problem         `json:"problem,omitempty" doc:"Why not all is counted. It is the last line."`
}

// UsageLogSummary is what became of the lines of a log file.
type UsageLogSummary struct {
	File       string `json:"file"`
	Lines      int    `json:"lines" doc:"Lines that were read and not counted before."`
	Before     int    `json:"before,omitempty" doc:"Lines that were counted before."`
	Counted    int    `json:"counted" doc:"Resolutions and descriptions."`
	Doubles    int    `json:"doubles" doc:"Double clicks, which count as one."`
	Robots     int    `json:"robots" doc:"Uses by robots."`
	Failures   int    `json:"failures" doc:"Answers that a name leads nowhere."`
	Unknown    int    `json:"unknown" doc:"Names that are not registered, or in no namespace."`
	NotNames   int    `json:"notNames" doc:"Requests of other things than names."`
	NotCounted int    `json:"notCounted" doc:"Other methods than GET, other answers, users with a name, checks of our own."`
	Unreadable int    `json:"unreadable" doc:"Lines that are not in the format."`
	First      []int  `json:"first,omitempty" doc:"Numbers of the first lines that are not in the format."`
	Late       int    `json:"late,omitempty" doc:"Lines that come much later than those after them."`
	Overflow   uint64 `json:"overflow,omitempty" doc:"Uses beyond what fits into memory: double clicks and sessions are not known."`
	LeftOut    uint64 `json:"leftOut,omitempty" doc:"Figures that could not be added, because a cell is damaged."`
	Incomplete bool   `json:"incomplete,omitempty" doc:"The last line has no end, and is not counted."`
	DryRun     bool   `json:"dryRun,omitempty" doc:"Nothing was written."`
}
