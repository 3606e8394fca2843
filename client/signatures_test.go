package client

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/fetch"
	"github.com/stele-id/stele/client/internal/signtest"
	"github.com/stele-id/stele/proof"
)

// sign signs bytes for a name.
func sign(t testing.TB, name, body, kind string, date time.Time, algorithm string) (stele.Signature, stele.SigningKey) {
	t.Helper()
	private, public := newKey(t, algorithm)
	id, err := schemes(t).Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := proof.Sign(private, id, stele.Signature{SHA256: sha256.Sum256([]byte(body)), Size: uint64(len(body)), Type: kind, Date: date})
	if err != nil {
		t.Fatal(err)
	}
	return s, public
}

func TestSignatures(t *testing.T) {
	id, err := schemes(t).Parse(paradisec)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := sign(t, paradisec, "hello", "", signtest.Now(), stele.KeyED25519)
	other, _ := schemes(t).Parse("urn:paradisec:AB1:001:B")
	documents := map[string]string{
		"/good": string(proof.Document(id, []stele.Signature{s})), "/other": string(proof.Document(other, []stele.Signature{s})), "/none": string(proof.Document(id, nil)),
		"/page": "<html>", "/long": strings.Repeat("x", maxDocument+1), "/name": `{"id":"no name at all","signatures":[]}`,
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := documents[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	defer web.Close()
	f := fetch.New(fetch.Options{})
	defer f.Close()
	for path, want := range map[string]stele.Kind{"/other": stele.Conflict, "/none": stele.NotFound, "/page": stele.Conflict, "/long": stele.Conflict, "/name": stele.Conflict, "/missing": stele.NotFound} {
		if list, err := Signatures(t.Context(), f, schemes(t), web.URL+path, id); err == nil || stele.KindOf(err) != want {
			t.Errorf("%s: %v, %v, want %v", path, list, err, want)
		}
	}
	list, err := Signatures(t.Context(), f, schemes(t), web.URL+"/good", id)
	if err != nil || len(list) != 1 || list[0] != s {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestVerifier: each fault is detected and reported.
func TestVerifier(t *testing.T) {
	now := signtest.Now()
	id, err := schemes(t).Parse(paradisec)
	if err != nil {
		t.Fatal(err)
	}
	s, key := sign(t, paradisec, "hello", "text/plain", now, stele.KeyED25519)
	moved, movedKey := sign(t, "urn:paradisec:AB1:001:B", "hello", "", now, stele.KeyECDSA)
	future, futureKey := sign(t, paradisec, "hello", "", now.Add(time.Hour), stele.KeyECDSA)
	early, earlyKey := sign(t, paradisec, "hello", "", now.Add(-48*time.Hour), stele.KeyECDSA)
	expired, revoked := key, key
	expired.Expires, revoked.Revoked = now.Add(-time.Minute), now.Add(-time.Minute)
	resized := s
	resized.Size++
	for _, tt := range []struct {
		about string
		list  []stele.Signature
		keys  []stele.SigningKey
		is    error
	}{
		{"another key", []stele.Signature{s}, []stele.SigningKey{movedKey}, proof.ErrNoKey},
		{"no key", []stele.Signature{s}, nil, proof.ErrNoKey},
		{"another name", []stele.Signature{moved}, []stele.SigningKey{movedKey}, proof.ErrSignature},
		{"the future", []stele.Signature{future}, []stele.SigningKey{futureKey}, proof.ErrFuture},
		{"before the key", []stele.Signature{early}, []stele.SigningKey{earlyKey}, proof.ErrNotYet},
		{"after the key", []stele.Signature{s}, []stele.SigningKey{expired}, proof.ErrExpired},
		{"revoked", []stele.Signature{s}, []stele.SigningKey{revoked}, proof.ErrRevoked},
		{"another size", []stele.Signature{resized}, []stele.SigningKey{key}, proof.ErrSignature},
		{"nothing", nil, []stele.SigningKey{key}, nil},
	} {
		_, err := NewVerifier(id, tt.list, Keys{List: tt.keys, From: "_n2s.example"}, now)
		if err == nil || stele.KindOf(err) != stele.Conflict || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v", tt.about, err)
		}
	}
	v, err := NewVerifier(id, []stele.Signature{moved, s}, Keys{List: []stele.SigningKey{key, movedKey}, From: "_n2s.example", By: ByDNSSEC}, now)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(v.Sizes(), []int64{5}) || !slices.Equal(v.Types(), []string{"text/plain"}) {
		t.Errorf("%v, %v", v.Sizes(), v.Types())
	}
	if p, err := v.Verify(sha256.Sum256([]byte("hello")), 5, "text/plain"); err != nil || len(p.Notes) > 0 || p.Key != key.ID {
		t.Errorf("%+v, %v", p, err)
	}
	for _, tt := range []struct {
		body string
		size int64
	}{{"jello", 5}, {"hell", 4}, {"hello", 6}, {"", 0}} {
		if p, err := v.Verify(sha256.Sum256([]byte(tt.body)), tt.size, ""); err == nil || stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "has changed since it was signed") {
			t.Errorf("%q: %+v, %v", tt.body, p, err)
		}
	}
	if err := v.Changed(&stele.Error{Kind: stele.Conflict, Err: errors.New("6 bytes")}); stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "6 bytes; 5 bytes of text/plain were signed on") {
		t.Error(err)
	}
}

// TestVerifierSeveral: of several signatures the one that matches counts; the proof notes a
// newer one, and an invalid one of the same bytes does not count.
func TestVerifierSeveral(t *testing.T) {
	now := signtest.Now()
	id, err := schemes(t).Parse(paradisec)
	if err != nil {
		t.Fatal(err)
	}
	old, oldKey := sign(t, paradisec, "old", "text/plain", now.Add(-time.Hour), stele.KeyED25519)
	recent, recentKey := sign(t, paradisec, "recent", "text/plain", now, stele.KeyECDSA)
	lost, _ := sign(t, paradisec, "lost", "", now, stele.KeyECDSA)
	v, err := NewVerifier(id, []stele.Signature{old, lost, recent}, Keys{List: []stele.SigningKey{oldKey, recentKey}, From: "_n2s.example", By: NotAuthenticated, Note: "why\x1b"}, now)
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.Verify(sha256.Sum256([]byte("old")), 3, "text/html")
	if err != nil || len(p.Notes) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	want := "not verified: SHA-256 and size match what was signed, but the key is not authenticated (why\\x1b); signed " + now.Add(-time.Hour).Format(time.DateOnly) + " by key " + oldKey.ID +
		" of _n2s.example; it was signed as text/plain, and its server calls it text/html; other bytes were signed later, on " + now.Format(time.DateOnly)
	if p.String() != want {
		t.Errorf("%s\nwant\n%s", p, want)
	}
	if p, err = v.Verify(sha256.Sum256([]byte("recent")), 6, ""); err != nil || p.Notes != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = v.Verify(sha256.Sum256([]byte("lost")), 4, ""); !errors.Is(err, proof.ErrNoKey) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestProofString: the text always says what vouches for a key, and does not call a
// signature by an unauthenticated key verified.
func TestProofString(t *testing.T) {
	const date = "; signed 0001-01-01 by key k of id.example"
	const nobody = "not verified: SHA-256 and size match what was signed, but the key is not authenticated (as the name server says)" + date
	for by, want := range map[Voucher]string{
		ByDNSSEC:         "verified: SHA-256 and size match" + date + "; key authenticated by DNSSEC (as the name server says)",
		ByHTTPS:          "verified: SHA-256 and size match" + date + "; key authenticated by HTTPS only: id.example says that it is the namespace's",
		ByRegistry:       "verified: SHA-256 and size match" + date + "; key from the registry at hand",
		NotAuthenticated: nobody, "": nobody, "somebody": nobody,
	} {
		p := &Proof{Key: "k", KeyBy: by, KeyFrom: "id.example", KeyNote: "as the name server says"}
		if p.String() != want || p.IsProven() != strings.HasPrefix(want, "verified: ") {
			t.Errorf("%q: %s", by, p)
		}
	}
}
