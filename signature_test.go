package stele

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var signedAt = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

const someKey = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"

func someSignature() Signature {
	s := Signature{Size: 5, Type: "text/html", Date: signedAt, Key: someKey, JWS: "eyJ9..c2ln"}
	s.SHA256[0], s.SHA256[31] = 0xab, 1
	return s
}

func someSigningKey() SigningKey {
	return SigningKey{ID: someKey, Algorithm: KeyED25519, Public: []byte{0x30, 1}, Created: signedAt, Note: "in the safe"}
}

// What signatures add to the binary form of rich, and keys to that of richNamespace,
// is for ever, as those are.
const (
	signaturesBinary = "01ab0000000000000000000000000000000000000000000000000000000000000105" +
		"09746578742f68746d6c0180fbccaf0d002b6b50724b5f716d785657615956413977774246364975" +
		"6f337656" + "7a7a37547848435477584279677253346b" + "0a65794a392e2e63326c6e"
	keysBinary = "0000000000000000" + "00" + "0000" + "012b6b50724b5f716d7856576159564139777742463649756f3376567a7a37547848435477584279677253346b" +
		"0745443235353139" + "023001" + "0180fbccaf0d00" + "00" + "00" + "0b696e207468652073616665"
)

func TestSignaturesBinary(t *testing.T) {
	r := rich()
	r.Signatures = []Signature{someSignature()}
	n := richNamespace()
	n.Keys = []SigningKey{someSigningKey()}
	recordBytes, err := r.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	namespaceBytes, err := n.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(recordBytes); got != richBinary+signaturesBinary {
		t.Errorf("the binary form of records has changed:\n%s\nwant\n%s", strings.TrimPrefix(got, richBinary), signaturesBinary)
	}
	if got := hex.EncodeToString(namespaceBytes); got != richNamespaceBinary+keysBinary {
		t.Errorf("the binary form of namespaces has changed:\n%s\nwant\n%s", strings.TrimPrefix(got, richNamespaceBinary), keysBinary)
	}
	var record Record
	if err := record.UnmarshalBinary(recordBytes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &record, same); diff != "" {
		t.Error(diff)
	}
	var namespace Namespace
	if err := namespace.UnmarshalBinary(namespaceBytes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(n, &namespace, same); diff != "" {
		t.Error(diff)
	}
	// What was kept before there were signatures is the beginning of it, and a record by
	// itself. No other beginning is.
	for end := range recordBytes {
		err := new(Record).UnmarshalBinary(recordBytes[:end])
		if before := end == len(richBinary)/2; !before && KindOf(err) != Internal || before && err != nil {
			t.Errorf("the first %d of %d bytes of a record: %v", end, len(recordBytes), err)
		}
	}
	for end := range namespaceBytes {
		err := new(Namespace).UnmarshalBinary(namespaceBytes[:end])
		if before := end == len(richNamespaceBinary)/2; !before && KindOf(err) != Internal || before && err != nil {
			t.Errorf("the first %d of %d bytes of a namespace: %v", end, len(namespaceBytes), err)
		}
	}
	plain := recordBytes[:len(richBinary)/2]
	for what, odd := range map[string][]byte{
		"a byte more":         append(bytes.Clone(recordBytes), 0),
		"no signatures":       append(bytes.Clone(plain), 0),
		"more than are there": append(bytes.Clone(plain), 200),
	} {
		if err := new(Record).UnmarshalBinary(odd); KindOf(err) != Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
	empty := append(bytes.Clone(namespaceBytes[:len(richNamespaceBinary)/2]), make([]byte, 8+1+2+1)...)
	if err := new(Namespace).UnmarshalBinary(empty); KindOf(err) != Internal {
		t.Errorf("a list of no keys: %v", err)
	}
}

func TestSignaturesDocument(t *testing.T) {
	const record = `{"id":"ark:12345/x5","signatures":[{"sha256":"ab00000000000000000000000000000000000000000000000000000000000001",` +
		`"size":5,"type":"text/html","date":"2026-11-15T12:00:00Z","key":"` + someKey + `","jws":"eyJ9..c2ln"}]}`
	const namespace = `{"scheme":"ark","prefix":"ark:12345/x5","keys":[{"id":"` + someKey + `","algorithm":"ED25519","public":"MAE=",` +
		`"created":"2026-11-15T12:00:00Z","note":"in the safe"}]}`
	r, err := spellers(t).DecodeRecord([]byte(record))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Signature{someSignature()}, r.Signatures); diff != "" {
		t.Error(diff)
	}
	if back := string(r.AppendJSON(nil)); back != record {
		t.Errorf("%s\nwant\n%s", back, record)
	}
	n, err := spellers(t).DecodeNamespace([]byte(namespace))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]SigningKey{someSigningKey()}, n.Keys); diff != "" {
		t.Error(diff)
	}
	if back := string(n.AppendJSON(nil)); back != namespace {
		t.Errorf("%s\nwant\n%s", back, namespace)
	}
}

