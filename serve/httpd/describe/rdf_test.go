package describe

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// triples is a graph: by subject, sorted statements. What has no name is written
// in brackets with all it says, so that two graphs can be compared.
type triples map[string][]string

func (g triples) add(subject string, statements []string) {
	g[subject] = append(g[subject], statements...)
	slices.Sort(g[subject])
	g[subject] = slices.Compact(g[subject])
}

func blank(statements []string) string {
	slices.Sort(statements)
	return "[" + strings.Join(slices.Compact(statements), " ; ") + "]"
}

// turtleReader reads the part of Turtle that a program would need for our
// documents, by the grammar of RDF 1.1 Turtle, section 6.5.
type turtleReader struct {
	text     string
	prefixes map[string]string
	graph    triples
}

func readTurtle(text string) (g triples, err error) {
	r := &turtleReader{text: text, prefixes: make(map[string]string), graph: make(triples)}
	defer func() {
		if e := recover(); e != nil {
			g, err = nil, fmt.Errorf("%v at %.60q", e, r.text)
		}
	}()
	for r.space(); r.text != ""; r.space() {
		if r.take("@prefix") {
			r.space()
			name, rest, _ := strings.Cut(r.text, ":")
			r.text = rest
			r.space()
			r.prefixes[name] = r.iri()
		} else {
			subject := r.iri()
			r.graph.add("<"+subject+">", r.statements())
		}
		r.expect(".")
	}
	return r.graph, nil
}

func (r *turtleReader) space() { r.text = strings.TrimLeft(r.text, " \t\n\r") }

func (r *turtleReader) take(s string) bool {
	rest, ok := strings.CutPrefix(r.text, s)
	r.text = rest
	return ok
}

func (r *turtleReader) expect(s string) {
	if r.space(); !r.take(s) {
		panic("no " + s)
	}
}

// iri reads an IRIREF or a prefixed name.
func (r *turtleReader) iri() string {
	if !r.take("<") {
		end := strings.IndexAny(r.text, " \t\n;,.[]\"^")
		prefix, local, ok := strings.Cut(r.text[:end], ":")
		if !ok || r.prefixes[prefix] == "" {
			panic("no name")
		}
		r.text = r.text[end:]
		return r.prefixes[prefix] + local
	}
	iri, rest, ok := strings.Cut(r.text, ">")
	if !ok || strings.ContainsFunc(iri, func(c rune) bool { return c <= ' ' || c > '~' || strings.ContainsRune("<\"{}|^`\\", c) }) {
		panic("no IRI")
	}
	r.text = rest
	return iri
}

func (r *turtleReader) statements() (all []string) {
	for {
		r.space()
		predicate := "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
		if !r.take("a ") {
			predicate = r.iri()
		}
		for {
			all = append(all, predicate+" "+r.object())
			if r.space(); !r.take(",") {
				break
			}
		}
		if r.space(); !r.take(";") {
			return all
		}
	}
}

func (r *turtleReader) object() string {
	r.space()
	if r.take("[") {
		r.space()
		if r.take("]") {
			return "[]"
		}
		all := r.statements()
		r.expect("]")
		return blank(all)
	}
	if !strings.HasPrefix(r.text, `"`) {
		return "<" + r.iri() + ">"
	}
	literal := strconv.Quote(r.literal())
	if r.take("^^") {
		literal += "^^" + r.iri()
	}
	return literal
}

