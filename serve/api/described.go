package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stele-id/stele/serve/api/openapi"
)

// description returns what package openapi describes.
func (h *Handler) description() openapi.Service {
	s := openapi.Service{
		Root: Root, Asked: versionParameter.described(), Answered: versionAnswer.described(),
		Problem: func(status int) (name, title string) {
			o := outcomeOf(refusef(status, "", ""))
			return o.name, o.title
		},
	}
	for i := range h.table {
		s.Operations = append(s.Operations, h.table[i].described())
	}
	return s
}

// described returns the operation for its description.
func (o *operation) described() openapi.Operation {
	d := openapi.Operation{
		Name: o.name, Method: o.method, Path: o.path, Group: o.group, Summary: o.summary, About: o.about,
		Role: o.asks.String(), Scope: string(o.scope), Public: o.asks == anyone, Rights: o.asks.words() + o.scopeWords(),
		Query: describedAll(o.query), Headers: describedAll(o.headers), Failures: o.failures(), Target: o.target(),
	}
	if _, name := o.root(); name != "" {
		tail := o.tail.described()
		tail.Name, tail.Required = name, true
		d.Tail = &tail
	}
	if b := o.body; b != nil {
		d.Body = &openapi.Body{About: b.about, Media: b.media, Value: b.value, Lines: b.lines, Optional: b.optional, Example: b.example}
	}
	for _, a := range o.answers {
		d.Answers = append(d.Answers, openapi.Answer{
			Status: a.status, About: a.about, Value: a.value, Media: a.media, Lines: a.lines, Headers: describedAll(a.headers), Example: a.example,
		})
	}
	return d
}

// described returns the parameter for its description.
func (p *parameter) described() openapi.Parameter {
	return openapi.Parameter{
		Name: p.name, Kind: p.kind, About: p.about, Usual: p.usual, Choices: p.choices, Min: p.min, Max: p.max, Required: p.required, Example: p.example,
	}
}

func describedAll(parameters []parameter) (all []openapi.Parameter) {
	for i := range parameters {
		all = append(all, parameters[i].described())
	}
	return all
}

// failures returns the statuses of all problems that an operation can answer with.
func (o *operation) failures() []int {
	all := []int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusRequestURITooLong,
		http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusServiceUnavailable,
	}
	if o.asks > known {
		all = append(all, http.StatusForbidden)
	}
	if o.body != nil {
		all = append(all, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	all = append(all, o.fails...)
	slices.Sort(all)
	return slices.Compact(all)
}

// String returns the right in a word.
func (r right) String() string {
	switch r {
	case anyone:
		return "anyone"
	case known:
		return "known"
	case administrator:
		return "admin"
	}
	return string(r.role())
}

// scopeWords says in a sentence which scope a token needs; nothing where any will do.
func (o *operation) scopeWords() string {
	if o.asks == anyone || o.scope == anyScope {
		return ""
	}
	return fmt.Sprintf(" A token that is limited to scopes needs %s.", o.scope)
}

// words says in a sentence what a right asks for.
func (r right) words() string {
	switch r {
	case anyone:
		return "For all clients."
	case known:
		return "For users with a token."
	case administrator:
		return "For administrators."
	}
	return fmt.Sprintf("For users with the role %s in the namespace, or one that includes it.", r)
}

// target returns a request target of the operation, made of the examples of its
// parameters.
func (o *operation) target() string {
	root, tail := o.root()
	path := strings.TrimSuffix(Root+"/"+root, "/")
	if tail != "" {
		path += "/" + escaped(o.tail.example)
	}
	mark := "?"
	for _, p := range o.query {
		if p.required {
			path += mark + p.name + "=" + strings.ReplaceAll(escaped(p.example), "%20", "+")
			mark = "&"
		}
	}
	return path
}
