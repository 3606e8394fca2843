// Package openapi describes a table of operations: as an OpenAPI document for programs, and
// as what the page for people shows. It has the schemas of records and namespaces, which
// package document reads and writes; those of all other objects are made of the types of
// package apijson. It answers no request.
package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/publish/zonekey"
)

// Service is what is described.
type Service struct {
	Root       string // the path below which the operations are
	Operations []Operation
	Asked      Parameter // a header that every request may have
	Answered   Parameter // a header of every answer, except those to GET

	// Problem returns the name and the title of the problem that a status stands for.
	Problem func(status int) (name, title string)
}

// Operation is something that the service does.
type Operation struct {
	Name, Method, Path, Group, Summary, About string

	Role   string // that it takes; x-role in the document
	Scope  string // that a token must have; x-scope in the document
	Public bool   // it needs no token
	Rights string // role and scope in sentences

	Tail           *Parameter // what follows in the path; nil if nothing may
	Query, Headers []Parameter
	Body           *Body // nil: the operation takes none
	Answers        []Answer
	Failures       []int  // statuses of all problems
	Target         string // a request target, as an example
}

// Body is what a request may bring.
type Body struct {
	About    string
	Media    []string // that are taken; the first is the usual one
	Value    any      // of the type whose schema it has; nil: bytes of which nothing is said
	Lines    bool     // many such values, one a line
	Optional bool
	Example  string // as it is sent
}

// Answer is one of the answers that an operation gives if it succeeds.
type Answer struct {
	Status  int
	About   string
	Value   any    // of the type whose schema the body has; nil: see Media
	Media   string // of the body; if empty, JSON if there is a value, and else the answer has no body
	Lines   bool   // many such values, one a line
	Headers []Parameter
	Example string
}

// Parameter is a field of a path, of a query, or of a head.
type Parameter struct {
	Name     string
	Kind     Kind
	About    string // what it says; a sentence without its full stop
	Usual    string // what is taken if it is not there; "" says nothing
	Choices  []string
	Min, Max uint64 // of a number; if Max is 0 there is none. Of a text, bytes
	Required bool
	Example  string
}

// Kind is how a parameter is written.
type Kind int

// The kinds of parameters.
const (
	Text   Kind = iota
	Number      // a whole number, in plain digits
	Flag        // true or false
	Moment      // a time, as in RFC 3339
)

// Description is the OpenAPI document. Package huma makes schemas of Go types and writes the
// document down; it answers no request.
type Description struct {
	service Service
	api     *huma.OpenAPI
	schemas huma.Registry
	byName  map[string]*huma.Operation
	text    []byte // the document in JSON
	err     error  // why there is none
}

// schemas is where schemas are in the document.
const schemas = "#/components/schemas/"

// Describe makes the description of a service.
func Describe(s Service) *Description {
	d := &Description{service: s, schemas: huma.NewMapRegistry(schemas, schemaName), byName: make(map[string]*huma.Operation)}
	d.api = &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "Stele",
			Version: "1",
			Description: "Reads and writes a registry of persistent identifiers. HEAD is answered wherever GET is. An identifier in a path is percent-encoded once; " +
				"its slashes may stand as they are. Parameters and fields that are not known are refused.",
		},
		Servers: []*huma.Server{{URL: s.Root}},
		Paths:   make(map[string]*huma.PathItem),
		Components: &huma.Components{
			Schemas:         d.schemas,
			Responses:       make(map[string]*huma.Response),
			SecuritySchemes: map[string]*huma.SecurityScheme{"bearer": {Type: "http", Scheme: "bearer", Description: "A token, as createToken makes it."}},
		},
	}
	for i := range s.Operations {
		op := &s.Operations[i]
		d.byName[op.Name] = d.operation(op)
		d.api.AddOperation(d.byName[op.Name])
		if !slices.ContainsFunc(d.api.Tags, func(t *huma.Tag) bool { return t.Name == op.Group }) {
			d.api.Tags = append(d.api.Tags, &huma.Tag{Name: op.Group})
		}
	}
	d.insert()
	for _, s := range d.schemas.Map() {
		neverNull(s)
	}
	d.text, d.err = json.Marshal(d.api)
	return d
}

