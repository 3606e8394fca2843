package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// openAPI is the OpenAPI document as a client reads it, without knowing how it is made.
type openAPI struct {
	OpenAPI    string
	Paths      map[string]map[string]*apiOperation
	Components struct {
		Schemas   map[string]map[string]any
		Responses map[string]apiResponse
	}
}

type apiResponse struct {
	Ref     string `json:"$ref"`
	Headers map[string]any
	Content map[string]apiMedia
}

type apiOperation struct {
	OperationID string
	Role        string `json:"x-role"`
	Parameters  []apiParameter
	RequestBody *struct {
		Required bool
		Content  map[string]apiMedia
	}
	Responses map[string]apiResponse

	method, path string
}

type apiParameter struct {
	Name, In string
	Required bool
	Schema   map[string]any
	Example  any
}

type apiMedia struct {
	Schema  map[string]any
	Example any
	Lines   bool `json:"x-lines"`
}

// readOpenAPI reads the document that a site serves.
func readOpenAPI(t testing.TB, text string) *openAPI {
	t.Helper()
	d := new(openAPI)
	if err := json.Unmarshal([]byte(text), d); err != nil {
		t.Fatal(err)
	}
	if d.OpenAPI != "3.1.0" || len(d.Paths) < 15 || len(d.Components.Schemas) < 10 {
		t.Fatalf("this is not an OpenAPI document: %.200s", text)
	}
	return d
}

// operations returns the operations of the document.
func (d *openAPI) operations() (all []*apiOperation) {
	for path, methods := range d.Paths {
		for method, op := range methods {
			op.method, op.path = strings.ToUpper(method), path
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b *apiOperation) int { return strings.Compare(a.OperationID, b.OperationID) })
	return all
}

// judge says what is wrong with a value by a schema (JSON Schema 2020-12, as far as the
// document uses it). What it does not know is wrong, so that nothing goes unchecked.
func (d *openAPI) judge(path string, s map[string]any, v any) error {
	if ref, ok := s["$ref"].(string); ok {
		name, ok := strings.CutPrefix(ref, "#/components/schemas/")
		if !ok || d.Components.Schemas[name] == nil {
			return fmt.Errorf("%s: there is no schema %s", path, ref)
		}
		return d.judge(path, d.Components.Schemas[name], v)
	}
	for key, rule := range s {
		if err := d.judgeRule(path, s, key, rule, v); err != nil {
			return err
		}
	}
	return nil
}

func (d *openAPI) judgeRule(path string, s map[string]any, key string, rule, v any) error {
	wrong := func() error { return fmt.Errorf("%s: %.200v breaks %s %v", path, v, key, rule) }
	switch key {
	case "description", "title", "examples", "example", "default", "readOnly", "$ref":
		return nil
	case "type":
		if !hasType(rule, v) {
			return wrong()
		}
	case "anyOf":
		for _, one := range rule.([]any) {
			if d.judge(path, one.(map[string]any), v) == nil {
				return nil
			}
		}
		return wrong()
	case "enum":
		if !slices.ContainsFunc(rule.([]any), func(e any) bool { return fmt.Sprint(e) == fmt.Sprint(v) }) {
			return wrong()
		}
	case "minimum", "maximum":
		n, ok := new(big.Float).SetString(fmt.Sprint(v))
		limit, _ := new(big.Float).SetString(fmt.Sprint(rule))
		if c := 0; ok {
			if c = n.Cmp(limit); key == "minimum" && c < 0 || key == "maximum" && c > 0 {
				return wrong()
			}
		}
	case "minLength", "maxLength":
		if text, ok := v.(string); ok {
			n, limit := utf8.RuneCountInString(text), int(rule.(float64))
			if key == "minLength" && n < limit || key == "maxLength" && n > limit {
				return wrong()
			}
		}
	case "pattern":
		if text, ok := v.(string); ok && !regexp.MustCompile(rule.(string)).MatchString(text) {
			return wrong()
		}
	case "format", "contentEncoding":
		if text, ok := v.(string); ok && !hasFormat(rule.(string), text) {
			return wrong()
		}
	default:
		return d.judgeInside(path, s, key, rule, v)
	}
	return nil
}

