package foreign

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/doirecord"
)

// The formats of what Crossref has of DOIs.
const (
	CrossrefXML  Format = "xml"  // deposits, doi_batch, or what a query for metadata returns
	CrossrefJSON Format = "json" // works of the REST API, and parts of the public data file
	CrossrefTar  Format = "tar"  // the public data file: an archive of such parts
)

// What pages of the REST API and parts of the data file begin with, and those of their members that have works.
var (
	crossrefWrappers = []string{"items", "message", "status", "message-type", "message-version", "facets", "total-results", "items-per-page", "query", "next-cursor"}
	crossrefLists    = []string{"items", "message"}
)

// detectCrossref finds out what a file is by its beginning.
func detectCrossref(head []byte) Format {
	text := withoutRemarks(head)
	switch {
	case isTar(head):
		return CrossrefTar
	case bytes.HasPrefix(text, []byte("<")):
		return CrossrefXML
	case bytes.HasPrefix(text, []byte("{")), bytes.HasPrefix(text, []byte("[")):
		return CrossrefJSON
	}
	return unknown
}

// isCrossref reports whether a beginning is one of Crossref's.
func isCrossref(head []byte) bool {
	if bytes.HasPrefix(withoutRemarks(head), []byte("<")) {
		return bytes.Contains(head, []byte("doi_batch")) || bytes.Contains(head, []byte("crossref_result")) || bytes.Contains(head, []byte("<crossref"))
	}
	return !isTar(head) && bytes.Contains(head, []byte(`"DOI"`)) && !bytes.Contains(head, []byte(`"dois"`))
}

// openCrossref opens files of Crossref.
func openCrossref(s *Source, texts []*window) (parts []part) {
	for i, w := range texts {
		if s.kinds[i] != CrossrefXML {
			parts = append(parts, newJSONPart(s, w, s.kinds[i], crossrefItems, func(row *bulk.Row) {
				text := row.Text
				row.Later = func() []byte { return compacted(text) }
				rec, err := doirecord.FromCrossref(s.o.Schemes, text)
				if row.Err = err; err == nil {
					s.fill(row, rec)
				}
			}))
			continue
		}
		works := &crossrefWorks{s: s, cut: xmlCutter{w: w}}
		parts = append(parts, &itemPart{s: s, w: w, kind: CrossrefXML, read: works.read, make: s.crossrefRow})
	}
	return parts
}

func crossrefItems(s *Source, w *window) *jsonItems {
	return &jsonItems{s: s, w: w, pages: crossrefWrappers, lists: crossrefLists}
}

// crossrefWorks finds the works of XML. A work is an element that has doi_data. What it says is not complete: a journal stands
// beside its articles, and both in an element journal. So a work is read with all that stands around it, and with what stands before
// it in the same place and describes the whole, such as journal_metadata. Elements have no limit of their number, since only one
// unit with its surroundings is in memory.
type crossrefWorks struct {
	s      *Source
	cut    xmlCutter
	open   []crossrefLevel
	size   int            // bytes of open
	frame  *crossrefFrame // of what is open; nil if that has changed
	text   []byte         // for one element
	queue  crossrefQueue
	headed bool
	failed error
}

// crossrefQueue is the works of one element that are still to be handed over: an element may have many, and each says all of it.
type crossrefQueue struct {
	item item
	left int
}

// crossrefLevel is an element around works.
type crossrefLevel struct {
	local, tag string
	context    []string // elements in it that describe the whole
	names      []string // of these
	size       int
}

// crossrefAround are the elements around works, which are not works themselves.
var crossrefAround = []string{"doi_batch", "body", "crossref_result", "query_result", "query", "doi_record", "crossref", "journal", "conference", "book", "database", "report-paper", "standard", "sa_component", "component_list", "grants"}

const (
	maxContext = 64 << 10 // bytes of a file around a work, and of what describes it and stands beside it
	maxWorks   = 1000     // in one element
)

// read returns the next work.
func (r *crossrefWorks) read() (item, error) {
	for r.queue.left == 0 {
		if r.failed == nil {
			r.failed = r.step()
		}
		if r.failed != nil && r.queue.left == 0 {
			return item{}, r.failed
		}
	}
	it := r.queue.item
	if unit, ok := it.unit.(*crossrefUnit); ok {
		it.unit = crossrefPick{unit, r.queue.left - 1}
	}
	r.queue.left--
	return it, nil
}

// step reads the next piece of the file, or the next work.
func (r *crossrefWorks) step() error {
	if len(r.open) == 0 {
		if bytes.HasPrefix(r.cut.w.peekText(3), []byte("\xef\xbb\xbf")) {
			r.cut.w.take(3)
		}
		for r.cut.w.space(); r.cut.w.peek() == '#'; r.cut.w.space() {
			r.cut.w.nextLine()
		}
	}
	line := r.cut.w.line
	p, err := r.cut.next()
	if err == io.EOF && len(r.open) > 0 {
		return r.cut.cutOff()
	}
	if err != nil {
		return err
	}
	switch {
	case p.kind == xmlText && len(r.open) == 0 && len(bytes.TrimSpace(p.raw)) > 0 && p.raw[0] != '<':
		return failf(stele.Invalid, "import.crossref-not-xml", "{file} is not XML of Crossref at line {line}: a tag should stand here", r.cut.w.name, line)
	case p.kind == xmlText:
	case p.kind == xmlEnd && len(r.open) == 0 || p.kind == xmlEnd && r.open[len(r.open)-1].local != p.local:
		return failf(stele.Invalid, "import.crossref-tags", "{file} is not well-formed at line {line}: the end of {element} stands where another element ends", r.cut.w.name, line, p.local)
	case p.kind == xmlEnd:
		last := len(r.open) - 1
		r.size -= r.open[last].size
		r.open, r.frame = r.open[:last], nil
	case p.kind == xmlStart && slices.Contains(crossrefAround, p.local) && len(r.open) < 16:
		if r.size += len(p.raw); r.size > maxContext {
			return failf(stele.Invalid, "import.crossref-around-long", "{file}: what stands around the works at line {line} has more than {most} bytes", r.cut.w.name, line, maxContext)
		}
		r.open, r.frame = append(r.open, crossrefLevel{local: p.local, tag: string(p.raw), size: len(p.raw)}), nil
	case len(r.open) == 0:
		return failf(stele.Invalid, "import.crossref-root", "{file} is not a file of Crossref: its outermost element is {element}, not doi_batch or crossref_result", r.cut.w.name, p.local)
	default:
		return r.unit(p, line)
	}
	return nil
}

