package apijson

import "time"

// TakenBundle is the last bundle that was made by hand of all names of a namespace.
type TakenBundle struct {
	Scheme        string    `json:"scheme" example:"ark"`
	Prefix        string    `json:"prefix,omitempty" maxLength:"4096" doc:"Of the namespace; missing: all names of the scheme." example:"ark:12345"`
	Made          time.Time `json:"made" doc:"When it was made."`
	By            string    `json:"by" maxLength:"255" doc:"Which user made it."`
	Manifest      string    `json:"manifest" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the manifest of the bundle."`
	Change        uint64    `json:"change" doc:"The last change in it." example:"42"`
	Records       uint64    `json:"records" doc:"In the whole bundle."`
	Versions      uint64    `json:"versions" doc:"Of those records."`
	Wider         bool      `json:"wider,omitempty" doc:"The bundle has more than this namespace and those below it."`
	Checked       time.Time `json:"checked,omitzero" doc:"When a bundle that was the last one at that time was checked and found whole."`
	CheckedBy     string    `json:"checkedBy,omitempty" maxLength:"255" doc:"Which user checked it."`
	CheckedChange uint64    `json:"checkedChange,omitempty" doc:"The last change in the bundle that was checked."`
}

// TakenBundlesPage is a part of a list of bundles.
type TakenBundlesPage struct {
	Items []TakenBundle `json:"items"`
	Next  string        `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// CheckedBundle says which bundle was checked.
type CheckedBundle struct {
	Manifest string `json:"manifest" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the manifest of the bundle, as stele bundle check prints it."`
}