func TestValidateSignatures(t *testing.T) {
	change := func(f func(*Signature)) []Signature {
		s := someSignature()
		f(&s)
		return []Signature{s}
	}
	many := make([]Signature, MaxSignatures+1)
	for i := range many {
		many[i] = someSignature()
		many[i].JWS += fmt.Sprint(i)
	}
	for name, c := range map[string]struct {
		list []Signature
		want string // in the first problem; "" if it is good
	}{
		"none":                {nil, ""},
		"one":                 {[]Signature{someSignature()}, ""},
		"as many as may be":   {many[:MaxSignatures], ""},
		"too many":            {many, "signatures: has 17 items; 16 are the most"},
		"of no bytes":         {change(func(s *Signature) { s.Size = 0 }), ""},
		"of no type":          {change(func(s *Signature) { s.Type = "" }), ""},
		"no digest":           {change(func(s *Signature) { s.SHA256 = [32]byte{} }), "signatures[0].sha256: is missing"},
		"too large":           {change(func(s *Signature) { s.Size = MaxSignedSize + 1 }), "signatures[0].size: "},
		"an odd type":         {change(func(s *Signature) { s.Type = "Text/HTML" }), "signatures[0].type: "},
		"no date":             {change(func(s *Signature) { s.Date = time.Time{} }), "signatures[0].date: is missing"},
		"half a second":       {change(func(s *Signature) { s.Date = s.Date.Add(time.Second / 2) }), "signatures[0].date: "},
		"before 1970":         {change(func(s *Signature) { s.Date = time.Unix(-1, 0) }), "signatures[0].date: "},
		"after 9999":          {change(func(s *Signature) { s.Date = s.Date.AddDate(9000, 0, 0) }), "signatures[0].date: "},
		"no key":              {change(func(s *Signature) { s.Key = "" }), "signatures[0].key: "},
		"a key with a space":  {change(func(s *Signature) { s.Key = " " + someKey[1:] }), "signatures[0].key: "},
		"no JWS":              {change(func(s *Signature) { s.JWS = "" }), "signatures[0].jws: "},
		"no signature":        {change(func(s *Signature) { s.JWS = "eyJ9.." }), "signatures[0].jws: "},
		"not detached":        {change(func(s *Signature) { s.JWS = "eyJ9.e30.c2ln" }), "signatures[0].jws: "},
		"in four parts":       {change(func(s *Signature) { s.JWS = "eyJ9..c2ln.c2ln" }), "signatures[0].jws: "},
		"an end of line":      {change(func(s *Signature) { s.JWS = "eyJ9..c2\nln" }), "signatures[0].jws: "},
		"too long":            {change(func(s *Signature) { s.JWS += strings.Repeat("x", 1024) }), "signatures[0].jws: "},
		"twice the same":      {[]Signature{someSignature(), someSignature()}, "signatures[1].jws: is the same as signatures[0].jws"},
		"another of that key": {append(change(func(s *Signature) { s.JWS += "x" }), someSignature()), ""},
	} {
		r := &Record{ID: ID{"ark", "ark:12345/x5"}, State: Active, Signatures: c.list}
		checkProblem(t, name, r.Validate(), c.want)
	}
}

