// Package proof signs what identifiers stand for, and judges such signatures: N2S of
// the EDDDS, as detached JWS (RFC 7515) over a record's identifier, the SHA-256 and
// size of the bytes, their media type and the date.
//
// It reads and writes keys in PEM, TXT records of a zone and JWKS (RFC 7517). It only
// computes: it never fetches, stores or trusts a key by itself, and never says who owns a
// key. That is what DNSSEC and TLS are for.
package proof

import (
	"crypto"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"

	"github.com/stele-id/stele"
)

// Skew is the allowed difference between clocks: a signature may be dated so much later
// than now, and so much earlier than its key.
const Skew = 5 * time.Minute

// Reasons why a signature is not valid. [Verify] returns one of them inside an Error of
// Kind Invalid, whose text says more.
var (
	ErrNoKey     = stele.Messagef("signature.key-unknown", "no key of the namespace made the signature")
	ErrAlgorithm = stele.Messagef("signature.algorithm-differs", "the signature is of another algorithm than its key")
	ErrSignature = stele.Messagef("signature.wrong", "the signature does not fit")
	ErrExpired   = stele.Messagef("signature.key-expired", "the key had expired when the signature was made")
	ErrNotYet    = stele.Messagef("signature.key-not-yet-valid", "the key was not there yet when the signature was made")
	ErrRevoked   = stele.Messagef("signature.key-revoked", "the key was revoked")
	ErrFuture    = stele.Messagef("signature.in-future", "the signature is dated in the future")
)

// Payload returns what is signed: identifier and statement as JSON in canonical form
// (RFC 8785), so that all programs make the same bytes of it.
func Payload(id stele.ID, s stele.Signature) []byte {
	b := append([]byte(nil), `{"date":"`...)
	b = s.Date.UTC().AppendFormat(b, time.RFC3339)
	b = append(b, `","id":`...)
	b = appendText(b, id.String())
	b = append(b, `,"sha256":"`...)
	b = hex.AppendEncode(b, s.SHA256[:])
	b = append(b, `","size":`...)
	b = strconv.AppendUint(b, s.Size, 10)
	b = append(b, `,"type":`...)
	return append(appendText(b, s.Type), '}')
}

// appendText appends a string as RFC 8785 (3.2.2.2) writes it.
func appendText(b []byte, text string) []byte {
	const short = "\b\t\n\f\r"
	b = append(b, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case strings.ContainsRune(short, r):
			b = append(b, '\\', "btnfr"[strings.IndexRune(short, r)])
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// header is the protected header, all of it: what could change the meaning of a
// signature (crit, b64, jwk, x5c) can't be there.
type header struct {
	algorithm string // "EdDSA", "ES256", "RS256"
	key       string
}

// readHeader reads the header of a JWS. Names count in their case and occur once.
func readHeader(jws string) (h header, err error) {
	text, _, _ := strings.Cut(jws, "..")
	raw, err := decodeURL(text)
	if err != nil {
		return h, stele.Messagef("signature.header-not-base64url", "the header is not base64url")
	}
	members := make(map[string]any)
	if err := json.Unmarshal(raw, &members); err != nil {
		return h, stele.Messagef("signature.header-not-json", "the header is not a JSON object whose names occur once")
	}
	for name := range members {
		if name != "alg" && name != "kid" {
			return h, stele.Messagef("signature.header-name-not-allowed", `the header has "{name}"; it may have alg and kid alone`, name)
		}
	}
	algorithm, ok := members["alg"].(string)
	key, also := members["kid"].(string)
	if !ok || !also {
		return h, stele.Messagef("signature.header-incomplete", "the header must have alg and kid, both of them strings")
	}
	return header{algorithm, key}, nil
}

// Algorithm returns the kind of key that a signature claims, as N2S names it: "ED25519".
// It is "" if the signature does not say. Nothing is verified.
func Algorithm(s stele.Signature) string {
	h, err := readHeader(s.JWS)
	if err != nil {
		return ""
	}
	for name, a := range algorithms {
		if string(a) == h.algorithm {
			return name
		}
	}
	return ""
}

// Sign signs the statement for an identifier: it fills in Key and JWS. The date is
// cut to the second.
func Sign(key crypto.Signer, id stele.ID, s stele.Signature) (stele.Signature, error) {
	fail := func(err error) (stele.Signature, error) {
		return stele.Signature{}, &stele.Error{Op: "sign", ID: id, Kind: stele.Invalid, Err: err}
	}
	if !id.IsValid() {
		return fail(stele.Messagef("signature.identifier-missing", "there is no identifier; give one"))
	}
	if s.Size > stele.MaxSignedSize {
		return fail(stele.Messagef("signature.content-too-large", "{size} bytes are more than can be signed", s.Size))
	}
	s.Date = s.Date.UTC().Truncate(time.Second)
	public, err := PublicKey(key, s.Date)
	if err != nil {
		return stele.Signature{}, err
	}
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: algorithms[public.Algorithm],
		Key:       jose.JSONWebKey{Key: key, KeyID: public.ID},
	}, nil)
	if err != nil {
		return fail(err)
	}
	made, err := signer.Sign(Payload(id, s))
	if err != nil {
		return fail(err)
	}
	s.Key = public.ID
	if s.JWS, err = made.DetachedCompactSerialize(); err != nil {
		return fail(err)
	}
	return s, nil
}

