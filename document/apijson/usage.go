package apijson

// UsageQuery asks for figures of use.
type UsageQuery struct {
	Name  string // a registered name, or a prefix of names
	From  string // the first month or day: 2026-01 or 2026-01-31; "": 12 months before the last
	Until string // the last one; "": today
	By    string // "month", "day" or "name"; "": by month
	Limit int    // of names, those that were used most; 0: all
}

// Usage is how often names were used.
type Usage struct {
	Name   string     `json:"name" doc:"The name, or the prefix of the names." example:"ark:12345/"`
	Record bool       `json:"record" doc:"Whether these are the figures of one record."`
	From   string     `json:"from" doc:"The first day." example:"2026-01-01"`
	Until  string     `json:"until" doc:"The last day." example:"2026-11-17"`
	By     string     `json:"by" enum:"month,day,name"`
	Began  string     `json:"began,omitempty" doc:"When counting began." example:"2026-01-01T00:00:00Z"`
	Rows   []UsageRow `json:"rows" nullable:"false" doc:"Periods in which something was counted, or names that were used."`
	Total  UsageRow   `json:"total"`
}

// UsageRow has figures of a name or a period. See COUNTER's codes of practice for double clicks, unique uses and robots.
type UsageRow struct {
	Name          string `json:"name,omitempty"`
	Period        string `json:"period,omitempty" doc:"A month or a day." example:"2026-11"`
	Regular       uint64 `json:"regular" doc:"Resolutions by people."`
	RegularUnique uint64 `json:"regularUnique" doc:"Of these, one for each name, reader and hour."`
	Machine       uint64 `json:"machine" doc:"Resolutions by programs that people run."`
	MachineUnique uint64 `json:"machineUnique" doc:"Of these, one for each name, reader and hour."`
	Descriptions  uint64 `json:"descriptions" doc:"Pages and metadata about records, which the server delivered."`
	Robots        uint64 `json:"robots" doc:"Uses by robots, which the others do not include."`
	Failures      uint64 `json:"failures,omitempty" doc:"Of a namespace: answers that a name leads nowhere."`
	Visitors      uint64 `json:"visitors,omitempty" doc:"Of a namespace: the sum of the visitors of each day, as an estimate."`
}
