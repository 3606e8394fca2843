package transparency

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"
)

func digestOf(t *rapid.T, label string) (d [32]byte) {
	copy(d[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, label))
	return d
}

func keyFrom(t *rapid.T, label string) (k Key) {
	copy(k[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
	return k
}

// drawLeaf draws a leaf as the log may have it.
func drawLeaf(t *rapid.T) *Leaf {
	l := &Leaf{
		Kind:    rapid.SampledFrom([]Kind{KindRecord, KindNamespace}).Draw(t, "kind"),
		Version: rapid.OneOf(rapid.Uint64Range(1, 1000), rapid.Uint64Range(maxExact-2, maxExact+2), rapid.Uint64()).Draw(t, "version"),
		At:      time.UnixMicro(rapid.Int64Range(-60_000_000_000_000_000, 250_000_000_000_000_000).Draw(t, "at")).UTC(),
	}
	if rapid.Bool().Draw(t, "listed") {
		l.Name = rapid.StringOfN(rapid.Rune(), 1, 200, -1).Filter(func(s string) bool { return !strings.ContainsRune(s, 0xfffd) }).Draw(t, "name")
	} else {
		l.Blind = digestOf(t, "blind")
	}
	if rapid.Bool().Draw(t, "noted") {
		l.Form = rapid.IntRange(1, 9).Draw(t, "form")
		l.Public, l.Full = digestOf(t, "public"), digestOf(t, "full")
	}
	return l
}

func TestLeafRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawLeaf(t)
		text := want.Append(nil)
		got, err := ParseLeaf(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if *got != *want {
			t.Fatalf("%+v, want %+v", got, want)
		}
		// No text that differs is the same leaf.
		at := rapid.IntRange(0, len(text)-1).Draw(t, "bit")
		other := bytes.Clone(text)
		other[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "which")
		if l, err := ParseLeaf(other); err == nil && *l == *want {
			t.Fatalf("%s and %s are the same leaf", text, other)
		}
	})
}

// The form of leaves does not change: their hashes are in logs that are published.
func TestLeafForm(t *testing.T) {
	at := time.Date(2031, 5, 2, 10, 0, 0, 123456789, time.UTC)
	full := Digest(Key{1}, []byte(`{"id":"ark:12345/x1"}`))
	public := Digest(Key{2}, []byte(noDocument))
	for _, tt := range []struct {
		leaf Leaf
		text string
		hash string
	}{
		{
			Leaf{Kind: KindRecord, Name: "ark:12345/x1", Version: 3, At: at, Form: 1, Public: public, Full: full},
			`{"at":"2031-05-02T10:00:00.123456Z","form":1,"full":"p7k1Mbezhf/ATMZZIfyJdFPjkcILM6THU+8Giq3Rdh0=","kind":"record","name":"ark:12345/x1","public":"84wZVGu4cMYayk7ZD5XkiCmG4rv6pnKTwvfb8mQTbbE=","version":3}`,
			"d0a3264300cc749c4394900e23da8dab6f33514434620dc5a4aa821acdb324e0",
		},
		{
			Leaf{Kind: KindNamespace, Blind: Blind(Key{3}, KindNamespace, "ark:99999"), Version: 1 << 53, At: at.Truncate(time.Second)},
			`{"at":"2031-05-02T10:00:00Z","blind":"5I2Pco33gy9M6HS3cS3iYnmwEQeZ0nP2Hdic2/FB9+Y=","kind":"namespace","version":"9007199254740992"}`,
			"1ceb6457b29d890a5ad8190cb58c2f8b5e88245a6f048e90b199ba294a270e08",
		},
	} {
		text := string(tt.leaf.Append(nil))
		hash := tt.leaf.Hash()
		if text != tt.text || hex.EncodeToString(hash[:]) != tt.hash {
			t.Errorf("leaf\n%s\nwith hash %x, want\n%s\nwith %s", text, hash[:], tt.text, tt.hash)
		}
	}
}

