package stele

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
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// rich has something in every field.
func rich() *Record {
	at := time.Date(2024, 5, 17, 10, 0, 0, 123_456_789, time.UTC)
	return &Record{
		ID:       ID{"ark", "ark:12345/x54xz321"},
		Spelling: "https://n2t.net/ark:/12345/x54xz321",
		Aliases:  []ID{{"hdl", "10.1000/182"}, {"urn", "urn:isbn:9780141036144"}},
		State:    Withdrawn,
		Tombstone: &Tombstone{
			Reason:      "published twice",
			At:          at,
			Replacement: ID{"ark", "ark:12345/x5new"},
		},
		Targets: []Target{
			{Service: N2L, URL: "https://example.org/1", Type: "text/html", Language: "pt-BR", Order: 100, Preference: 10, TTL: 3600, Status: 303, Partial: true},
			{Service: N2C, URL: "ftp://example.org/2", Order: 65535},
		},
		Metadata:    Metadata{"who": "Gomes, Ana", "what": "Dunas", "when": "1992", "where": "", "dc.rights": "CC0"},
		Persistence: Persistence{Stable, "2040-01-01", "as long as we are"},
		Values: []HandleValue{{
			Index: 1, Type: "URL", Data: []byte{0, 1, 0xff}, TTL: 86400, TTLAbsolute: true, Timestamp: 4294967295,
			Permissions: AdminRead | PublicRead,
			References:  []HandleReference{{"0.NA/10.1000", 300}},
		}, {Index: 4294967295, Type: "EMAIL", Data: []byte{}, TTL: 86400}},
		Readers:  []string{"user:ana", "group:staff"},
		Version:  18446744073709551615,
		Created:  time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC),
		Modified: at,
		By:       "user:ana",
		Redacted: true,
	}
}

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

func richNamespace() *Namespace {
	return &Namespace{
		Scheme: "ibi", Prefix: "sid.inpe.br/mtc-m18", Owner: "user:ana", Title: "The library",
		Minter: Minter{
			Kind: MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, IP: "150.163.2.174", IPPort: 800,
			AllowPrivate: true, Granularity: "1us", Template: ".zk", Seed: 300,
		},
		TTL: 3600, Status: 302, Persistence: Persistence{Permanent, "2040-01-01", "yes"},
		Hosts: []string{"example.org", ".inpe.br"}, Protocols: []string{"https"},
		Delegate: "https://example.org/{id}", Checked: true, Quota: 1 << 40, Version: 2,
		Created: time.Unix(0, 0).UTC(), Modified: time.Unix(1_700_000_000, 1).UTC(), By: "user:root",
	}
}

const richNamespaceBinary = "" +
	"0103696269137369642e696e70652e62722f6d74632d6d313808757365723a616e610b546865206c6962726172790369" +
	"6269136d74632d6d31382e7369642e696e70652e6272500d3135302e3136332e322e313734a0060103317573032e7a6b" +
	"ac02901cdc04097065726d616e656e740a323034302d30312d303103796573020b6578616d706c652e6f7267082e696e" +
	"70652e6272010568747470731868747470733a2f2f6578616d706c652e6f72672f7b69647d0180808080802002010000" +
	"0180c49fd50c0109757365723a726f6f74"

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
		{"record", rich(), richBinary, new(Record)},
		{"namespace", richNamespace(), richNamespaceBinary, new(Namespace)},
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
			if diff := cmp.Diff(c.value, c.back, same); diff != "" {
				t.Error(diff)
			}
			for n := range pinned {
				if err := c.back.UnmarshalBinary(pinned[:n]); err == nil || KindOf(err) != Internal {
					t.Errorf("the first %d of %d bytes: %v", n, len(pinned), err)
				}
			}
			if err := c.back.UnmarshalBinary(append(pinned, 0)); KindOf(err) != Internal {
				t.Errorf("a byte more: %v", err)
			}
			pinned[0]++
			if err := c.back.UnmarshalBinary(pinned); KindOf(err) != Internal || !strings.Contains(err.Error(), "form 2") {
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
	var r Record
	if err := r.UnmarshalBinary(old); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rich(), &r, same); diff != "" {
		t.Error(diff)
	}
	r.Values[1].TTL = 0
	b, err := r.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	// Behind signatures, import and what is withheld: one value, and its place.
	if got, want := hex.EncodeToString(b), hex.EncodeToString(old)+"00"+"00"+"000000"+"0101"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	var back Record
	if err := back.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&r, &back, same); diff != "" {
		t.Error(diff)
	}
	for _, end := range []string{"00", "0100", "0102", "020101", "02010a", "01"} { // none, of an absolute TTL, beyond the end, twice, cut off
		odd, err := hex.DecodeString(hex.EncodeToString(old) + "0000000000" + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := back.UnmarshalBinary(odd); KindOf(err) != Internal || err == nil {
			t.Errorf("%s: %v", end, err)
		}
	}
}

