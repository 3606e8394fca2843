package binary

import (
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/internal/recordtest"
	"pgregory.net/rapid"
)

// richBinary is rich's binary form. It is for ever: stores hold it. If this test
// fails, the form was changed, and needs another first byte.
const richBinary = "" +
	"010361726b1261726b3a31323334352f783534787a3332312368747470733a2f2f6e32742e6e65742f61726b3a2f3132" +
	"3334352f783534787a333231020368646c0b31302e313030302f3138320375726e1675726e3a6973626e3a3937383031" +
	"34313033363134340977697468647261776e010f7075626c697368656420747769636501c0aab9e40c959aef3a036172" +
	"6b0f61726b3a31323334352f78356e657702034e324c1568747470733a2f2f6578616d706c652e6f72672f3109746578" +
	"742f68746d6c0570742d4252640a901cde0401034e3243136674703a2f2f6578616d706c652e6f72672f320000ffff03" +
	"00000000050964632e7269676874730343433004776861740544756e6173047768656e04313939320577686572650003" +
	"77686f0a476f6d65732c20416e6106737461626c650a323034302d30312d3031116173206c6f6e672061732077652061" +
	"726502010355524c030001ff80a30501ffffffff0f0a010c302e4e412f31302e31303030ac02ffffffff0f05454d4149" +
	"4c0080a305000000000208757365723a616e610b67726f75703a7374616666ffffffffffffffffff0101010001c0aab9e40c" +
	"959aef3a08757365723a616e6101"

const richNamespaceBinary = "" +
	"0103696269137369642e696e70652e62722f6d74632d6d313808757365723a616e610b546865206c6962726172790369" +
	"6269136d74632d6d31382e7369642e696e70652e6272500d3135302e3136332e322e313734a0060103317573032e7a6b" +
	"ac02901cdc04097065726d616e656e740a323034302d30312d303103796573020b6578616d706c652e6f7267082e696e" +
	"70652e6272010568747470731868747470733a2f2f6578616d706c652e6f72672f7b69647d0180808080802002010000" +
	"0180c49fd50c0109757365723a726f6f74"

// record and namespace have the methods of package encoding, so that tests treat them alike.
type (
	record    stele.Record
	namespace stele.Namespace
)

func (r *record) MarshalBinary() ([]byte, error) { return MarshalRecord((*stele.Record)(r)) }

func (r *record) UnmarshalBinary(data []byte) error {
	return UnmarshalRecord(data, (*stele.Record)(r))
}

func (n *namespace) MarshalBinary() ([]byte, error) {
	return MarshalNamespace((*stele.Namespace)(n)), nil
}

func (n *namespace) UnmarshalBinary(data []byte) error {
	return UnmarshalNamespace(data, (*stele.Namespace)(n))
}

func TestBinaryForm(t *testing.T) {
	for _, c := range []struct {
		name   string
		value  encoding.BinaryMarshaler
		pinned string
		back   interface {
			encoding.BinaryUnmarshaler
			encoding.BinaryMarshaler
		}
	}{
		{"record", (*record)(recordtest.Rich()), richBinary, new(record)},
		{"namespace", (*namespace)(recordtest.RichNamespace()), richNamespaceBinary, new(namespace)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := c.value.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(b); got != c.pinned {
				t.Errorf("the binary form has changed:\n%s\nwant\n%s", got, c.pinned)
			}
			pinned, err := hex.DecodeString(c.pinned)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.back.UnmarshalBinary(pinned); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.value, c.back, recordtest.Same); diff != "" {
				t.Error(diff)
			}
			for n := range pinned {
				if err := c.back.UnmarshalBinary(pinned[:n]); err == nil || stele.KindOf(err) != stele.Internal {
					t.Errorf("the first %d of %d bytes: %v", n, len(pinned), err)
				}
			}
			if err := c.back.UnmarshalBinary(append(pinned, 0)); stele.KindOf(err) != stele.Internal {
				t.Errorf("a byte more: %v", err)
			}
			pinned[0]++
			if err := c.back.UnmarshalBinary(pinned); stele.KindOf(err) != stele.Internal || !strings.Contains(err.Error(), "form 2") {
				t.Errorf("another form: %v", err)
			}
		})
	}
}

