package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stele-id/stele/web"
)

// view returns what the page for people shows, with examples for a server at this
// address.
func (h *Handler) view(base string) *web.API {
	described := h.described()
	v := &web.API{Document: Root + "/openapi.json"}
	for i := range h.table {
		op := &h.table[i]
		at := slices.IndexFunc(v.Groups, func(g web.APIGroup) bool { return g.Title == op.group })
		if at < 0 {
			at = len(v.Groups)
			v.Groups = append(v.Groups, web.APIGroup{Title: op.group})
		}
		v.Groups[at].Operations = append(v.Groups[at].Operations, described.view(op, base))
	}
	schemas := described.schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		v.Schemas = append(v.Schemas, web.APISchema{Name: name, Fields: fieldsOfSchema(schemas[name])})
	}
	for _, o := range outcomes {
		v.Problems = append(v.Problems, web.APIProblem{Name: o.name, Status: o.status, Title: o.title})
	}
	for _, status := range slices.Sorted(maps.Keys(refusals)) {
		o := refusals[status]
		v.Problems = append(v.Problems, web.APIProblem{Name: o.name, Status: o.status, Title: o.title})
	}
	return v
}

// view returns what the page shows of an operation.
func (d *description) view(op *operation, base string) web.APIOperation {
	o := d.byName[op.name]
	v := web.APIOperation{
		Name: op.name, Method: op.method, Path: strings.TrimSuffix(Root+"/"+op.path, "/"), Summary: op.summary, About: op.about,
		Role: op.asks.words() + op.scopeWords(), Example: op.curl(base),
	}
	for _, p := range o.Parameters {
		kind, _ := inWords(p.Schema)
		v.Parameters = append(v.Parameters, web.APIField{Name: p.Name, Place: p.In, Kind: kind, About: p.Description, Required: p.Required})
	}
	if o.RequestBody != nil {
		v.Body, v.BodyAbout = bodies(o.RequestBody.Content), o.RequestBody.Description
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		r := o.Responses[status]
		a := web.APIAnswer{About: r.Description, Bodies: bodies(r.Content)}
		_, _ = fmt.Sscan(status, &a.Status) // it was made of a number
		if a.Status >= http.StatusBadRequest {
			o := outcomeOf(refusef(a.Status, ""))
			a.Problem, a.About = o.name, o.title+"."
		}
		v.Answers = append(v.Answers, a)
	}
	return v
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
		return "For everybody."
	case known:
		return "For users with a token."
	case administrator:
		return "For administrators."
	}
	return fmt.Sprintf("For users with the role %s in the namespace, or one that includes it.", r)
}

// bodies returns what the page shows of bodies.
func bodies(content map[string]*huma.MediaType) (all []web.APIBody) {
	for _, media := range slices.Sorted(maps.Keys(content)) {
		b := web.APIBody{Type: media}
		m := content[media]
		if b.Kind, b.Schema = inWords(m.Schema); m.Extensions["x-lines"] != nil {
			b.Kind += ", one a line"
		}
		if m.Schema.Type == huma.TypeString { // bytes or a page: the type says it all
			b.Kind = ""
		}
		all = append(all, b)
	}
	return all
}

// fieldsOfSchema returns what the page shows of a schema.
func fieldsOfSchema(s *huma.Schema) (all []web.APIField) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		f := web.APIField{Name: name, About: p.Description, Required: slices.Contains(s.Required, name)}
		f.Kind, f.Schema = inWords(p)
		all = append(all, f)
	}
	return all
}

// inWords says in a few words what a schema asks for, and which other schema that is,
// if it is one.
func inWords(s *huma.Schema) (words, schema string) {
	switch {
	case s == nil:
		return "anything", ""
	case s.Ref != "":
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return name, name
	case len(s.AnyOf) == 2: // a member of a patch
		words, schema = inWords(s.AnyOf[0])
		return words + " or null", schema
	case s.Type == huma.TypeArray:
		words, schema = inWords(s.Items)
		return "list of " + words, schema
	case len(s.Enum) > 0:
		words = fmt.Sprint(s.Enum[0])
		for _, e := range s.Enum[1:] {
			words += " | " + fmt.Sprint(e)
		}
		return words, ""
	case s.ContentEncoding != "":
		return "bytes in " + s.ContentEncoding, ""
	case s.Format == "date-time":
		return "time", ""
	case s.Format == "date":
		return "date", ""
	}
	return map[string]string{
		huma.TypeString: "text", huma.TypeInteger: "number", huma.TypeNumber: "number", huma.TypeBoolean: "true or false", huma.TypeObject: "object",
	}[s.Type] + limits(s), ""
}

// limits says which numbers, and how long a text.
func limits(s *huma.Schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf(" from %.0f to %.0f", *s.Minimum, *s.Maximum)
	case s.MaxLength != nil:
		return fmt.Sprintf(" of up to %d characters", *s.MaxLength)
	}
	return ""
}

// curl returns an example of the operation for a shell.
func (o *operation) curl(base string) string {
	var b strings.Builder
	b.WriteString("curl")
	if o.method != http.MethodGet {
		b.WriteString(" -X " + o.method)
	}
	if o.asks != anyone {
		b.WriteString(` -H "Authorization: Bearer $STELE_TOKEN"`)
	}
	for _, p := range o.headers {
		if o.method == http.MethodPut && p.name == ifNoneMatch.name || p.required {
			fmt.Fprintf(&b, " -H '%s: %s'", p.name, p.example)
		}
	}
	if o.body != nil {
		fmt.Fprintf(&b, " \\\n  -H 'Content-Type: %s'", o.body.media[0])
		if o.body.example != "" {
			fmt.Fprintf(&b, " -d '%s'", strings.ReplaceAll(o.body.example, "'", `'\''`))
		} else {
			b.WriteString(" --data-binary @-")
		}
	}
	if b.Len() > len("curl") {
		b.WriteString(" \\\n ")
	}
	fmt.Fprintf(&b, " '%s%s'", base, o.target())
	return b.String()
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