// unit reads an element that may be a work, or describe works beside it.
func (r *crossrefWorks) unit(p xmlPiece, line int) error {
	text := append(r.text[:0], p.raw...)
	defer func() { r.text = text }()
	works, size := 0, len(p.raw)
	open := []string{p.local}
	for p.kind == xmlStart && len(open) > 0 {
		q, err := r.cut.next()
		if err == io.EOF {
			return r.cut.cutOff()
		}
		if err != nil {
			return err
		}
		switch q.kind {
		case xmlStart:
			if open = append(open, q.local); len(open) > 100 {
				return failf(stele.Invalid, "import.crossref-deep", "{file}: elements at line {line} are more than {most} deep", r.cut.w.name, r.cut.w.line, 100)
			}
		case xmlEnd:
			if open[len(open)-1] != q.local {
				return failf(stele.Invalid, "import.crossref-tags", "{file} is not well-formed at line {line}: the end of {element} stands where another element ends", r.cut.w.name, r.cut.w.line, q.local)
			}
			open = open[:len(open)-1]
		}
		if q.local == "doi_data" && (q.kind == xmlStart || q.kind == xmlEmpty) {
			works++
		}
		if size += len(q.raw); size <= maxRow {
			text = append(text, q.raw...)
		}
	}
	r.take(p.local, bytes.Clone(text), works, size, line)
	return nil
}

// take takes an element that was cut out.
func (r *crossrefWorks) take(local string, text []byte, works, size, line int) {
	level := &r.open[len(r.open)-1]
	isContext := strings.HasSuffix(local, "metadata") || slices.Contains([]string{"journal_issue", "contributors", "crm-item"}, local)
	switch {
	case local == "head":
		if level.local == "doi_batch" && !r.headed {
			r.headed = true
			r.s.note("import.crossref-head", "{file}: the head of the deposit, which says who made it and when, is left out", r.cut.w.name)
		}
		return
	case size > maxRow:
		r.queue = crossrefQueue{item{line: line, err: tooLong(size, maxRow)}, 1}
		return
	case works > maxWorks:
		r.queue = crossrefQueue{item{line: line, err: failf(stele.Invalid, "import.crossref-many-works", "the element {element} has {count} elements doi_data; {most} are the most", local, works, maxWorks)}, 1}
		return
	}
	if r.frame == nil {
		r.frame = newCrossrefFrame(r.open)
	}
	unit := &crossrefUnit{frame: r.frame, local: local, text: text}
	it := item{line: line, text: text, unit: unit, size: len(text) + len(r.frame.before), later: crossrefLater(r.frame, text)}
	switch {
	case works > 0:
		r.queue = crossrefQueue{it, works}
	case !isContext && level.local != "query" && level.local != "query_result":
		it.unit, it.err = nil, failf(stele.Invalid, "import.crossref-no-doi", "the element {element} has no doi_data, so it has no DOI", local)
		r.queue = crossrefQueue{it, 1}
	}
	if isContext {
		r.describe(level, local, string(text))
	}
}

// describe makes an element one that describes those after it, in place of the one with its name before it.
func (r *crossrefWorks) describe(level *crossrefLevel, local, text string) {
	if i := slices.Index(level.names, local); i >= 0 && local != "crm-item" {
		n := len(level.context[i])
		level.size, r.size = level.size-n, r.size-n
		level.context, level.names = slices.Delete(level.context, i, i+1), slices.Delete(level.names, i, i+1)
		r.frame = nil
	}
	if r.size+len(text) > maxContext {
		r.s.note("import.crossref-context-long", "{file}: the element {element} that ends at line {line} is not read for the works after it: what describes them has more than {most} bytes", r.cut.w.name, local, r.cut.w.line, maxContext)
		return
	}
	level.size, r.size = level.size+len(text), r.size+len(text)
	level.context, level.names, r.frame = append(level.context, text), append(level.names, local), nil
}

// crossrefLater makes the text of a row that is rejected: a document with the element and all that stands around it.
func crossrefLater(f *crossrefFrame, text []byte) func() []byte {
	return func() []byte { return []byte(f.before + string(text) + f.after) }
}

// crossrefRow makes the record of a work.
func (s *Source) crossrefRow(row *bulk.Row) {
	pick := row.Unit.(crossrefPick)
	row.Unit = nil
	w, err := pick.work()
	if row.Err = err; err != nil {
		return
	}
	rec, err := w.Record(s.o.Schemes)
	if row.Err = err; err == nil {
		s.fill(row, rec)
	}
}