func (r *turtleReader) literal() string {
	var b strings.Builder
	r.text = r.text[1:]
	for {
		c := r.text[0]
		switch r.text = r.text[1:]; c {
		case '"':
			return b.String()
		case '\n', '\r':
			panic("a line ends in a literal")
		case '\\':
			e := r.text[0]
			r.text = r.text[1:]
			switch at := strings.IndexByte(`tbnrf"'\`, e); {
			case at >= 0:
				b.WriteByte("\t\b\n\r\f\"'\\"[at])
			case e == 'u':
				n, err := strconv.ParseUint(r.text[:4], 16, 32)
				if err != nil {
					panic(err)
				}
				b.WriteRune(rune(n))
				r.text = r.text[4:]
			default:
				panic("no escape")
			}
		default:
			b.WriteByte(c)
		}
	}
}

// readJSONLD expands JSON-LD, knowing what schema.org's context says of the terms
// that we use.
func readJSONLD(data []byte) (triples, error) {
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if list, ok := doc["@context"].([]any); ok {
		for prefix, uri := range list[1].(map[string]any) {
			for key, v := range maps.Clone(doc) {
				if local, ok := strings.CutPrefix(key, prefix+":"); ok {
					delete(doc, key)
					doc[uri.(string)+local] = v
				}
			}
		}
	}
	delete(doc, "@context")
	g := make(triples)
	g.expand(doc)
	return g, nil
}

func (g triples) expand(object map[string]any) string {
	var all []string
	for key, v := range object {
		values, ok := v.([]any)
		if !ok {
			values = []any{v}
		}
		for _, v := range values {
			switch key {
			case "@id":
			case "@type":
				all = append(all, "http://www.w3.org/1999/02/22-rdf-syntax-ns#type <http://schema.org/"+v.(string)+">")
			default:
				all = append(all, term(key)+" "+g.value(key, v))
			}
		}
	}
	id, named := object["@id"].(string)
	if !named {
		return blank(all)
	}
	if len(all) > 0 {
		g.add("<"+id+">", all)
	}
	return "<" + id + ">"
}

func term(key string) string {
	if strings.Contains(key, ":") { // the context expanded it
		return key
	}
	return "http://schema.org/" + key
}

func (g triples) value(key string, v any) string {
	if object, ok := v.(map[string]any); ok {
		return g.expand(object)
	}
	switch key {
	case "url", "sameAs", "license", "contentUrl":
		return "<" + v.(string) + ">"
	case "datePublished", "sdDatePublished", "expires", "dateCreated":
		return strconv.Quote(v.(string)) + "^^http://schema.org/Date"
	}
	return strconv.Quote(v.(string))
}

// xmlElement is an element of a document.
type xmlElement struct {
	XMLName    xml.Name
	Attributes []xml.Attr   `xml:",any,attr"`
	Text       string       `xml:",chardata"`
	Elements   []xmlElement `xml:",any"`
}

func (e *xmlElement) attribute(name string) (string, bool) {
	for _, a := range e.Attributes {
		if a.Name.Space+a.Name.Local == rdfSpace+name {
			return a.Value, true
		}
	}
	return "", false
}

const rdfSpace = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"

// readRDFXML reads node elements and property elements, by turns (RDF 1.1 XML Syntax, section
// 7.2).
func readRDFXML(text []byte) (triples, error) {
	var document xmlElement
	if err := xml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	if document.XMLName.Space+document.XMLName.Local != rdfSpace+"RDF" {
		return nil, fmt.Errorf("the root is %v", document.XMLName)
	}
	g := make(triples)
	for i := range document.Elements {
		g.node(&document.Elements[i])
	}
	return g, nil
}

// node reads a node element, and returns it as an object.
func (g triples) node(e *xmlElement) string {
	var all []string
	if class := e.XMLName.Space + e.XMLName.Local; class != rdfSpace+"Description" {
		all = append(all, rdfSpace+"type <"+class+">")
	}
	for i := range e.Elements {
		p := &e.Elements[i]
		object := strconv.Quote(p.Text)
		if resource, ok := p.attribute("resource"); ok {
			object = "<" + resource + ">"
		} else if datatype, ok := p.attribute("datatype"); ok {
			object += "^^" + datatype
		} else if len(p.Elements) == 1 {
			object = g.node(&p.Elements[0])
		}
		all = append(all, p.XMLName.Space+p.XMLName.Local+" "+object)
	}
	about, ok := e.attribute("about")
	if !ok {
		return blank(all)
	}
	g.add("<"+about+">", all)
	return "<" + about + ">"
}

// TestSameTriples reads Turtle, JSON-LD and RDF/XML back: they are well formed, whatever is
// in the record, and say the same.
func TestSameTriples(t *testing.T) {
	check := func(t interface {
		Helper()
		Fatal(...any)
		Fatalf(string, ...any)
	}, s Subject) triples {
		t.Helper()
		turtle, _ := Named("turtle")
		jsonld, _ := Named("jsonld")
		text := mustAppend(t, turtle, s)
		got, err := readTurtle(string(text))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		want, err := readJSONLD(mustAppend(t, jsonld, s))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("JSON-LD and Turtle differ (-want +got):\n%s", diff)
		}
		rdfxml, _ := Named("rdfxml")
		text = mustAppend(t, rdfxml, s)
		asXML, err := readRDFXML(text)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if diff := cmp.Diff(want, asXML); diff != "" {
			t.Fatalf("JSON-LD and RDF/XML differ (-want +got):\n%s", diff)
		}
		return got
	}
	for _, s := range samples(t) {
		check(t, s)
		s.About = "urn:lsid:example.org:ns:a%3Ab"
		s.Also = []Statement{{Prefix: "p", Vocabulary: "urn:x-terms:", Term: "known", Text: "a <b>"}}
		g := check(t, s)["<"+s.About+">"]
		if !slices.Contains(g, "http://www.w3.org/2002/07/owl#sameAs <"+encode(s.Self)+">") || slices.Contains(g, `urn:x-terms:known "a <b>"`) == s.Record.Redacted {
			t.Errorf("of the name: %q", g)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := anySubject().Draw(t, "subject")
		g := check(t, s)
		// What a text says comes back: as the title it is on one line.
		title := "http://schema.org/name " + strconv.Quote(uncoded(line(s.Record.Metadata["what"])))
		if !s.Record.Redacted && !strings.HasSuffix(title, ` ""`) && !slices.Contains(g["<"+encode(s.Self)+">"], title) {
			t.Fatalf("no %s in %q", title, g)
		}
	})
}
