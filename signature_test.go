package stele_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/recordtest"
)

func TestValidateSignatures(t *testing.T) {
	change := func(f func(*stele.Signature)) []stele.Signature {
		s := recordtest.SomeSignature()
		f(&s)
		return []stele.Signature{s}
	}
	many := make([]stele.Signature, stele.MaxSignatures+1)
	for i := range many {
		many[i] = recordtest.SomeSignature()
		many[i].JWS += fmt.Sprint(i)
	}
	for name, c := range map[string]struct {
		list []stele.Signature
		want string // in the first problem; "" if it is good
	}{
		"none":                {nil, ""},
		"one":                 {[]stele.Signature{recordtest.SomeSignature()}, ""},
		"as many as may be":   {many[:stele.MaxSignatures], ""},
		"too many":            {many, "signatures: has 17 items; 16 are the most"},
		"of no bytes":         {change(func(s *stele.Signature) { s.Size = 0 }), ""},
		"of no type":          {change(func(s *stele.Signature) { s.Type = "" }), ""},
		"no digest":           {change(func(s *stele.Signature) { s.SHA256 = [32]byte{} }), "signatures[0].sha256: is missing"},
		"too large":           {change(func(s *stele.Signature) { s.Size = stele.MaxSignedSize + 1 }), "signatures[0].size: "},
		"an odd type":         {change(func(s *stele.Signature) { s.Type = "Text/HTML" }), "signatures[0].type: "},
		"no date":             {change(func(s *stele.Signature) { s.Date = time.Time{} }), "signatures[0].date: is missing"},
		"half a second":       {change(func(s *stele.Signature) { s.Date = s.Date.Add(time.Second / 2) }), "signatures[0].date: "},
		"before 1970":         {change(func(s *stele.Signature) { s.Date = time.Unix(-1, 0) }), "signatures[0].date: "},
		"after 9999":          {change(func(s *stele.Signature) { s.Date = s.Date.AddDate(9000, 0, 0) }), "signatures[0].date: "},
		"no key":              {change(func(s *stele.Signature) { s.Key = "" }), "signatures[0].key: "},
		"a key with a space":  {change(func(s *stele.Signature) { s.Key = " " + recordtest.SomeKey[1:] }), "signatures[0].key: "},
		"no JWS":              {change(func(s *stele.Signature) { s.JWS = "" }), "signatures[0].jws: "},
		"no signature":        {change(func(s *stele.Signature) { s.JWS = "eyJ9.." }), "signatures[0].jws: "},
		"not detached":        {change(func(s *stele.Signature) { s.JWS = "eyJ9.e30.c2ln" }), "signatures[0].jws: "},
		"in four parts":       {change(func(s *stele.Signature) { s.JWS = "eyJ9..c2ln.c2ln" }), "signatures[0].jws: "},
		"an end of line":      {change(func(s *stele.Signature) { s.JWS = "eyJ9..c2\nln" }), "signatures[0].jws: "},
		"too long":            {change(func(s *stele.Signature) { s.JWS += strings.Repeat("x", 1024) }), "signatures[0].jws: "},
		"twice the same":      {[]stele.Signature{recordtest.SomeSignature(), recordtest.SomeSignature()}, "signatures[1].jws: is the same as signatures[0].jws"},
		"another of that key": {append(change(func(s *stele.Signature) { s.JWS += "x" }), recordtest.SomeSignature()), ""},
	} {
		r := &stele.Record{ID: stele.StoredID("ark", "ark:12345/x5"), State: stele.Active, Signatures: c.list}
		recordtest.CheckProblem(t, name, r.Validate(), c.want)
	}
}

func TestValidateKeys(t *testing.T) {
	change := func(f func(*stele.SigningKey)) []stele.SigningKey {
		k := recordtest.SomeSigningKey()
		f(&k)
		return []stele.SigningKey{k}
	}
	many := make([]stele.SigningKey, stele.MaxKeys+1)
	for i := range many {
		many[i] = recordtest.SomeSigningKey()
		many[i].ID = fmt.Sprintf("%02d%s", i, recordtest.SomeKey[2:])
	}
	for name, c := range map[string]struct {
		list []stele.SigningKey
		want string
	}{
		"one":               {[]stele.SigningKey{recordtest.SomeSigningKey()}, ""},
		"as many as may be": {many[:stele.MaxKeys], ""},
		"too many":          {many, "keys: has 17 items; 16 are the most"},
		"retired":           {change(func(k *stele.SigningKey) { k.Expires, k.Revoked = recordtest.SignedAt, recordtest.SignedAt }), ""},
		"no ID":             {change(func(k *stele.SigningKey) { k.ID = "" }), "keys[0].id: "},
		"DSA":               {change(func(k *stele.SigningKey) { k.Algorithm = "DSA" }), `keys[0].algorithm: "DSA" is not an algorithm`},
		"in small letters":  {change(func(k *stele.SigningKey) { k.Algorithm = "rsa" }), "keys[0].algorithm: "},
		"no bytes":          {change(func(k *stele.SigningKey) { k.Public = nil }), "keys[0].public: "},
		"too many bytes":    {change(func(k *stele.SigningKey) { k.Public = make([]byte, 1025) }), "keys[0].public: "},
		"never made":        {change(func(k *stele.SigningKey) { k.Created = time.Time{} }), "keys[0].created: "},
		"ends before":       {change(func(k *stele.SigningKey) { k.Expires = recordtest.SignedAt.Add(-time.Second) }), "keys[0].expires: "},
		"a long note":       {change(func(k *stele.SigningKey) { k.Note = strings.Repeat("x", 256) }), "keys[0].note: "},
		"twice the same":    {[]stele.SigningKey{recordtest.SomeSigningKey(), recordtest.SomeSigningKey()}, "keys[1].id: is the same as keys[0].id"},
	} {
		n := &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Keys: c.list}
		recordtest.CheckProblem(t, name, n.Validate(), c.want)
	}
}
