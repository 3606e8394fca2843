package proof

import (
	"encoding/base64"
	"net/url"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Label stands before the name of a zone, where its namespaces' keys are: _n2s.<zone>.
const Label = "_n2s"

// MaxKeys is how many keys are published at one place, those of namespaces above
// included. Of the largest kind they just fit a DNS message.
const MaxKeys = 48

// txtVersion begins each record.
const txtVersion = "v=N2S1"

// maxTXT is the size in bytes of the largest record.
const maxTXT = 16 << 10

// TXT returns a key as the text of a TXT record, in the manner of DKIM's (RFC 6376,
// 3.6.1):
//
//	v=N2S1; k=ed25519; id=<thumbprint>; nb=2026-11-15T12:00:00Z; p=<base64 of the public key>
//
// na says when it ends and r when it was revoked. It is longer than the 255 bytes of
// one string for RSA: a record has several then, which readers join.
func TXT(k stele.SigningKey) string {
	var b strings.Builder
	b.WriteString(txtVersion + "; k=" + strings.ToLower(k.Algorithm) + "; id=" + k.ID)
	for _, at := range [...]struct {
		tag  string
		time time.Time
	}{{"nb", k.Created}, {"na", k.Expires}, {"r", k.Revoked}} {
		if !at.time.IsZero() {
			b.WriteString("; " + at.tag + "=" + at.time.UTC().Format(time.RFC3339))
		}
	}
	b.WriteString("; p=" + base64.StdEncoding.EncodeToString(k.Public))
	return b.String()
}

// ScopedTXT is TXT for a key of a namespace that is published in the zone of one above
// it: n says to which names it is confined, percent-encoded (RFC 3986).
func ScopedTXT(k stele.SigningKey, prefix string) string {
	return TXT(k) + "; n=" + url.PathEscape(prefix)
}

// ParseTXT reads the text of a TXT record, its strings joined. The key is what it
// says (see [Check]). Unknown tags are ignored, as in DKIM, so that more may be defined
// later. Invalid for a key that is confined to some names; see [ParseScopedTXT].
func ParseTXT(text string) (stele.SigningKey, error) {
	k, prefix, err := ParseScopedTXT(text)
	if err == nil && prefix != "" {
		err = invalid("read the TXT record of a key", stele.Messagef("signature.identifier-outside-prefix", `the key signs for names in "{prefix}" only`, prefix))
	}
	if err != nil {
		return stele.SigningKey{}, err
	}
	return k, nil
}

// ParseScopedTXT is ParseTXT for keys that are confined to a namespace too, whose prefix
// it returns; "" if the key is for all names of the zone.
func ParseScopedTXT(text string) (k stele.SigningKey, prefix string, err error) {
	fail := func(code, text string, args ...any) (stele.SigningKey, string, error) {
		return stele.SigningKey{}, "", invalid("read the TXT record of a key", stele.Messagef(code, text, args...))
	}
	if len(text) > maxTXT {
		return fail("key-txt.too-long", "it has {size} bytes; {most} are the most", len(text), maxTXT)
	}
	first, rest, _ := strings.Cut(text, ";")
	if strings.TrimSpace(first) != txtVersion {
		return fail("key-txt.not-a-key", `it begins with "{beginning}" and not with {expected}, so it is not a key`, first, txtVersion)
	}
	seen := make(map[string]bool)
	for part := range strings.SplitSeq(rest, ";") {
		tag, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if !ok || seen[tag] {
			return fail("key-txt.tag-malformed-or-twice", `"{text}" is not a tag with a value, or stands there twice`, part)
		}
		seen[tag] = true
		if tag == "n" {
			prefix, err = url.PathUnescape(value)
			if err == nil {
				err = stele.CheckText("", prefix)
			}
		} else {
			err = readTag(&k, tag, value)
		}
		if err != nil {
			return fail("", `"{tag}": {cause}`, tag, err)
		}
	}
	if k.Created.IsZero() {
		return fail("key-txt.not-before-missing", "it does not say from when on the key is good; nb is missing")
	}
	if _, err := check(k); err != nil {
		return fail("", "{cause}", err)
	}
	return k, prefix, nil
}

func readTag(k *stele.SigningKey, tag, value string) (err error) {
	switch tag {
	case "k":
		k.Algorithm = strings.ToUpper(value)
	case "id":
		k.ID = value
	case "nb":
		k.Created, err = second(value)
	case "na":
		k.Expires, err = second(value)
	case "r":
		k.Revoked, err = second(value)
	case "p":
		if strings.ContainsAny(value, "\r\n") {
			return stele.Messagef("key-txt.line-breaks", "line breaks in base64")
		}
		k.Public, err = base64.StdEncoding.Strict().DecodeString(value)
	}
	return err
}

// second reads a time as RFC 3339 writes whole seconds in UTC.
func second(text string) (time.Time, error) {
	t, err := time.Parse("2006-01-02T15:04:05Z", text)
	if err != nil || t.Unix() < 0 || t.Format(time.RFC3339) != text {
		return time.Time{}, stele.Messagef("key-txt.not-a-time", `"{text}" is not a time; write it as in 2026-11-15T12:00:00Z`, text)
	}
	return t.UTC(), nil
}
