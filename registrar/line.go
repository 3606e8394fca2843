package registrar

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/stele-id/stele"
)

// Line is a line of JSON as an export has it: a record, or a namespace in
// {"namespace":{...}}.
type Line struct {
	Record    *stele.Record
	Namespace *stele.Namespace
}

// ParseLine reads a line. An error, of Kind Invalid, if it is neither.
func ParseLine(schemes *stele.Schemes, text []byte) (l Line, err error) {
	if isNamespaceLine(text) {
		l.Namespace, err = parseNamespaceLine(schemes, text)
	} else {
		l.Record, err = schemes.DecodeRecord(text)
	}
	return l, err
}

func isNamespaceLine(text []byte) bool {
	inside, ok := bytes.CutPrefix(bytes.TrimLeft(text, " \t"), []byte{'{'})
	return ok && bytes.HasPrefix(bytes.TrimLeft(inside, " \t"), []byte(`"namespace"`))
}

func parseNamespaceLine(schemes *stele.Schemes, text []byte) (*stele.Namespace, error) {
	var doc struct {
		Namespace json.RawMessage `json:"namespace"`
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(&doc)
	if _, end := dec.Token(); err == nil && end != io.EOF {
		err = errors.New("something follows the namespace; write a line for each")
	}
	if err != nil {
		return nil, &stele.Error{Op: "read namespace", Kind: stele.Invalid, Err: err}
	}
	return schemes.DecodeNamespace(doc.Namespace)
}

// AppendNamespaceLine appends the line of a namespace, with its end.
func AppendNamespaceLine(b []byte, ns *stele.Namespace) []byte {
	b = AppendSettings(append(b, `{"namespace":`...), ns)
	return append(b, '}', '\n')
}
