package describe

import (
	"bytes"
	"encoding/xml"

	"github.com/stele-id/stele"
)

// AppendDublinCore appends the fifteen elements of Dublin Core that s has, as OAI-PMH 2.0 wants them of every repository: an
// element oai_dc:dc, without an XML declaration. It fails as [Format.Append] does.
func AppendDublinCore(dst []byte, s Subject) ([]byte, error) {
	if s.Record == nil || !s.Record.ID.IsValid() {
		return dst, &stele.Error{Op: "describe", Kind: stele.Internal, Err: errNoRecord}
	}
	f := newFacts(&s)
	w := &dcElements{}
	w.b.WriteString(`<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/" ` +
		`xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ http://www.openarchives.org/OAI/2.0/oai_dc.xsd">` + "\n")
	w.element("title", f.title)
	for _, a := range f.creators {
		w.element("creator", a.name)
	}
	for _, text := range f.subjects {
		w.element("subject", text)
	}
	w.element("description", f.description)
	w.element("publisher", f.publisher)
	for _, a := range f.helpers {
		w.element("contributor", a.name)
	}
	if f.date.iso != "" {
		w.element("date", f.date.iso)
	} else {
		w.element("date", f.when)
	}
	w.element("type", f.kind.word)
	for _, n := range f.names {
		w.element("identifier", n.text)
	}
	if url, ok := webURL(f.citedURL()); ok { // it has no host if the server does not know its own
		w.element("identifier", url)
	}
	for _, t := range f.of(stele.N2L) {
		if url, ok := webURL(t.URL); ok { // one: what is of the same rank, or a spare, is the resolver's business
			w.element("identifier", url)
			w.element("format", t.Type)
			break
		}
	}
	w.element("source", f.journal)
	w.element("language", f.language)
	w.element("rights", f.license)
	w.element("rights", f.rights)
	w.b.WriteString("</oai_dc:dc>\n")
	return append(dst, w.b.Bytes()...), nil
}

// dcElements writes elements of Dublin Core.
type dcElements struct{ b bytes.Buffer }

// element writes an element, if it has a text.
func (w *dcElements) element(name, text string) {
	if text == "" {
		return
	}
	w.b.WriteString("<dc:" + name + ">")
	_ = xml.EscapeText(&w.b, []byte(text)) // a buffer does not fail
	w.b.WriteString("</dc:" + name + ">\n")
}
