package registrar

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar/minting"
)

// Progress is how far the minter of another registry or program is; see [minting.Progress].
type Progress = minting.Progress

// Line is a line of JSON as an export has it: a record, or a namespace in
// {"namespace":{...}}. A namespace whose minter comes from elsewhere may say how far that is:
// {"namespace":{...},"progress":{"given":2191,"counters":"9,7,8"}}. A record may bring its earlier
// versions, see [document.CutEarlier], and which bytes it stands for, see [CutFixedData].
type Line struct {
	Record    *stele.Record
	Earlier   []*stele.Record
	Fixed     *FixedData
	Namespace *stele.Namespace
	Progress  minting.Progress
}

// ParseLine reads a line. An error, of Kind Invalid, if it is neither.
func ParseLine(schemes *stele.Schemes, text []byte) (l Line, err error) {
	if IsNamespaceLine(text) {
		l.Namespace, l.Progress, err = parseNamespaceLine(schemes, text)
		return l, err
	}
	if text, l.Fixed, err = CutFixedData(text); err != nil {
		return Line{}, err
	}
	if text, l.Earlier, err = document.CutEarlier(schemes, text); err != nil {
		return Line{}, err
	}
	l.Record, err = document.DecodeRecord(schemes, text)
	return l, err
}

// IsNamespaceLine reports whether a line is, or should be, that of a namespace.
func IsNamespaceLine(text []byte) bool {
	inside, ok := bytes.CutPrefix(bytes.TrimLeft(text, " \t"), []byte{'{'})
	return ok && bytes.HasPrefix(bytes.TrimLeft(inside, " \t"), []byte(`"namespace"`))
}

func parseNamespaceLine(schemes *stele.Schemes, text []byte) (ns *stele.Namespace, p minting.Progress, err error) {
	inside, p, err := cutNamespaceLine(text)
	if err != nil {
		return nil, p, badLine(err)
	}
	ns, err = document.DecodeNamespace(schemes, inside)
	return ns, p, err
}

// cutNamespaceLine returns the namespace of a line as its text, and the progress.
func cutNamespaceLine(text []byte) (inside json.RawMessage, p minting.Progress, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	for range 2 { // the brace and the name, which are known to be there
		if _, err := dec.Token(); err != nil {
			return nil, p, err
		}
	}
	if err := dec.Decode(&inside); err != nil {
		return nil, p, err
	}
	end, err := dec.Token()
	if err == nil && end == "progress" {
		var said progressLine
		if err := dec.Decode(&said); err != nil {
			return nil, p, err
		}
		p = said.progress()
		end, err = dec.Token()
	}
	if err != nil {
		return nil, p, err
	}
	if end != json.Delim('}') {
		return nil, p, stele.Messagef("import.namespace-line-has-more", "a line with a namespace has nothing beside it except the progress of its minter; write a line for each")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, p, stele.Messagef("import.namespace-followed", "something follows the namespace; write a line for each")
	}
	return inside, p, nil
}

// progressLine is the progress of a minter in JSON.
type progressLine struct {
	Given    uint64    `json:"given,omitempty"`
	Counters string    `json:"counters,omitempty"`
	Last     time.Time `json:"last,omitzero"`
	Earlier  []string  `json:"earlier,omitempty"` // a template each
}

func (l progressLine) progress() minting.Progress {
	return minting.Progress{Given: l.Given, Counters: l.Counters, Last: l.Last, Earlier: strings.Join(l.Earlier, "\n")}
}

func newProgressLine(p minting.Progress) progressLine {
	l := progressLine{Given: p.Given, Counters: p.Counters, Last: p.Last}
	if p.Earlier != "" {
		l.Earlier = strings.Split(p.Earlier, "\n")
	}
	return l
}

func badLine(err error) error {
	return &stele.Error{Op: "read namespace", Kind: stele.Invalid, Err: err}
}

// AppendNamespaceLine appends the line of a namespace, with its end.
func AppendNamespaceLine(b []byte, ns *stele.Namespace) []byte {
	return AppendNamespaceProgress(b, ns, minting.Progress{})
}

// AppendNamespaceProgress appends the line of a namespace whose minter comes from elsewhere, with its end.
func AppendNamespaceProgress(b []byte, ns *stele.Namespace, p minting.Progress) []byte {
	b = AppendSettings(append(b, `{"namespace":`...), ns)
	if !p.IsZero() {
		said, err := json.Marshal(newProgressLine(p))
		if err != nil {
			panic(err) // unreachable: numbers, texts and dates until the year 9999 are always written
		}
		b = append(append(b, `,"progress":`...), said...)
	}
	return append(b, '}', '\n')
}
