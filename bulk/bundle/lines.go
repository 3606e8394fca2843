package bundle

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/transparency"
)

const opRead = "check bundle"

// appendRecordLine appends the line of a version of a record.
func appendRecordLine(b []byte, v *RecordVersion) []byte {
	b = append(b, `{"record":`...)
	b = document.AppendRecord(b, v.Record)
	return appendLog(b, v.Current, &v.Log)
}

// appendNamespaceLine appends the line of a version of a namespace.
func appendNamespaceLine(b []byte, v *NamespaceVersion) []byte {
	b = append(b, `{"namespace":`...)
	b = document.AppendNamespace(b, v.Namespace)
	return appendLog(b, v.Current, &v.Log)
}

func appendLog(b []byte, current bool, d *transparency.Disclosure) []byte {
	if current {
		b = append(b, `,"current":true`...)
	}
	b = append(b, `,"log":{"index":`...)
	b = strconv.AppendUint(b, d.Index, 10)
	b = append(b, `,"at":"`...)
	b = d.At.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if d.Listed {
		b = append(b, `,"listed":true`...)
	}
	if d.Bare {
		b = append(b, `,"bare":true`...)
	}
	b = appendHex(b, `,"nameKey":"`, d.NameKey)
	if d.Leaf != "" {
		b = append(b, `,"leaf":`...)
		b = document.AppendString(b, d.Leaf)
	} else {
		b = appendHex(b, `,"seed":"`, d.Seed)
	}
	return append(b, "}}\n"...)
}

func appendHex(b []byte, name string, k transparency.Key) []byte {
	if k == (transparency.Key{}) {
		return b
	}
	b = append(b, name...)
	b = hex.AppendEncode(b, k[:])
	return append(b, '"')
}

// line is a line of records or namespaces as JSON has it.
type line struct {
	Record    json.RawMessage `json:"record"`
	Namespace json.RawMessage `json:"namespace"`
	Current   bool            `json:"current"`
	Log       struct {
		Index   uint64           `json:"index"`
		At      time.Time        `json:"at"`
		Listed  bool             `json:"listed"`
		Bare    bool             `json:"bare"`
		NameKey transparency.Key `json:"nameKey"`
		Leaf    string           `json:"leaf"`
		Seed    transparency.Key `json:"seed"`
	} `json:"log"`
}

func (l *line) disclosure() transparency.Disclosure {
	d := &l.Log
	return transparency.Disclosure{Index: d.Index, At: d.At.UTC(), Listed: d.Listed, Bare: d.Bare, NameKey: d.NameKey, Leaf: d.Leaf, Seed: d.Seed}
}

// cutRecordLine cuts a line into its document and what stands after it, without a look at either. False if it is not such a line. A
// quotation mark in a text is escaped, so that none of the marks stands in one.
func cutRecordLine(text []byte) (doc, log []byte, current, ok bool) {
	rest, ok := bytes.CutPrefix(text, []byte(`{"record":`))
	at := bytes.LastIndex(rest, []byte(`,"log":{"index":`))
	if !ok || at < 0 {
		return nil, nil, false, false
	}
	doc, log = rest[:at], rest[at+len(`,"log":`):]
	log, ok = bytes.CutSuffix(log, []byte("}\n"))
	doc, current = bytes.CutSuffix(doc, []byte(`,"current":true`))
	return doc, log, current, ok
}

// parseRecordLine reads what appendRecordLine writes, and nothing else.
func parseRecordLine(schemes *stele.Schemes, text []byte) (*RecordVersion, error) {
	if v := parseCut(schemes, text); v != nil {
		return v, nil
	}
	var l line
	if json.Unmarshal(text, &l) != nil || l.Record == nil {
		return nil, errNotJSON
	}
	r, err := document.DecodeStored(schemes, l.Record)
	if err != nil {
		return nil, err
	}
	v := &RecordVersion{Record: r, Current: l.Current, Log: l.disclosure()}
	if !bytes.Equal(appendRecordLine(make([]byte, 0, len(text)), v), text) {
		return nil, errOtherForm
	}
	return v, nil
}

