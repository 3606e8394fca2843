package proof

import (
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// drawKeys draws keys of all kinds with all dates.
func drawKeys(t *rapid.T) (keys []stele.SigningKey) {
	at := func(name string) time.Time {
		return time.Unix(rapid.Int64Range(0, 253_402_300_799).Draw(t, name), 0).UTC()
	}
	for _, algorithm := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{stele.KeyED25519, stele.KeyECDSA, stele.KeyRSA}), rapid.ID[string]).Draw(t, "algorithms") {
		k, err := PublicKey(made()[algorithm], at("created"))
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "ends") {
			k.Expires = at("expires")
		}
		if rapid.Bool().Draw(t, "is revoked") {
			k.Revoked = at("revoked")
		}
		keys = append(keys, k)
	}
	return keys
}

// A key is the same in each form in which it is published.
func TestKeysTravel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := drawKeys(t)
		set, err := JWKS(keys)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseJWKS(set)
		if err != nil || len(back) != len(keys) {
			t.Fatalf("%v: %s", err, set)
		}
		for i, k := range keys {
			if !reflect.DeepEqual(back[i], k) {
				t.Fatalf("%+v became %+v: %s", k, back[i], set)
			}
			read, err := ParseTXT(TXT(k))
			if err != nil || !reflect.DeepEqual(read, k) {
				t.Fatalf("%+v became %+v: %s: %v", k, read, TXT(k), err)
			}
		}
	})
}

