package oai

import (
	"bytes"
	"encoding/xml"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/serve/httpd/describe"
)

// writer writes an answer. It escapes what XML needs escaped, and replaces characters that XML can't have.
type writer struct{ b bytes.Buffer }

func (w *writer) begin(name string) { w.b.WriteString("<" + name + ">\n") }
func (w *writer) end(name string)   { w.b.WriteString("</" + name + ">\n") }

// text writes an element with a text.
func (w *writer) text(name, text string, attributes ...string) {
	w.b.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		w.b.WriteString(" " + attributes[i] + `="`)
		w.escape(attributes[i+1])
		w.b.WriteString(`"`)
	}
	w.b.WriteString(">")
	w.escape(text)
	w.b.WriteString("</" + name + ">\n")
}

func (w *writer) escape(text string) { _ = xml.EscapeText(&w.b, []byte(text)) } // a buffer does not fail

// document returns the whole answer: with what was written, or with a fault instead. The arguments are repeated if they are given
// (3.2).
func (w *writer) document(now time.Time, base string, args *arguments, f *fault) []byte {
	var d writer
	d.b.WriteString(xml.Header + `<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ` +
		`xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/ http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd">` + "\n")
	d.text("responseDate", stamp(now))
	var attributes []string
	if args != nil {
		attributes = []string{"verb", args.verb}
		names := make([]string, 0, len(args.values))
		for name := range args.values {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			attributes = append(attributes, name, args.values[name])
		}
	}
	d.text("request", base+Root, attributes...)
	if f != nil {
		d.text("error", f.text, "code", f.code)
	} else {
		d.b.Write(w.b.Bytes())
	}
	d.end("OAI-PMH")
	return d.b.Bytes()
}

// format is a metadata format.
type format struct {
	prefix, schema, space string
	append                func(dst []byte, s describe.Subject) ([]byte, error)
}

var formats = []format{
	{"oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", "http://www.openarchives.org/OAI/2.0/oai_dc/", describe.AppendDublinCore},
	{"oai_datacite", "http://schema.datacite.org/oai/oai-1.1/oai.xsd", dataciteSpace, appendDataCite},
}

func formatOf(prefix string) (format, bool) {
	for _, f := range formats {
		if f.prefix == prefix {
			return f, true
		}
	}
	return format{}, false
}

// format returns the format that the request asks for.
func (c *call) format() (format, error) {
	f, ok := formatOf(c.args.get("metadataPrefix"))
	if !ok {
		return f, faultf(cannotDisseminateFormat, "there is no such format; formats are oai_dc and oai_datacite")
	}
	return f, nil
}

const dataciteSpace = "http://schema.datacite.org/oai/oai-1.1/"

// appendDataCite appends a record as DataCite's own provider wraps it.
func appendDataCite(dst []byte, s describe.Subject) ([]byte, error) {
	dst = append(dst, `<oai_datacite xmlns="`+dataciteSpace+`" xsi:schemaLocation="`+dataciteSpace+` http://schema.datacite.org/oai/oai-1.1/oai.xsd">`+
		"\n<schemaVersion>4.4</schemaVersion>\n<payload>\n"...)
	f, _ := describe.Named("datacitexml")
	text, err := f.Append(nil, s)
	if err != nil {
		return dst, err
	}
	dst = append(dst, bytes.TrimPrefix(text, []byte(xml.Header))...)
	return append(dst, "</payload>\n</oai_datacite>\n"...), nil
}

// isDeleted reports whether a record is deleted for harvesters.
func isDeleted(rec *stele.Record) bool { return rec.State == stele.Withdrawn }

// header writes the header of a record (2.5).
func (c *call) header(w *writer, rec *stele.Record, ns *stele.Namespace, at time.Time) {
	if isDeleted(rec) {
		w.b.WriteString(`<header status="deleted">` + "\n")
	} else {
		w.begin("header")
	}
	w.text("identifier", identifier(rec.ID))
	w.text("datestamp", stamp(at))
	w.text("setSpec", setSpec(ns.Key()))
	w.end("header")
}

// record writes a record: its header, and its metadata if it is not deleted.
func (c *call) record(w *writer, rec *stele.Record, ns *stele.Namespace, at time.Time, f format) error {
	w.begin("record")
	c.header(w, rec, ns, at)
	if !isDeleted(rec) {
		text, err := f.append(nil, c.site.Subject(rec, ns))
		if err != nil {
			return err
		}
		w.begin("metadata")
		w.b.Write(text)
		w.end("metadata")
	}
	w.end("record")
	c.written++
	return nil
}
