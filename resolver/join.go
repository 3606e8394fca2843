package resolver

import (
	"net/url"
	"strings"

	"github.com/stele-id/stele/internal/urltext"
)

// join appends what followed a name to the URL of its target, and then the query.
// Whatever they are, scheme, user, host and port stay the target's own, and the path
// stays below the target's. With literal set a percent sign in rest is one; otherwise
// it may begin an encoded byte.
func join(target, rest, query string, literal bool) (string, error) {
	if rest == "" && query == "" {
		return target, nil
	}
	start, fragment, hasFragment := strings.Cut(target, "#")
	b := append(make([]byte, 0, len(target)+len(rest)+len(query)+8), start...)
	if !hasFragment {
		at := urltext.PlaceAfter(start)
		if at == urltext.InPath && rest != "" && rest[0] != '/' && urltext.IsBareHost(start) {
			b = append(b, '/')
		}
		b = urltext.Append(b, rest, at, literal)
	}
	b, err := urltext.AppendQuery(b, query)
	if err != nil {
		return "", err
	}
	if hasFragment {
		b = append(append(b, '#'), fragment...)
		b = urltext.Append(b, rest, urltext.InFragment, literal)
	}
	return string(b), urltext.Verify(start, string(b))
}

// expand puts an identifier, and what follows its namespace's prefix, into the
// places {id} and {rest} of a template, and appends the query. What join promises holds
// here too.
func expand(template, id, rest, query string, literal bool) (string, error) {
	start, _, _ := strings.Cut(template, "{")
	body, fragment, hasFragment := strings.Cut(template, "#")
	b := fillIn(nil, body, id, rest, literal)
	b, err := urltext.AppendQuery(b, query)
	if err != nil {
		return "", err
	}
	if hasFragment {
		b = fillIn(b, "#"+fragment, id, rest, literal)
	}
	return string(b), urltext.Verify(start, string(b))
}

// fillIn appends a part of a template with its places filled.
func fillIn(b []byte, template, id, rest string, literal bool) []byte {
	for done := 0; ; {
		i := strings.IndexByte(template[done:], '{')
		if i < 0 {
			return append(b, template[done:]...)
		}
		i += done
		b = append(b, template[done:i]...)
		switch at := urltext.PlaceAfter(template[:i]); {
		case strings.HasPrefix(template[i:], "{id}"):
			b = urltext.Append(b, id, at, literal)
			done = i + len("{id}")
		case strings.HasPrefix(template[i:], "{rest}"):
			b = urltext.Append(b, rest, at, literal)
			done = i + len("{rest}")
		default:
			b = append(b, "%7B"...)
			done = i + 1
		}
	}
}

// unescape decodes the encoded bytes of a URL; what can't be decoded is "".
func unescape(text string) string {
	text, _ = url.PathUnescape(text)
	return text
}
