package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// maxDepth is how deep a document may nest.
const maxDepth = 32

// decodeStrictly reads one document in JSON into v, a pointer to a struct. It is as
// strict as [stele.Schemes.DecodeRecord]: names count in their case and occur once,
// null is of no type, the text is UTF-8, and whatever is unknown or of another type is
// a problem. All problems are told at once, with their paths. A field of the type
// [json.RawMessage] is left to whoever knows it.
func decodeStrictly(op string, data []byte, v any) error {
	tree, err := readTree(data)
	if err != nil {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Problems{{Err: err}}}
	}
	var f fitting
	f.fit("", tree, reflect.TypeOf(v).Elem())
	if len(f.problems) > 0 {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: f.problems}
	}
	if err := json.Unmarshal(data, v); err != nil {
		return &stele.Error{Op: op, Kind: stele.Invalid, Err: stele.Problems{{Err: errors.New("this is no document of the kind that is read here")}}}
	}
	return nil
}

// readTree reads one JSON text (RFC 8259): objects as map[string]any, lists as []any,
// numbers as [json.Number]. Names that occur twice, what nests too deep, what is not
// UTF-8 and what follows the end are errors.
func readTree(data []byte) (any, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("this is not UTF-8; save the text as UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	tree, err := readValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the document's end, at byte %d; send one document alone", d.InputOffset())
	}
	return tree, halves(data)
}

// halves returns an error if a JSON text has half a character, \ud800 without its other
// half: that is no text, and encoding/json would put another character there.
func halves(data []byte) error {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		i++ // a backslash is always followed by something
		r := escapedRune(data[i:])
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+5 >= len(data) || data[i+5] != '\\' || utf16.DecodeRune(r, escapedRune(data[i+6:])) == utf8.RuneError {
			return fmt.Errorf("\\u%04x at byte %d alone is half a character; write both halves, or the character itself", r, i-1)
		}
		i += 10
	}
	return nil
}

// escapedRune returns what u and four hexadecimal digits mean; 0 if there are none.
func escapedRune(b []byte) rune {
	if len(b) < 5 || b[0] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[1:5]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

func readValue(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, noJSON(d, err)
	}
	open, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == maxDepth {
		return nil, fmt.Errorf("nests more than %d deep at byte %d; nothing that is known does", maxDepth, d.InputOffset())
	}
	if open == '{' {
		return readObject(d, depth+1)
	}
	list := []any{}
	for d.More() {
		item, err := readValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	_, err = d.Token()
	return list, noJSON(d, err)
}

func readObject(d *json.Decoder, depth int) (any, error) {
	object := make(map[string]any)
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, noJSON(d, err)
		}
		name, ok := token.(string)
		if !ok {
			return nil, fmt.Errorf("this is no JSON at byte %d: a name should stand here", d.InputOffset())
		}
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("%.60q is given twice; keep one", name)
		}
		if object[name], err = readValue(d, depth); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, noJSON(d, err)
}

// noJSON says where a text stops being JSON.
func noJSON(d *json.Decoder, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the text ends too early; it is no JSON document")
	}
	return fmt.Errorf("this is no JSON at byte %d: %w", d.InputOffset(), err)
}

// fitting finds what is wrong with a tree that should fit a type.
type fitting struct{ problems stele.Problems }

func (f *fitting) addf(path, format string, args ...any) {
	if len(f.problems) < 100 { // more help nobody
		f.problems = append(f.problems, stele.Problem{Path: path, Err: fmt.Errorf(format, args...)})
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
			f.addf(path, "should be a list, not %s", called(value))
			return
		}
		for i, item := range list {
			f.fit(path+"["+strconv.Itoa(i)+"]", item, t.Elem())
		}
	case reflect.String:
		if _, ok := value.(string); !ok {
			f.addf(path, "should be a string, not %s", called(value))
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			f.addf(path, "should be true or false, not %s", called(value))
		}
	default:
		n, ok := value.(json.Number)
		if !ok {
			f.addf(path, "should be a number, not %s", called(value))
		} else if err := json.Unmarshal([]byte(n), reflect.New(t).Interface()); err != nil {
			f.addf(path, "should be a whole number in plain digits, not %.40q", n)
		}
	}
}

func (f *fitting) fitStruct(path string, value any, t reflect.Type) {
	// A time and the like are texts.
	if _, isText := reflect.New(t).Interface().(interface{ UnmarshalText([]byte) error }); isText {
		text, ok := value.(string)
		if !ok {
			f.addf(path, "should be a string, not %s", called(value))
		} else if err := json.Unmarshal(strconv.AppendQuote(nil, text), reflect.New(t).Interface()); err != nil {
			f.addf(path, "%.60q is no time; write it as in 2024-05-17T10:00:00Z", text)
		}
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		f.addf(path, "should be an object, not %s", called(value))
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
		f.addf(within(path, name), "there is no such field; there are %s", names(known))
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

// withMember returns a document that has a member of this name: its own, or else the
// one given. It stands at the end, so that positions in errors stay. What is no object
// stays as it is, for its reader to complain of.
func withMember(data []byte, name, value string) []byte {
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
