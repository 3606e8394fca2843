package web

import "io"

// API is the view of an interface for programs.
type API struct {
	Frame
	Document string // URL of the same for programs
	Groups   []APIGroup
	Schemas  []APISchema
	Problems []APIProblem
}

// APIGroup is a group of operations.
type APIGroup struct {
	Title      string
	Operations []APIOperation
}

// APIOperation is something that the interface does.
type APIOperation struct {
	Name       string
	Method     string
	Path       string
	Summary    string
	About      string // may be empty
	Role       string // the role or right that it needs, in words
	Parameters []APIField
	Body       []APIBody // what may be sent, by media type
	BodyAbout  string    // may be empty
	Answers    []APIAnswer
	Example    string // for a shell
}

// APIField is a parameter, or a field of a schema.
type APIField struct {
	Name     string
	Place    string // "query", "path", "header"; empty for a field
	Kind     string // in words: "number", "list of Target"
	Schema   string // that it has; may be empty
	About    string // may be empty
	Required bool
}

// APIBody is a body of one media type.
type APIBody struct {
	Type   string
	Kind   string // in words; may be empty
	Schema string // may be empty
}

// APIAnswer is an answer.
type APIAnswer struct {
	Status  int
	About   string
	Bodies  []APIBody
	Problem string // of an error: the name of its kind; otherwise empty
}

// APISchema is a kind of document.
type APISchema struct {
	Name   string
	Fields []APIField
}

// APIProblem is a kind of error. Its name follows # in the type of a problem document
// (RFC 9457), and leads to its line.
type APIProblem struct {
	Name   string
	Status int
	Title  string
}

// API writes the page about the interface for programs.
func (p *Pages) API(w io.Writer, v *API) error { return p.write(w, "api", v) }
