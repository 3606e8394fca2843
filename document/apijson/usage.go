package apijson

import (
	"iter"
	"strconv"
)

// UsageQuery asks for figures of use.
type UsageQuery struct {
	Name  string // a registered name, or a prefix of names
	Of    string // "record" or "namespace", where both have the name; "": the namespace, or else the record, or else all names with the prefix
	From  string // the first month or day: 2026-01 or 2026-01-31; "": 12 months before the last
	Until string // the last one; "": today
	By    string // "month", "day" or "name"; "": by month
	Limit int    // of names, those that were used most; 0: all
}

// Usage is how often names were used.
type Usage struct {
	Name   string     `json:"name" doc:"The name, or the prefix of the names." example:"ark:12345/"`
	Title  string     `json:"title,omitempty" doc:"Of a namespace whose figures are public: its title."`
	Record bool       `json:"record" doc:"Whether these are the figures of one record."`
	From   string     `json:"from" doc:"The first day." example:"2026-01-01"`
	Until  string     `json:"until" doc:"The last day." example:"2026-11-17"`
	By     string     `json:"by" enum:"month,day,name"`
	Began  string     `json:"began,omitempty" doc:"When counting began." example:"2026-01-01T00:00:00Z"`
	Rows   []UsageRow `json:"rows" nullable:"false" doc:"Periods in which something was counted, or names that were used."`
	Total  UsageRow   `json:"total"`

	Damaged int `json:"damaged,omitempty" doc:"How many stored figures could not be read; they are left out."`

	Public bool `json:"public,omitempty" doc:"These are what all may see: figures of months, without failures; of a namespace those of namespaces below it whose figures are public too."`
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

// Columns returns the figures of a row, in the order of [UsageColumns].
func (r *UsageRow) Columns() []uint64 {
	return []uint64{r.Regular, r.RegularUnique, r.Machine, r.MachineUnique, r.Descriptions, r.Robots, r.Failures, r.Visitors}
}

// UsageColumns returns the names of the columns of figures in a table.
func UsageColumns() []string {
	return []string{"regular", "regular_unique", "machine", "machine_unique", "descriptions", "robots", "failures", "visitors"}
}

// Table yields the figures as the rows of a table, a header first.
func (u *Usage) Table() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		first := "period"
		if u.By == "name" {
			first = "name"
		}
		if !yield(append([]string{first}, UsageColumns()...)) {
			return
		}
		for i := range u.Rows {
			line := []string{u.Rows[i].Period + u.Rows[i].Name}
			for _, n := range u.Rows[i].Columns() {
				line = append(line, strconv.FormatUint(n, 10))
			}
			if !yield(line) {
				return
			}
		}
	}
}

// Table yields the counts as the rows of a table, a header first. Other counts have an empty text.
func (u *UsageBreakdown) Table() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		first := u.By
		if first == "dns" {
			first = "hour"
		}
		if !yield([]string{first, "count"}) {
			return
		}
		for _, row := range u.Rows {
			if !yield([]string{row.Text, strconv.FormatUint(row.Count, 10)}) {
				return
			}
		}
		if u.Other > 0 {
			yield([]string{"", strconv.FormatUint(u.Other, 10)})
		}
	}
}

// Table yields the names as the rows of a table, a header first.
func (u *Unused) Table() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if !yield([]string{"name", "created"}) {
			return
		}
		for _, n := range u.Names {
			if !yield([]string{n.Name, n.Created}) {
				return
			}
		}
	}
}

// UsageReportQuery asks for a report of the use of names.
type UsageReportQuery struct {
	Name        string // a prefix of names
	From, Until string // as in UsageQuery
	After       string // the name after which the report goes on; "": it begins
	Limit       int    // how many names there are at most; 0: 100
}

// UsageReport is a report of the use of names. It has the shape of the reports of COUNTER's Code of Practice for Research Data, and is not one of them:
// a resolver delivers nothing, so what it counts are resolutions.
type UsageReport struct {
	Header UsageReportHeader `json:"report-header"`
	Names  []UsageReportName `json:"report-datasets" nullable:"false" doc:"Names that were used, in their order."`
}

// UsageReportHeader says what a report is about.
type UsageReportHeader struct {
	Name       string             `json:"report-name" example:"Resolution Report"`
	ID         string             `json:"report-id" doc:"Of this kind of report; it is not one of COUNTER's." example:"stele-resolutions"`
	Release    string             `json:"release" example:"1"`
	Created    string             `json:"created" example:"2026-11-17T12:00:00Z"`
	CreatedBy  string             `json:"created-by" example:"Stele"`
	Period     UsageReportPeriod  `json:"reporting-period"`
	Filters    []UsageReportValue `json:"report-filters" nullable:"false"`
	Attributes []UsageReportValue `json:"report-attributes" nullable:"false"`
	Exceptions []UsageReportFault `json:"exceptions" nullable:"false" doc:"What the report does not have."`
	Next       string             `json:"next,omitempty" doc:"If there are more names: the value of after that leads to them."`
}

// UsageReportFault says what a report does not have.
type UsageReportFault struct {
	Code    int    `json:"code" example:"3040"`
	Message string `json:"message"`
	Data    string `json:"data,omitempty"`
}

// UsageReportPeriod is a period; both days belong to it.
type UsageReportPeriod struct {
	Begin string `json:"begin-date" example:"2026-11-01"`
	End   string `json:"end-date" example:"2026-11-30"`
}

// UsageReportValue is a value with a name.
type UsageReportValue struct {
	Name  string `json:"name" example:"prefix"`
	Value string `json:"value" example:"ark:12345"`
}

// UsageReportID is an identifier with its type.
type UsageReportID struct {
	Type  string `json:"type" example:"ark"`
	Value string `json:"value" example:"ark:12345/x1"`
}

// UsageReportName is how often a name was used.
type UsageReportName struct {
	Title       string              `json:"dataset-title"`
	ID          []UsageReportID     `json:"dataset-id" nullable:"false"`
	Platform    string              `json:"platform" example:"Stele"`
	Publisher   string              `json:"publisher" doc:"The namespace."`
	PublisherID []UsageReportID     `json:"publisher-id" nullable:"false"`
	DataType    string              `json:"data-type" example:"Other"`
	Performance []UsageReportFigure `json:"performance" nullable:"false"`
}

// UsageReportFigure has the figures of a month.
type UsageReportFigure struct {
	Period   UsageReportPeriod     `json:"period"`
	Instance []UsageReportInstance `json:"instance" nullable:"false"`
}

// UsageReportInstance is a figure.
type UsageReportInstance struct {
	Metric string `json:"metric-type" enum:"total-resolutions,unique-resolutions,total-descriptions"`
	Access string `json:"access-method,omitempty" enum:"regular,machine" doc:"Of resolutions: by people, or by programs that they run."`
	Count  uint64 `json:"count"`
}