// Before a missing TTL was a day, it was stored as 0, as was one that the owner gave. Those
// are read as a day, and a TTL of 0 that is given since is kept.
func TestBinaryTTL(t *testing.T) {
	old, err := hex.DecodeString(strings.Replace(richBinary, "4c0080a305000000", "4c0000000000", 1))
	if err != nil || len(old) != len(richBinary)/2-2 {
		t.Fatal(err, len(old))
	}
	var r stele.Record
	if err := UnmarshalRecord(old, &r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(recordtest.Rich(), &r, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	r.Values[1].TTL = 0
	b, err := MarshalRecord(&r)
	if err != nil {
		t.Fatal(err)
	}
	// After signatures, import and what is withheld: one value, and its place.
	if got, want := hex.EncodeToString(b), hex.EncodeToString(old)+"00"+"00"+"000000"+"0101"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var back stele.Record
	if err := UnmarshalRecord(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&r, &back, recordtest.Same); diff != "" {
		t.Error(diff)
	}
	for _, end := range []string{"00", "0100", "0102", "020101", "02010a", "01"} { // none, of an absolute TTL, beyond the end, twice, cut off
		odd, err := hex.DecodeString(hex.EncodeToString(old) + "0000000000" + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := UnmarshalRecord(odd, &back); stele.KindOf(err) != stele.Internal || err == nil {
			t.Errorf("%s: %v", end, err)
		}
	}
}

func TestBinaryNeedsID(t *testing.T) {
	if _, err := MarshalRecord(new(stele.Record)); !errors.Is(err, stele.Invalid) {
		t.Errorf("a record without a name: %v", err)
	}
}

// A record without a name is damaged: it could not be written again.
func TestBinaryWithoutID(t *testing.T) {
	b, err := MarshalRecord((&stele.Record{ID: stele.StoredID("a", "a")}))
	if err != nil {
		t.Fatal(err)
	}
	b = append([]byte{recordForm, 0, 0}, b[5:]...)
	if err := UnmarshalRecord(b, new(stele.Record)); err == nil || stele.KindOf(err) != stele.Internal {
		t.Errorf("%v", err)
	}
}

// The decoder keeps nothing of what it was given.
func TestBinaryIsCopied(t *testing.T) {
	b, err := MarshalRecord(recordtest.Rich())
	if err != nil {
		t.Fatal(err)
	}
	var r stele.Record
	if err := UnmarshalRecord(b, &r); err != nil {
		t.Fatal(err)
	}
	clear(b)
	if diff := cmp.Diff(recordtest.Rich(), &r, recordtest.Same); diff != "" {
		t.Error(diff)
	}
}

func TestRecordBinary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := recordtest.AnyRecord.Draw(t, "record")
		b, err := AppendRecord([]byte("before"), r)
		if err != nil {
			t.Fatal(err)
		}
		b, ok := bytes.CutPrefix(b, []byte("before"))
		var back stele.Record
		if err := UnmarshalRecord(b, &back); err != nil || !ok {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, &back, recordtest.Same); diff != "" {
			t.Fatal(diff)
		}
		if again, err := MarshalRecord(&back); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x, %v; before %x", again, err, b)
		}
	})
}

func TestNamespaceBinary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := recordtest.AnyNamespace.Draw(t, "namespace")
		b := MarshalNamespace(n)
		var back stele.Namespace
		if err := UnmarshalNamespace(b, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n, &back, recordtest.Same); diff != "" {
			t.Fatal(diff)
		}
		if again := MarshalNamespace(&back); !bytes.Equal(again, b) {
			t.Fatalf("%x; before %x", again, b)
		}
	})
}

// A damaged length allocates no more memory than the items after it take.
func TestBinaryMemory(t *testing.T) {
	const size = 1 << 20
	head := appendText(appendID([]byte{recordForm}, stele.StoredID("ab", "ab:x")), "")
	for name, before := range map[string][]byte{
		"aliases": head,
		"targets": append(appendText(append(bytes.Clone(head), 0), "active"), 0),
		"values":  append(appendText(append(bytes.Clone(head), 0), "active"), 0, 0, 0, 0, 0, 0),
	} {
		for _, c := range []struct {
			fill  byte
			limit uint64
		}{
			{0, 128 * size},        // half a million empty aliases
			{0xff, size + size>>2}, // the copy of all, and an item that can't be
		} {
			b := binary.AppendUvarint(bytes.Clone(before), size)
			b = append(b, bytes.Repeat([]byte{c.fill}, size)...)
			var r stele.Record
			if grown := allocated(func() { _ = UnmarshalRecord(b, &r) }); grown > c.limit {
				t.Errorf("%s filled with %#x: %d bytes take %d", name, c.fill, len(b), grown)
			}
		}
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzRecordBinary(f *testing.F) {
	b, err := MarshalRecord(recordtest.Rich())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	signed := recordtest.Rich()
	signed.Signatures = []stele.Signature{recordtest.SomeSignature()}
	if b, err = MarshalRecord(signed); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Add([]byte{recordForm})
	f.Fuzz(func(t *testing.T, data []byte) {
		var r, back record
		checkDamaged(t, data, &r, &back)
		if !reflect.DeepEqual(r, back) {
			t.Fatal(cmp.Diff(r, back, recordtest.Same))
		}
	})
}

func FuzzNamespaceBinary(f *testing.F) {
	f.Add(MarshalNamespace(recordtest.RichNamespace()))
	f.Add(MarshalNamespace(recordtest.Granting(stele.Grant{To: "user:ana", Role: stele.RoleOwner}, stele.Grant{To: "group:staff", Role: stele.RoleReader})))
	signing := recordtest.RichNamespace()
	signing.Keys = []stele.SigningKey{recordtest.SomeSigningKey()}
	f.Add(MarshalNamespace(signing))
	f.Add([]byte{})
	f.Add([]byte{namespaceForm})
	f.Fuzz(func(t *testing.T, data []byte) {
		var n, back namespace
		checkDamaged(t, data, &n, &back)
		if !reflect.DeepEqual(n, back) {
			t.Fatal(cmp.Diff(n, back, recordtest.Same))
		}
	})
}

// checkDamaged decodes data into first, and what first encodes to into second. It
// leaves both alone if data is damaged.
func checkDamaged(t *testing.T, data []byte, first, second interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}) {
	if err := first.UnmarshalBinary(data); err != nil {
		if stele.KindOf(err) != stele.Internal {
			t.Fatalf("kind %v: %v", stele.KindOf(err), err)
		}
		if err := second.UnmarshalBinary(data); err == nil {
			t.Fatal("damaged once, and not the second time")
		}
		return
	}
	b, err := first.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkRecordBinary(b *testing.B) {
	s, err := stele.NewSchemes(recordtest.Toy("ark"))
	if err != nil {
		b.Fatal(err)
	}
	r, err := document.DecodeRecord(s, []byte(recordtest.Typical))
	if err != nil {
		b.Fatal(err)
	}
	data, err := MarshalRecord(r)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("append", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		buf := make([]byte, 0, 2*len(data))
		for b.Loop() {
			if _, err := AppendRecord(buf, r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if err := UnmarshalRecord(data, new(stele.Record)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
