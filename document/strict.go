package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// DecodeStrictly reads one document in JSON into v, a pointer to a struct. It is as strict as
// [DecodeRecord]: names count in their case and occur once, null is of no type, the
// text is UTF-8, and whatever is unknown or of another type is a problem. It reports all
// problems at once, with their paths. It leaves a field of the type [json.RawMessage] to the
// caller.
func DecodeStrictly(op string, data []byte, v any) error {
	tree, err := ReadTree(data)
	if err != nil {
		return notJSON(op, err)
	}
	var f fitting
	f.fit("", tree, reflect.TypeOf(v).Elem())
	if len(f.problems) > 0 {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: f.problems}
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Problems{{Err: stele.Messagef("request.document-wrong-kind", "this is not a document of the kind that is read here")}}}
	}
	return nil
}

// notJSON is the error of [ReadTree] as that of an operation.
func notJSON(op string, err error) error {
	problem, _ := errors.AsType[stele.Problem](err)
	return &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Problems{problem}}
}

// fitting finds what is wrong with a tree that should fit a type.
type fitting struct{ problems stele.Problems }

func (f *fitting) addf(path, code, text string, args ...any) {
	if len(f.problems) < 100 { // a longer list does not help the client
		f.problems = append(f.problems, stele.Problem{Path: path, Err: stele.Messagef(code, text, args...)})
	}
}

var rawType = reflect.TypeFor[json.RawMessage]()

func (f *fitting) fit(path string, value any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawType {
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		f.fitStruct(path, value, t)
	case reflect.Slice:
		list, ok := value.([]any)
		if !ok {
			f.addf(path, "request.field-not-a-list", "should be a list, not {given}", called(value))
			return
		}
		for i, item := range list {
			f.fit(path+"["+strconv.Itoa(i)+"]", item, t.Elem())
		}
	case reflect.String:
		if _, ok := value.(string); !ok {
			f.addf(path, "request.field-not-a-string", "should be a string, not {given}", called(value))
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			f.addf(path, "request.field-not-a-boolean", "should be true or false, not {given}", called(value))
		}
	default:
		n, ok := value.(json.Number)
		if !ok {
			f.addf(path, "request.field-not-a-number", "should be a number, not {given}", called(value))
		} else if err := json.Unmarshal([]byte(n), reflect.New(t).Interface()); err != nil {
			f.addf(path, "request.field-not-a-whole-number", `should be a whole number in plain digits, not "{value}"`, n)
		}
	}
}

func (f *fitting) fitStruct(path string, value any, t reflect.Type) {
	// A time and the like are texts.
	if _, isText := reflect.New(t).Interface().(interface{ UnmarshalText([]byte) error }); isText {
		text, ok := value.(string)
		if !ok {
			f.addf(path, "request.field-not-a-string", "should be a string, not {given}", called(value))
		} else if err := json.Unmarshal(strconv.AppendQuote(nil, text), reflect.New(t).Interface()); err != nil {
			f.addf(path, "document.not-a-time", `"{value}" is not a time; write it as in 2024-05-17T10:00:00Z`, text)
		}
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		f.addf(path, "request.field-not-an-object", "should be an object, not {given}", called(value))
		return
	}
	known := fieldsOf(t)
	var unknown []string
	for name, member := range object {
		if i := slices.IndexFunc(known, func(k field) bool { return k.name == name }); i >= 0 {
			f.fit(within(path, name), member, known[i].t)
		} else {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		f.addf(within(path, name), "document.field-unknown", "there is no such field; there are {fields}", names(known))
	}
	slices.SortStableFunc(f.problems, func(a, b stele.Problem) int { return strings.Compare(a.Path, b.Path) })
}

// field is one of a struct, by its name in JSON.
type field struct {
	name string
	t    reflect.Type
}

func fieldsOf(t reflect.Type) (all []field) {
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			all = append(all, field{name, f.Type})
		}
	}
	return all
}

func names(fields []field) string {
	var all []string
	for _, f := range fields {
		all = append(all, f.name)
	}
	return strings.Join(all, ", ")
}

// within joins a name to the path of what it stands in.
func within(path, name string) string {
	for _, c := range []byte(name) {
		if c != '_' && c != '-' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return fmt.Sprintf("%s[%.60q]", path, name)
		}
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// called names the type of a value for people.
func called(value any) string {
	switch value.(type) {
	case nil:
		return "null; leave it out instead"
	case bool:
		return "true or false"
	case json.Number:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}

// WithMember returns a document that has a member of this name: its own, or else the one
// given. It adds the member at the end, so that positions in errors stay. It returns what is
// not an object unchanged, and the decoder reports that.
func WithMember(data []byte, name, value string) []byte {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil || object == nil {
		return data
	}
	if _, ok := object[name]; ok {
		return data
	}
	end := bytes.LastIndexByte(data, '}')
	out := slices.Clone(data[:end])
	if len(object) > 0 {
		out = append(out, ',')
	}
	quoted, _ := json.Marshal(value) // a string can always be written
	out = append(append(append(out, '"'), name...), '"', ':')
	return append(append(out, quoted...), data[end:]...)
}
