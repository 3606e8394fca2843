package apijson

import "time"

// UsageSettings are how the use of a namespace is counted.
type UsageSettings struct {
	CountAll bool      `json:"countAll" doc:"Caches are told not to keep redirects of the namespace, so that the server sees and counts all of them. Readers wait a little longer, and the server answers more requests."`
	Public   bool      `json:"public,omitempty" doc:"All may see how often the namespace and each of its public names are used, by month. Nobody can list names by it, and namespaces below have a setting of their own."`
	By       string    `json:"by,omitempty" readOnly:"true"`
	Changed  time.Time `json:"changed,omitzero" readOnly:"true"`
}

// UsageSettingsChange is a change of how the use of a namespace is counted. What is nil stays as it is.
type UsageSettingsChange struct {
	CountAll *bool `json:"countAll,omitempty" doc:"Tell caches not to keep redirects of the namespace."`
	Public   *bool `json:"public,omitempty" doc:"Show all how often the namespace and each of its public names are used, by month."`

	// A client that sends back what it was told has them.
	By      string    `json:"by,omitempty" readOnly:"true"`
	Changed time.Time `json:"changed,omitzero" readOnly:"true"`
}
