package document

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/stele-id/stele"
)

// ReadTree reads one JSON text of any shape, as strictly as [DecodeRecord] reads a record:
// objects as map[string]any, lists as []any, numbers as [json.Number]. A name that an object has
// twice, values that nest too deep, half a surrogate, bytes that are not UTF-8, and anything after
// the end are errors: a [stele.Problem] with its path.
func ReadTree(data []byte) (any, error) {
	var j jsonReader
	j.start(string(data))
	v := j.tree(0)
	j.end()
	return v, j.err()
}

// ReadObject reads one JSON object, as strictly as [ReadTree], and returns the texts of its
// members.
func ReadObject(data []byte) (map[string]json.RawMessage, error) {
	var j jsonReader
	j.start(string(data))
	if !j.broken && j.peek() != '{' {
		return nil, stele.Problem{Err: stele.Messagef("document.not-an-object", "this is not an object in JSON")}
	}
	object := make(map[string]json.RawMessage)
	j.members(func(name string) {
		j.peek() // passes over space
		begin := j.pos
		j.tree(1)
		if !j.broken {
			j.once(object[name] != nil)
			object[name] = json.RawMessage(j.text[begin:j.pos])
		}
	})
	j.end()
	return object, j.err()
}

// err returns the first problem, a [stele.Problem].
func (j *jsonReader) err() error {
	if list := j.faults.Problems(); len(list) > 0 {
		return list[0]
	}
	return nil
}

// once makes sure that an object has the name of the member once.
func (j *jsonReader) once(twice bool) {
	if twice {
		j.stop(stele.Messagef("document.field-twice", "is given twice; keep one"))
	}
}

// tree reads a value of any type.
func (j *jsonReader) tree(nesting int) any {
	if nesting > maxNesting {
		j.tooDeep()
		return nil
	}
	switch c := j.peek(); {
	case c == '"':
		return j.quoted()
	case c == '-' || isDigit(c):
		return json.Number(j.number())
	case c == 't', c == 'f':
		return j.bool()
	case c == 'n':
		j.literal("null")
		return nil
	case c == '[':
		list := []any{}
		j.array(math.MaxInt, func(int) { list = append(list, j.tree(nesting+1)) })
		return list
	case c == '{':
		object := make(map[string]any)
		j.members(func(name string) {
			_, twice := object[name]
			object[name] = j.tree(nesting + 1)
			j.once(twice)
		})
		return object
	}
	j.unexpected("a value")
	return nil
}

// AppendTree appends a value that [ReadTree] returned, or one like it, in JSON to b: compact, with the members of objects in the order of
// their names. Of a value of another type it writes null.
func AppendTree(b []byte, v any) []byte {
	w := jsonWriter{b: b}
	w.tree(v)
	return w.b
}

func (w *jsonWriter) tree(v any) {
	switch v := v.(type) {
	case string:
		w.string(v)
	case json.Number:
		w.b = append(w.b, v...)
	case bool:
		w.b = strconv.AppendBool(w.b, v)
	case []any:
		w.open('[')
		for i, item := range v {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			w.tree(item)
		}
		w.close(']')
	case map[string]any:
		w.open('{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			w.string(name)
			w.b = append(w.b, ':')
			w.tree(v[name])
		}
		w.close('}')
	default:
		w.b = append(w.b, "null"...)
	}
}
