package registrar

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// FieldChange is a field that a change of a record gives another value. Values are as
// they stand in the record's document; "" where the field is not there.
type FieldChange struct {
	Path string // as in targets[0].url or metadata.who
	Old  string
	New  string
}

// FieldChanges returns every field in which two versions of a record differ, by path.
// What the system keeps by itself (version, modified, by, import) is not among them. A secret
// that is not encrypted yet is never shown: fixed words stand for it.
func FieldChanges(before, after *stele.Record) (list []FieldChange) {
	old, now := fieldsOf(before), fieldsOf(after)
	veil(old, before, "(old secret)")
	veil(now, after, "(new secret)")
	paths := slices.Collect(maps.Keys(old))
	for path := range now {
		if _, ok := old[path]; !ok {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, comparePaths)
	for _, path := range paths {
		if old[path] != now[path] {
			list = append(list, FieldChange{path, old[path], now[path]})
		}
	}
	return list
}

// comparePaths orders paths so that items of a list stand by their numbers.
func comparePaths(a, b string) int {
	for a != "" && b != "" {
		if n, m := digits(a), digits(b); n > 0 && m > 0 && n != m {
			return n - m
		}
		if a[0] != b[0] {
			break
		}
		a, b = a[1:], b[1:]
	}
	return strings.Compare(a, b)
}

func digits(s string) (n int) {
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// fieldsOf returns the fields of a record's document by their paths.
func fieldsOf(rec *stele.Record) map[string]string {
	fields := make(map[string]string)
	if rec == nil {
		return fields
	}
	c := *rec
	c.Version, c.By, c.Import, c.Modified = 0, "", 0, c.Created
	d := json.NewDecoder(bytes.NewReader(document.AppendRecord(nil, &c)))
	d.UseNumber()
	var tree map[string]any
	if d.Decode(&tree) != nil { // it was written just now
		return fields
	}
	delete(tree, "modified")
	if c.State == stele.Active {
		tree["state"] = string(stele.Active) // the document leaves it out
	}
	flatten(fields, "", tree)
	return fields
}

// veil puts a word in the place of each secret that is in clear.
func veil(fields map[string]string, rec *stele.Record, word string) {
	if rec == nil {
		return
	}
	for i := range rec.Values {
		if isClearSecret(&rec.Values[i]) {
			fields["values["+strconv.Itoa(i)+"].data"] = word
		}
	}
}

// flatten adds what is below a path.
func flatten(fields map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			below := name
			if path != "" {
				below = path + "." + name
			}
			flatten(fields, below, member)
		}
	case []any:
		for i, item := range v {
			flatten(fields, path+"["+strconv.Itoa(i)+"]", item)
		}
	case string:
		fields[path] = v
	case bool:
		fields[path] = strconv.FormatBool(v)
	case json.Number:
		fields[path] = v.String()
	}
}
