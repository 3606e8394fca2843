package apijson

import "time"

// Deposits are the deposits of the registry that servers make at a place.
type Deposits struct {
	Name      string    `json:"name" doc:"As the settings of the servers call it." example:"vault"`
	Place     string    `json:"place" doc:"Where they are." example:"sftp://stele@vault.example.org/srv/stele"`
	Prefixes  []string  `json:"prefixes,omitempty" doc:"What names in them begin with; without it all names."`
	Every     int64     `json:"every" doc:"Seconds after which a deposit is made again, if something has changed." example:"86400"`
	Deposit   string    `json:"deposit,omitempty" doc:"The last one, as it is called at the place."`
	Deposited time.Time `json:"deposited,omitzero" doc:"When it was made."`
	Change    uint64    `json:"change,omitempty" doc:"The last change in it." example:"42"`
	Records   uint64    `json:"records,omitempty" doc:"In it."`
	Objects   int       `json:"objects,omitempty" doc:"Of which it consists."`
	Sent      int       `json:"sent,omitempty" doc:"Objects of it that were new at the place."`
	Bytes     int64     `json:"bytes,omitempty" doc:"Of those."`
	Checked   time.Time `json:"checked,omitzero" doc:"When a check last found all of the last deposit whole."`
	Ended     time.Time `json:"ended,omitzero" doc:"When a server last looked whether a deposit is needed, and made it if so."`
	Next      time.Time `json:"next,omitzero" doc:"When a server does so next."`
	Failures  int       `json:"failures,omitempty" doc:"How often it failed, one time after the other."`
	Said      string    `json:"said,omitempty" doc:"Why it failed the last time."`
	UnderWay  bool      `json:"underWay,omitempty" doc:"A server works on it now."`
}

// DepositsPage is a part of a list of deposits.
type DepositsPage struct {
	Items []Deposits `json:"items"`
	Next  string     `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}
