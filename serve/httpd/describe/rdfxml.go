package describe

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// appendRDFXML writes the graph as RDF 1.1 XML. It states the same triples as Turtle does.
func appendRDFXML(b []byte, f *facts) ([]byte, error) {
	w := rdfXML{}
	w.b.WriteString(xml.Header)
	w.b.WriteString(`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:schema="http://schema.org/"`)
	w.attribute("xmlns:"+dublinCore.prefix, dublinCore.uri)
	for _, v := range f.vocabularies() {
		w.attribute("xmlns:"+v.prefix, v.uri)
	}
	w.b.WriteString(">\n")
	w.node(f.graph(), "  ")
	w.b.WriteString("</rdf:RDF>\n")
	return append(b, w.b.Bytes()...), nil
}

// rdfXML writes nodes. A buffer takes everything, so that nothing fails.
type rdfXML struct{ b bytes.Buffer }

// node writes a node element (RDF 1.1 XML Syntax, section 7.2.11).
func (w *rdfXML) node(n *node, indent string) {
	name := "rdf:Description"
	if n.class != "" {
		name = "schema:" + n.class
	}
	w.b.WriteString(indent + "<" + name)
	if n.id != "" {
		w.attribute("rdf:about", encode(n.id))
	}
	w.b.WriteString(">\n")
	for _, p := range n.props {
		for _, v := range p.values {
			w.property(p.name, v, indent+"  ")
		}
	}
	w.b.WriteString(indent + "</" + name + ">\n")
}

// property writes a property element.
func (w *rdfXML) property(name string, v value, indent string) {
	if !strings.Contains(name, ":") {
		name = "schema:" + name
	}
	w.b.WriteString(indent + "<" + name)
	switch v.sort {
	case isURL:
		w.attribute("rdf:resource", encode(v.text))
		w.b.WriteString("/>\n")
		return
	case isNode:
		w.b.WriteString(">\n")
		w.node(v.node, indent+"  ")
		w.b.WriteString(indent)
	case isDate:
		w.attribute("rdf:datatype", "http://schema.org/Date")
		fallthrough
	default:
		w.b.WriteString(">")
		_ = xml.EscapeText(&w.b, []byte(v.text))
	}
	w.b.WriteString("</" + name + ">\n")
}

func (w *rdfXML) attribute(name, text string) {
	w.b.WriteString(" " + name + `="`)
	_ = xml.EscapeText(&w.b, []byte(text))
	w.b.WriteString(`"`)
}
