package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stele-id/stele/publish/zonekey"
)

// description is the OpenAPI document in the making. Package huma makes schemas of Go
// types and writes the document down; it answers no request.
type description struct {
	*huma.OpenAPI
	schemas huma.Registry
	byName  map[string]*huma.Operation
	text    []byte // the document in JSON
	err     error  // why there is none
}

// schemas is where schemas are in the document.
const schemas = "#/components/schemas/"

// describe makes the OpenAPI document of a table of operations.
func describe(operations []operation) *description {
	d := &description{schemas: huma.NewMapRegistry(schemas, schemaName), byName: make(map[string]*huma.Operation)}
	d.OpenAPI = &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "Stele",
			Version: "1",
			Description: "Reads and writes a registry of persistent identifiers. HEAD is answered wherever GET is. An identifier in a path is percent-encoded once; " +
				"its slashes may stand as they are. Parameters and fields that are not known are refused.",
		},
		Servers: []*huma.Server{{URL: Root}},
		Paths:   make(map[string]*huma.PathItem),
		Components: &huma.Components{
			Schemas:         d.schemas,
			Responses:       make(map[string]*huma.Response),
			SecuritySchemes: map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer", Description: "A token, as createToken makes it."}},
		},
	}
	for i := range operations {
		op := &operations[i]
		d.byName[op.name] = d.operation(op)
		d.AddOperation(d.byName[op.name])
		if !slices.ContainsFunc(d.Tags, func(t *huma.Tag) bool { return t.Name == op.group }) {
			d.Tags = append(d.Tags, &huma.Tag{Name: op.group})
		}
	}
	d.embed()
	for _, s := range d.schemas.Map() {
		neverNull(s)
	}
	d.text, d.err = json.Marshal(d.OpenAPI)
	return d
}

// embed adds to schemas what encoding/json takes from embedded structs: huma ignores them if
// their names begin in lower case.
func (d *description) embed() {
	for name, s := range maps.Clone(d.schemas.Map()) {
		for _, f := range reflect.VisibleFields(d.schemas.TypeFromRef(schemas + name)) {
			tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if len(f.Index) == 1 || tag == "" || s.Properties[tag] != nil {
				continue
			}
			s.Properties[tag] = huma.SchemaFromField(d.schemas, f, "")
			if options == "" {
				s.Required = append(s.Required, tag)
			}
		}
	}
}