// Verify judges a signature by the keys of a namespace, and returns the one that
// made it. The key must have been good at the signature's date and must not have been
// revoked until now. A key that expired since is good: a caller that accepts new
// signatures calls [Usable] too.
func Verify(keys []stele.SigningKey, id stele.ID, s stele.Signature, now time.Time) (stele.SigningKey, error) {
	k, err := verify(keys, id, s)
	if err == nil {
		k, err = timely(keys, k, s.Date, now)
	}
	return judged(k, id, err)
}

// timely judges the dates of a key. Where several namespaces have it, one that is good
// is enough, unless one of them has revoked it.
func timely(keys []stele.SigningKey, k stele.SigningKey, date, now time.Time) (stele.SigningKey, error) {
	err := inTime(k, date, now)
	for _, other := range keys {
		if other.ID != k.ID {
			continue
		}
		otherErr := inTime(other, date, now)
		switch {
		case errors.Is(otherErr, ErrRevoked):
			return other, otherErr
		case err != nil && otherErr == nil:
			k, err = other, nil
		}
	}
	return k, err
}

// Maker returns the key that made a signature, whatever became of it since. It is for
// callers that store signatures; those that rely on them call [Verify].
func Maker(keys []stele.SigningKey, id stele.ID, s stele.Signature) (stele.SigningKey, error) {
	k, err := verify(keys, id, s)
	return judged(k, id, err)
}

func judged(k stele.SigningKey, id stele.ID, err error) (stele.SigningKey, error) {
	if err != nil {
		return stele.SigningKey{}, &stele.Error{Op: "verify the signature of", ID: id, Kind: stele.Invalid, Err: err}
	}
	return k, nil
}

// verify checks all except the dates.
func verify(keys []stele.SigningKey, id stele.ID, s stele.Signature) (k stele.SigningKey, err error) {
	h, err := readHeader(s.JWS)
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if h.key != s.Key {
		return k, stele.Messagef("signature.key-differs-from-header", `{cause}: it says to be of key "{key}", and its header of "{header-key}"`, ErrSignature, s.Key, h.key)
	}
	found := false
	for i := range keys {
		if keys[i].ID == s.Key {
			k, found = keys[i], true
			break
		}
	}
	if !found {
		return k, stele.Messagef("signature.key-not-in-namespace", `{cause}: it has no key "{key}"`, ErrNoKey, s.Key)
	}
	public, err := check(k)
	if err != nil {
		return k, fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	want := algorithms[k.Algorithm]
	if h.algorithm != string(want) {
		return k, stele.Messagef("signature.algorithm-not-of-key", `{cause}: "{algorithm}", and the key's is "{expected}"`, ErrAlgorithm, h.algorithm, want)
	}
	parsed, err := jose.ParseDetached(s.JWS, Payload(id, s), []jose.SignatureAlgorithm{want})
	if err != nil {
		return k, stele.Messagef("signature.not-a-detached-jws", "{cause}: it is not a detached JWS", ErrSignature)
	}
	if err := parsed.DetachedVerify(Payload(id, s), public); err != nil {
		return k, stele.Messagef("signature.not-by-key", "{cause}: key {key} did not sign this identifier, digest, size, type and date", ErrSignature, k.ID)
	}
	return k, nil
}

// inTime judges the dates of a signature and its key.
func inTime(k stele.SigningKey, date, now time.Time) error {
	const day = "2006-01-02 15:04:05 UTC"
	switch {
	case !k.Revoked.IsZero() && !now.Before(k.Revoked):
		return stele.Messagef("signature.key-revoked-on", "{cause}: key {key}, on {date}; nothing that it signed can be believed", ErrRevoked, k.ID, k.Revoked.UTC().Format(day))
	case date.After(now.Add(Skew)):
		return stele.Messagef("signature.date-after-now", "{cause}: {date}, and it is {now}; compare the clocks", ErrFuture, date.UTC().Format(day), now.UTC().Format(day))
	case date.Add(Skew).Before(k.Created):
		return stele.Messagef("signature.date-before-key", "{cause}: key {key} is of {created}, the signature of {date}", ErrNotYet, k.ID, k.Created.UTC().Format(day), date.UTC().Format(day))
	case !k.Expires.IsZero() && !date.Before(k.Expires):
		return stele.Messagef("signature.date-after-key", "{cause}: key {key} ended on {expired}, the signature is of {date}", ErrExpired, k.ID, k.Expires.UTC().Format(day), date.UTC().Format(day))
	}
	return nil
}

// Usable tells why a key must not sign now, or nil: an attacker who has an old key could
// date a signature back.
func Usable(k stele.SigningKey, now time.Time) error {
	if err := inTime(k, now, now); err != nil {
		return &stele.Error{Op: "sign", Kind: stele.Invalid, Err: err}
	}
	return nil
}