func TestTXT(t *testing.T) {
	k := public(t, made()[stele.KeyED25519])
	k.Expires, k.Revoked, k.Note = noon, noon.Add(time.Hour), "not for everybody"
	text := TXT(k)
	if want := "v=N2S1; k=ed25519; id=" + k.ID + "; nb=2026-11-15T11:00:00Z; na=2026-11-15T12:00:00Z; r=2026-11-15T13:00:00Z; p=MCow"; !strings.HasPrefix(text, want) {
		t.Errorf("%s\nwant\n%s...", text, want)
	}
	for _, good := range []string{
		strings.ReplaceAll(text, "; ", ";"),
		text + ";",
		text + " ; x=later",
		"v=N2S1 ; " + strings.TrimPrefix(text, "v=N2S1;"),
	} {
		if _, err := ParseTXT(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	scoped := ScopedTXT(k, "urn:example:a;b c")
	if got, prefix, err := ParseScopedTXT(scoped); err != nil || got.ID != k.ID || prefix != "urn:example:a;b c" {
		t.Errorf("%s: %q, %v", scoped, prefix, err)
	}
	other := public(t, made()[stele.KeyECDSA])
	for _, bad := range []string{
		"", "v=spf1 -all", "v=N2S1", "v=N2S1;",
		strings.Replace(text, "N2S1", "N2S2", 1),
		strings.Replace(text, "ed25519", "ecdsa", 1),
		strings.Replace(text, "ed25519", "none", 1),
		strings.Replace(text, k.ID, other.ID, 1),
		strings.Replace(text, "nb=2026-11-15T11:00:00Z; ", "", 1),
		strings.Replace(text, "11:00:00Z", "11:00:00+01:00", 1),
		strings.Replace(text, "11:00:00Z", "11:00:00.5Z", 1),
		strings.Replace(text, "na=2026", "na=1926", 1),
		strings.Replace(text, "; p=", "; p=\n", 1),
		text + "; k=ed25519",
		text + "; nonsense",
		scoped, text + "; n=", text + "; n=%zz", text + "; n=%00",
		text + "=",
		text + "; x=" + strings.Repeat("x", maxTXT),
	} {
		if _, err := ParseTXT(bad); !errors.Is(err, stele.Invalid) {
			t.Errorf("%.100q: %v", bad, err)
		}
	}
}

func TestJWKS(t *testing.T) {
	k := public(t, made()[stele.KeyED25519])
	k.Revoked = noon
	set, err := JWKS([]stele.SigningKey{k})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"kty":"OKP"`, `"crv":"Ed25519"`, `"alg":"EdDSA"`, `"use":"sig"`, `"kid":"` + k.ID + `"`, `"nbf":1794740400`, `"revoked":{"revoked_at":1794744000}`} {
		if !strings.Contains(string(set), part) {
			t.Errorf("%s lacks %s", set, part)
		}
	}
	if strings.Contains(string(set), `"exp"`) {
		t.Errorf("a key without an end has one: %s", set)
	}
	if set, err := JWKS(nil); err != nil || string(set) != `{"keys":[]}`+"\n" {
		t.Errorf("no keys: %s, %v", set, err)
	}
	k.ID = "another"
	if _, err := JWKS([]stele.SigningKey{k}); err == nil {
		t.Error("a key with another's name was published")
	}
}

func TestParseJWKS(t *testing.T) {
	k := public(t, made()[stele.KeyED25519])
	set, err := JWKS([]stele.SigningKey{k})
	if err != nil {
		t.Fatal(err)
	}
	with := func(name string, value any) string {
		var v struct{ Keys []map[string]any }
		if err := json.Unmarshal(set, &v); err != nil {
			t.Fatal(err)
		}
		if v.Keys[0][name] = value; value == nil {
			delete(v.Keys[0], name)
		}
		b, err := json.Marshal(map[string]any{"keys": v.Keys})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	// Records of other applications are ignored.
	for text, want := range map[string]int{
		string(set):                  1,
		with("x5t", "nonsense"):      1,
		with("x5c", []string{"AAA"}): 1,
		with("use", nil):             1,
		with("use", "enc"):           0,
		with("kty", "oct"):           0,
		with("crv", "Ed448"):         0,
		`{"keys":[{"kty":"oct","k":"c2VjcmV0"},{"kty":"EC","crv":"P-384"}]}`: 0,
		`{"keys":[],"more":1}`: 0,
	} {
		if keys, err := ParseJWKS([]byte(text)); err != nil || len(keys) != want {
			t.Errorf("%s: %d keys, %v; want %d", text, len(keys), err, want)
		}
	}
	for _, bad := range []string{
		"", "{}", "[]", `{"keys":null}`, `{"keys":{}}`, `{"keys":[1]}`, `{"keys":[]}x`, `{"keys":[],"keys":[]}`,
		`{"keys":[` + strings.TrimSuffix(strings.Repeat("{},", MaxKeys+1), ",") + `]}`,
		strings.Repeat("[", maxDocument), strings.Repeat(" ", maxDocument+1),
		with("kid", "another"), with("kid", nil), with("alg", "none"), with("alg", "HS256"), with("alg", nil),
		with("x", "AAAA"), with("x", nil), with("nbf", nil), with("nbf", "2026"), with("nbf", -1), with("nbf", 1.5),
		with("exp", 1e15), with("revoked", 5), with("revoked", map[string]any{"revoked_at": -5}),
		with("d", "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"),
	} {
		if keys, err := ParseJWKS([]byte(bad)); !errors.Is(err, stele.Invalid) {
			t.Errorf("%.100s: %d keys, %v", bad, len(keys), err)
		}
	}
}

func TestDocument(t *testing.T) {
	id := newID(t, `urn:example:a"b`)
	var list []stele.Signature
	for _, algorithm := range []string{stele.KeyED25519, stele.KeyECDSA, stele.KeyRSA} {
		list = append(list, sign(t, made()[algorithm], id, statement()))
	}
	list[0].Type = ""
	text := Document(id, list)
	back, signatures, err := ParseDocument(text)
	if err != nil || back != id.String() || !reflect.DeepEqual(signatures, list) {
		t.Errorf("%s\nbecame %q, %+v, %v", text, back, signatures, err)
	}
	if back, signatures, err := ParseDocument(Document(id, nil)); err != nil || back != id.String() || len(signatures) > 0 {
		t.Errorf("no signatures: %q, %v, %v", back, signatures, err)
	}
	good := string(text)
	for _, bad := range []string{
		"", "{}", "[]", "null", `{"id":5}`, `{"id":"x","more":1}`, good + good,
		strings.Replace(good, `"id":"urn`, `"id":"\u0000`, 1),
		strings.Replace(good, `"size":5`, `"size":9007199254740992`, 1),
		strings.Replace(good, `"size":5`, `"size":5,"size":6`, 1),
		strings.Replace(good, `"size":5`, `"size":-5`, 1),
		strings.Replace(good, `"sha256":"2c`, `"sha256":"zz`, 1),
		strings.Replace(good, `"sha256":"2c`, `"sha256":"`, 1),
		strings.Replace(good, `12:00:00Z`, `12:00:00.5Z`, 1),
		strings.Replace(good, `"jws":"`, `"jws":"..`, 1),
		strings.Replace(good, `"key":"`, `"key":"x`, 1),
		strings.Repeat(" ", maxDocument+1),
		fmt.Sprintf(`{"id":"x","signatures":[%s]}`, strings.TrimSuffix(strings.Repeat(`{},`, stele.MaxSignatures+1), ",")),
	} {
		if _, _, err := ParseDocument([]byte(bad)); !errors.Is(err, stele.Invalid) {
			t.Errorf("%.100q: %v", bad, err)
		}
	}
}

// The largest set of keys is published whole.
func TestLargest(t *testing.T) {
	k := public(t, made()[stele.KeyRSA])
	k.Expires, k.Revoked = noon, noon
	longest := k
	longest.Public = make([]byte, 550) // of 4096 bits
	if n := len(TXT(longest)); n*MaxKeys > 60_000 {
		t.Errorf("%d keys of %d bytes do not fit a message", MaxKeys, n)
	}
	keys := make([]stele.SigningKey, MaxKeys)
	for i := range keys {
		keys[i] = k
	}
	set, err := JWKS(keys)
	if err != nil || len(set)*4096/rsaBits > maxDocument {
		t.Errorf("%d bytes, %v", len(set), err)
	}
	list := make([]stele.Signature, stele.MaxSignatures)
	for i := range list {
		list[i] = stele.Signature{Size: stele.MaxSignedSize, Type: strings.Repeat(`\`, 255), Date: noon, Key: k.ID, JWS: strings.Repeat("x", 1024)}
	}
	if n := len(Document(newID(t, "urn:"+strings.Repeat(`"`, stele.MaxText-10)), list)); n > maxDocument {
		t.Errorf("a document has %d bytes", n)
	}
}

func FuzzParseDocument(f *testing.F) {
	var key crypto.Signer = made()[stele.KeyED25519]
	s, err := Sign(key, newID(f, "urn:example:a"), statement())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(Document(newID(f, "urn:example:a"), []stele.Signature{s}))
	f.Add(Document(newID(f, "urn:example:a"), nil))
	f.Add([]byte(`{"id":"x","signatures":[{"sha256":"00","size":1e9}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		text, list, err := ParseDocument(data)
		if err != nil {
			if !errors.Is(err, stele.Invalid) {
				t.Fatalf("of another kind: %v", err)
			}
			return
		}
		id, err := stele.NewID("x", text)
		if err != nil {
			t.Fatal(err)
		}
		again, same, err := ParseDocument(Document(id, list))
		if err != nil || again != text || len(same) != len(list) || len(list) > 0 && !reflect.DeepEqual(same, list) {
			t.Fatalf("%q, %+v, %v; before %q, %+v", again, same, err, text, list)
		}
		for _, s := range list {
			if _, err := Verify([]stele.SigningKey{{ID: s.Key}}, id, s, noon); err == nil {
				t.Fatal("verified by nothing")
			}
		}
	})
}

func FuzzParseTXT(f *testing.F) {
	for _, key := range made() {
		f.Add(TXT(public(f, key)))
		f.Add(ScopedTXT(public(f, key), "urn:example:a;b=c%20é"))
	}
	f.Add("v=N2S1; k=ed25519; id=; nb=2026-11-15T12:00:00Z; p=")
	f.Fuzz(func(t *testing.T, text string) {
		k, prefix, err := ParseScopedTXT(text)
		if _, plain := ParseTXT(text); (plain == nil) != (err == nil && prefix == "") {
			t.Fatalf("for %q: %v, and without: %v", prefix, err, plain)
		}
		if err != nil {
			if !errors.Is(err, stele.Invalid) {
				t.Fatalf("of another kind: %v", err)
			}
			return
		}
		text = TXT(k)
		if prefix != "" {
			text = ScopedTXT(k, prefix)
		}
		again, same, err := ParseScopedTXT(text)
		if err != nil || same != prefix || !reflect.DeepEqual(again, k) {
			t.Fatalf("%+v, %q, %v; before %+v, %q", again, same, err, k, prefix)
		}
	})
}

func FuzzParseJWKS(f *testing.F) {
	for _, key := range made() {
		set, err := JWKS([]stele.SigningKey{public(f, key)})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(set)
	}
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := ParseJWKS(data)
		if err != nil {
			if !errors.Is(err, stele.Invalid) {
				t.Fatalf("of another kind: %v", err)
			}
			return
		}
		set, err := JWKS(keys)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseJWKS(set)
		if err != nil || !reflect.DeepEqual(again, keys) {
			t.Fatalf("%+v, %v; before %+v", again, err, keys)
		}
	})
}
