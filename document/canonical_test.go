package document

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

// The order of names is that of RFC 8785, section 3.2.3, whose example this is.
func TestCanonicalOrder(t *testing.T) {
	const text = `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",` +
		`"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`
	const want = `{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","` + "\u00f6" + `":"Latin Small Letter O With Diaeresis",` +
		`"` + "\u20ac" + `":"Euro Sign","` + "\U0001f600" + `":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`
	var j jsonReader
	j.start(text)
	if got := string(appendCanonical(nil, &j)); got != want || j.broken {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// canonicalByPeer sorts and writes a document with encoding/json. All names are ASCII here, so
// the order of bytes is that of UTF-16.
func canonicalByPeer(t interface{ Fatal(...any) }, text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(quoteLarge(v)); err != nil {
		t.Fatal(err)
	}
	// It escapes two characters that RFC 8785 leaves alone.
	return strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(b.String(), "\n"))
}

// quoteLarge makes strings of numbers that are not exact in every reader.
func quoteLarge(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = quoteLarge(v[name])
		}
	case []any:
		for i := range v {
			v[i] = quoteLarge(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err != nil || n > 9007199254740991 {
			return v.String()
		}
	}
	return v
}

// The canonical form is the document, sorted, and does not depend on the order in which a
// program wrote the document.
func TestCanonical(t *testing.T) {
	s := recordtest.Spellers(t)
	rapid.Check(t, func(t *rapid.T) {
		r := recordtest.GoodRecord.Draw(t, "record")
		got, err := CanonicalRecord(r)
		if err != nil {
			t.Fatal(err)
		}
		text := AppendRecord(nil, r)
		if want := canonicalByPeer(t, text); string(got) != want {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
		back, err := DecodeRecord(s, text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := CanonicalRecord(back); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%s, %v\nafter reading it again; before\n%s", again, err, got)
		}
		n := recordtest.GoodNamespace.Draw(t, "namespace")
		if got, err = CanonicalNamespace(n); err != nil {
			t.Fatal(err)
		}
		if want := canonicalByPeer(t, AppendNamespace(nil, n)); string(got) != want {
			t.Fatalf("%s\nwant\n%s", got, want)
		}
	})
	for name, r := range map[string]*stele.Record{
		"a value": {ID: stele.StoredID("ab", "ab:x"), Metadata: stele.Metadata{"what": "\xff"}},
		"a key":   {ID: stele.StoredID("ab", "ab:x"), Metadata: stele.Metadata{"\xff": ""}},
		"a name":  {ID: stele.StoredID("ab", "ab:\xff")},
	} {
		if _, err := CanonicalRecord(r); !errors.Is(err, stele.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What form 1 is, for ever.
func TestCanonicalPinned(t *testing.T) {
	got, err := CanonicalRecord(recordtest.Rich())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"aliases":["10.1000/182","urn:isbn:9780141036144"],"by":"user:ana","created":"1969-12-31T23:59:59Z","id":"ark:12345/x54xz321",`
	if !strings.HasPrefix(string(got), want) || !strings.HasSuffix(string(got), `"version":"18446744073709551615"}`) {
		t.Errorf("the canonical form has changed: %s", got)
	}
	if sum := hex.EncodeToString(sha256Of(got)); sum != "c39f820bff21dd705ee42064cfaa4768924edfd73bdb5e7d4dcf3bba450fe318" {
		t.Errorf("the canonical form has changed: its digest is %s", sum)
	}
}

func sha256Of(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}
