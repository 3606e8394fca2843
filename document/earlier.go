package document

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/stele-id/stele"
)

// earlierName is the member of a line of an import that has the versions of the record before the
// one that the line says.
const earlierName = "earlier"

// notEarlier are the members of a record's document that an earlier version does not have: it
// shares them with the record, or the registry sets them.
var notEarlier = []string{"id", "spelling", "version", "created", "redacted", "import", "withheld", earlierName}

// CutEarlier takes the member "earlier" out of a line of an import: a list of the record's
// versions before the one in the line, the oldest first, at most [stele.MaxEarlier]. Each is a
// document as [DecodeRecord] reads it, with modified, and without the members that only the
// record as a whole has. CutEarlier returns the rest of the line, which is the line itself if it
// has no such member, and the versions, each with the identifier of the line.
//
// It reports all problems of all versions together, with their paths.
func CutEarlier(s *stele.Schemes, line []byte) (rest []byte, earlier []*stele.Record, err error) {
	if !bytes.Contains(line, []byte(`"`+earlierName+`"`)) { // the usual line
		return line, nil, nil
	}
	object, err := ReadObject(line)
	if err != nil || object[earlierName] == nil {
		return line, nil, nil // reading the rest says what is wrong
	}
	var list []json.RawMessage
	var f stele.Report
	text, id := object[earlierName], object["id"]
	if len(text) > stele.MaxDocument || text[0] != '[' || json.Unmarshal(text, &list) != nil {
		f.Addf(earlierName, "document.earlier-not-a-list", "should be a list of earlier versions of the record, of {most} bytes at most", stele.MaxDocument)
	} else if len(list) > stele.MaxEarlier {
		f.Addf(earlierName, "field.too-many-items", "has {count} items; {limit} are the most", len(list), stele.MaxEarlier)
		list = nil
	}
	for i, version := range list {
		if r := decodeEarlier(s, &f, stele.ItemPath(earlierName, i), id, version); r != nil {
			earlier = append(earlier, r)
		}
	}
	if err := f.Err("read record", stele.ID{}); err != nil {
		return nil, nil, err
	}
	delete(object, earlierName)
	if rest, err = json.Marshal(object); err != nil {
		return nil, nil, err // unreachable: each member was read
	}
	return rest, earlier, nil
}

// decodeEarlier reads one earlier version, and reports its problems under a path. It returns nil
// if there are some, or if the line has no identifier, which the reader of the line reports.
func decodeEarlier(s *stele.Schemes, f *stele.Report, path string, id, text []byte) *stele.Record {
	object, err := ReadObject(text)
	if err != nil {
		problem, _ := errors.AsType[stele.Problem](err)
		f.Add(path, problem.Err)
		return nil
	}
	good := id != nil
	for _, name := range notEarlier {
		if object[name] != nil {
			f.Addf(stele.FieldPath(path, name), "document.not-in-earlier", "an earlier version does not have it; leave it out")
			good = false
		}
	}
	if object["modified"] == nil {
		f.Addf(stele.FieldPath(path, "modified"), "document.earlier-without-date", "is missing; say when this version was made")
		good = false
	}
	if !good {
		return nil
	}
	object["id"] = id
	whole, err := json.Marshal(object)
	if err != nil {
		return nil // unreachable: each member was read
	}
	r, err := DecodeRecord(s, whole)
	if problems, ok := errors.AsType[stele.Problems](err); ok {
		for _, p := range problems {
			if p.Path != "id" { // the line has it too
				f.Add(joinPath(path, p.Path), p.Err)
			}
		}
	}
	return r
}

// joinPath puts a path below another one.
func joinPath(path, below string) string {
	if below == "" || below[0] == '[' {
		return path + below
	}
	return path + "." + below
}

// AppendEarlier adds earlier versions of a record, as [CutEarlier] reads them, to its document,
// which b ends with.
func AppendEarlier(b []byte, earlier []*stele.Record) []byte {
	if len(earlier) == 0 {
		return b
	}
	w := jsonWriter{b: append(b[:len(b)-1], `,"`+earlierName+`":[`...)}
	for i, r := range earlier {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.open('{')
		w.content(r)
		w.time("modified", r.Modified)
		w.text("by", r.By)
		w.close('}')
	}
	return append(w.b, "]}"...)
}
