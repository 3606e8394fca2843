package registrar

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// Line is a line of JSON as an export has it: a record, or a namespace in
// {"namespace":{...}}.
type Line struct {
	Record    *stele.Record
	Namespace *stele.Namespace
}

// ParseLine reads a line. An error, of Kind Invalid, if it is neither.
func ParseLine(schemes *stele.Schemes, text []byte) (l Line, err error) {
	if IsNamespaceLine(text) {
		l.Namespace, err = parseNamespaceLine(schemes, text)
	} else {
		l.Record, err = document.DecodeRecord(schemes, text)
	}
	return l, err
}

// IsNamespaceLine reports whether a line is, or should be, that of a namespace.
func IsNamespaceLine(text []byte) bool {
	inside, ok := bytes.CutPrefix(bytes.TrimLeft(text, " \t"), []byte{'{'})
	return ok && bytes.HasPrefix(bytes.TrimLeft(inside, " \t"), []byte(`"namespace"`))
}

func parseNamespaceLine(schemes *stele.Schemes, text []byte) (*stele.Namespace, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	var inside json.RawMessage
	for range 2 { // the brace and the name, which are known to be there
		if _, err := dec.Token(); err != nil {
			return nil, badLine(err)
		}
	}
	if err := dec.Decode(&inside); err != nil {
		return nil, badLine(err)
	}
	if end, err := dec.Token(); err != nil {
		return nil, badLine(err)
	} else if end != json.Delim('}') {
		return nil, badLine(stele.Messagef("import.namespace-line-has-more", "a line with a namespace has nothing beside it; write a line for each"))
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, badLine(stele.Messagef("import.namespace-followed", "something follows the namespace; write a line for each"))
	}
	return document.DecodeNamespace(schemes, inside)
}

func badLine(err error) error {
	return &stele.Error{Op: "read namespace", Kind: stele.Invalid, Err: err}
}

// AppendNamespaceLine appends the line of a namespace, with its end.
func AppendNamespaceLine(b []byte, ns *stele.Namespace) []byte {
	b = AppendSettings(append(b, `{"namespace":`...), ns)
	return append(b, '}', '\n')
}
