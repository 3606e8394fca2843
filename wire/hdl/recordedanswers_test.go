package hdl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

// TestRecordedAnswers verifies every answer to a challenge that was recorded, with the keys of the records: the server
// accepted all but those whose titles say that the key is wrong.
func TestRecordedAnswers(t *testing.T) {
	_, keys := recordings(t)
	byIdentity := map[string]*hdl.PublicKey{
		"0:0.NA/20.500.99999":   publicKey(t, "hs_pubkey_rsa"),
		"300:0.NA/20.500.99999": publicKey(t, "hs_pubkey_rsa"),
		"301:0.NA/20.500.99999": publicKey(t, "hs_pubkey_dsa"),
	}
	type challenge struct {
		nonce  []byte
		digest hdl.Digest
	}
	challenges := make(map[string]challenge) // by file and session
	byKey, bySecret, wrong := 0, 0, 0
	for _, rec := range whole(t) {
		if !strings.HasPrefix(rec.file, "wire-") {
			continue
		}
		m, err := hdl.Parse(rec.octets)
		if err != nil {
			continue
		}
		session := fmt.Sprintf("%s %d", rec.file, m.Envelope.Session)
		if m.Sealed != nil {
			if err := m.Open(hdl.AES, keys[session]); err != nil {
				t.Fatal(err)
			}
		}
		if m.Header.Response == hdl.Challenged {
			nonce, digest, err := hdl.ChallengeOf(&m)
			if err != nil || len(nonce) != 16 {
				t.Errorf("%s:%d: %v", rec.file, rec.line, err)
			}
			challenges[session] = challenge{nonce, digest}
		}
		if m.Header.Operation != hdl.AnswerChallenge {
			continue
		}
		var q hdl.AnswerRequest
		if err := q.Decode(m.Body); err != nil {
			t.Fatal(err)
		}
		asked := challenges[session]
		good := !strings.Contains(rec.title, "wrong")
		switch identity := fmt.Sprintf("%d:%s", q.Identity.Index, q.Identity.Handle); {
		case string(q.Type) == hdl.TypeSecretKey:
			err = hdl.VerifySecretAnswer(m.Envelope.Version, q.Answer, []byte("s3cret pass"), asked.nonce, asked.digest.Sum)
			bySecret++
		case byIdentity[identity] != nil:
			err = hdl.VerifyKeyAnswer(byIdentity[identity], q.Answer, asked.nonce, asked.digest.Sum)
			byKey++
		default:
			continue // an identity without a key
		}
		if (err == nil) != good {
			t.Errorf("%s:%d (%s): %v", rec.file, rec.line, rec.title, err)
		}
		if !good {
			wrong++
		}
	}
	t.Logf("%d answers by keys, %d by secrets, %d of them wrong", byKey, bySecret, wrong)
	if byKey < 20 || bySecret < 4 || wrong < 2 {
		t.Errorf("%d answers by keys, %d by secrets, %d wrong: the recordings have more", byKey, bySecret, wrong)
	}
}
