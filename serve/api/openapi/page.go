package openapi

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stele-id/stele/web"
)

// View returns what the page for people shows, except the list of problems, with examples
// for a server at the address base.
func (d *Description) View(base string) *web.API {
	v := &web.API{Document: d.service.Root + "/openapi.json"}
	for i := range d.service.Operations {
		op := &d.service.Operations[i]
		at := slices.IndexFunc(v.Groups, func(g web.APIGroup) bool { return g.Title == op.Group })
		if at < 0 {
			at = len(v.Groups)
			v.Groups = append(v.Groups, web.APIGroup{Title: op.Group})
		}
		of := d.view(op, base)
		of.URL = d.service.Root + "?group=" + v.Groups[at].Slug() + "#op-" + op.Name
		v.Groups[at].Operations = append(v.Groups[at].Operations, of)
	}
	schemas := d.schemas.Map()
	for _, name := range d.Schemas() {
		v.Schemas = append(v.Schemas, web.APISchema{Name: name, Fields: fieldsOfSchema(schemas[name])})
	}
	return v
}

// view returns what the page shows of an operation.
func (d *Description) view(op *Operation, base string) web.APIOperation {
	o := d.byName[op.Name]
	v := web.APIOperation{
		Name: op.Name, Method: op.Method, Path: strings.TrimSuffix(d.service.Root+"/"+op.Path, "/"), Summary: op.Summary, About: op.About,
		Role: op.Rights, Example: op.curl(base),
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
			name, title := d.service.Problem(a.Status)
			a.Problem, a.About = name, title+"."
		}
		v.Answers = append(v.Answers, a)
	}
	return v
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
func (o *Operation) curl(base string) string {
	var b strings.Builder
	b.WriteString("curl")
	if o.Method != http.MethodGet {
		b.WriteString(" -X " + o.Method)
	}
	if !o.Public {
		b.WriteString(` -H "Authorization: Bearer $STELE_TOKEN"`)
	}
	for _, p := range o.Headers {
		if o.Method == http.MethodPut && p.Name == "If-None-Match" || p.Required {
			fmt.Fprintf(&b, " -H '%s: %s'", p.Name, p.Example)
		}
	}
	if o.Body != nil {
		fmt.Fprintf(&b, " \\\n  -H 'Content-Type: %s'", o.Body.Media[0])
		if o.Body.Example != "" {
			fmt.Fprintf(&b, " -d '%s'", strings.ReplaceAll(o.Body.Example, "'", `'\''`))
		} else {
			b.WriteString(" --data-binary @-")
		}
	}
	if b.Len() > len("curl") {
		b.WriteString(" \\\n ")
	}
	fmt.Fprintf(&b, " '%s%s'", base, o.Target)
	return b.String()
}