func TestLeafRefused(t *testing.T) {
	sound := string((&Leaf{Kind: KindRecord, Name: "ark:12345/x1", Version: 3, At: time.Unix(1e9, 0), Form: 1}).Append(nil))
	if _, err := ParseLeaf([]byte(sound)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"", "{}", "null", "[]", sound + "\n", " " + sound, sound + sound,
		strings.Replace(sound, `"record"`, `"zone"`, 1),
		strings.Replace(sound, `"version":3`, `"version":03`, 1),
		strings.Replace(sound, `"version":3`, `"version":"3"`, 1),
		strings.Replace(sound, `"version":3`, `"version":-3`, 1),
		strings.Replace(sound, `"form":1`, `"form":-1`, 1),
		strings.Replace(sound, `"form":1,`, ``, 1),
		strings.Replace(sound, `01:46:40Z`, `01:46:40.0000001Z`, 1),
		strings.Replace(sound, `01:46:40Z`, `02:46:40+01:00`, 1),
		strings.Replace(sound, `"kind"`, `"Kind"`, 1),
		strings.Replace(sound, `x1`, "x\xff", 1),
		strings.Replace(sound, `x1`, `x\u0031`, 1),
		strings.Replace(sound, `AAA=`, `AAB=`, 1),
		strings.Replace(sound, `"name":"ark:12345/x1"`, `"name":"ark:12345/x2","name":"ark:12345/x1"`, 1),
		strings.Replace(sound, `x1`, strings.Repeat("x", 1<<16), 1),
	} {
		if l, err := ParseLeaf([]byte(text)); err == nil {
			t.Errorf("%.200q is the leaf %+v", text, l)
		}
	}
}

func drawProof(t *rapid.T) *Proof {
	line := rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return r != '\n' }), 0, 60, -1)
	p := &Proof{Name: line.Draw(t, "name"), NameKey: keyFrom(t, "key"), Leaf: drawLeaf(t).Append(nil), Index: rapid.Uint64Range(0, maxTreeSize).Draw(t, "index")}
	if rapid.Bool().Draw(t, "document") {
		p.Document, p.Full, p.Salt = []byte(line.Draw(t, "content")), rapid.Bool().Draw(t, "full"), keyFrom(t, "salt")
	}
	for range rapid.IntRange(0, 40).Draw(t, "hashes") {
		p.Hashes = append(p.Hashes, tlog.Hash(digestOf(t, "hash")))
	}
	p.Note = "names.example.org/.log\n12\nAAAA\n\n" + line.Draw(t, "signature") + "\n"
	return p
}

func TestProofRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawProof(t)
		text, err := want.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Proof
		if err := got.UnmarshalText(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := got.MarshalText()
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%s\nwant\n%s", again, text)
		}
		if got.Name != want.Name || got.NameKey != want.NameKey || got.Salt != want.Salt || got.Full != want.Full || got.Index != want.Index ||
			!bytes.Equal(got.Document, want.Document) || (got.Document == nil) != (want.Document == nil) || got.Note != want.Note || len(got.Hashes) != len(want.Hashes) {
			t.Fatalf("%+v\nwant\n%+v", got, want)
		}
	})
}

// testKey returns a key that is always the same.
func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func signedCheckpoint(c Checkpoint, signers ...note.Signer) []byte {
	text, err := note.Sign(&note.Note{Text: c.String()}, signers...)
	if err != nil {
		panic(err)
	}
	return text
}

func TestPublicKeyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z0-9.]{1,20}(/[.a-z]{1,5})?`).Draw(t, "name")
		want := PublicKey{Name: name, Key: testKey(rapid.Byte().Draw(t, "key")).Public().(ed25519.PublicKey), Cosign: rapid.Bool().Draw(t, "cosign")}
		got, err := ParsePublicKey(want.String())
		if err != nil || got.String() != want.String() || got.Name != want.Name || got.Cosign != want.Cosign || !bytes.Equal(got.Key, want.Key) {
			t.Fatalf("%+v, want %+v (%v)", got, want, err)
		}
		if !want.Cosign { // signed-note of another implementation reads it
			if _, err := note.NewVerifier(want.String()); err != nil {
				t.Fatal(err)
			}
		}
		text := []byte(want.String())
		at := rapid.IntRange(0, len(text)-1).Draw(t, "place")
		text[at] ^= 1 << rapid.IntRange(0, 6).Draw(t, "bit")
		if other, err := ParsePublicKey(string(text)); err == nil && other.String() != want.String() {
			t.Fatalf("%s is taken for a key, after %s", text, want)
		}
	})
}

func FuzzLeaf(f *testing.F) {
	at := time.Unix(1_900_000_000, 123_456_000)
	f.Add((&Leaf{Kind: KindRecord, Name: "ark:12345/x1", Version: 3, At: at, Form: 1}).Append(nil))
	f.Add((&Leaf{Kind: KindNamespace, Blind: [32]byte{1}, Version: 1 << 60, At: at}).Append(nil))
	f.Add((&Leaf{Kind: KindRecord, Name: "urn:x:\"\\\n\u2028é", Version: 1, At: at}).Append(nil))
	f.Add([]byte(`{"at":"0000-01-01T00:00:00Z","kind":"record","name":"x","version":0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := ParseLeaf(text)
		if err != nil {
			return
		}
		if again := l.Append(nil); !bytes.Equal(again, text) {
			t.Fatalf("%q is written again as %q", text, again)
		}
	})
}

