package apijson

import "time"

// UsageSettings are how the use of a namespace is counted.
type UsageSettings struct {
	CountAll bool      `json:"countAll" doc:"Caches are told not to keep redirects of the namespace, so that the server sees and counts all of them. Readers wait a little longer, and the server answers more requests."`
	Public   bool      `json:"public,omitempty" doc:"All may see how often the namespace and each of its public names are used, by month. Nobody can list names by it, and namespaces below have a setting of their own."`
	By       string    `json:"by,omitempty" readOnly:"true"`
	Changed  time.Time `json:"changed,omitzero" readOnly:"true"`
}
