package httpd

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/proof"
)

// signer adds a key to a namespace, which it makes if there is none.
func (s *site) signer(prefix string) (crypto.Signer, stele.SigningKey) {
	s.t.Helper()
	key, err := proof.Generate(stele.KeyED25519, rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	k, err := proof.PublicKey(key, s.now())
	if err != nil {
		s.t.Fatal(err)
	}
	k.Note = "in the safe"
	at, err := s.registry.ParsePrefix(prefix)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.registry.Namespace(s.admin, at); err != nil {
		s.space(prefix)
	}
	_, err = s.registry.SetNamespace(s.admin, at, 0, func(ns *stele.Namespace) error {
		ns.Keys = append(ns.Keys, k)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return key, k
}

// signed registers a record with a signature of "hello".
func (s *site) signed(key crypto.Signer, name string, change ...func(*stele.Record)) *stele.Record {
	s.t.Helper()
	id := s.id(name)
	signature, err := proof.Sign(key, id, stele.Signature{SHA256: sha256.Sum256([]byte("hello")), Size: 5, Type: "text/plain", Date: s.now()})
	if err != nil {
		s.t.Fatal(err)
	}
	r := &stele.Record{ID: id, Signatures: []stele.Signature{signature},
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/a", Order: 100, Preference: 10}}}
	for _, c := range change {
		c(r)
	}
	r, err = s.registry.Register(s.admin, r)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func TestSignaturesOverHTTP(t *testing.T) {
	s := newSite(t)
	key, k := s.signer("urn:example")
	s.signed(key, "urn:example:a", func(r *stele.Record) {
		r.Targets = append(r.Targets, stele.Target{Service: stele.N2S, URL: "https://example.org/old.sig", Order: 100, Preference: 10})
		r.Aliases = []stele.ID{s.id("ark:12345/alias")}
	})
	for _, target := range []string{
		"/uri-res/N2S?urn:example:a", "/uri-res/n2s?URN:EXAMPLE:a", "/uri-res/N2S?urn%3Aexample%3Aa", "/uri-res/N2S?ark:12345/alias",
		"/urn:example:a?+s=N2S", "/urn:example:a?+s=N2S&t=text/html",
	} {
		res := s.get(target)
		if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "application/json" {
			t.Errorf("%s: got %d %s %s", target, res.StatusCode, got, res.body)
			continue
		}
		name, list, err := proof.ParseDocument([]byte(res.body))
		if err != nil || name != "urn:example:a" || len(list) != 1 {
			t.Errorf("%s: %v: %s", target, err, res.body)
			continue
		}
		if got, err := proof.Verify([]stele.SigningKey{k}, s.id(name), list[0], s.now()); err != nil || got.ID != k.ID {
			t.Errorf("%s: %v", target, err)
		}
		if link := res.Header.Get("Link"); !strings.HasPrefix(link, `<https://id.example.org/.well-known/stele/jwks/urn:example:a>; rel="jwks"`) {
			t.Errorf("%s: %s", target, link)
		}
	}
	// What is signed nowhere, or elsewhere, or is hidden, or gone.
	s.to("urn:example:plain", "https://example.org/plain")
	s.signed(key, "urn:example:hidden", func(r *stele.Record) { r.Readers = []string{"user:ann"} })
	gone := s.signed(key, "urn:example:gone")
	if _, err := s.registry.Withdraw(s.admin, gone.ID, 0, "gone", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	for target, status := range map[string]int{
		"/uri-res/N2S?urn:example:plain": 404, "/uri-res/N2S?urn:example:hidden": 404, "/uri-res/N2S?urn:example:gone": 410,
		"/urn:example:plain?+s=N2S": 404, "/urn:example:hidden?+s=N2S": 404, "/urn:example:gone?+s=N2S": 410,
		"/urn:example:a": 302,
	} {
		if res := s.get(target); res.StatusCode != status {
			t.Errorf("%s: got %d %s", target, res.StatusCode, res.body)
		}
	}
	if res := s.get("/.info/urn:example:a", "Accept", "text/html"); !strings.Contains(res.body, k.ID) || !strings.Contains(res.body, "2cf24dba") {
		t.Errorf("the page: %s", res.body)
	}
}

// A name that is longer than a signed one is another: what was signed is not a part.
func TestSignaturesOfTheWhole(t *testing.T) {
	s := newSite(t)
	key, _ := s.signer("ark:12345")
	s.signed(key, "ark:12345/x5a")
	for target, status := range map[string]int{
		"/uri-res/N2S?ark:12345/x5a": 200, "/uri-res/N2S?ark:12345/x5a/part": 404, "/ark:12345/x5a/part?+s=N2S": 404,
	} {
		if res := s.get(target); res.StatusCode != status {
			t.Errorf("%s: got %d %s", target, res.StatusCode, res.body)
		}
	}
}

func TestJWKSOverHTTP(t *testing.T) {
	s := newSite(t)
	_, root := s.signer("urn:")
	_, above := s.signer("urn:example")
	_, below := s.signer("urn:example:sub")
	_, ark := s.signer("ark:12345")
	const path = "/.well-known/stele/jwks/"
	for name, want := range map[string][]string{
		"urn:example":              {above.ID, root.ID},
		"URN:Example":              {above.ID, root.ID},
		"urn:example:a":            {above.ID, root.ID},
		"urn:example:sub":          {below.ID, above.ID, root.ID},
		"urn%3Aexample%3Asub%3Aa":  {below.ID, above.ID, root.ID},
		"urn:example:subnot:a":     {above.ID, root.ID},
		"urn:other:a":              {root.ID},
		"ark:12345":                {ark.ID},
		"ark:/12345/x5a":           {ark.ID},
		"ark:12345/x5a/b/c?ignore": {ark.ID},
	} {
		res := s.get(path + name)
		if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "application/jwk-set+json" {
			t.Errorf("%s: got %d %s %s", name, res.StatusCode, got, res.body)
			continue
		}
		keys, err := proof.ParseJWKS([]byte(res.body))
		if err != nil || strings.Contains(res.body, "safe") {
			t.Errorf("%s: %v: %s", name, err, res.body)
		}
		var ids []string
		for _, k := range keys {
			ids = append(ids, k.ID)
		}
		if fmt.Sprint(ids) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, ids, want)
		}
	}
	for _, target := range []string{path, path + "ark:99999", path + "hdl:1/2", path + "%", path + "nonsense", "/.well-known/stele/jwks", "/.well-known/", "/.well-known/other"} {
		if res := s.get(target); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d %s", target, res.StatusCode, res.body)
		}
	}
	res := s.get(path + "ark:12345")
	if res := s.get(path+"ark:12345", "If-None-Match", res.Header.Get("ETag")); res.StatusCode != http.StatusNotModified || res.body != "" {
		t.Errorf("got %d %s", res.StatusCode, res.body)
	}
	// A revocation shows at once.
	if _, err := s.registry.SetNamespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, 0, func(ns *stele.Namespace) error {
		ns.Keys[0].Revoked = s.now().Truncate(time.Second)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if res := s.get(path + "ark:12345"); !strings.Contains(res.body, `"revoked":{"revoked_at":`) {
		t.Errorf("%s", res.body)
	}
}

// N2P answers with promises in JSON, with the namespace's where the record makes none.
func TestPromisesOverHTTP(t *testing.T) {
	s := newSite(t)
	s.space("urn:example", func(ns *stele.Namespace) {
		ns.Persistence = stele.Persistence{Level: stele.Permanent, Statement: "As long as we are."}
	})
	s.to("urn:example:a", "https://example.org/a")
	s.to("urn:other:a", "https://example.org/a")
	if _, err := s.registry.Register(s.admin, &stele.Record{ID: s.id("urn:example:own"), Persistence: stele.Persistence{Level: stele.Dynamic, Until: "2040-01-01"}}); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]map[string]string{
		"/uri-res/N2P?urn:example:a":   {"id": "urn:example:a", "level": "permanent", "statement": "As long as we are.", "by": "namespace urn:example"},
		"/uri-res/N2P?urn:example:own": {"id": "urn:example:own", "level": "dynamic", "until": "2040-01-01", "by": "record"},
		"/urn:example:own?+s=N2P":      {"id": "urn:example:own", "level": "dynamic", "until": "2040-01-01", "by": "record"},
		"/uri-res/N2P?urn:other:a":     {"id": "urn:other:a"},
	} {
		res := s.get(target, "Accept", "application/json")
		var got map[string]string
		if err := json.Unmarshal([]byte(res.body), &got); res.StatusCode != http.StatusOK || err != nil || got["words"] == "" {
			t.Errorf("%s: %d %s: %v", target, res.StatusCode, res.body, err)
		}
		delete(got, "words")
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", target, got, want)
		}
		if res := s.get(target, "Accept", "text/plain"); res.StatusCode != http.StatusOK || !strings.Contains(res.body, "erc-support:") {
			t.Errorf("%s as text: %d %s", target, res.StatusCode, res.body)
		}
	}
}