func FuzzProof(f *testing.F) {
	key := PublicKey{Name: "names.example.org/.log", Key: testKey(1).Public().(ed25519.PublicKey)}
	doc := []byte(`{"id":"ark:12345/x1","version":1}`)
	l := Leaf{Kind: KindRecord, Name: "ark:12345/x1", Version: 1, At: time.Unix(1_900_000_000, 0), Form: 1, Public: Digest(Key{7}, doc)}
	other := tlog.RecordHash([]byte("another"))
	c := Checkpoint{Origin: key.Name, Size: 2, Root: tlog.NodeHash(l.Hash(), other)}
	p := &Proof{Name: l.Name, Salt: Key{7}, Document: doc, Leaf: l.Append(nil), Hashes: tlog.RecordProof{other}, Note: string(signedCheckpoint(c, signer{key.Name, testKey(1)}))}
	if _, err := p.Check([]PublicKey{key}); err != nil {
		f.Fatal(err)
	}
	text, _ := p.MarshalText()
	f.Add(text)
	p.Document, p.Salt, p.NameKey, p.Hashes = nil, Key{}, Key{9}, nil
	text, _ = p.MarshalText()
	f.Add(text)
	f.Add([]byte("stele proof 1\npublic\nname x\nleaf {}\n\nc2sp.org/tlog-proof@v1\nindex 0\n\nx\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p Proof
		if p.UnmarshalText(text) != nil {
			return
		}
		again, err := p.MarshalText()
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%q is written again as %q", text, again)
		}
		// What is proved stands in the checkpoint that was signed: no other one can be made.
		if shown, err := p.Check([]PublicKey{key}); err == nil && (shown.Checkpoint.Root != c.Root || !bytes.Equal(p.Leaf, l.Append(nil))) {
			t.Fatalf("%q proves a leaf that was not signed", text)
		}
	})
}

func FuzzCheckpoint(f *testing.F) {
	key := PublicKey{Name: "names.example.org/.log", Key: testKey(1).Public().(ed25519.PublicKey)}
	witness := PublicKey{Name: "witness.example.net", Key: testKey(2).Public().(ed25519.PublicKey), Cosign: true}
	c := Checkpoint{Origin: key.Name, Size: 12, Root: tlog.Hash{1}}
	f.Add(signedCheckpoint(c, signer{key.Name, testKey(1)}))
	f.Add(signedCheckpoint(c, signer{key.Name, testKey(1)}, cosigner{witness.Name, testKey(2), time.Unix(1_900_000_000, 0)}))
	later := c
	later.Origin += "/g3"
	f.Add(signedCheckpoint(later, signer{later.Origin, testKey(1)}))
	f.Add(signedCheckpoint(c, signer{key.Name, testKey(3)}))
	f.Add([]byte(c.String()))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := ParseCheckpoint(string(text)); err == nil && !strings.HasPrefix(string(text), c.String()) {
			t.Fatalf("%q is written again as %q", text, c.String())
		}
		got, cosigned, err := OpenCheckpoint(text, []PublicKey{key, witness})
		if err != nil {
			return
		}
		if got.Size != 12 || got.Root != c.Root || got.Origin != c.Origin && got.Origin != later.Origin {
			t.Fatalf("%q was never signed", text)
		}
		if len(cosigned) > 1 {
			t.Fatalf("%q: one witness counts %d times", text, len(cosigned))
		}
	})
}

func FuzzPublicKey(f *testing.F) {
	for _, cosign := range []bool{false, true} {
		f.Add(PublicKey{Name: "names.example.org/.log", Key: testKey(1).Public().(ed25519.PublicKey), Cosign: cosign}.String())
	}
	// The key of sum.golang.org, as golang.org/x/mod/sumdb has it.
	f.Add("sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8")
	f.Add("a+00000000+AQ==")
	f.Fuzz(func(t *testing.T, text string) {
		k, err := ParsePublicKey(text)
		if err != nil {
			return
		}
		if again, err := ParsePublicKey(k.String()); err != nil || again.String() != k.String() {
			t.Fatalf("%q is written again as %q (%v)", text, k, err)
		}
	})
}
