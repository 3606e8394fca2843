package resolver

import (
	"net/url"
	"path"
	"strings"

	"github.com/stele-id/stele"
)

// maxQuery is the size in bytes of the longest query that is passed on.
const maxQuery = 8192

var (
	errQuery     = stele.Messagef("resolve.query-too-long", "the query has more than {limit} bytes; it is not passed on", maxQuery)
	errTarget    = stele.Messagef("target.suffix-not-appendable", "nothing can be appended to the target's URL, which is broken or names no host; its owner must change it")
	errAuthority = stele.Messagef("resolve.suffix-changes-host", "what follows the registered name would lead to another host; it is not passed on")
	errClimbs    = stele.Messagef("resolve.suffix-climbs-out", "what follows the registered name climbs out of the target by dot segments; it is not passed on")
)

// place is a part of a URL; each has its own rule for what may stand in it as it
// is (RFC 3986, section 3).
type place uint8

const (
	inPath place = iota
	inValue
	inFragment
	inQuery // a whole query, and not a value in one
)

// The characters that stand as they are, beside letters and digits. A value has no
// character that ends it, so that a name can't add fields of its own.
var plain = [...]string{
	inPath:     "-._~!$&'()*+,;=:@/",
	inValue:    "-._~!$'()*,:@/?",
	inFragment: "-._~!$&'()*+,;=:@/?",
	inQuery:    "-._~!$&'()*+,;=:@/?",
}

// placeAfter returns where the end of a URL's beginning stands.
func placeAfter(start string) place {
	switch {
	case strings.Contains(start, "#"):
		return inFragment
	case strings.Contains(start, "?"):
		return inValue
	}
	return inPath
}

// join appends what followed a name to the URL of its target, and then the query.
// Whatever they are, scheme, user, host and port stay the target's own, and the path
// stays below the target's. With literal set a percent sign in rest is one; otherwise
// it may begin an encoded byte.
func join(target, rest, query string, literal bool) (string, error) {
	if rest == "" && query == "" {
		return target, nil
	}
	var b strings.Builder
	start, fragment, hasFragment := strings.Cut(target, "#")
	b.WriteString(start)
	if !hasFragment {
		at := placeAfter(start)
		if at == inPath && rest != "" && rest[0] != '/' && isBareHost(start) {
			b.WriteByte('/')
		}
		escape(&b, rest, at, literal)
	}
	if err := addQuery(&b, query); err != nil {
		return "", err
	}
	if hasFragment {
		b.WriteString("#" + fragment)
		escape(&b, rest, inFragment, literal)
	}
	return b.String(), verify(start, b.String())
}

// expand puts an identifier, and what follows its namespace's prefix, into the
// places {id} and {rest} of a template, and appends the query. What join promises holds
// here too.
func expand(template, id, rest, query string, literal bool) (string, error) {
	var b strings.Builder
	start, _, _ := strings.Cut(template, "{")
	body, fragment, hasFragment := strings.Cut(template, "#")
	fillIn(&b, body, id, rest, literal)
	if err := addQuery(&b, query); err != nil {
		return "", err
	}
	if hasFragment {
		fillIn(&b, "#"+fragment, id, rest, literal)
	}
	return b.String(), verify(start, b.String())
}

// fillIn writes a part of a template with its places filled.
func fillIn(b *strings.Builder, template, id, rest string, literal bool) {
	for done := 0; ; {
		i := strings.IndexByte(template[done:], '{')
		if i < 0 {
			b.WriteString(template[done:])
			return
		}
		i += done
		b.WriteString(template[done:i])
		switch at := placeAfter(template[:i]); {
		case strings.HasPrefix(template[i:], "{id}"):
			escape(b, id, at, literal)
			done = i + len("{id}")
		case strings.HasPrefix(template[i:], "{rest}"):
			escape(b, rest, at, literal)
			done = i + len("{rest}")
		default:
			b.WriteString("%7B")
			done = i + 1
		}
	}
}

// addQuery adds a query to a URL without fragment.
func addQuery(b *strings.Builder, query string) error {
	if query == "" {
		return nil
	}
	if len(query) > maxQuery {
		return errQuery
	}
	switch so := b.String(); {
	case !strings.Contains(so, "?"):
		b.WriteByte('?')
	case so[len(so)-1] != '?' && so[len(so)-1] != '&':
		b.WriteByte('&')
	}
	escape(b, query, inQuery, false)
	return nil
}

// escape writes text as it may stand at a place.
func escape(b *strings.Builder, text string, at place, literal bool) {
	const hex = "0123456789ABCDEF"
	for i := range len(text) {
		c := text[i]
		switch {
		case isAlphanumeric(c), strings.IndexByte(plain[at], c) >= 0, c == '%' && !literal && isEncoded(text[i:]):
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
}

// isEncoded reports whether text begins with an encoded byte.
func isEncoded(text string) bool { return len(text) >= 3 && isHex(text[1]) && isHex(text[2]) }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// unescape decodes the encoded bytes of a URL; what can't be decoded is "".
func unescape(text string) string {
	text, _ = url.PathUnescape(text)
	return text
}

// isBareHost reports whether a URL has nothing after its host.
func isBareHost(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Path == ""
}

// verify makes sure that a URL leads where its beginning, which alone is to be
// trusted, says: to the same scheme, user, host and port, and below the same path.
func verify(start, whole string) error {
	before, err := url.Parse(start)
	if err != nil || before.Scheme == "" || before.Host == "" {
		return errTarget
	}
	after, err := url.Parse(whole)
	if err != nil || after.Scheme != before.Scheme || after.Host != before.Host || after.User.String() != before.User.String() {
		return errAuthority
	}
	if !isBelow(after.EscapedPath(), before.EscapedPath()) {
		return errClimbs
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
