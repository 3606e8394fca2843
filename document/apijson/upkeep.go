package apijson

import "time"

// SecretKeys are the keys that encrypt secrets of the registry. The keys themselves are
// never shown.
type SecretKeys struct {
	Keys  []SecretKey `json:"keys"`
	Clear int         `json:"clear,omitempty" doc:"How many secrets are not encrypted yet."`
}

// SecretKey is a key that encrypts secrets.
type SecretKey struct {
	ID      string `json:"id" example:"5f0c1d2e3a4b" doc:"Derived from the key, which it does not reveal."`
	Current bool   `json:"current,omitempty" doc:"New secrets are encrypted under it."`
	Present bool   `json:"present,omitempty" doc:"This server has it."`
	Secrets int    `json:"secrets" doc:"How many secrets are encrypted under it."`
}

// SecretRotation is how secrets are to be encrypted.
type SecretRotation struct {
	Key  string `json:"key,omitempty" maxLength:"40" doc:"Under which key. Without it a rotation that was interrupted goes on, or the last key of the server is taken, or one is made."`
	Lost bool   `json:"lost,omitempty" doc:"Leave secrets as they are whose key the server does not have."`
}

// SecretRotated is what a rotation did.
type SecretRotated struct {
	Key   string         `json:"key" doc:"Under which secrets are encrypted now."`
	Moved int            `json:"moved" doc:"How many were encrypted anew."`
	Lost  map[string]int `json:"lost,omitempty" doc:"How many could not be decrypted, by the key that is missing. They must be made anew."`
}

// Status is how a running installation is: what stele doctor looks at.
type Status struct {
	Version      string        `json:"version,omitempty" doc:"The program's version."`
	Now          time.Time     `json:"now" doc:"The server's clock."`
	Ready        bool          `json:"ready" doc:"The registry can be written."`
	Why          string        `json:"why,omitempty" doc:"Why it can't, and what will happen."`
	Changes      uint64        `json:"changes" doc:"How many changes the registry has."`
	Generation   Generation    `json:"generation" doc:"The generation of the registry. A restore begins another."`
	LastChange   *time.Time    `json:"lastChange,omitempty" doc:"When the last one was made."`
	Namespaces   int           `json:"namespaces" doc:"How many namespaces there are."`
	Zones        []string      `json:"zones,omitempty" doc:"Zones that the server answers the DNS for."`
	Shut         []string      `json:"shut,omitempty" doc:"Namespaces that make no names until their counters are set ahead: a restore shut them."`
	Disk         *Disk         `json:"disk,omitempty" doc:"The disk of the registry."`
	Search       *Search       `json:"search,omitempty" doc:"The search index; missing if there is none."`
	Certificates []Certificate `json:"certificates,omitempty" doc:"Certificates that the server shows."`
	Tokens       []Expiry      `json:"tokens,omitempty" doc:"Tokens that are good now, and expire within 30 days; at most 1000."`
}

// Generation is a generation of the registry.
type Generation struct {
	ID       string    `json:"id" doc:"Its identifier, which version tokens begin with."`
	Number   uint64    `json:"number" doc:"1 for the first; greater for each that follows." minimum:"1"`
	Began    time.Time `json:"began" doc:"When it began."`
	Restored string    `json:"restored,omitempty" doc:"The generation and the last change of the backup that it began with."`
	Replaced string    `json:"replaced,omitempty" doc:"The generation and the last change of the registry whose place it took."`
}

// Search is how the search index is.
type Search struct {
	Indexed uint64 `json:"indexed" doc:"The number of a change: the index has all changes up to this one."`
	Behind  uint64 `json:"behind" doc:"How many changes of the registry it does not have yet."`
	Records uint64 `json:"records" doc:"How many records it has."`
	Bytes   uint64 `json:"bytes" doc:"Its size on the disk."`
}

// Disk is the room on a disk.
type Disk struct {
	Free  uint64 `json:"free" doc:"Bytes that can be written."`
	Total uint64 `json:"total" doc:"Bytes that it has."`
}

// Certificate is a certificate.
type Certificate struct {
	Name     string    `json:"name" doc:"The name that it is for."`
	NotAfter time.Time `json:"notAfter" doc:"When it expires."`
}

// Expiry is a token that expires soon.
type Expiry struct {
	ID      string    `json:"id" doc:"The token, without its secret."`
	User    string    `json:"user" doc:"Whose it is."`
	Label   string    `json:"label,omitempty" doc:"What it is for."`
	Expires time.Time `json:"expires"`
}

// ChangePage is a part of the list of changes.
type ChangePage struct {
	Items []Change `json:"items"`

	Generation string `json:"generation,omitempty" doc:"The generation of the registry that the numbers belong to; send it along with after. A restore begins another."`

	Last uint64 `json:"last" doc:"The number of the last change that there is. Ask again with after, the number of the last item, until they are the same."`
}

// Change is a change: of a record or of a namespace.
type Change struct {
	Seq       uint64    `json:"seq" doc:"Its number. Numbers begin with 1 and have no gaps." minimum:"1"`
	ID        string    `json:"id,omitempty" doc:"The record that changed."`
	Namespace string    `json:"namespace,omitempty" doc:"The namespace that changed."`
	Version   uint64    `json:"version" doc:"The version that it got."`
	At        time.Time `json:"at"`
}

// Verified is a line of what was found. An empty one says that it goes on.
type Verified struct {
	Problem string `json:"problem,omitempty" doc:"Something that is wrong."`
	Note    string `json:"note,omitempty" doc:"A name that is kept as it was written, and that would not be accepted today. Nothing is damaged there."`
	Coded
	Done    bool    `json:"done,omitempty" doc:"This is the last line: all was looked at."`
	Wrong   *int    `json:"wrong,omitempty" doc:"How many problems there are."`
	Changes *uint64 `json:"changes,omitempty" doc:"How many changes the registry has."`
}

// Restored is a line of what a restore does. An empty one says that it goes on.
type Restored struct {
	Step    string        `json:"step,omitempty" doc:"What is done now."`
	Done    bool          `json:"done,omitempty" doc:"This is the last line: the backup is the registry now."`
	Changes *uint64       `json:"changes,omitempty" doc:"How many changes the registry has now."`
	Kept    string        `json:"kept,omitempty" doc:"The folder on the server in which the registry is that was replaced."`
	Shut    []string      `json:"shut,omitempty" doc:"Namespaces that make no names until their counters are set ahead; see skip."`
	Zones   []CheckedZone `json:"zones,omitempty" doc:"Zones that have secondaries or are shut, with the serials that they have now."`
	Problem *Problem      `json:"problem,omitempty" doc:"Why nothing was replaced."`
}
