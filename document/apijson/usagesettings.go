package apijson

import "time"

// UsageSettings are how the use of a namespace is counted.
type UsageSettings struct {
	CountAll bool      `json:"countAll" doc:"Caches are told not to keep redirects of the namespace, so that the server sees and counts all of them. Readers wait a little longer, and the server answers more requests."`
	By       string    `json:"by,omitempty" readOnly:"true"`
	Changed  time.Time `json:"changed,omitzero" readOnly:"true"`
}
