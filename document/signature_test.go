package document

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

func TestSignaturesDocument(t *testing.T) {
	const record = `{"id":"ark:12345/x5","signatures":[{"sha256":"ab00000000000000000000000000000000000000000000000000000000000001",` +
		`"size":5,"type":"text/html","date":"2026-11-15T12:00:00Z","key":"` + recordtest.SomeKey + `","jws":"eyJ9..c2ln"}]}`
	const namespace = `{"scheme":"ark","prefix":"ark:12345/x5","keys":[{"id":"` + recordtest.SomeKey + `","algorithm":"ED25519","public":"MAE=",` +
		`"created":"2026-11-15T12:00:00Z","note":"in the safe"}]}`
	r, err := DecodeRecord(recordtest.Spellers(t), []byte(record))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]stele.Signature{recordtest.SomeSignature()}, r.Signatures); diff != "" {
		t.Error(diff)
	}
	if back := string(AppendRecord(nil, r)); back != record {
		t.Errorf("%s\nwant\n%s", back, record)
	}
	n, err := DecodeNamespace(recordtest.Spellers(t), []byte(namespace))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]stele.SigningKey{recordtest.SomeSigningKey()}, n.Keys); diff != "" {
		t.Error(diff)
	}
	if back := string(AppendNamespace(nil, n)); back != namespace {
		t.Errorf("%s\nwant\n%s", back, namespace)
	}
}

func TestDecodeSignaturesProblems(t *testing.T) {
	s := recordtest.Spellers(t)
	for list, want := range map[string]string{
		`null`:                "signatures: should be a list",
		`["x"]`:               "signatures[0]: should be an object, and is a string",
		`[{"sha256":"AB"}]`:   `signatures[0].sha256: "AB" is not a SHA-256; write 64 hexadecimal digits`,
		`[{"sha256":5}]`:      "signatures[0].sha256: should be a string, and is a number",
		`[{"size":-1}]`:       "signatures[0].size: should be a whole number",
		`[{"date":"today"}]`:  "signatures[0].date: ",
		`[{"algorithm":"x"}]`: "signatures[0].algorithm: there is no such field; there are sha256, size, type, date, key, jws",
		`[{"sha256":"` + strings.Repeat("0", 65) + `"}]`: "signatures[0].sha256: ",
		`[{"sha256":"` + strings.Repeat("g", 64) + `"}]`: "signatures[0].sha256: ",
	} {
		_, err := DecodeRecord(s, []byte(`{"id":"ark:12345/x5","signatures":`+list+`}`))
		recordtest.CheckProblem(t, list, err, want)
	}
	_, err := DecodeNamespace(s, []byte(`{"scheme":"ark","keys":[{"private":"x"}]}`))
	recordtest.CheckProblem(t, "a private key", err, "keys[0].private: there is no such field; there are id, algorithm, public, created, expires, revoked, note")
}
