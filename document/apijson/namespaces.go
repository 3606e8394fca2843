package apijson

import (
	"encoding/json"
	"time"
)

// NamespacePage is a part of a list of namespaces.
type NamespacePage struct {
	Items []json.RawMessage `json:"items" schema:"Namespace"`
	Next  string            `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// Minter is how far the minter of a namespace is.
type Minter struct {
	Namespace string     `json:"namespace" doc:"The namespace's prefix." example:"ark:12345/x5"`
	Kind      string     `json:"kind,omitempty" doc:"How names are made; without it none are."`
	Last      *time.Time `json:"last,omitempty" doc:"The date up to which dates are taken."`
	Given     uint64     `json:"given,omitempty" doc:"How many names of the template are given."`
	Total     uint64     `json:"total,omitempty" doc:"How many the template has; without it there is no end."`
	Shut      bool       `json:"shut,omitempty" doc:"No names are made until the counter is set ahead: a restore shut it."`
	Names     uint64     `json:"names" doc:"How many names count for the namespace: identifiers of records, and aliases."`
	Quota     uint64     `json:"quota,omitempty" doc:"How many names there may be; without it there is no limit."`
}

// Skip says how far a counter is set.
type Skip struct {
	To    uint64 `json:"to,omitempty" doc:"So many names count as given." example:"250000"`
	Ahead uint64 `json:"ahead,omitempty" doc:"So many more than now; instead of to." example:"10000"`
}

// Hosts is a list of hosts of PURLs.
type Hosts struct {
	Hosts []string `json:"hosts" doc:"Hosts, each a name and perhaps a port." minItems:"1" maxItems:"100" example:"[\"purl.example.org\"]"`
}

// Breach is a line of what a check of a namespace found. One that has only
// read says that the check goes on.
type Breach struct {
	ID       string  `json:"id,omitempty" doc:"The record." example:"ark:12345/x5b"`
	Version  uint64  `json:"version,omitempty" doc:"Its version."`
	Problems []Fault `json:"problems,omitempty" doc:"The rules that it breaks."`
	Read     int     `json:"read,omitempty" doc:"How many records were read so far."`
	Done     bool    `json:"done,omitempty" doc:"This is the last line: all records were read."`
	Found    *int    `json:"found,omitempty" doc:"How many records break a rule."`
}

// NamespaceSamples is what a namespace would be like that does not exist yet.
type NamespaceSamples struct {
	Samples []string `json:"samples" doc:"Names such as its minter would make; none if it makes no names, or if they can't be foreseen." example:"[\"ark:12345/q71b\"]"`
}