// JSON returns a copy of the document.
func (d *Description) JSON() ([]byte, error) { return bytes.Clone(d.text), d.err }

// Schemas returns the names of the schemas, in order.
func (d *Description) Schemas() []string { return slices.Sorted(maps.Keys(d.schemas.Map())) }

// documents are the schemas of what package document reads and writes, by the name that the
// tag schema of a field in JSON gives.
var documents = map[string]reflect.Type{
	"Record":      reflect.TypeFor[Record](),
	"RecordInput": reflect.TypeFor[RecordInput](),
	"Namespace":   reflect.TypeFor[Namespace](),
	"Rule":        reflect.TypeFor[Rule](),
}

// insert gives the fields of schemas that hold a document in JSON the schema of the document.
func (d *Description) insert() {
	for name, s := range maps.Clone(d.schemas.Map()) {
		for _, f := range reflect.VisibleFields(d.schemas.TypeFromRef(schemas + name)) {
			t, ok := documents[f.Tag.Get("schema")]
			if !ok {
				continue
			}
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			ref := d.schemas.Schema(t, true, "")
			if f.Type == reflect.TypeFor[json.RawMessage]() {
				s.Properties[tag] = &huma.Schema{Ref: ref.Ref, Description: f.Tag.Get("doc")}
			} else { // a list of them
				s.Properties[tag].Items = ref
			}
		}
	}
}

