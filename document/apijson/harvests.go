package apijson

import "time"

// Harvest is a harvest that servers do from time to time.
type Harvest struct {
	Name      string    `json:"name" example:"theses"`
	URL       string    `json:"url" doc:"The base URL of the repository." example:"https://example.org/oai"`
	Namespace string    `json:"namespace" doc:"Where the names are." example:"ark:12345"`
	Format    string    `json:"format" example:"oai_dc"`
	Set       string    `json:"set,omitempty"`
	Every     int64     `json:"every" doc:"Seconds after which it is repeated." example:"86400"`
	Limit     float64   `json:"limit" doc:"Part of the names that may be withdrawn without asking." example:"0.05"`
	By        string    `json:"by" doc:"The user whose rights it has." example:"ann"`
	Added     time.Time `json:"added"`
	Ended     time.Time `json:"ended,omitzero" doc:"When it was done last."`
	Next      time.Time `json:"next,omitzero" doc:"When it is done next."`
	Said      string    `json:"said,omitempty" doc:"What became of it last."`
	Failures  int       `json:"failures,omitempty" doc:"How often it failed, one after the other."`
	Waits     string    `json:"waits,omitempty" doc:"It waits for a person: deleted (more names than the limit would be withdrawn) or rights (its user has them no more)."`
	UnderWay  bool      `json:"underWay,omitempty" doc:"A server does it now."`
	Asked     bool      `json:"asked,omitempty" doc:"A person asked for it, and a server does it soon."`
}

// HarvestPage is a part of a list of harvests.
type HarvestPage struct {
	Items []Harvest `json:"items"`
	Next  string    `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// NewHarvest is a harvest as it is sent.
type NewHarvest struct {
	Name      string   `json:"name" maxLength:"64" doc:"Up to 64 of a-z, 0-9 and hyphen, beginning with a letter."`
	URL       string   `json:"url" maxLength:"2000" doc:"The base URL of the repository. The server asks public addresses only, and those that its operator allows."`
	Namespace string   `json:"namespace" maxLength:"4096" doc:"Where the names are."`
	Format    string   `json:"format,omitempty" maxLength:"64" doc:"epicur, oai_dc or oai_datacite; oai_dc without it."`
	Set       string   `json:"set,omitempty" maxLength:"500" doc:"A set of the repository; without it all records."`
	Every     int64    `json:"every,omitempty" doc:"Seconds after which it is repeated; a day without it."`
	Limit     *float64 `json:"limit,omitempty" doc:"Part of the names that may be withdrawn without asking; 0.05 without it."`
}

// HarvestNow asks for a harvest.
type HarvestNow struct {
	Yes bool `json:"yes,omitempty" doc:"Withdraw all names that are deleted in the repository, however many they are."`
}
