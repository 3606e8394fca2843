package apijson

import "time"

// WatchedRegistry is a registry that servers watch, as its heir.
type WatchedRegistry struct {
	Origin string    `json:"origin" maxLength:"300" doc:"Its name: the origin of its log." example:"giver.example.org/.log"`
	URL    string    `json:"url" doc:"Below which its log is served." example:"https://giver.example.org/.log"`
	Keys   []string  `json:"keys" doc:"Public keys of its log."`
	By     string    `json:"by,omitempty" doc:"Which principal added it."`
	Added  time.Time `json:"added,omitzero"`
	Size   uint64    `json:"size,omitempty" doc:"Entries of its log, by the last good checkpoint."`
	Seen   time.Time `json:"seen,omitzero" doc:"When the last good checkpoint came; missing if none ever did."`
	Silent int       `json:"silent" doc:"On how many different days, by UTC, it was asked since then and gave none. A day on which it was not asked does not count."`
	Asked  time.Time `json:"asked,omitzero" doc:"When it was asked last."`
	Next   time.Time `json:"next,omitzero" doc:"When it is asked next."`
	Said   string    `json:"said,omitempty" doc:"What became of the last question."`
}

// WatchedPage is a part of a list of watched registries.
type WatchedPage struct {
	Items []WatchedRegistry `json:"items"`
	Next  string            `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// NewWatch is a registry that is to be watched.
type NewWatch struct {
	Origin string   `json:"origin" maxLength:"300" doc:"Its name: the origin of its log." example:"giver.example.org/.log"`
	URL    string   `json:"url" maxLength:"2000" doc:"Where it is. The server asks public addresses only, and those of its setting handover-allow." example:"https://giver.example.org"`
	Keys   []string `json:"keys" maxItems:"16" doc:"Public keys of its log, as it publishes them."`
}
