package document

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

// appendCanonical appends the next value in its canonical form, by reading the document: it sorts the members of each object
// when it has them all, so it does not depend on the order in which they are written. The writer of canonical forms, which has the order in its
// functions, is compared with it.
func appendCanonical(b []byte, j *jsonReader) []byte {
	begin := j.pos
	switch j.peek() {
	case '{':
		return appendSorted(b, j)
	case '[':
		b = append(b, '[')
		j.array(math.MaxInt, func(i int) {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, j)
		})
		return append(b, ']')
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		number := j.number()
		if v, err := strconv.ParseUint(number, 10, 64); err == nil && v > maxExact {
			return append(append(append(b, '"'), number...), '"')
		}
		return append(b, number...)
	}
	j.skip(0)
	return append(b, j.text[begin:j.pos]...)
}

// appendSorted appends an object, its members sorted by the UTF-16 of their names (RFC 8785,
// section 3.2.3).
func appendSorted(b []byte, j *jsonReader) []byte {
	type member struct {
		name  string
		key   []uint16
		value []byte
	}
	var list []member
	j.members(func(name string) {
		list = append(list, member{name, utf16.Encode([]rune(name)), appendCanonical(nil, j)})
	})
	slices.SortFunc(list, func(a, b member) int { return slices.Compare(a.key, b.key) })
	w := jsonWriter{b: append(b, '{')}
	for i, m := range list {
		if i > 0 {
			w.b = append(w.b, ',')
		}
		w.string(m.name)
		w.b = append(append(w.b, ':'), m.value...)
	}
	return append(w.b, '}')
}

// sortDocument returns a document that was written, in its canonical form; nil if it has none.
func sortDocument(w *jsonWriter) []byte {
	if w.damaged {
		return nil
	}
	var j jsonReader
	j.start(string(w.b))
	return appendCanonical(nil, &j)
}

// What is written in order is what sorting the document gives, whatever is in its fields.
func TestCanonicalIsSortedDocument(t *testing.T) {
	var c Canonical
	var full, open []byte
	check := func(t *rapid.T, got []byte, err error, want []byte) {
		if (err != nil) != (want == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%s, %v\nwant\n%s", got, err, want)
		}
	}
	record := func(t *rapid.T, r *stele.Record) {
		var w jsonWriter
		w.record(r)
		var err error
		full, open, err = c.AppendBoth(append(full[:0], "x"...), append(open[:0], "yz"...), r)
		check(t, full[1:], err, sortDocument(&w))
		if err != nil {
			return
		}
		bare := *r
		bare.By, bare.Import, bare.Readers = "", 0, nil
		w = jsonWriter{}
		w.record(&bare)
		check(t, open[2:], nil, sortDocument(&w))
	}
	rapid.Check(t, func(t *rapid.T) {
		record(t, recordtest.AnyRecord.Draw(t, "any record"))
		r := recordtest.GoodRecord.Draw(t, "record")
		r.Metadata = rapid.MapOfN(rapid.String(), recordtest.Prose, 0, 6).Draw(t, "metadata")
		if rapid.Bool().Draw(t, "without aliases") {
			r.Aliases = nil
		}
		record(t, r)
		for _, n := range []*stele.Namespace{recordtest.AnyNamespace.Draw(t, "any namespace"), recordtest.GoodNamespace.Draw(t, "namespace")} {
			var w jsonWriter
			w.namespace(n)
			got, err := c.AppendNamespace(nil, n)
			check(t, got, err, sortDocument(&w))
		}
	})
}

