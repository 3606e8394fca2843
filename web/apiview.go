package web

import (
	"io"
	"slices"
	"strings"
	"unicode"
)

// API is the view of an interface for programs.
type API struct {
	Frame
	Document string     // URL of the same for programs
	Groups   []APIGroup // all
	Schemas  []APISchema
	Problems []APIProblem

	// What of it the page shows: a group of operations, the schemas ("documents"), what a search
	// found, or else an overview.
	Slug   string
	Group  *APIGroup
	Search string
	Found  []APIOperation
}

// Documents is the slug of the page of all schemas.
const Documents = "documents"

// Show chooses what the page shows: a group by its slug, the schemas, or the operations that have
// all words of a search. It reports whether there is such a page.
func (v *API) Show(slug, words string) bool {
	v.Slug, v.Search = slug, strings.Join(strings.Fields(words), " ")
	if v.Search != "" {
		v.Slug = ""
		for _, g := range v.Groups {
			for _, op := range g.Operations {
				if op.has(strings.Fields(strings.ToLower(v.Search))) {
					v.Found = append(v.Found, op)
				}
			}
		}
		return true
	}
	at := slices.IndexFunc(v.Groups, func(g APIGroup) bool { return g.Slug() == slug })
	if at >= 0 {
		v.Group = &v.Groups[at]
	}
	return slug == "" || slug == Documents || at >= 0
}

// APIGroup is a group of operations.
type APIGroup struct {
	Title      string
	Operations []APIOperation
}

// Slug returns the name of the group in the address of its page.
func (g APIGroup) Slug() string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(g.Title), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }), "-")
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
	URL        string // of its description
}

// has reports whether an operation has all words, in lower case.
func (o *APIOperation) has(words []string) bool {
	text := strings.ToLower(o.Name + " " + o.Method + " " + o.Path + " " + o.Summary + " " + o.About)
	for _, p := range o.Parameters {
		text += " " + strings.ToLower(p.Name)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
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
