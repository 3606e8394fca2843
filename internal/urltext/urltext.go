// Package urltext puts texts that others chose into URLs that an owner chose: encoded for
// the place where they stand, and never so that the URL leads to another host or out of the
// path that the owner gave. It knows neither names nor records.
package urltext

import (
	"net/url"
	"path"
	"strings"

	"github.com/stele-id/stele"
)

// MaxQuery is the size in bytes of the longest query that is passed on.
const MaxQuery = 8192

// The errors of texts that can't be put into a URL.
var (
	ErrQuery     = stele.Messagef("resolve.query-too-long", "the query has more than {limit} bytes; it is not passed on", MaxQuery)
	ErrTarget    = stele.Messagef("target.suffix-not-appendable", "nothing can be appended to the target's URL, which is broken or names no host; its owner must change it")
	ErrAuthority = stele.Messagef("resolve.suffix-changes-host", "what follows the registered name would lead to another host; it is not passed on")
	ErrClimbs    = stele.Messagef("resolve.suffix-climbs-out", "what follows the registered name climbs out of the target by dot segments; it is not passed on")
)

// Place is a part of a URL; each has its own rule for what may stand in it as it
// is (RFC 3986, section 3).
type Place uint8

// The places.
const (
	InPath Place = iota
	InValue
	InFragment
	InQuery // a whole query, and not a value in one
)

// plain has the characters that stand as they are, beside letters and digits. A value has
// no character that ends it, so that a name can't add fields of its own.
var plain = [...]string{
	InPath:     "-._~!$&'()*+,;=:@/",
	InValue:    "-._~!$'()*,:@/?",
	InFragment: "-._~!$&'()*+,;=:@/?",
	InQuery:    "-._~!$&'()*+,;=:@/?",
}

// stands says for each byte, as bits by place, where it stands as it is.
var stands = func() (table [256]uint8) {
	for at, some := range plain {
		for c := range table {
			if isAlphanumeric(byte(c)) || c < 0x80 && strings.IndexByte(some, byte(c)) >= 0 {
				table[c] |= 1 << at
			}
		}
	}
	return table
}()

// PlaceAfter returns where the end of a URL's beginning stands.
func PlaceAfter(start string) Place {
	switch {
	case strings.Contains(start, "#"):
		return InFragment
	case strings.Contains(start, "?"):
		return InValue
	}
	return InPath
}

// Append appends text as it may stand at a place. With literal set a percent sign in it is
// one; otherwise it may begin an encoded byte.
func Append(b []byte, text string, at Place, literal bool) []byte {
	const hex = "0123456789ABCDEF"
	done := 0
	for i := range len(text) {
		c := text[i]
		if stands[c]&(1<<at) != 0 || c == '%' && !literal && isEncoded(text[i:]) {
			continue
		}
		b = append(b, text[done:i]...)
		b = append(b, '%', hex[c>>4], hex[c&15])
		done = i + 1
	}
	return append(b, text[done:]...)
}

// AppendQuery appends a query to a URL without fragment.
func AppendQuery(b []byte, query string) ([]byte, error) {
	if query == "" {
		return b, nil
	}
	if len(query) > MaxQuery {
		return b, ErrQuery
	}
	switch so := string(b); {
	case !strings.Contains(so, "?"):
		b = append(b, '?')
	case so[len(so)-1] != '?' && so[len(so)-1] != '&':
		b = append(b, '&')
	}
	return Append(b, query, InQuery, false), nil
}

// isEncoded reports whether text begins with an encoded byte.
func isEncoded(text string) bool { return len(text) >= 3 && isHex(text[1]) && isHex(text[2]) }

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// IsBareHost reports whether a URL has nothing after its host.
func IsBareHost(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Path == ""
}

// MayClimb reports whether a URL could have dot segments that lead upwards, as any of the
// programs that read it sees them. It is quick, and may be true of a URL that has none; of
// others [Verify] finds nothing to refuse in the path.
func MayClimb(whole string) bool {
	return strings.Contains(whole, "..") || strings.Contains(whole, "%2e") || strings.Contains(whole, "%2E")
}

// Verify makes sure that a URL leads where its beginning, which alone is to be
// trusted, says: to the same scheme, user, host and port, and below the same path.
func Verify(start, whole string) error {
	before, err := url.Parse(start)
	if err != nil || before.Scheme == "" || before.Host == "" {
		return ErrTarget
	}
	after, err := url.Parse(whole)
	if err != nil || after.Scheme != before.Scheme || after.Host != before.Host || after.User.String() != before.User.String() {
		return ErrAuthority
	}
	if !isBelow(after.EscapedPath(), before.EscapedPath()) {
		return ErrClimbs
	}
	return nil
}

// isBelow reports whether a path begins with base after both are rid of dot
// segments, encoded or not. Of slashes in a row one counts: servers differ there,
// and so none of them sees a path that climbs. Nor does one that cuts parameters off
// segments before it looks for dots (RFC 3986, section 3.3), to which /..;/ climbs.
func isBelow(full, base string) bool {
	full, base = encoded.Replace(full), encoded.Replace(base)
	return isBelowPlain(full, base) && isBelowPlain(withoutParameters(full), withoutParameters(base))
}

func isBelowPlain(full, base string) bool {
	below := clean(base)
	if strings.HasSuffix(base, "/") && below != "/" {
		below += "/"
	}
	return strings.HasPrefix(clean(full)+"/", below)
}

func clean(p string) string { return path.Clean("/" + p) }

// withoutParameters cuts what begins with a semicolon off each segment of a path.
func withoutParameters(p string) string {
	if !strings.Contains(p, ";") {
		return p
	}
	segments := strings.Split(p, "/")
	for i, s := range segments {
		segments[i], _, _ = strings.Cut(s, ";")
	}
	return strings.Join(segments, "/")
}

// encoded has what some servers decode before they look for dot segments and parameters,
// and what some of them take for a slash.
var encoded = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "/", "%5C", "/", `\`, "/", "%3b", ";", "%3B", ";")

// IsLiteral reports whether a percent sign in a name is just that, as in handles, and not
// the beginning of an encoded byte, as in URNs. The name's own spelling as a URL tells:
// where decoding it gives the name, the name is not encoded.
func IsLiteral(schemes *stele.Schemes, id stele.ID) bool {
	text := id.String()
	if !strings.Contains(text, "%") {
		return false
	}
	for _, s := range schemes.Spellings(id) {
		if strings.Contains(s.Text, "://") {
			decoded, _ := url.PathUnescape(s.Text) // "" if it can't be decoded
			return strings.HasSuffix(decoded, text)
		}
	}
	return false
}