// Names of metadata are sorted as in the example of RFC 8785, section 3.2.3.
func TestCanonicalMetadata(t *testing.T) {
	m := stele.Metadata{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
		"\U0001f600": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"}
	got, err := CanonicalRecord(&stele.Record{ID: stele.StoredID("ab", "ab:x"), State: stele.Active, Metadata: m})
	const want = `{"id":"ab:x","metadata":{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","` + "\u00f6" + `":"Latin Small Letter O With Diaeresis",` +
		`"` + "\u20ac" + `":"Euro Sign","` + "\U0001f600" + `":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant\n%s", got, err, want)
	}
}

// A writer that is used again allocates nothing.
func TestCanonicalAllocations(t *testing.T) {
	r := recordtest.Rich()
	r.Metadata = stele.Metadata{"what": "x", "who": "y", "when": "z"}
	var c Canonical
	full, open := make([]byte, 0, 1<<16), make([]byte, 0, 1<<16)
	if n := testing.AllocsPerRun(100, func() { full, open, _ = c.AppendBoth(full[:0], open[:0], r) }); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkCanonical(b *testing.B) {
	r := recordtest.Rich()
	var c Canonical
	full, open := make([]byte, 0, 1<<16), make([]byte, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		full, open, _ = c.AppendBoth(full[:0], open[:0], r)
	}
}

// goldenRecord has something in each field.
func goldenRecord() *stele.Record {
	r := recordtest.Rich()
	r.Import, r.Signatures = 7, []stele.Signature{recordtest.SomeSignature()}
	r.Withheld = stele.Withheld{Redacted: 3, Erased: 1 << 60, Disavowed: []stele.Disavowal{
		{First: 4, Last: 5, Reason: "a wrong \"address\"", At: recordtest.SignedAt, By: "ana"}, {First: 6, Last: 6, Reason: "é\n", At: recordtest.SignedAt}}}
	r.Metadata["\ufb33"], r.Metadata["\U0001f600"] = "Dalet", "Face"
	return r
}

// goldenNamespace has something in each field.
func goldenNamespace() *stele.Namespace {
	n := recordtest.RichNamespace()
	n.Minter.Order, n.Minter.Expand = stele.OrderNOID, 3
	n.Passthrough, n.Reviewed, n.Listed, n.Quota = true, true, true, 1<<63
	n.Handles = stele.HandleService{Off: true, PublicWrite: true}
	n.Grants = []stele.Grant{{To: "user:rui", Role: stele.RoleEditor}, {To: "group:staff", Role: stele.RoleReader}}
	n.Keys = []stele.SigningKey{recordtest.SomeSigningKey(), {ID: "k", Expires: recordtest.SignedAt, Revoked: recordtest.SignedAt}}
	n.Rules = []stele.Rule{{Pattern: "^a(.*)$", Fold: true, Title: "A", Reason: "moved", Targets: goldenRecord().Targets,
		Examples: []stele.RuleExample{{Name: "ab", Type: "text/html", Want: "https://example.org/b"}}}, {Pattern: "^b"}}
	n.Publication = recordtest.Published().Publication
	n.Publication.Exact, n.Publication.Signing = true, "ecdsa"
	n.Publication.Secondaries = []stele.Secondary{{Network: "192.0.2.0/24", Key: "k", Notify: []string{"192.0.2.1"}}}
	n.Publication.Elsewhere = recordtest.Others().Publication.Elsewhere
	return n
}

// Form 1 never changes: logs and signatures are over it. The files were written by the program that defined it.
func TestCanonicalGolden(t *testing.T) {
	for name, write := range map[string]func() ([]byte, error){
		"record":    func() ([]byte, error) { return CanonicalRecord(goldenRecord()) },
		"namespace": func() ([]byte, error) { return CanonicalNamespace(goldenNamespace()) },
	} {
		want, err := os.ReadFile(filepath.Join("testdata", "canonical", name+"-1.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := write(); err != nil || !bytes.Equal(got, want) {
			t.Errorf("the canonical form of a %s has changed: %s, %v\nwant\n%s", name, got, err, want)
		}
	}
}

// Heirs came later. They are written where they belong, and a namespace without them keeps its bytes: TestCanonicalGolden has one.
func TestCanonicalHeirs(t *testing.T) {
	n := goldenNamespace()
	without, err := CanonicalNamespace(n)
	if err != nil {
		t.Fatal(err)
	}
	n.Heirs = []stele.Heir{{Registry: "heir.example.org/.log", Address: "https://heir.example.org/", Days: 180}, {Registry: "b", Address: "https://b/", Days: 30}}
	with, err := CanonicalNamespace(n)
	if err != nil {
		t.Fatal(err)
	}
	const heirs = `"heirs":[{"address":"https://heir.example.org/","days":180,"registry":"heir.example.org/.log"},{"address":"https://b/","days":30,"registry":"b"}],`
	if !bytes.Contains(with, []byte(`},`+heirs+`"hosts"`)) || !bytes.Equal(bytes.Replace(with, []byte(heirs), nil, 1), without) {
		t.Errorf("with heirs it is\n%s\nand without them\n%s", with, without)
	}
}
