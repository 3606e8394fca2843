package deposit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// s3Keys are what requests to a store are signed with.
type s3Keys struct {
	access, secret string
	token          string // of a session; "": there is none
}

const signedTime = "20060102T150405Z"

// sign signs a request by AWS Signature Version 4 with a signed payload, of which digest is the SHA-256 in hexadecimal digits. All
// headers that the request has are signed.
func (k *s3Keys) sign(r *http.Request, region, digest string, now time.Time) {
	at := now.UTC().Format(signedTime)
	r.Header.Set("X-Amz-Date", at)
	r.Header.Set("X-Amz-Content-Sha256", digest)
	if k.token != "" {
		r.Header.Set("X-Amz-Security-Token", k.token)
	}
	names := []string{"host"}
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		if name == "host" {
			value = r.URL.Host
		}
		fmt.Fprintf(&headers, "%s:%s\n", name, strings.Join(strings.Fields(value), " "))
	}
	signed := strings.Join(names, ";")
	request := strings.Join([]string{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, headers.String(), signed, digest}, "\n")
	scope := at[:8] + "/" + region + "/s3/aws4_request"
	sum := sha256.Sum256([]byte(request))
	text := strings.Join([]string{"AWS4-HMAC-SHA256", at, scope, hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + k.secret)
	for _, part := range []string{at[:8], region, "s3", "aws4_request"} {
		key = mac(key, part)
	}
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%x", k.access, scope, signed, mac(key, text)))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text)) // it never fails
	return h.Sum(nil)
}

// escaped returns a text with all characters escaped that the signature wants escaped (RFC 3986), and slashes if they are not parts of a
// path.
func escaped(text string, slashes bool) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 || c == '/' && !slashes:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// queryText returns parameters in the order and spelling that the signature wants.
func queryText(values url.Values) string {
	var list []string
	for name, v := range values {
		list = append(list, escaped(name, true)+"="+escaped(v[0], true))
	}
	slices.Sort(list)
	return strings.Join(list, "&")
}
