package describe

import (
	"encoding/json"
	"slices"
	"strings"
)

// appendJSONLD writes the graph as JSON-LD 1.0 with schema.org's context. Texts
// are escaped so that the document can stand in a page's script element.
func appendJSONLD(b []byte, f *facts) ([]byte, error) {
	n := f.graph()
	b = append(b, `{"@context":`...)
	b, err := appendContext(b, f, n)
	if err != nil {
		return b, err
	}
	b, err = appendMembers(b, n)
	return append(b, '}', '\n'), err
}

// appendContext appends where the terms of a node come from.
func appendContext(b []byte, f *facts, n *node) (_ []byte, err error) {
	var used []vocabulary
	for _, v := range append([]vocabulary{dublinCore}, f.vocabularies()...) {
		if slices.ContainsFunc(n.props, func(p prop) bool { return strings.HasPrefix(p.name, v.prefix+":") }) {
			used = append(used, v)
		}
	}
	if len(used) == 0 {
		return append(b, `"https://schema.org/"`...), nil
	}
	b = append(b, `["https://schema.org/",{`...)
	for i, v := range used {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendString(b, v.prefix); err != nil {
			return b, err
		}
		b = append(b, ':')
		if b, err = appendString(b, v.uri); err != nil {
			return b, err
		}
	}
	return append(b, "}]"...), nil
}

// appendMembers appends what a node says, each member after a comma.
func appendMembers(b []byte, n *node) (_ []byte, err error) {
	if n.id != "" {
		b = append(b, `,"@id":`...)
		if b, err = appendString(b, n.id); err != nil {
			return b, err
		}
	}
	if n.class != "" {
		b = append(b, `,"@type":"`...)
		b = append(b, n.class...)
		b = append(b, '"')
	}
	for _, p := range n.props {
		b = append(b, ',', '"')
		b = append(b, p.name...)
		b = append(b, '"', ':')
		if len(p.values) > 1 {
			b = append(b, '[')
		}
		for i, v := range p.values {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendValue(b, p.name, v); err != nil {
				return b, err
			}
		}
		if len(p.values) > 1 {
			b = append(b, ']')
		}
	}
	return b, nil
}

// appendValue appends one value of a property. The context says of some
// properties that their texts are URLs or dates; for the others a URL has to say
// so itself.
func appendValue(b []byte, name string, v value) ([]byte, error) {
	switch v.sort {
	case isNode:
		at := len(b)
		b, err := appendMembers(b, v.node)
		if len(b) == at {
			return append(b, '{', '}'), err
		}
		b[at] = '{' // for the first comma
		return append(b, '}'), err
	case isURL:
		switch name {
		case "url", "sameAs", "license", "contentUrl":
		default:
			b = append(b, `{"@id":`...)
			b, err := appendString(b, v.text)
			return append(b, '}'), err
		}
	}
	return appendString(b, v.text)
}

// appendString appends a JSON string, in which <, > and & are escaped.
func appendString(b []byte, s string) ([]byte, error) {
	enc, err := json.Marshal(s)
	return append(b, enc...), err
}