// judgeInside is judgeRule for what is inside objects and lists.
func (d *openAPI) judgeInside(path string, s map[string]any, key string, rule, v any) error {
	wrong := func() error { return fmt.Errorf("%s: %.200v breaks %s %v", path, v, key, rule) }
	object, _ := v.(map[string]any)
	list, _ := v.([]any)
	switch key {
	case "properties":
		for name, schema := range rule.(map[string]any) {
			if member, ok := object[name]; ok {
				if err := d.judge(path+"."+name, schema.(map[string]any), member); err != nil {
					return err
				}
			}
		}
	case "required":
		for _, name := range rule.([]any) {
			if _, ok := object[name.(string)]; !ok && object != nil {
				return wrong()
			}
		}
	case "additionalProperties":
		known, _ := s["properties"].(map[string]any)
		for name, member := range object {
			if known[name] != nil {
				continue
			}
			if schema, ok := rule.(map[string]any); ok {
				if err := d.judge(path+"."+name, schema, member); err != nil {
					return err
				}
			} else if rule != true {
				return fmt.Errorf("%s: there should be no %s", path, name)
			}
		}
	case "items":
		for i, item := range list {
			if err := d.judge(fmt.Sprintf("%s[%d]", path, i), rule.(map[string]any), item); err != nil {
				return err
			}
		}
	case "maxItems", "minItems":
		if n, limit := len(list), int(rule.(float64)); key == "maxItems" && n > limit || key == "minItems" && v != nil && n < limit {
			return wrong()
		}
	case "maxProperties":
		if len(object) > int(rule.(float64)) {
			return wrong()
		}
	default:
		return fmt.Errorf("%s: nobody knows the rule %s", path, key)
	}
	return nil
}

func hasType(rule, v any) bool {
	if list, ok := rule.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return hasType(one, v) })
	}
	switch v := v.(type) {
	case nil:
		return rule == "null"
	case bool:
		return rule == "boolean"
	case string:
		return rule == "string"
	case json.Number:
		return rule == "number" || rule == "integer" && !strings.ContainsAny(string(v), ".eE")
	case []any:
		return rule == "array"
	}
	return rule == "object"
}

func hasFormat(format, text string) bool {
	var err error
	switch format {
	case "date-time":
		_, err = time.Parse(time.RFC3339Nano, text)
	case "date":
		_, err = time.Parse(time.DateOnly, text)
	case "base64":
		_, err = base64.StdEncoding.DecodeString(text)
	case "int32", "int64":
	default:
		return false
	}
	return err == nil
}