// parseCut is parseRecordLine without reading the document twice; nil if something is wrong.
func parseCut(schemes *stele.Schemes, text []byte) *RecordVersion {
	doc, log, current, ok := cutRecordLine(text)
	if !ok {
		return nil
	}
	d, ok := cutLog(log)
	if !ok {
		l := line{Current: current}
		if json.Unmarshal(log, &l.Log) != nil {
			return nil
		}
		d = l.disclosure()
	}
	r, err := document.DecodeStored(schemes, doc)
	if err != nil {
		return nil
	}
	v := &RecordVersion{Record: r, Current: current, Log: d}
	if !bytes.Equal(appendRecordLine(make([]byte, 0, len(text)), v), text) {
		return nil
	}
	return v
}

// cutLog reads what appendLog writes of a leaf that has a seed. False if it is something else. It need not look at every byte: the caller
// writes the line once more, and compares.
func cutLog(log []byte) (d transparency.Disclosure, ok bool) {
	rest, ok := bytes.CutPrefix(log, []byte(`{"index":`))
	number, rest, found := bytes.Cut(rest, []byte(`,"at":"`))
	if !ok || !found {
		return d, false
	}
	moment, rest, found := bytes.Cut(rest, []byte(`"`))
	var err1, err2 error
	d.Index, err1 = strconv.ParseUint(string(number), 10, 64)
	d.At, err2 = time.Parse(time.RFC3339Nano, string(moment))
	if !found || err1 != nil || err2 != nil {
		return d, false
	}
	d.At = d.At.UTC()
	rest, d.Listed = bytes.CutPrefix(rest, []byte(`,"listed":true`))
	rest, d.Bare = bytes.CutPrefix(rest, []byte(`,"bare":true`))
	if rest, ok = cutHex(rest, `,"nameKey":"`, &d.NameKey); !ok {
		return d, false
	}
	rest, ok = cutHex(rest, `,"seed":"`, &d.Seed)
	return d, ok && string(rest) == "}"
}

// cutHex reads what appendHex writes.
func cutHex(text []byte, name string, k *transparency.Key) (rest []byte, ok bool) {
	rest, found := bytes.CutPrefix(text, []byte(name))
	if !found {
		return text, true
	}
	n := hex.EncodedLen(len(k))
	if len(rest) <= n || rest[n] != '"' {
		return text, false
	}
	_, err := hex.Decode(k[:], rest[:n])
	return rest[n+1:], err == nil
}

// parseNamespaceLine reads what appendNamespaceLine writes, and nothing else.
func parseNamespaceLine(schemes *stele.Schemes, text []byte) (*NamespaceVersion, error) {
	var l line
	if json.Unmarshal(text, &l) != nil || l.Namespace == nil {
		return nil, errNotJSON
	}
	n, err := document.DecodeNamespace(schemes, l.Namespace)
	if err != nil {
		return nil, err
	}
	v := &NamespaceVersion{Namespace: n, Current: l.Current, Log: l.disclosure()}
	if !bytes.Equal(appendNamespaceLine(make([]byte, 0, len(text)), v), text) {
		return nil, errOtherForm
	}
	return v, nil
}

var (
	errNotJSON   = stele.Messagef("bundle.not-json", "this is not JSON with the members that stand here")
	errOtherForm = stele.Messagef("bundle.other-form", "this is not written as a bundle writes it: a byte was changed, or another program made it")
)

// appendJSON appends a value and the end of its line.
func appendJSON(b []byte, v any) ([]byte, error) {
	var buf bytes.Buffer
	w := json.NewEncoder(&buf)
	w.SetEscapeHTML(false)
	if err := w.Encode(v); err != nil {
		return nil, &stele.Error{Op: "write bundle", Kind: stele.Internal, Err: err}
	}
	return append(b, buf.Bytes()...), nil
}

// parseJSON reads what appendJSON writes, and nothing else. v points at the zero value.
func parseJSON(text []byte, v any) error {
	if json.Unmarshal(text, v) != nil {
		return errNotJSON
	}
	again, err := appendJSON(make([]byte, 0, len(text)), v)
	if err != nil || !bytes.Equal(again, text) {
		return errOtherForm
	}
	return nil
}