func TestValidateKeys(t *testing.T) {
	change := func(f func(*SigningKey)) []SigningKey {
		k := someSigningKey()
		f(&k)
		return []SigningKey{k}
	}
	many := make([]SigningKey, MaxKeys+1)
	for i := range many {
		many[i] = someSigningKey()
		many[i].ID = fmt.Sprintf("%02d%s", i, someKey[2:])
	}
	for name, c := range map[string]struct {
		list []SigningKey
		want string
	}{
		"one":               {[]SigningKey{someSigningKey()}, ""},
		"as many as may be": {many[:MaxKeys], ""},
		"too many":          {many, "keys: has 17 items; 16 are the most"},
		"retired":           {change(func(k *SigningKey) { k.Expires, k.Revoked = signedAt, signedAt }), ""},
		"no ID":             {change(func(k *SigningKey) { k.ID = "" }), "keys[0].id: "},
		"DSA":               {change(func(k *SigningKey) { k.Algorithm = "DSA" }), `keys[0].algorithm: "DSA" is no algorithm`},
		"in small letters":  {change(func(k *SigningKey) { k.Algorithm = "rsa" }), "keys[0].algorithm: "},
		"no bytes":          {change(func(k *SigningKey) { k.Public = nil }), "keys[0].public: "},
		"too many bytes":    {change(func(k *SigningKey) { k.Public = make([]byte, 1025) }), "keys[0].public: "},
		"never made":        {change(func(k *SigningKey) { k.Created = time.Time{} }), "keys[0].created: "},
		"ends before":       {change(func(k *SigningKey) { k.Expires = signedAt.Add(-time.Second) }), "keys[0].expires: "},
		"a long note":       {change(func(k *SigningKey) { k.Note = strings.Repeat("x", 256) }), "keys[0].note: "},
		"twice the same":    {[]SigningKey{someSigningKey(), someSigningKey()}, "keys[1].id: is the same as keys[0].id"},
	} {
		n := &Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Keys: c.list}
		checkProblem(t, name, n.Validate(), c.want)
	}
}

// checkProblem fails unless err has want in its first problem, or is nil if there
// should be none.
func checkProblem(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	problems, ok := errors.AsType[Problems](err)
	if !ok || !errors.Is(err, Invalid) || !strings.Contains(problems[0].Error(), want) {
		t.Errorf("%s: %v\nwant %s", name, err, want)
	}
}

func TestDecodeSignaturesProblems(t *testing.T) {
	s := spellers(t)
	for list, want := range map[string]string{
		`null`:                "signatures: should be a list",
		`["x"]`:               "signatures[0]: should be an object, and is a string",
		`[{"sha256":"AB"}]`:   `signatures[0].sha256: "AB" is no SHA-256; write 64 hexadecimal digits`,
		`[{"sha256":5}]`:      "signatures[0].sha256: should be a string, and is a number",
		`[{"size":-1}]`:       "signatures[0].size: should be a whole number",
		`[{"date":"today"}]`:  "signatures[0].date: ",
		`[{"algorithm":"x"}]`: "signatures[0].algorithm: there is no such field; there are sha256, size, type, date, key, jws",
		`[{"sha256":"` + strings.Repeat("0", 65) + `"}]`: "signatures[0].sha256: ",
		`[{"sha256":"` + strings.Repeat("g", 64) + `"}]`: "signatures[0].sha256: ",
	} {
		_, err := s.DecodeRecord([]byte(`{"id":"ark:12345/x5","signatures":` + list + `}`))
		checkProblem(t, list, err, want)
	}
	_, err := s.DecodeNamespace([]byte(`{"scheme":"ark","keys":[{"private":"x"}]}`))
	checkProblem(t, "a private key", err, "keys[0].private: there is no such field; there are id, algorithm, public, created, expires, revoked, note")
}