// TestSchemasMirror holds that the schemas of records and namespaces have just the
// fields that package stele writes and reads.
func TestSchemasMirror(t *testing.T) {
	s := newSite(t)
	d := readOpenAPI(t, s.ask("", "GET", Root+"/openapi.json", "").want(t, 200).body)
	schemaHas := func(name string) []string {
		var fields []string
		for field := range d.Components.Schemas[name]["properties"].(map[string]any) {
			fields = append(fields, field)
		}
		slices.Sort(fields)
		return fields
	}
	// Asked for a field that there is not, the decoder lists those that there are.
	listed := func(decode func([]byte) error, document, path string) []string {
		var problems stele.Problems
		err := decode([]byte(document))
		e, _ := err.(*stele.Error)
		if e != nil {
			problems, _ = e.Err.(stele.Problems)
		}
		for _, p := range problems {
			if _, list, ok := strings.Cut(p.Err.Error(), "there is no such field; there are "); ok && p.Path == path {
				fields := strings.Split(list, ", ")
				slices.Sort(fields)
				return fields
			}
		}
		t.Fatalf("%s: %v", document, err)
		return nil
	}
	record := func(b []byte) error { _, err := document.DecodeRecord(s.schemes, b); return err }
	namespace := func(b []byte) error { _, err := document.DecodeNamespace(s.schemes, b); return err }
	for _, tt := range []struct {
		schema         string
		decode         func([]byte) error
		document, path string
	}{
		{"RecordInput", record, `{"x":1}`, "x"},
		{"Tombstone", record, `{"tombstone":{"x":1}}`, "tombstone.x"},
		{"Target", record, `{"targets":[{"x":1}]}`, "targets[0].x"},
		{"Persistence", record, `{"persistence":{"x":1}}`, "persistence.x"},
		{"Value", record, `{"values":[{"x":1}]}`, "values[0].x"},
		{"Reference", record, `{"values":[{"references":[{"x":1}]}]}`, "values[0].references[0].x"},
		{"Signature", record, `{"signatures":[{"x":1}]}`, "signatures[0].x"},
		{"NamespaceInput", namespace, `{"x":1}`, "x"},
		{"SigningKey", namespace, `{"keys":[{"x":1}]}`, "keys[0].x"},
		{"Minting", namespace, `{"minter":{"x":1}}`, "minter.x"},
		{"Publication", namespace, `{"publication":{"x":1}}`, "publication.x"},
		{"Server", namespace, `{"publication":{"servers":[{"x":1}]}}`, "publication.servers[0].x"},
		{"Discovery", namespace, `{"publication":{"elsewhere":[{"x":1}]}}`, "publication.elsewhere[0].x"},
		{"Grant", namespace, `{"grants":[{"x":1}]}`, "grants[0].x"},
	} {
		if got, want := schemaHas(tt.schema), listed(tt.decode, tt.document, tt.path); !slices.Equal(got, want) {
			t.Errorf("%s has\n%v, and package stele reads\n%v", tt.schema, got, want)
		}
	}
	// An answer has the fields of a request, except the short form of a target.
	if got, want := schemaHas("Record"), slices.DeleteFunc(schemaHas("RecordInput"), func(f string) bool { return f == "url" }); !slices.Equal(got, want) {
		t.Errorf("Record has\n%v, and RecordInput\n%v", got, want)
	}
	if got, want := schemaHas("Namespace"), schemaHas("NamespaceInput"); !slices.Equal(got, want) {
		t.Errorf("Namespace has\n%v, and NamespaceInput\n%v", got, want)
	}
}

// TestSchemasHold holds that all records that package stele writes are what the schema
// says, and that it reads what the schema shows.
func TestSchemasHold(t *testing.T) {
	s := newSite(t)
	d := readOpenAPI(t, s.ask("", "GET", Root+"/openapi.json", "").want(t, 200).body)
	rapid.Check(t, func(t *rapid.T) {
		rec := drawRecord(t, s.schemes)
		if err := rec.Validate(); err != nil {
			t.Fatal(err)
		}
		text := document.AppendRecord(nil, rec)
		tree, err := document.ReadTree(text)
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for _, schema := range []string{"Record", "RecordInput"} {
			if err := d.judge("", d.Components.Schemas[schema], tree); err != nil {
				t.Fatalf("%s: %v\n%s", schema, err, text)
			}
		}
		again, err := document.DecodeRecord(s.schemes, text)
		if err != nil || !reflect.DeepEqual(document.AppendRecord(nil, again), text) {
			t.Fatalf("%v: %s", err, text)
		}
	})
}

