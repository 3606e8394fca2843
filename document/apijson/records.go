package apijson

import "encoding/json"

// Page is a part of any list, with its items still in JSON.
type Page struct {
	Items []json.RawMessage `json:"items"`
	Next  string            `json:"next"`
}

// RecordPage is a part of a list of records.
type RecordPage struct {
	Items []json.RawMessage `json:"items" schema:"Record"`
	Next  string            `json:"next,omitempty" doc:"The cursor of the next page. There may be one even if this page has fewer items than were asked for, or none; without it this is the last."`
}

// SearchPage is a part of what a search found.
type SearchPage struct {
	Items   []json.RawMessage `json:"items" schema:"Record"`
	Next    string            `json:"next,omitempty" doc:"The cursor of the next page. There may be one even if this page has fewer items than were asked for, or none; without it this is the last."`
	Indexed uint64            `json:"indexed" doc:"The number of a change: the search has all changes up to this one."`
	Behind  uint64            `json:"behind" doc:"How many later changes of the registry were not searched, because the index does not have them yet."`
}

// Withdrawal says why a record is withdrawn.
type Withdrawal struct {
	Reason      string `json:"reason" minLength:"1" maxLength:"10000" doc:"Why, for readers who look for it." example:"Published by mistake"`
	Replacement string `json:"replacement,omitempty" maxLength:"4096" doc:"The identifier of what to use instead." example:"ark:12345/x2"`
}

// Redaction says why the content of a record is removed.
type Redaction struct {
	Reason string `json:"reason" minLength:"1" maxLength:"10000" doc:"Why, for readers who look for it." example:"Removed by order of a court"`
}

// Disavow says which versions are disavowed.
type Disavow struct {
	First  uint64 `json:"first" minimum:"1" doc:"The first of the versions." example:"3"`
	Last   uint64 `json:"last,omitempty" doc:"The last of the versions; first if it is left out." example:"3"`
	Reason string `json:"reason" minLength:"1" maxLength:"1000" doc:"Why, for clients that ask for one of them." example:"The account of an editor was stolen"`
}

// MintInput is a request for new names.
type MintInput struct {
	Namespace  string   `json:"namespace,omitempty" doc:"The namespace to make names in." example:"ark:12345/x5"`
	Namespaces []string `json:"namespaces,omitempty" doc:"Several namespaces instead of one: each name is made in the one that is free first." maxItems:"100"`
	Count      *int     `json:"count,omitempty" doc:"How many names to make; 1 if it is left out." minimum:"1" maximum:"1000"`

	Record json.RawMessage `json:"record,omitempty" schema:"RecordInput" doc:"A record without an identifier. One like it is registered under each name."`
}

// Minted lists the names that were minted.
type Minted struct {
	Items []Label `json:"items" doc:"As many as were asked for."`
}

// Label is a new name.
type Label struct {
	ID      string          `json:"id" doc:"The identifier."`
	Aliases []string        `json:"aliases,omitempty" doc:"Other names that come with it."`
	Record  json.RawMessage `json:"record,omitempty" schema:"Record" doc:"The record as it was registered under it, if one was given."`
}