// schemaName names the schema of a type: targetDocument is Target.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	// Names within these packages don't say what they are of.
	switch t {
	case reflect.TypeFor[audit.Document]():
		return "AuditEntry"
	case reflect.TypeFor[audit.Page]():
		return "AuditPage"
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
func (d *Description) operation(op *Operation) *huma.Operation {
	o := &huma.Operation{
		OperationID: op.Name, Method: op.Method, Path: "/" + op.Path, Tags: []string{op.Group},
		Summary: op.Summary, Description: op.About,
		Responses:  make(map[string]*huma.Response),
		Extensions: map[string]any{"x-role": op.Role, "x-scope": op.Scope},
		Security:   []map[string][]string{{"bearer": {}}},
	}
	if op.Public {
		o.Security = append(o.Security, map[string][]string{})
	}
	if op.Tail != nil {
		o.Parameters = append(o.Parameters, op.Tail.describe("path"))
	}
	for i := range op.Query {
		o.Parameters = append(o.Parameters, op.Query[i].describe("query"))
	}
	for i := range op.Headers {
		o.Parameters = append(o.Parameters, op.Headers[i].describe("header"))
	}
	o.Parameters = append(o.Parameters, d.service.Asked.describe("header"))
	if b := op.Body; b != nil {
		o.RequestBody = &huma.RequestBody{Required: !b.Optional, Description: b.About, Content: make(map[string]*huma.MediaType)}
		for _, media := range b.Media {
			o.RequestBody.Content[media] = d.media(media, b.Value, b.Lines, b.Example)
		}
	}
	for i := range op.Answers {
		d.addAnswer(o, &op.Answers[i])
	}
	for _, status := range op.Failures {
		o.Responses[strconv.Itoa(status)] = d.problem(status)
	}
	return o
}

// addAnswer describes an answer. It joins answers of the same status that have different
// media types.
func (d *Description) addAnswer(o *huma.Operation, a *Answer) {
	status := strconv.Itoa(a.Status)
	r := o.Responses[status]
	if r == nil {
		r = &huma.Response{Description: a.About, Headers: make(map[string]*huma.Param), Content: make(map[string]*huma.MediaType)}
		o.Responses[status] = r
	}
	for i := range a.Headers {
		head := a.Headers[i].describe("header")
		head.Name, head.In = "", ""
		r.Headers[a.Headers[i].Name] = head
	}
	if o.Method != http.MethodGet {
		head := d.service.Answered.describe("header")
		head.Name, head.In = "", ""
		r.Headers[d.service.Answered.Name] = head
	}
	if media := a.mediaType(); media != "" {
		r.Content[media] = d.media(media, a.Value, a.Lines, a.Example)
	}
}

// mediaType returns the media type of an answer's body, without parameters; "" if there
// is none.
func (a *Answer) mediaType() string {
	switch {
	case a.Media != "":
		media, _, _ := strings.Cut(a.Media, ";")
		return media
	case a.Value != nil && a.Lines:
		return apijson.Lines
	case a.Value != nil:
		return apijson.JSON
	}
	return ""
}

// media describes a body. Of one that has a value a line, the schema is that of a line:
// x-lines says so.
func (d *Description) media(media string, value any, lines bool, example string) *huma.MediaType {
	m := &huma.MediaType{Schema: &huma.Schema{}}
	if value == nil {
		if media != apijson.JSON {
			m.Schema.Type = huma.TypeString
		}
		return m
	}
	t := reflect.TypeOf(value)
	if media == apijson.Lines {
		if t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		m.Extensions = map[string]any{"x-lines": true}
	}
	m.Schema = d.schemas.Schema(t, true, "")
	neverNull(m.Schema)
	if example != "" && !lines && media != apijson.Lines {
		m.Example = json.RawMessage(example)
	}
	return m
}

// problem describes a failure, once for all operations.
func (d *Description) problem(status int) *huma.Response {
	name := "Problem" + strconv.Itoa(status)
	if d.api.Components.Responses[name] == nil {
		d.api.Components.Responses[name] = d.newProblem(status)
	}
	return &huma.Response{Ref: "#/components/responses/" + name}
}

func (d *Description) newProblem(status int) *huma.Response {
	_, title := d.service.Problem(status)
	r := &huma.Response{
		Description: title + ".",
		Headers:     make(map[string]*huma.Param),
		Content:     map[string]*huma.MediaType{apijson.ProblemJSON: {Schema: d.schemas.Schema(reflect.TypeFor[apijson.Problem](), true, "")}},
	}
	switch status {
	case http.StatusUnauthorized:
		r.Headers["WWW-Authenticate"] = &huma.Param{Schema: &huma.Schema{Type: huma.TypeString}}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		r.Headers["Retry-After"] = &huma.Param{Description: "After how many seconds to try again.", Schema: &huma.Schema{Type: huma.TypeInteger}}
	}
	return r
}

// describe describes a parameter.
func (p *Parameter) describe(in string) *huma.Param {
	s := p.schema()
	d := &huma.Param{Name: p.Name, In: in, Required: p.Required, Schema: s}
	if p.About != "" {
		d.Description = strings.ToUpper(p.About[:1]) + p.About[1:] + "."
	}
	if p.Example != "" {
		d.Example = p.value(p.Example)
	}
	return d
}

// schema returns the schema of a parameter.
func (p *Parameter) schema() *huma.Schema {
	s := &huma.Schema{Type: huma.TypeString}
	switch p.Kind {
	case Number:
		least := float64(p.Min)
		s.Type, s.Minimum = huma.TypeInteger, &least
		if p.Max > 0 {
			most := float64(p.Max)
			s.Maximum = &most
		}
	case Flag:
		s.Type = huma.TypeBoolean
	case Moment:
		s.Format = "date-time"
	default:
		p.bound(s)
	}
	if p.Usual != "" {
		s.Default = p.value(p.Usual)
	}
	return s
}

// MaxText is how many bytes a text has at most that gives no maximum of its own.
const MaxText = 4096

// bound describes how long a text is, and what it can be.
func (p *Parameter) bound(s *huma.Schema) {
	for _, choice := range p.Choices {
		s.Enum = append(s.Enum, choice)
	}
	if len(p.Choices) > 0 {
		return
	}
	most := MaxText
	if p.Max > 0 {
		most = int(p.Max)
	}
	s.MaxLength = &most
	if p.Min > 0 {
		least := int(p.Min)
		s.MinLength = &least
	}
}

// value returns what a text means as a value of the parameter.
func (p *Parameter) value(text string) any {
	if p.Kind == Number || p.Kind == Flag {
		return json.RawMessage(text)
	}
	return text
}