// schemaName names the schema of a type: recordDocument is Record.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	// Names within package zonekey don't say what they are of.
	switch t {
	case reflect.TypeFor[zonekey.Status]():
		return "ZoneKeys"
	case reflect.TypeFor[zonekey.Key]():
		return "ZoneKey"
	case reflect.TypeFor[zonekey.Step]():
		return "ZoneStep"
	case reflect.TypeFor[zonekey.DSRecord]():
		return "ZoneRecord"
	case reflect.TypeFor[zonekey.Change]():
		return "ZoneKeysChange"
	}
	name := strings.TrimSuffix(t.Name(), "Document")
	if name == "" {
		return hint
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// neverNull takes null out of the types of lists: the API neither writes nor reads a null
// list.
func neverNull(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	neverNull(s.Items)
	for _, p := range s.Properties {
		neverNull(p)
	}
	for _, one := range s.AnyOf {
		neverNull(one)
	}
}

// operation describes an operation.
func (d *description) operation(op *operation) *huma.Operation {
	o := &huma.Operation{
		OperationID: op.name, Method: op.method, Path: "/" + op.path, Tags: []string{op.group},
		Summary: op.summary, Description: op.about,
		Responses:  make(map[string]*huma.Response),
		Extensions: map[string]any{"x-role": op.asks.String(), "x-scope": string(op.scope)},
		Security:   []map[string][]string{{"bearer": {}}},
	}
	if op.asks == anyone {
		o.Security = append(o.Security, map[string][]string{})
	}
	if _, name := op.root(); name != "" {
		tail := op.tail
		tail.name, tail.required = name, true
		o.Parameters = append(o.Parameters, tail.describe("path"))
	}
	for i := range op.query {
		o.Parameters = append(o.Parameters, op.query[i].describe("query"))
	}
	for i := range op.headers {
		o.Parameters = append(o.Parameters, op.headers[i].describe("header"))
	}
	o.Parameters = append(o.Parameters, versionParameter.describe("header"))
	if b := op.body; b != nil {
		o.RequestBody = &huma.RequestBody{Required: !b.optional, Description: b.about, Content: make(map[string]*huma.MediaType)}
		for _, media := range b.media {
			o.RequestBody.Content[media] = d.media(media, b.value, b.lines, b.example)
		}
	}
	for i := range op.answers {
		d.addAnswer(o, &op.answers[i])
	}
	for _, status := range op.failures() {
		o.Responses[strconv.Itoa(status)] = d.problem(status)
	}
	return o
}

// addAnswer describes an answer. It joins answers of the same status that have different
// media types.
func (d *description) addAnswer(o *huma.Operation, a *answer) {
	status := strconv.Itoa(a.status)
	r := o.Responses[status]
	if r == nil {
		r = &huma.Response{Description: a.about, Headers: make(map[string]*huma.Param), Content: make(map[string]*huma.MediaType)}
		o.Responses[status] = r
	}
	for i := range a.headers {
		head := a.headers[i].describe("header")
		head.Name, head.In = "", ""
		r.Headers[a.headers[i].name] = head
	}
	if o.Method != http.MethodGet {
		head := versionAnswer.describe("header")
		head.Name, head.In = "", ""
		r.Headers[versionAnswer.name] = head
	}
	if media := a.mediaType(); media != "" {
		r.Content[media] = d.media(media, a.value, a.lines, a.example)
	}
}

// mediaType returns the media type of an answer's body, without parameters; "" if there
// is none.
func (a *answer) mediaType() string {
	switch {
	case a.media != "":
		media, _, _ := strings.Cut(a.media, ";")
		return media
	case a.value != nil && a.lines:
		return linesType
	case a.value != nil:
		return jsonType
	}
	return ""
}

// media describes a body. Of one that has a value a line, the schema is that of a line:
// x-lines says so.
func (d *description) media(media string, value any, lines bool, example string) *huma.MediaType {
	m := &huma.MediaType{Schema: &huma.Schema{}}
	if value == nil {
		if media != jsonType {
			m.Schema.Type = huma.TypeString
		}
		return m
	}
	t := reflect.TypeOf(value)
	if media == linesType {
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		m.Extensions = map[string]any{"x-lines": true}
	}
	m.Schema = d.schemas.Schema(t, true, "")
	neverNull(m.Schema)
	if example != "" && !lines && media != linesType {
		m.Example = json.RawMessage(example)
	}
	return m
}

// problem describes a failure, once for all operations.
func (d *description) problem(status int) *huma.Response {
	name := "Problem" + strconv.Itoa(status)
	if d.Components.Responses[name] == nil {
		d.Components.Responses[name] = d.newProblem(status)
	}
	return &huma.Response{Ref: "#/components/responses/" + name}
}

func (d *description) newProblem(status int) *huma.Response {
	r := &huma.Response{
		Description: outcomeOf(refusef(status, "")).title + ".",
		Headers:     make(map[string]*huma.Param),
		Content:     map[string]*huma.MediaType{problemType: {Schema: d.schemas.Schema(reflect.TypeFor[problemDocument](), true, "")}},
	}
	switch status {
	case http.StatusUnauthorized:
		r.Headers["WWW-Authenticate"] = &huma.Param{Schema: &huma.Schema{Type: huma.TypeString}}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		r.Headers["Retry-After"] = &huma.Param{Description: "After how many seconds to try again.", Schema: &huma.Schema{Type: huma.TypeInteger}}
	}
	return r
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

// describe describes a parameter.
func (p *parameter) describe(in string) *huma.Param {
	s := p.schema()
	d := &huma.Param{Name: p.name, In: in, Required: p.required, Schema: s}
	if p.about != "" {
		d.Description = strings.ToUpper(p.about[:1]) + p.about[1:] + "."
	}
	if p.example != "" {
		d.Example = p.value(p.example)
	}
	return d
}

// schema returns the schema of a parameter.
func (p *parameter) schema() *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	switch p.kind {
	case numberKind:
		least := float64(p.min)
		s.Type, s.Minimum = huma.TypeInteger, &least
		if p.max > 0 {
			most := float64(p.max)
			s.Maximum = &most
		}
	case flagKind:
		s.Type = huma.TypeBoolean
	case momentKind:
		s.Format = "date-time"
	default:
		p.bound(s)
	}
	if p.usual != "" {
		s.Default = p.value(p.usual)
	}
	return s
}

// bound describes how long a text is, and what it can be.
func (p *parameter) bound(s *huma.Schema) {
	for _, choice := range p.choices {
		s.Enum = append(s.Enum, choice)
	}
	if len(p.choices) > 0 {
		return
	}
	most := maxText
	if p.max > 0 {
		most = int(p.max)
	}
	s.MaxLength = &most
	if p.min > 0 {
		least := int(p.min)
		s.MinLength = &least
	}
}

// value returns what a text means as a value of the parameter.
func (p *parameter) value(text string) any {
	if p.kind == numberKind || p.kind == flagKind {
		return json.RawMessage(text)
	}
	return text
}
