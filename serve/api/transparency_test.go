package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/transparency"
)

// proves asks for a proof, and returns its text and what it proves to a reader who has the public keys of the log.
func (s *site) proves(t *testing.T, who, target string) (string, *transparency.Proved) {
	t.Helper()
	a := s.ask(who, "GET", Root+"/proof/"+target, "").want(t, 200)
	if got := a.get("Content-Type"); got != proofType {
		t.Errorf("the proof has the type %q", got)
	}
	var p transparency.Proof
	if err := p.UnmarshalText([]byte(a.body)); err != nil {
		t.Fatal(err)
	}
	keys, err := s.whole.LogPublicKeys(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := p.Check(keys.Public())
	if err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	return a.body, shown
}

// The document in a proof is what getRecord shows to the same caller, as long as no later version withholds anything.
func TestProof(t *testing.T) {
	s := newSite(t)
	s.signLog()
	for _, target := range []string{"ark:12345/x1", "urn:example:x1", "ark:12345/gone", "ark:12345/gone?version=1"} {
		_, shown := s.proves(t, "", target)
		rec, err := document.DecodeStored(s.schemes, []byte(s.ask("", "GET", records+target, "").want(t, 200).body))
		if err != nil {
			t.Fatal(err)
		}
		want, err := document.CanonicalRecord(rec)
		if err != nil {
			t.Fatal(err)
		}
		if string(shown.Document) != string(want) || shown.Name != rec.ID.String() || shown.Leaf.Version != rec.Version || shown.Full {
			t.Errorf("%s: proved %s version %d\n%s\nand getRecord shows\n%s", target, shown.Name, shown.Leaf.Version, shown.Document, want)
		}
	}
	// The full document is for those with a role.
	if _, shown := s.proves(t, theReader, "ark:12345/x1?full=true"); !shown.Full || !strings.Contains(string(shown.Document), `"by":`) {
		t.Errorf("a reader gets %s", shown.Document)
	}
	for _, who := range []string{"", theStranger, theOutsider} {
		s.ask(who, "GET", Root+"/proof/ark:12345/x1?full=true", "").want(t, 403)
	}
	s.ask("", "GET", Root+"/proof/ark:12345/x1?version=9", "").want(t, 404)
	s.ask("", "GET", Root+"/proof/ark:12345/x1?at=2001-01-01T00:00:00Z", "").want(t, 404)
	s.ask("", "GET", Root+"/proof/ark:12345/x1?version=1&at=2001-01-01T00:00:00Z", "").want(t, 400)
	// A version that no checkpoint has is there a moment later.
	s.add(`{"id":"ark:12345/late","url":"https://example.org/late"}`)
	if a := s.ask("", "GET", Root+"/proof/ark:12345/late", "").want(t, 503); a.get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	s.signLog()
	s.proves(t, "", "ark:12345/late")
}

// A reader who may not see a record can't tell by proofs that it is there.
func TestProofOfHidden(t *testing.T) {
	s := newSite(t)
	s.signLog()
	for _, id := range []string{"ark:12345/hidden", "ark:12345/secret"} {
		for _, who := range []string{"", theStranger, theOutsider} {
			for _, query := range []string{"", "?version=1", "?version=7", "?full=true"} {
				hidden := s.ask(who, "GET", Root+"/proof/"+id+query, "").want(t, 404).problem(t)
				unknown := s.ask(who, "GET", Root+"/proof/ark:12345/none"+query, "").want(t, 404).problem(t)
				if strings.ReplaceAll(hidden.Detail, id, "ark:12345/none") != unknown.Detail || hidden.Code != unknown.Code {
					t.Errorf("%q %s: %+v, and of a name that is not there %+v", who, id, hidden, unknown)
				}
			}
		}
		text, shown := s.proves(t, theReader, id)
		if shown.Document != nil || strings.Contains(text, "https://") {
			t.Errorf("the proof for the public of %s has\n%s", id, text)
		}
		if _, shown := s.proves(t, theReader, id+"?full=true"); !strings.Contains(string(shown.Document), "https://example.org/") {
			t.Errorf("the full proof of %s has %s", id, shown.Document)
		}
	}
	// Once it is public, what it said before is still not.
	s.ask(theEditor, "PATCH", records+"ark:12345/hidden", `{"state":"active","targets":[{"service":"N2L","url":"https://example.org/open"}]}`).want(t, 200)
	s.ask(theEditor, "PATCH", records+"ark:12345/secret", `{"readers":null,"targets":[{"service":"N2L","url":"https://example.org/open"}]}`).want(t, 200)
	s.signLog()
	for _, id := range []string{"ark:12345/hidden", "ark:12345/secret"} {
		if text, shown := s.proves(t, "", id+"?version=1"); shown.Document != nil || strings.Contains(text, "https://") {
			t.Errorf("version 1 of %s: %s", id, text)
		}
		if _, shown := s.proves(t, "", id); !strings.Contains(string(shown.Document), "https://example.org/open") {
			t.Errorf("version 2 of %s: %s", id, shown.Document)
		}
	}
}

// No octet of a private handle value is in a proof for the public.
func TestProofOfPrivateValues(t *testing.T) {
	s := newSite(t)
	s.signLog()
	const secret, public = "c2VzYW1lIG9wZW4=", "aHR0cHM6Ly9leGFtcGxlLm9yZw=="
	s.add(`{"id":"ark:12345/values","values":[{"index":5,"type":"EMAIL","data":"` + secret + `","permissions":["admin-read"]},{"index":6,"type":"URL","data":"` + public + `","permissions":["public-read"]}]}`)
	s.signLog()
	text, shown := s.proves(t, "", "ark:12345/values")
	if strings.Contains(text, secret) || strings.Contains(text, "sesame") || strings.Contains(text, "EMAIL") || !strings.Contains(string(shown.Document), `"type":"URL"`) {
		t.Errorf("the proof for the public has\n%s", text)
	}
	if text, _ := s.proves(t, theReader, "ark:12345/values?full=true"); !strings.Contains(text, secret) {
		t.Errorf("the full proof has\n%s", text)
	}
}

// A disavowed version is proved as an entry to those who may not read it, and a redacted one to all.
func TestProofOfWithheld(t *testing.T) {
	s := newSite(t)
	s.signLog()
	const wrong = "https://evil.example.org/"
	s.ask(theEditor, "PATCH", records+"ark:12345/x1", `{"targets":[{"service":"N2L","url":"`+wrong+`"}]}`).want(t, 200)
	s.ask(theEditor, "PATCH", records+"ark:12345/x1", `{"targets":[{"service":"N2L","url":"https://example.org/1"}]}`).want(t, 200)
	s.ask(theOwner, "POST", Root+"/disavow/ark:12345/x1", `{"first":2,"reason":"The account of an editor was stolen"}`).want(t, 200)
	s.signLog()
	for _, who := range []string{"", theReader, theOutsider} {
		text, shown := s.proves(t, who, "ark:12345/x1?version=2")
		if shown.Document != nil || strings.Contains(text, wrong) || shown.Leaf.Version != 2 {
			t.Errorf("%q gets the disavowed version\n%s", who, text)
		}
	}
	if _, shown := s.proves(t, theEditor, "ark:12345/x1?version=2"); !strings.Contains(string(shown.Document), wrong) {
		t.Errorf("an editor gets %s", shown.Document)
	}

	// The hook of the redaction runs as the server, and the caller is an administrator with a token.
	kept, _ := s.proves(t, "", "ark:12345/x1?version=1")
	s.ask(theAdmin, "POST", Root+"/redact/ark:12345/x1", `{"reason":"Removed by order of a court"}`).want(t, 200)
	s.signLog()
	for _, who := range []string{"", theReader, theOwner, theAdmin} {
		for _, query := range []string{"?version=1", "?version=2", "?version=4", "?version=1&full=true"} {
			text, shown := s.proves(t, who, "ark:12345/x1"+query)
			if shown.Document != nil || strings.Contains(text, "A thing") || strings.Contains(text, "https://") {
				t.Errorf("%q gets of the redacted record\n%s", who, text)
			}
		}
	}
	if _, shown := s.proves(t, "", "ark:12345/x1"); !strings.Contains(string(shown.Document), "order of a court") {
		t.Errorf("the version that redacts is %s", shown.Document)
	}
	if !strings.Contains(kept, "A thing") {
		t.Errorf("the proof from before has\n%s", kept)
	}
	lines := strings.Split(strings.TrimSpace(s.ask(theAdmin, "POST", Root+"/verify", "").want(t, 200).body), "\n")
	var last apijson.Verified
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || !last.Done || *last.Wrong != 0 {
		t.Errorf("verify says %q", lines)
	}
}

// Old and new key sign together for an overlap; a reader with either checks proofs of that time.
func TestLogKeys(t *testing.T) {
	s := newSite(t)
	s.signLog()
	var before, rolled, retired apijson.Log
	s.ask("", "GET", Root+"/log", "").want(t, 200).read(t, &before)
	if before.Origin != "id.example.org/.log" || before.Behind != 0 || before.Size == 0 || before.Size != before.Changes || before.Checkpoint.Size != before.Size || len(before.Keys) != 1 || len(before.Eras) != 1 {
		t.Errorf("the log is %+v", before)
	}
	for _, bad := range []string{`{"do":"lose"}`, `{}`, `{"do":"roll","overlap":999999999}`} {
		s.ask(theAdmin, "POST", Root+"/log", bad).want(t, 400)
	}
	s.ask(theAdmin, "POST", Root+"/log", `{"do":"roll","overlap":86400}`).want(t, 200).read(t, &rolled)
	if len(rolled.Keys) != 2 || rolled.Keys[0].Retired == nil || rolled.Keys[1].Retired != nil {
		t.Fatalf("after the roll the keys are %+v", rolled.Keys)
	}
	accepts := func(key string) bool {
		t.Helper()
		k, err := transparency.ParsePublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		var p transparency.Proof
		if err := p.UnmarshalText([]byte(s.ask("", "GET", Root+"/proof/ark:12345/x1", "").want(t, 200).body)); err != nil {
			t.Fatal(err)
		}
		_, err = p.Check([]transparency.PublicKey{k})
		return err == nil
	}
	s.signLog()
	if !accepts(rolled.Keys[0].Key) || !accepts(rolled.Keys[1].Key) {
		t.Error("the checkpoint of the overlap does not have both signatures")
	}
	s.ask(theAdmin, "POST", Root+"/log", `{"do":"retire"}`).want(t, 200).read(t, &retired)
	s.add(`{"id":"ark:12345/new","url":"https://example.org/new"}`)
	s.signLog()
	if accepts(retired.Keys[0].Key) || !accepts(retired.Keys[1].Key) || len(retired.Keys) != 2 {
		t.Error("after the overlap not the new key alone signs")
	}
}
