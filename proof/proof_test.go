package proof

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// The payload must never change: published signatures depend on it.
func TestPayload(t *testing.T) {
	id := newID(t, `urn:example:a"b\é中`)
	s := statement()
	s.Type = `text/plain; x="\"é"`
	want := `{"date":"2026-11-15T12:00:00Z","id":"urn:example:a\"b\\é中",` +
		`"sha256":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","size":5,"type":"text/plain; x=\"\\\"é\""}`
	if got := string(Payload(id, s)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	// As RFC 8785 (3.2.2.2) writes control characters, which no name has.
	if got := string(appendText(nil, "\b\t\n\f\r\x01\x1f\x7f")); got != `"\b\t\n\f\r\u0001\u001f`+"\x7f\"" {
		t.Error(got)
	}
}

func TestSignAndVerify(t *testing.T) {
	id := newID(t, "urn:example:a")
	for algorithm, key := range made() {
		t.Run(algorithm, func(t *testing.T) {
			k := public(t, key)
			s := sign(t, key, id, statement())
			if got, err := Verify([]stele.SigningKey{{ID: "another"}, k}, id, s, noon); err != nil || got.ID != k.ID {
				t.Errorf("%v, %v", got, err)
			}
			if got := Algorithm(s); got != algorithm {
				t.Errorf("it says to be of %q", got)
			}
			record := stele.Record{ID: id, State: stele.Active, Signatures: []stele.Signature{s}}
			if err := record.Validate(); err != nil {
				t.Error(err)
			}
			ns := stele.Namespace{Scheme: "urn", Prefix: "urn:example", Keys: []stele.SigningKey{k}}
			if err := ns.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

// If anything that was signed is changed, the signature is not valid any more.
func TestVerifyRefusesChanges(t *testing.T) {
	id, other := newID(t, "urn:example:a"), newID(t, "urn:example:b")
	for algorithm, key := range made() {
		k := public(t, key)
		keys := []stele.SigningKey{k}
		good := sign(t, key, id, statement())
		for name, change := range map[string]func(*stele.Signature){
			"digest": func(s *stele.Signature) { s.SHA256[31] ^= 1 },
			"size":   func(s *stele.Signature) { s.Size++ },
			"type":   func(s *stele.Signature) { s.Type = "" },
			"date":   func(s *stele.Signature) { s.Date = s.Date.Add(-time.Second) },
			"cut":    func(s *stele.Signature) { s.JWS = s.JWS[:len(s.JWS)-4] },
			"turned": func(s *stele.Signature) {
				head, tail, _ := strings.Cut(s.JWS, "..")
				raw, _ := decodeURL(tail)
				raw[5] ^= 4
				s.JWS = head + ".." + base64.RawURLEncoding.EncodeToString(raw)
			},
			"empty":   func(s *stele.Signature) { s.JWS = "" },
			"nothing": func(s *stele.Signature) { s.JWS, _, _ = strings.Cut(s.JWS, ".."); s.JWS += ".." },
			"payload": func(s *stele.Signature) {
				s.JWS = strings.Replace(s.JWS, "..", "."+base64.RawURLEncoding.EncodeToString(Payload(id, statement()))+".", 1)
			},
		} {
			s := good
			change(&s)
			if _, err := Verify(keys, id, s, noon); !errors.Is(err, ErrSignature) || !errors.Is(err, stele.Invalid) {
				t.Errorf("%s, %s changed: %v", algorithm, name, err)
			}
		}
		if _, err := Verify(keys, other, good, noon); !errors.Is(err, ErrSignature) {
			t.Errorf("%s, moved to another identifier: %v", algorithm, err)
		}
		another, err := Generate(algorithm, rand.Reader)
		if algorithm == stele.KeyRSA || err != nil { // RSA keys take long
			continue
		}
		if _, err := Verify([]stele.SigningKey{public(t, another)}, id, good, noon); !errors.Is(err, ErrNoKey) {
			t.Errorf("%s, another key: %v", algorithm, err)
		}
		// Another key under the first one's name.
		posing := public(t, another)
		posing.ID = k.ID
		if _, err := Verify([]stele.SigningKey{posing}, id, good, noon); !errors.Is(err, ErrNoKey) {
			t.Errorf("%s, another key under its name: %v", algorithm, err)
		}
		forged := sign(t, another, id, statement())
		forged.Key = k.ID
		if _, err := Verify(keys, id, forged, noon); !errors.Is(err, ErrSignature) {
			t.Errorf("%s, forged: %v", algorithm, err)
		}
	}
}

// withHeader puts another header before what signs it.
func withHeader(s stele.Signature, id stele.ID, header string, signer func(input []byte) []byte) stele.Signature {
	head := base64.RawURLEncoding.EncodeToString([]byte(header))
	input := head + "." + base64.RawURLEncoding.EncodeToString(Payload(id, s))
	s.JWS = head + ".." + base64.RawURLEncoding.EncodeToString(signer([]byte(input)))
	return s
}

// The header decides nothing: the key says by which algorithm it signs.
func TestVerifyRefusesHeaders(t *testing.T) {
	id := newID(t, "urn:example:a")
	key := made()[stele.KeyED25519]
	k := public(t, key)
	keys := []stele.SigningKey{k, public(t, made()[stele.KeyECDSA]), public(t, made()[stele.KeyRSA])}
	signer := func(input []byte) []byte {
		b, err := key.Sign(rand.Reader, input, crypto.Hash(0))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	secret := func(input []byte) []byte { // the public key as a shared secret
		h := hmac.New(sha256.New, k.Public)
		h.Write(input)
		return h.Sum(nil)
	}
	s := statement()
	s.Key = k.ID
	if _, err := Verify(keys, id, withHeader(s, id, fmt.Sprintf(`{ "kid":%q, "alg":"EdDSA" }`, k.ID), signer), noon); err != nil {
		t.Errorf("another order of the same header: %v", err)
	}
	for header, want := range map[string]error{
		`{"alg":"none","kid":"K"}`:                               ErrAlgorithm,
		`{"alg":"NONE","kid":"K"}`:                               ErrAlgorithm,
		`{"alg":"","kid":"K"}`:                                   ErrAlgorithm,
		`{"alg":"ES256","kid":"K"}`:                              ErrAlgorithm,
		`{"alg":"RS256","kid":"K"}`:                              ErrAlgorithm,
		`{"alg":"eddsa","kid":"K"}`:                              ErrAlgorithm,
		`{"alg":"EdDSA"}`:                                        ErrSignature,
		`{"kid":"K"}`:                                            ErrSignature,
		`{"alg":"EdDSA","kid":"another"}`:                        ErrSignature,
		`{"alg":"EdDSA","kid":null}`:                             ErrSignature,
		`{"alg":["EdDSA"],"kid":"K"}`:                            ErrSignature,
		`{"alg":"EdDSA","kid":"K","crit":["exp"],"exp":1}`:       ErrSignature,
		`{"alg":"EdDSA","kid":"K","crit":[]}`:                    ErrSignature,
		`{"alg":"EdDSA","kid":"K","b64":false,"crit":["b64"]}`:   ErrSignature,
		`{"alg":"EdDSA","kid":"K","typ":"JWT"}`:                  ErrSignature,
		`{"alg":"EdDSA","kid":"K","jwk":{}}`:                     ErrSignature,
		`{"alg":"EdDSA","kid":"K","x5u":"https://example.org/"}`: ErrSignature,
		`{"alg":"EdDSA","kid":"K","kid":"K"}`:                    ErrSignature,
		`{"alg":"none","alg":"EdDSA","kid":"K"}`:                 ErrSignature,
		`{"alg":"EdDSA","kid":"K","ALG":"none"}`:                 ErrSignature,
		`[]`:                                                     ErrSignature,
		`"EdDSA"`:                                                ErrSignature,
		``:                                                       ErrSignature,
		`{"alg":"EdDSA","kid":"K"}{}`:                            ErrSignature,
		strings.Repeat("[", 5000):                                ErrSignature,
		`{"alg":"EdDSA","kid":"K","x":` + strings.Repeat(`{"x":`, 200):      ErrSignature,
		`{"alg":"EdDSA","kid":"K","` + strings.Repeat("long", 300) + `":1}`: ErrSignature,
	} {
		header = strings.ReplaceAll(header, `"K"`, `"`+k.ID+`"`)
		if _, err := Verify(keys, id, withHeader(s, id, header, signer), noon); !errors.Is(err, want) {
			t.Errorf("%.60s: %v, want %v", header, err, want)
		}
	}
	for _, algorithm := range []string{"HS256", "HS512", "none"} {
		forged := withHeader(s, id, fmt.Sprintf(`{"alg":%q,"kid":%q}`, algorithm, k.ID), secret)
		if _, err := Verify(keys, id, forged, noon); !errors.Is(err, ErrAlgorithm) {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
	// A signature of RSA that says to be of the key on P-256, and of ECDSA.
	ec := keys[1]
	forged := sign(t, made()[stele.KeyRSA], id, statement())
	_, tail, _ := strings.Cut(forged.JWS, "..")
	forged.Key = ec.ID
	for header, want := range map[string]error{
		fmt.Sprintf(`{"alg":"RS256","kid":%q}`, ec.ID): ErrAlgorithm,
		fmt.Sprintf(`{"alg":"ES256","kid":%q}`, ec.ID): ErrSignature,
	} {
		forged.JWS = base64.RawURLEncoding.EncodeToString([]byte(header)) + ".." + tail
		if _, err := Verify(keys, id, forged, noon); !errors.Is(err, want) {
			t.Errorf("%s: %v", header, err)
		}
	}
}

func TestVerifyDates(t *testing.T) {
	id := newID(t, "urn:example:a")
	key := made()[stele.KeyED25519]
	s := sign(t, key, id, statement())
	for _, tt := range []struct {
		name   string
		change func(*stele.SigningKey)
		now    time.Time
		want   error
		usable error
	}{
		{"good", func(*stele.SigningKey) {}, noon, nil, nil},
		{"much later", func(*stele.SigningKey) {}, noon.AddDate(50, 0, 0), nil, nil},
		{"our clock is a little behind", func(*stele.SigningKey) {}, noon.Add(-Skew), nil, nil},
		{"our clock is far behind", func(*stele.SigningKey) {}, noon.Add(-Skew - time.Second), ErrFuture, nil},
		{"the key is younger, by clocks that differ", func(k *stele.SigningKey) { k.Created = noon.Add(Skew) }, noon, nil, nil},
		{"the key is younger", func(k *stele.SigningKey) { k.Created = noon.Add(Skew + time.Second) }, noon, ErrNotYet, ErrNotYet},
		{"expired at that moment", func(k *stele.SigningKey) { k.Expires = noon }, noon, ErrExpired, ErrExpired},
		{"expired before", func(k *stele.SigningKey) { k.Expires = noon.Add(-time.Minute) }, noon, ErrExpired, ErrExpired},
		{"expired later", func(k *stele.SigningKey) { k.Expires = noon.Add(time.Second) }, noon.AddDate(1, 0, 0), nil, ErrExpired},
		{"revoked later", func(k *stele.SigningKey) { k.Revoked = noon.AddDate(0, 1, 0) }, noon.AddDate(1, 0, 0), ErrRevoked, ErrRevoked},
		{"to be revoked", func(k *stele.SigningKey) { k.Revoked = noon.AddDate(0, 1, 0) }, noon, nil, nil},
	} {
		k := public(t, key)
		tt.change(&k)
		if _, err := Verify([]stele.SigningKey{k}, id, s, tt.now); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if err := Usable(k, tt.now); !errors.Is(err, tt.usable) {
			t.Errorf("%s: may it sign: %v, want %v", tt.name, err, tt.usable)
		}
	}
}

// Several namespaces may have a key. It is valid if it is in one of them, and not revoked
// in any.
func TestVerifySharedKeys(t *testing.T) {
	id := newID(t, "urn:example:a")
	key := made()[stele.KeyED25519]
	s := sign(t, key, id, statement())
	good, ended, revoked := public(t, key), public(t, key), public(t, key)
	ended.Expires, revoked.Revoked = noon, noon
	for _, tt := range []struct {
		keys []stele.SigningKey
		want error
	}{
		{[]stele.SigningKey{good, ended}, nil},
		{[]stele.SigningKey{ended, good}, nil},
		{[]stele.SigningKey{ended, ended}, ErrExpired},
		{[]stele.SigningKey{good, revoked}, ErrRevoked},
		{[]stele.SigningKey{revoked, good}, ErrRevoked},
		{[]stele.SigningKey{ended, revoked}, ErrRevoked},
	} {
		if _, err := Verify(tt.keys, id, s, noon); !errors.Is(err, tt.want) {
			t.Errorf("%v, want %v", err, tt.want)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	key := made()[stele.KeyED25519]
	if _, err := Sign(key, stele.ID{}, statement()); !errors.Is(err, stele.Invalid) {
		t.Errorf("no identifier: %v", err)
	}
	s := statement()
	s.Size = stele.MaxSignedSize + 1
	if _, err := Sign(key, newID(t, "urn:example:a"), s); !errors.Is(err, stele.Invalid) {
		t.Errorf("too large: %v", err)
	}
}

// A signature is for one statement: two that differ have different payloads, and the
// signature of one is not valid for another.
func TestStatementsDiffer(t *testing.T) {
	key := made()[stele.KeyED25519]
	keys := []stele.SigningKey{public(t, key)}
	draw := rapid.Custom(func(t *rapid.T) (s struct {
		id string
		stele.Signature
	}) {
		s.id = "urn:" + rapid.StringMatching(`[a-c"\\,:{}é]{1,4}`).Draw(t, "id")
		s.SHA256[0], s.SHA256[31] = rapid.Byte().Draw(t, "first"), rapid.ByteRange(1, 3).Draw(t, "last")
		s.Size = rapid.Uint64Range(0, stele.MaxSignedSize).Draw(t, "size")
		s.Type = rapid.SampledFrom([]string{"", "text/html", `text/plain; a="\"}"`}).Draw(t, "type")
		s.Date = noon.Add(-time.Duration(rapid.IntRange(0, 3000).Draw(t, "ago")) * time.Second)
		return s
	})
	rapid.Check(t, func(rt *rapid.T) {
		a, b := draw.Draw(rt, "a"), draw.Draw(rt, "b")
		signed := sign(t, key, newID(t, a.id), a.Signature)
		if _, err := Verify(keys, newID(t, a.id), signed, noon); err != nil {
			rt.Fatal(err)
		}
		same := a == b
		b.Key, b.JWS = signed.Key, signed.JWS
		if _, err := Verify(keys, newID(t, b.id), b.Signature, noon); (err == nil) != same {
			rt.Fatalf("of one for another: %v", err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	id := newID(b, "urn:example:a")
	for algorithm, key := range made() {
		keys := []stele.SigningKey{public(b, key)}
		s := sign(b, key, id, statement())
		b.Run(algorithm, func(b *testing.B) {
			for b.Loop() {
				if _, err := Verify(keys, id, s, noon); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