func TestBinaryNeedsID(t *testing.T) {
	if _, err := new(Record).MarshalBinary(); !errors.Is(err, Invalid) {
		t.Errorf("a record without a name: %v", err)
	}
}

// A record without a name is damaged: it could not be written again.
func TestBinaryWithoutID(t *testing.T) {
	b, err := (&Record{ID: ID{"a", "a"}}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	b = append([]byte{recordForm, 0, 0}, b[5:]...)
	if err := new(Record).UnmarshalBinary(b); err == nil || KindOf(err) != Internal {
		t.Errorf("%v", err)
	}
}

// The decoder keeps nothing of what it was given.
func TestBinaryIsCopied(t *testing.T) {
	b, err := rich().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	if err := r.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	clear(b)
	if diff := cmp.Diff(rich(), &r, same); diff != "" {
		t.Error(diff)
	}
}

func TestRecordBinary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRecord.Draw(t, "record")
		b, err := r.AppendBinary([]byte("before"))
		if err != nil {
			t.Fatal(err)
		}
		b, ok := bytes.CutPrefix(b, []byte("before"))
		var back Record
		if err := back.UnmarshalBinary(b); err != nil || !ok {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, &back, same); diff != "" {
			t.Fatal(diff)
		}
		if again, err := back.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x, %v; before %x", again, err, b)
		}
	})
}

func TestNamespaceBinary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := anyNamespace.Draw(t, "namespace")
		b, err := n.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var back Namespace
		if err := back.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(n, &back, same); diff != "" {
			t.Fatal(diff)
		}
		if again, err := back.MarshalBinary(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x, %v; before %x", again, err, b)
		}
	})
}

// A damaged length costs no memory that the items behind it do not take.
func TestBinaryMemory(t *testing.T) {
	const size = 1 << 20
	head := appendText(appendID([]byte{recordForm}, ID{"ab", "ab:x"}), "")
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
			var r Record
			if grown := allocated(func() { _ = r.UnmarshalBinary(b) }); grown > c.limit {
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
	b, err := rich().MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	signed := rich()
	signed.Signatures = []Signature{someSignature()}
	if b, err = signed.MarshalBinary(); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Add([]byte{recordForm})
	f.Fuzz(func(t *testing.T, data []byte) {
		var r, back Record
		checkDamaged(t, data, &r, &back)
		if !reflect.DeepEqual(r, back) {
			t.Fatal(cmp.Diff(r, back, same))
		}
	})
}

func FuzzNamespaceBinary(f *testing.F) {
	b, err := richNamespace().MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	granted, err := granting(Grant{"user:ana", RoleOwner}, Grant{"group:staff", RoleReader}).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(granted)
	signing := richNamespace()
	signing.Keys = []SigningKey{someSigningKey()}
	if b, err = signing.MarshalBinary(); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Add([]byte{namespaceForm})
	f.Fuzz(func(t *testing.T, data []byte) {
		var n, back Namespace
		checkDamaged(t, data, &n, &back)
		if !reflect.DeepEqual(n, back) {
			t.Fatal(cmp.Diff(n, back, same))
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
		if KindOf(err) != Internal {
			t.Fatalf("kind %v: %v", KindOf(err), err)
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
	s, err := NewSchemes(toy("ark"))
	if err != nil {
		b.Fatal(err)
	}
	r, err := s.DecodeRecord([]byte(typical))
	if err != nil {
		b.Fatal(err)
	}
	data, err := r.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("append", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		buf := make([]byte, 0, 2*len(data))
		for b.Loop() {
			if _, err := r.AppendBinary(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unmarshal", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			if err := new(Record).UnmarshalBinary(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
