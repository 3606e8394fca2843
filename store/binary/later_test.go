package binary

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
	"pgregory.net/rapid"
)

// What was stored before there were publications is read, and one that says
// nothing is damage: it would not be written.
func TestPublicationBinary(t *testing.T) {
	old, err := hex.DecodeString(richNamespaceBinary)
	if err != nil {
		t.Fatal(err)
	}
	var n stele.Namespace
	if err := UnmarshalNamespace(old, &n); err != nil || !n.Publication.IsZero() {
		t.Errorf("%+v, %v", n.Publication, err)
	}
	if err := UnmarshalNamespace(append(old, make([]byte, 8)...), &n); err == nil {
		t.Error("an empty publication is read")
	}
}

// grantsBinary is what grants add to the binary form of richNamespace, which has no
// publication: an empty one, and the list. It is for ever, as richNamespaceBinary is.
const grantsBinary = "00000000000000000208757365723a616e61056f776e65720b67726f75703a737461666606726561646572"

func TestGrantsBinary(t *testing.T) {
	n := recordtest.RichNamespace()
	n.Grants = []stele.Grant{{To: "user:ana", Role: stele.RoleOwner}, {To: "group:staff", Role: stele.RoleReader}}
	b := MarshalNamespace(n)
	if got := hex.EncodeToString(b); got != richNamespaceBinary+grantsBinary {
		t.Errorf("the binary form has changed:\n%s\nwant\n%s", got, richNamespaceBinary+grantsBinary)
	}
	var back stele.Namespace
	if err := UnmarshalNamespace(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, &back, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	// What was kept before there were grants, and before there was any publication, is
	// the beginning of it, and a namespace by itself. No other beginning is.
	before := len(richNamespaceBinary) / 2
	for end := range b {
		err := UnmarshalNamespace(b[:end], new(stele.Namespace))
		if end != before && stele.KindOf(err) != stele.Internal || end == before && err != nil {
			t.Errorf("the first %d of %d bytes: %v", end, len(b), err)
		}
	}
	for what, odd := range map[string][]byte{
		"a byte more":          append(bytes.Clone(b), 0),
		"a list of no grants":  append(bytes.Clone(b[:before+8]), 0),
		"more than are there":  append(bytes.Clone(b[:before+8]), 2, 1, 'a', 1, 'b'),
		"far more than can be": append(bytes.Clone(b[:before+8]), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
	} {
		if err := UnmarshalNamespace(odd, new(stele.Namespace)); stele.KindOf(err) != stele.Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What signatures add to the binary form of rich, and keys to that of richNamespace,
// is for ever, as those are.
const (
	signaturesBinary = "01ab0000000000000000000000000000000000000000000000000000000000000105" +
		"09746578742f68746d6c0180fbccaf0d002b6b50724b5f716d785657615956413977774246364975" +
		"6f337656" + "7a7a37547848435477584279677253346b" + "0a65794a392e2e63326c6e"
	keysBinary = "0000000000000000" + "00" + "0000" + "012b6b50724b5f716d7856576159564139777742463649756f3376567a7a37547848435477584279677253346b" +
		"0745443235353139" + "023001" + "0180fbccaf0d00" + "00" + "00" + "0b696e207468652073616665"
)

func TestSignaturesBinary(t *testing.T) {
	r := recordtest.Rich()
	r.Signatures = []stele.Signature{recordtest.SomeSignature()}
	n := recordtest.RichNamespace()
	n.Keys = []stele.SigningKey{recordtest.SomeSigningKey()}
	recordBytes, err := MarshalRecord(r)
	if err != nil {
		t.Fatal(err)
	}
	namespaceBytes := MarshalNamespace(n)
	if got := hex.EncodeToString(recordBytes); got != richBinary+signaturesBinary {
		t.Errorf("the binary form of records has changed:\n%s\nwant\n%s", strings.TrimPrefix(got, richBinary), signaturesBinary)
	}
	if got := hex.EncodeToString(namespaceBytes); got != richNamespaceBinary+keysBinary {
		t.Errorf("the binary form of namespaces has changed:\n%s\nwant\n%s", strings.TrimPrefix(got, richNamespaceBinary), keysBinary)
	}
	var record stele.Record
	if err := UnmarshalRecord(recordBytes, &record); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &record, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	var namespace stele.Namespace
	if err := UnmarshalNamespace(namespaceBytes, &namespace); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, &namespace, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	// What was kept before there were signatures is the beginning of it, and a record by
	// itself. No other beginning is.
	for end := range recordBytes {
		err := UnmarshalRecord(recordBytes[:end], new(stele.Record))
		if before := end == len(richBinary)/2; !before && stele.KindOf(err) != stele.Internal || before && err != nil {
			t.Errorf("the first %d of %d bytes of a record: %v", end, len(recordBytes), err)
		}
	}
	for end := range namespaceBytes {
		err := UnmarshalNamespace(namespaceBytes[:end], new(stele.Namespace))
		if before := end == len(richNamespaceBinary)/2; !before && stele.KindOf(err) != stele.Internal || before && err != nil {
			t.Errorf("the first %d of %d bytes of a namespace: %v", end, len(namespaceBytes), err)
		}
	}
	plain := recordBytes[:len(richBinary)/2]
	for what, odd := range map[string][]byte{
		"a byte more":         append(bytes.Clone(recordBytes), 0),
		"no signatures":       append(bytes.Clone(plain), 0),
		"more than are there": append(bytes.Clone(plain), 200),
	} {
		if err := UnmarshalRecord(odd, new(stele.Record)); stele.KindOf(err) != stele.Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
	empty := append(bytes.Clone(namespaceBytes[:len(richNamespaceBinary)/2]), make([]byte, 8+1+2+1)...)
	if err := UnmarshalNamespace(empty, new(stele.Namespace)); stele.KindOf(err) != stele.Internal {
		t.Errorf("a list of no keys: %v", err)
	}
}

// orderBinary is what the order of a minter adds to the binary form of richNamespace: all later fields
// without anything, and the order. It is for ever, as richNamespaceBinary is.
const orderBinary = "0000000000000000" + "00" + "0000" + "00" + "00" + "00" + "00" + "00" + "00" + "0000" + "046e6f6964" + "03"

func TestOrderBinary(t *testing.T) {
	n := recordtest.RichNamespace()
	n.Minter.Order, n.Minter.Expand = stele.OrderNOID, 3
	b := MarshalNamespace(n)
	if got := hex.EncodeToString(b); got != richNamespaceBinary+orderBinary {
		t.Errorf("the binary form has changed:\n%s\nwant\n%s", strings.TrimPrefix(got, richNamespaceBinary), orderBinary)
	}
	var back stele.Namespace
	if err := UnmarshalNamespace(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, &back, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	before := len(richNamespaceBinary) / 2
	for end := range b {
		err := UnmarshalNamespace(b[:end], new(stele.Namespace))
		if end != before && stele.KindOf(err) != stele.Internal || end == before && err != nil {
			t.Errorf("the first %d of %d bytes: %v", end, len(b), err)
		}
	}
	for what, odd := range map[string][]byte{
		"a byte more": append(bytes.Clone(b), 0),
		"no order":    append(bytes.Clone(b[:len(b)-6]), 0, 0),
	} {
		if err := UnmarshalNamespace(odd, new(stele.Namespace)); stele.KindOf(err) != stele.Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestPublicationRoundTrip(t *testing.T) {
	for _, n := range []*stele.Namespace{recordtest.Published(), recordtest.Others(), {Scheme: "ab", Publication: stele.Publication{Zone: "ab.example.", Layout: stele.LayoutRoot}}} {
		var back stele.Namespace
		if err := UnmarshalNamespace(MarshalNamespace(n), &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n, &back, recordtest.Same); diff != "" {
			t.Error(diff)
		}
	}
}

// A record takes as many bytes as it is said to.
func TestStoredSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := recordtest.AnyRecord.Draw(t, "record")
		b, err := MarshalRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		if r.StoredSize() != len(b) {
			t.Fatalf("the size is said to be %d, and is %d", r.StoredSize(), len(b))
		}
	})
}

// Two values are equal if and only if they are stored as the same bytes, whichever single
// field they differ in.
func TestEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, other := recordtest.AnyRecord.Draw(t, "record"), recordtest.AnyRecord.Draw(t, "another")
		b := *a
		mix(t, reflect.ValueOf(&b).Elem(), reflect.ValueOf(other).Elem())
		x, err := MarshalRecord(a)
		if err != nil {
			t.Fatal(err)
		}
		y, err := MarshalRecord(&b)
		if err != nil {
			t.Fatal(err)
		}
		if a.Equal(&b) != bytes.Equal(x, y) {
			t.Fatalf("equal: %v, with the same bytes: %v", a.Equal(&b), bytes.Equal(x, y))
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, other := recordtest.AnyNamespace.Draw(t, "namespace"), recordtest.AnyNamespace.Draw(t, "another")
		b := *a
		mix(t, reflect.ValueOf(&b).Elem(), reflect.ValueOf(other).Elem())
		if same := bytes.Equal(MarshalNamespace(a), MarshalNamespace(&b)); a.Equal(&b) != same {
			t.Fatalf("equal: %v, with the same bytes: %v", a.Equal(&b), same)
		}
	})
}

// mix gives one field of a value what it is in another one, and shares no memory that it
// changes.
func mix(t *rapid.T, into, from reflect.Value) {
	switch {
	case into.Kind() == reflect.Struct && into.Type().NumField() > 0 && into.Type().Field(0).IsExported():
		i := rapid.IntRange(0, into.NumField()-1).Draw(t, "field")
		mix(t, into.Field(i), from.Field(i))
	case into.Kind() == reflect.Slice && into.Len() > 0 && from.Len() > 0 && rapid.Bool().Draw(t, "inside"):
		list := reflect.MakeSlice(into.Type(), into.Len(), into.Len())
		reflect.Copy(list, into)
		into.Set(list)
		mix(t, into.Index(0), from.Index(0))
	case into.Kind() == reflect.Pointer && !into.IsNil() && !from.IsNil():
		next := reflect.New(into.Type().Elem())
		next.Elem().Set(into.Elem())
		into.Set(next)
		mix(t, into.Elem(), from.Elem())
	default:
		into.Set(from)
	}
}

// What rules add to the binary form of richNamespace is for ever, as that is. Everything
// between is there too, with nothing in it.
func TestRulesBinary(t *testing.T) {
	const rulesBinary = "0000000000000000" + "00" + "0000" + "00" + "00" + "00" + "00" + "00" + "00" + "0000" + "0000" +
		"01" + "056e7b613a64" + "01" + "0174" + "0172" +
		"01" + "034e324c" + "0b68747470733a2f2f682f7b" + "00" + "00" + "64" + "0a" + "00" + "de04" + "00" +
		"01" + "016e" + "0174" + "0177"
	n := recordtest.RichNamespace()
	n.Rules = []stele.Rule{{
		Pattern: "n{a:d", Fold: true, Title: "t", Reason: "r",
		Targets:  []stele.Target{{Service: stele.N2L, URL: "https://h/{", Order: 100, Preference: 10, Status: 303}},
		Examples: []stele.RuleExample{{Name: "n", Type: "t", Want: "w"}},
	}}
	b := MarshalNamespace(n)
	if got := hex.EncodeToString(b); got != richNamespaceBinary+rulesBinary {
		t.Errorf("the binary form has changed:\n%s\nwant\n%s", got[len(richNamespaceBinary):], rulesBinary)
	}
	var back stele.Namespace
	if err := UnmarshalNamespace(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, &back, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	before := len(richNamespaceBinary) / 2
	for end := range b {
		if err := UnmarshalNamespace(b[:end], new(stele.Namespace)); end != before && stele.KindOf(err) != stele.Internal {
			t.Errorf("the first %d of %d bytes: %v", end, len(b), err)
		}
	}
}

// What a hand-over adds to the binary form of richNamespace is for ever, as that is.
func TestHandOverBinary(t *testing.T) {
	const handOverBinary = "0000000000000000" + "00" + "0000" + "00" + "00" + "00" + "00" + "00" + "00" + "0000" + "0000" + "00" + "00" +
		"067365616c6564" + "0168" + "0b68747470733a2f2f682f78" + "0180fbccaf0d00" + "0161" +
		"01" + "0167" + "0168" + "026666" + "8001" + "0180fbccaf0d00" + "0182fbccaf0d00" + "0162" + "01"
	n := recordtest.RichNamespace()
	day := recordtest.SomeSigningKey().Created
	n.HandOver = stele.HandOver{State: stele.Sealed, Heir: "h", Address: "https://h/x", Since: day, By: "a"}
	n.Adoptions = []stele.Adoption{{From: "g", To: "h", Bundle: "ff", Change: 128, Until: day, At: day.Add(time.Second), By: "b", Reading: true}}
	b := MarshalNamespace(n)
	if got := hex.EncodeToString(b); got != richNamespaceBinary+handOverBinary {
		t.Errorf("the binary form has changed:\n%s\nwant\n%s", strings.TrimPrefix(got, richNamespaceBinary), handOverBinary)
	}
	var back stele.Namespace
	if err := UnmarshalNamespace(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, &back, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	before := len(richNamespaceBinary) / 2
	for end := range b {
		if err := UnmarshalNamespace(b[:end], new(stele.Namespace)); end != before && stele.KindOf(err) != stele.Internal {
			t.Errorf("the first %d of %d bytes: %v", end, len(b), err)
		}
	}
	for what, odd := range map[string][]byte{
		"a byte more":         append(bytes.Clone(b), 0),
		"a hand-over of none": append(bytes.Clone(b[:before+23]), make([]byte, 6)...),
		"more than are there": append(bytes.Clone(b[:len(b)-len("g.h.ff")]), 9),
	} {
		if err := UnmarshalNamespace(odd, new(stele.Namespace)); stele.KindOf(err) != stele.Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// heirsBinary is what heirs add to the binary form of a namespace that has the fields before them. It is for ever, as richNamespaceBinary is.
const heirsBinary = "0115686569722e6578616d706c652e6f72672f2e6c6f671968747470733a2f2f686569722e6578616d706c652e6f72672fb401"

// A namespace without heirs keeps the bytes that it had before there were any.
func TestHeirsBinary(t *testing.T) {
	n := recordtest.RichNamespace()
	n.HandOver = stele.HandOver{State: stele.Offered, Heir: "h", Address: "https://h/"}
	without := MarshalNamespace(n)
	n.Heirs = []stele.Heir{{Registry: "heir.example.org/.log", Address: "https://heir.example.org/", Days: 180}}
	with := MarshalNamespace(n)
	if got := hex.EncodeToString(with); got != hex.EncodeToString(without)+heirsBinary {
		t.Errorf("the binary form has changed:\n%s\nwant\n%s", got, hex.EncodeToString(without)+heirsBinary)
	}
	var back stele.Namespace
	if err := UnmarshalNamespace(with, &back); err != nil || !n.Equal(&back) {
		t.Errorf("%+v, %v", back, err)
	}
	n.HandOver = stele.HandOver{} // what is before them is written, too
	if err := UnmarshalNamespace(MarshalNamespace(n), &back); err != nil || !n.Equal(&back) {
		t.Errorf("%+v, %v", back, err)
	}
	if err := UnmarshalNamespace(append(without, 0), &back); stele.KindOf(err) != stele.Internal {
		t.Errorf("a list of no heirs: %v", err)
	}
}

// An adoption whose giver's generation is not known keeps the bytes that it had; otherwise the generation is at the end.
func TestGenerationBinary(t *testing.T) {
	const generation = "00112233445566778899aabbccddeeff"
	n := recordtest.RichNamespace()
	n.Adoptions = []stele.Adoption{{From: "g", Bundle: strings.Repeat("0f", 32), Ended: recordtest.SignedAt}}
	for _, c := range []struct {
		end            string
		reading, quiet bool
	}{{"04", false, false}, {"05", true, false}, {"060180fbccaf0d00", false, true}, {"070180fbccaf0d00", true, true}} {
		a := &n.Adoptions[0]
		if a.Reading, a.Silent, a.Ended = c.reading, c.quiet, (time.Time{}); c.quiet {
			a.Ended = recordtest.SignedAt
		}
		a.Generation = ""
		before := MarshalNamespace(n)
		a.Generation = generation
		b := MarshalNamespace(n)
		want := c.end + "20" + hex.EncodeToString([]byte(generation))
		if got := hex.EncodeToString(b); !strings.HasSuffix(got, "00"+want) || len(b) != len(before)+1+len(generation) {
			t.Errorf("%+v ends with %s, want %s", a, got[len(got)-len(want):], want)
		}
		var back stele.Namespace
		if err := UnmarshalNamespace(b, &back); err != nil || !n.Equal(&back) {
			t.Errorf("%+v, %v", back.Adoptions, err)
		}
		short := append(bytes.Clone(b[:len(b)-1-len(generation)]), 0)
		if err := UnmarshalNamespace(short, &back); stele.KindOf(err) != stele.Internal {
			t.Errorf("an empty generation: %v", err)
		}
	}
}

// An adoption that is not in silence keeps the bytes that it had; one in silence has another mode, and the time at which its giver was found to have ended.
func TestSilentBinary(t *testing.T) {
	n := recordtest.RichNamespace()
	n.Adoptions = []stele.Adoption{{From: "g", Bundle: strings.Repeat("0f", 32), Reading: true}}
	for _, c := range []struct {
		end            string
		reading, quiet bool
		ended          time.Time
	}{
		{"00", false, false, time.Time{}}, {"01", true, false, time.Time{}}, {"0200", false, true, time.Time{}}, {"0300", true, true, time.Time{}},
		{"020180fbccaf0d00", false, true, recordtest.SignedAt},
	} {
		a := &n.Adoptions[0]
		a.Reading, a.Silent, a.Ended = c.reading, c.quiet, c.ended
		b := MarshalNamespace(n)
		if got := hex.EncodeToString(b); !strings.HasSuffix(got, "00"+c.end) {
			t.Errorf("%+v ends with %s, want %s", a, got[len(got)-20:], c.end)
		}
		var back stele.Namespace
		if err := UnmarshalNamespace(b, &back); err != nil || !n.Equal(&back) {
			t.Errorf("%+v, %v", back.Adoptions, err)
		}
	}
	n.Adoptions[0].Silent, n.Adoptions[0].Ended = false, time.Time{}
	b := MarshalNamespace(n)
	b[len(b)-1] = 8
	if err := UnmarshalNamespace(b, new(stele.Namespace)); stele.KindOf(err) != stele.Internal {
		t.Errorf("a mode that there is not: %v", err)
	}
}
