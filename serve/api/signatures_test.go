package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/proof"
)

// TestSignatures adds a key to a namespace and a signature to a record, over the API.
func TestSignatures(t *testing.T) {
	s := newSite(t)
	key, err := proof.Generate(stele.KeyED25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k, err := proof.PublicKey(key, s.now())
	if err != nil {
		t.Fatal(err)
	}
	const ns = Root + "/namespaces/ark:12345"
	ring := strings.TrimPrefix(string(document.AppendNamespace(nil, &stele.Namespace{Scheme: "ark", Keys: []stele.SigningKey{k}})), `{"scheme":"ark",`)
	s.ask(theEditor, "PATCH", ns, "{"+ring).want(t, 403)
	a := s.ask(theOwner, "PATCH", ns, "{"+ring).want(t, 200)
	if !strings.Contains(a.body, k.ID) {
		t.Errorf("%s", a.body)
	}
	if a := s.ask(theOwner, "PATCH", ns, `{"keys":null}`).want(t, 400); !strings.Contains(a.body, "a key is never removed") {
		t.Errorf("%s", a.body)
	}
	s.ask(theOwner, "PATCH", ns, `{"keys":[{"id":"`+k.ID+`","algorithm":"RSA","public":"MAE=","created":"2026-01-01T00:00:00Z"}]}`).want(t, 400)

	s.ask(theEditor, "PUT", records+"ark:12345/signed", `{"url":"https://example.org/new"}`, "If-None-Match", "*").want(t, 201)
	made, err := proof.Sign(key, s.id("ark:12345/signed"), stele.Signature{SHA256: sha256.Sum256([]byte("hello")), Size: 5, Date: s.now()})
	if err != nil {
		t.Fatal(err)
	}
	patch := func(list ...stele.Signature) string {
		var texts []string
		for _, one := range list {
			texts = append(texts, string(document.AppendSignature(nil, &one)))
		}
		return fmt.Sprintf(`{"signatures":[%s]}`, strings.Join(texts, ","))
	}
	forged := made
	forged.Size = 6
	if a := s.ask(theEditor, "PATCH", records+"ark:12345/signed", patch(forged)).want(t, 400); !strings.Contains(a.body, "the signature does not fit") {
		t.Errorf("%s", a.body)
	}
	s.ask(theEditor, "PATCH", records+"ark:12345/other", patch(made)).want(t, 404)
	s.ask(theReader, "PATCH", records+"ark:12345/signed", patch(made)).want(t, 403)
	s.ask(theEditor, "PATCH", records+"ark:12345/signed", patch(made)).want(t, 200)
	s.ask(theEditor, "PATCH", records+"ark:12345/signed", `{"url":"https://example.org/moved","targets":null}`).want(t, 200)

	// The public sees signatures, and only users with a role see the namespace's settings.
	var rec struct{ Signatures []json.RawMessage }
	s.ask("", "GET", records+"ark:12345/signed", "").want(t, 200).read(t, &rec)
	if len(rec.Signatures) != 1 || string(rec.Signatures[0]) != string(document.AppendSignature(nil, &made)) {
		t.Errorf("%s", rec.Signatures)
	}
	s.ask("", "GET", ns, "").want(t, 401)
	// They are removed where the request says so, and the history has them.
	s.ask(theEditor, "PATCH", records+"ark:12345/signed", `{"signatures":null}`).want(t, 200)
	if a := s.ask("", "GET", records+"ark:12345/signed?version=2", "").want(t, 200); !strings.Contains(a.body, made.JWS) {
		t.Errorf("%s", a.body)
	}
}
