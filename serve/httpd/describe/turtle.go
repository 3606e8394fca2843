package describe

import (
	"strings"
	"unicode/utf8"
)

// appendTurtle writes the graph as RDF 1.1 Turtle. Its terms are those to which
// schema.org's JSON-LD context expands, so both formats state the same triples.
func appendTurtle(b []byte, f *facts) ([]byte, error) {
	b = append(b, "@prefix schema: <http://schema.org/> .\n@prefix dcterms: <http://purl.org/dc/terms/> .\n"...)
	t := turtle{b: b}
	for _, v := range f.vocabularies() {
		t.b = append(t.b, "@prefix "+v.prefix+": "...)
		t.iri(v.uri)
		t.b = append(t.b, " .\n"...)
	}
	t.subjects = []*node{f.graph()}
	for len(t.subjects) > 0 {
		n := t.subjects[0]
		t.subjects = t.subjects[1:]
		t.b = append(t.b, '\n')
		t.iri(n.id)
		t.predicates(n, " ;\n    ", " ")
		t.b = append(t.b, " .\n"...)
	}
	return t.b, nil
}

// turtle writes nodes. One that has a URL and stands as a value is written after the others,
// as a subject of its own: between brackets it could have no URL.
type turtle struct {
	b        []byte
	subjects []*node
}

// predicates writes what a node says: between what opens and what separates.
func (t *turtle) predicates(n *node, separator, begin string) {
	next := begin
	write := func(predicate string) {
		t.b = append(t.b, next...)
		t.b = append(t.b, predicate...)
		t.b = append(t.b, ' ')
		next = separator
	}
	if n.class != "" {
		write("a")
		t.b = append(t.b, "schema:"...)
		t.b = append(t.b, n.class...)
	}
	for _, p := range n.props {
		name := p.name
		if !strings.Contains(name, ":") {
			name = "schema:" + name
		}
		write(name)
		for i, v := range p.values {
			if i > 0 {
				t.b = append(t.b, ", "...)
			}
			t.object(v)
		}
	}
}

func (t *turtle) object(v value) {
	switch v.sort {
	case isURL:
		t.iri(v.text)
	case isDate:
		t.literal(v.text)
		t.b = append(t.b, "^^schema:Date"...)
	case isNode:
		if v.node.id != "" {
			t.iri(v.node.id)
			t.subjects = append(t.subjects, v.node)
			return
		}
		t.b = append(t.b, '[')
		t.predicates(v.node, " ; ", " ")
		t.b = append(t.b, " ]"...)
	default:
		t.literal(v.text)
	}
}

// iri writes an IRIREF. (In it stands neither white space nor any of <>"{}|^`\;
// encode has seen to that.)
func (t *turtle) iri(url string) {
	t.b = append(t.b, '<')
	t.b = appendEncoded(t.b, url)
	t.b = append(t.b, '>')
}

// literal writes a STRING_LITERAL_QUOTE, on one line whatever is in it.
func (t *turtle) literal(s string) {
	t.b = append(t.b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			t.b = append(t.b, '\\', byte(r))
		case r == '\n':
			t.b = append(t.b, '\\', 'n')
		case r == '\r':
			t.b = append(t.b, '\\', 'r')
		case r == '\t':
			t.b = append(t.b, '\\', 't')
		case r < ' ' || r == 0x7f:
			t.b = append(t.b, '\\', 'u', '0', '0', upperHex[r>>4], upperHex[r&0xf])
		default:
			t.b = utf8.AppendRune(t.b, r)
		}
	}
	t.b = append(t.b, '"')
}
