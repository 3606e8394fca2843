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

	Damaged int `json:"damaged,omitempty" doc:"How many stored figures could not be read; they are left out."`
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

// UsageBreakdown is how often something was counted for a namespace: referring hosts, countries of readers, names that lead
// nowhere, or answers of the DNS.
type UsageBreakdown struct {
	Name  string       `json:"name" doc:"The prefix of the namespace." example:"ark:12345"`
	By    string       `json:"by" enum:"referrer,country,failure,dns"`
	From  string       `json:"from" doc:"The first day." example:"2026-01-01"`
	Until string       `json:"until" doc:"The last day." example:"2026-11-17"`
	Began string       `json:"began,omitempty" doc:"When counting began." example:"2026-01-01T00:00:00Z"`
	Zone  string       `json:"zone,omitempty" doc:"Of answers of the DNS: the zone of the namespace." example:"ark.example."`
	Rows  []UsageCount `json:"rows" nullable:"false" doc:"The most frequent first; hours in their order."`
	Other uint64       `json:"other,omitempty" doc:"How often something else was counted: hosts that are not among the most frequent, countries that are not known."`
	Total uint64       `json:"total"`

	Damaged int `json:"damaged,omitempty" doc:"How many stored figures could not be read; they are left out."`
}

// UsageCount is how often a text was counted.
type UsageCount struct {
	Text  string `json:"text" doc:"A registrable domain, a country as two letters (ISO 3166-1), a name, or the beginning of an hour." example:"example.org"`
	Count uint64 `json:"count"`
}

// UnusedQuery asks for names that were not used.
type UnusedQuery struct {
	Name  string // a prefix of names
	Since string // the first month that counts: 2024-11; "": 24 months before this one
	After string // the name after which the list begins; "": the first
	Limit int    // how many names there are at most; 0: 100
}

// Unused are names that were not used.
type Unused struct {
	Name  string       `json:"name" doc:"The prefix of the names." example:"ark:12345"`
	Since string       `json:"since" doc:"The first month in which a use counts." example:"2024-11"`
	Began string       `json:"began,omitempty" doc:"When counting began; earlier uses are not known." example:"2026-01-01T00:00:00Z"`
	Names []UnusedName `json:"names" nullable:"false" doc:"Active records, in the order of their names."`
	Next  string       `json:"next,omitempty" doc:"If there may be more: the value of after that leads to them. There may be such a value where names is empty."`

	Damaged int `json:"damaged,omitempty" doc:"How many stored figures could not be read; their names are not listed."`
}

// UnusedName is a name that was not used.
type UnusedName struct {
	Name    string `json:"name" example:"ark:12345/x1"`
	Created string `json:"created" doc:"When it was registered." example:"2026-01-01T00:00:00Z"`
}