// drawRecord draws a valid record in which every field has some value at some time.
func drawRecord(t *rapid.T, schemes *stele.Schemes) *stele.Record {
	word := rapid.StringMatching(`[a-z]{1,8}`)
	prose := rapid.StringMatching(`[ -~]{0,20}`)
	maybe := func(name string) bool { return rapid.Bool().Draw(t, name) }
	parse := func(text string) stele.ID {
		id, err := schemes.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "at"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	r := &stele.Record{ID: parse("ark:12345/" + word.Draw(t, "id")), State: rapid.SampledFrom([]stele.State{stele.Active, stele.Reserved, stele.Withdrawn}).Draw(t, "state"),
		Version: rapid.Uint64Min(1).Draw(t, "version"), Created: at, Modified: at.Add(time.Second), By: prose.Filter(isText).Draw(t, "by"), Redacted: maybe("redacted"), Import: rapid.Uint64().Draw(t, "import")}
	if maybe("spelled") {
		r.Spelling = "ark:/" + strings.TrimPrefix(r.ID.String(), "ark:")
	}
	if maybe("aliased") {
		r.Aliases = []stele.ID{parse("urn:example:" + word.Draw(t, "alias"))}
	}
	if r.State == stele.Withdrawn {
		r.Tombstone = &stele.Tombstone{Reason: "x" + prose.Draw(t, "reason"), At: at}
		if maybe("replaced") {
			r.Tombstone.Replacement = parse("urn:example:replacement")
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "targets") {
		r.Targets = append(r.Targets, stele.Target{
			Service: rapid.SampledFrom([]stele.Service{stele.N2L, stele.N2C, stele.N2S, stele.N2P}).Draw(t, "service"),
			URL:     "https://example.org/" + word.Draw(t, "url"), Type: rapid.SampledFrom([]string{"", "text/html"}).Draw(t, "type"),
			Language: rapid.SampledFrom([]string{"", "pt-BR"}).Draw(t, "language"), Order: rapid.Uint16().Draw(t, "order"), Preference: rapid.Uint16().Draw(t, "preference"),
			TTL: rapid.Uint32Range(0, stele.MaxTTL).Draw(t, "ttl"), Status: rapid.SampledFrom([]int{0, 301, 302, 303, 307, 308, 404, 410}).Draw(t, "status"), Partial: maybe("partial"),
		})
	}
	r.Metadata = rapid.MapOfN(rapid.StringMatching(`[a-z][a-z0-9._-]{0,8}`), prose, 0, 4).Draw(t, "metadata")
	r.Persistence = stele.Persistence{Level: rapid.SampledFrom([]stele.Level{"", stele.Permanent, stele.Unchanging, stele.Stable, stele.Dynamic, stele.NotGuaranteed}).Draw(t, "level"),
		Until: rapid.SampledFrom([]string{"", "2040-01-31"}).Draw(t, "until"), Statement: prose.Draw(t, "statement")}
	for i := range rapid.IntRange(0, 2).Draw(t, "values") {
		v := stele.HandleValue{Index: uint32(i + 1), Type: word.Draw(t, "kind"), Data: rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "data"), TTL: rapid.Uint32().Draw(t, "vttl"), TTLAbsolute: maybe("absolute"),
			Timestamp: rapid.Uint32().Draw(t, "timestamp"), Permissions: stele.Permission(rapid.Uint8Range(0, 15).Draw(t, "permissions"))}
		if maybe("refers") {
			v.References = []stele.HandleReference{{Handle: "10.5072/" + word.Draw(t, "handle"), Index: rapid.Uint32().Draw(t, "index")}}
		}
		r.Values = append(r.Values, v)
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "signatures") {
		s := stele.Signature{Size: rapid.Uint64Range(0, stele.MaxSignedSize).Draw(t, "size"), Type: rapid.SampledFrom([]string{"", "text/html"}).Draw(t, "stype"),
			Date: at.Truncate(time.Second), Key: strings.Repeat("k", 43), JWS: fmt.Sprint("eyJ9..", i)}
		s.SHA256[i] = rapid.ByteRange(1, 255).Draw(t, "digest")
		r.Signatures = append(r.Signatures, s)
	}
	if maybe("restricted") {
		r.Readers = []string{"user:" + word.Draw(t, "user"), "group:" + word.Draw(t, "group")}
	}
	return r
}

// isText reports whether a text can stand on a line of its own.
func isText(s string) bool { return strings.TrimSpace(s) == s && s != "" }
