package foreign

import (
	"bytes"
	"sync/atomic"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/doirecord"
)

// The formats of what DataCite has of DOIs.
const (
	DataCiteJSON  Format = "json"  // pages of its REST API, {"data":[...]}
	DataCiteLines Format = "jsonl" // objects that follow each other, or their attributes: the parts of the public data file
	DataCiteTar   Format = "tar"   // the public data file: a tar archive of such parts, each compressed
)

// What pages of the REST API begin with, and those of their members that have records. JSON:API (1.0, section 5.1) defines them.
var (
	dataciteWrappers = []string{"data", "meta", "links", "jsonapi", "included"}
	dataciteLists    = []string{"data"}
	dataciteTold     = []string{"included"} // what is related, such as repositories
)

// detectDataCite finds out what a file is by its beginning.
func detectDataCite(head []byte) Format {
	if isTar(head) {
		return DataCiteTar
	}
	text := withoutRemarks(head)
	if len(text) == 0 {
		return unknown
	}
	switch {
	case text[0] == '[':
		return DataCiteJSON
	case text[0] != '{':
		return unknown
	}
	for _, name := range dataciteWrappers {
		if bytes.HasPrefix(bytes.TrimLeft(text[1:], " \t\r\n"), []byte(`"`+name+`"`)) {
			return DataCiteJSON
		}
	}
	return DataCiteLines
}

// withoutRemarks returns a beginning after the mark of UTF-8, white space and the remarks of a file of rejected rows.
func withoutRemarks(head []byte) []byte {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	for bytes.HasPrefix(text, []byte("#")) {
		_, rest, _ := bytes.Cut(text, []byte("\n"))
		text = bytes.TrimLeft(rest, " \t\r\n")
	}
	return text
}

// isDataCite reports whether a beginning is one of DataCite's, and not of other JSON.
func isDataCite(head []byte) bool {
	if isTar(head) {
		return bytes.HasPrefix(bytes.TrimPrefix(head, []byte("./")), []byte("dois"))
	}
	for _, marks := range [][]string{{`"dois"`, `"attributes"`}, {`"doi"`, `"publicationYear"`}, {`"doi"`, `"titles"`}} {
		if bytes.Contains(head, []byte(marks[0])) && bytes.Contains(head, []byte(marks[1])) {
			return true
		}
	}
	return false
}

// openDataCite opens files of DataCite.
func openDataCite(s *Source, texts []*window) (parts []part) {
	var identical atomic.Int64
	s.closing = append(s.closing, func() (notes []error) {
		if n := identical.Load(); n > 0 {
			notes = append(notes, stele.Messagef("import.datacite-identical", "{count} identifiers are said to name the same thing as a record (IsIdenticalTo); they are in the metadata datacite.isidenticalto, and are not made aliases: 'stele update NAME --alias OTHER' does", n))
		}
		return notes
	})
	for i, w := range texts {
		parts = append(parts, newJSONPart(s, w, s.kinds[i], dataciteItems, func(row *bulk.Row) {
			text := row.Text
			row.Later = func() []byte { return compacted(text) }
			rec, n, err := doirecord.FromDataCite(s.o.Schemes, text)
			if row.Err = err; err != nil {
				return
			}
			if s.fill(row, rec); row.Err == nil {
				identical.Add(int64(n))
			}
		}))
	}
	return parts
}

func dataciteItems(s *Source, w *window) *jsonItems {
	return &jsonItems{s: s, w: w, pages: dataciteWrappers, lists: dataciteLists, told: dataciteTold}
}

// newJSONPart reads a file of JSON, or an archive of such files.
func newJSONPart(s *Source, w *window, kind Format, items func(*Source, *window) *jsonItems, parse func(*bulk.Row)) *itemPart {
	p := &itemPart{s: s, w: w, kind: kind, make: parse}
	open := func(w *window) func() (item, error) {
		if bytes.HasPrefix(w.peekText(3), []byte("\xef\xbb\xbf")) {
			w.take(3)
		}
		return items(s, w).next
	}
	if kind == DataCiteTar {
		archive := newTarParts(s, w, open)
		p.w, p.read = archive.w, archive.read
		return p
	}
	p.read = func() (item, error) {
		p.read = open(w)
		return p.read()
	}
	return p
}
