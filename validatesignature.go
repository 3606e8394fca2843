package stele

import (
	"strings"
	"time"
)

// Limits of signatures and their keys.
const (
	MaxSignatures = 16        // of a record
	MaxKeys       = 16        // of a namespace
	MaxSignedSize = 1<<53 - 1 // bytes of what is signed: what every reader of JSON can count (RFC 8785)
	maxJWS        = 1024      // bytes; one of RSA with 4096 bits has some 800
	maxPublic     = 1024      // bytes of a public key; one of RSA with 4096 bits has 550
	thumbprint    = 43        // bytes of a SHA-256 in base64url
)

// CheckSignatures judges the form of signatures. Whether they are true is package
// proof's to say, which has the keys.
func CheckSignatures(f *Report, list []Signature) {
	if len(list) == 0 || !fits(f, "signatures", len(list), MaxSignatures) {
		return
	}
	for i := range list {
		list[i].check(f, ItemPath("signatures", i))
	}
	twice(f, "signatures", ".jws", list, func(s Signature) string { return s.JWS })
}

func (s *Signature) check(f *Report, path string) {
	if s.SHA256 == [32]byte{} {
		f.Addf(path+".sha256", "signature.digest-missing", "is missing; give the digest in 64 hexadecimal digits")
	}
	if s.Size > MaxSignedSize {
		f.Addf(path+".size", "signature.size-too-large", "{size} bytes are more than can be signed; {most} are the most", s.Size, uint64(MaxSignedSize))
	}
	if s.Type != "" {
		if reason := checkMediaType(s.Type); reason != nil {
			f.Add(path+".type", reason)
		}
	}
	if s.Date.IsZero() {
		f.Addf(path+".date", "signature.date-missing", "is missing; say when it was signed")
	}
	checkSecond(f, path+".date", s.Date)
	checkThumbprint(f, path+".key", s.Key)
	header, signature, ok := strings.Cut(s.JWS, "..")
	if !ok || len(s.JWS) > maxJWS || !isBase64URL(header) || !isBase64URL(signature) {
		f.Addf(path+".jws", "signature.jws-malformed", `"{text}" is not a detached JWS; give header and signature in base64url with two dots between them, {most} bytes at most`, s.JWS, maxJWS)
	}
}

// checkKeys judges the form of keys. Whether one is the key that it says is package
// proof's to say.
func (n *Namespace) checkKeys(f *Report) {
	if !fits(f, "keys", len(n.Keys), MaxKeys) {
		return
	}
	for i := range n.Keys {
		n.Keys[i].check(f, ItemPath("keys", i))
	}
	twice(f, "keys", ".id", n.Keys, func(k SigningKey) string { return k.ID })
}

func (k *SigningKey) check(f *Report, path string) {
	checkThumbprint(f, path+".id", k.ID)
	if k.Algorithm != KeyED25519 && k.Algorithm != KeyECDSA && k.Algorithm != KeyRSA {
		f.Addf(path+".algorithm", "signing-key.algorithm-unknown", `"{algorithm}" is not an algorithm of a signing key; use {ed25519}, {ecdsa} or {rsa}`, k.Algorithm, KeyED25519, KeyECDSA, KeyRSA)
	}
	if len(k.Public) == 0 || len(k.Public) > maxPublic {
		f.Addf(path+".public", "signing-key.public-wrong-size", "has {size} bytes; give the public key (SubjectPublicKeyInfo) in base64, {most} bytes at most", len(k.Public), maxPublic)
	}
	if k.Created.IsZero() {
		f.Addf(path+".created", "signing-key.created-missing", "is missing; say from when on the key signs")
	}
	checkSecond(f, path+".created", k.Created)
	checkSecond(f, path+".expires", k.Expires)
	checkSecond(f, path+".revoked", k.Revoked)
	if !k.Expires.IsZero() && k.Expires.Before(k.Created) {
		f.Addf(path+".expires", "signing-key.expires-before-created", "is before the key was made; give a later time")
	}
	checkName(f, path+".note", k.Note)
}

// checkSecond judges a time that is signed or published: a whole second since 1970,
// so that all forms of it are equal.
func checkSecond(f *Report, path string, t time.Time) {
	if !t.IsZero() && (t.Nanosecond() != 0 || t.Unix() < 0 || t.UTC().Year() > 9999) {
		f.Addf(path, "signing-key.time-not-a-second", `"{time}" is not a whole second from 1970 to 9999; leave fractions out`, t.UTC().Format(time.RFC3339Nano))
	}
}

func checkThumbprint(f *Report, path, id string) {
	if len(id) != thumbprint || !isBase64URL(id) {
		f.Addf(path, "signing-key.thumbprint-malformed", `"{text}" is not a thumbprint of a key; give the {length} characters that stele key list shows`, id, thumbprint)
	}
}

// isBase64URL reports whether s is of the characters of base64url (RFC 4648, 5),
// and not empty.
func isBase64URL(s string) bool {
	for i := range len(s) {
		if !isLetter(s[i]) && !isDigit(s[i]) && s[i] != '-' && s[i] != '_' {
			return false
		}
	}
	return s != ""
}
