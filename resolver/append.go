package resolver

import (
	"strings"

	"github.com/stele-id/stele/internal/urltext"
)

// Append puts a text after a URL, as the Handle System's proxy does with its parameter
// urlappend. The text may go on with the path, begin or go on with the query, and have
// a fragment. Scheme, user, host and port stay the URL's own, and the path stays below
// the URL's.
func Append(target, text string) (string, error) {
	if text == "" {
		return target, nil
	}
	if len(text) > urltext.MaxQuery {
		return "", urltext.ErrQuery
	}
	start, _, hasFragment := strings.Cut(target, "#")
	b := append(make([]byte, 0, len(target)+len(text)+8), target...)
	at := urltext.InPath
	switch {
	case hasFragment:
		at = urltext.InFragment
	case strings.Contains(start, "?"):
		at = urltext.InQuery
	case strings.IndexByte("/?#", text[0]) < 0 && urltext.IsBareHost(start):
		b = append(b, '/')
	}
	if at == urltext.InPath {
		b, text = appendPart(b, text, at, "?#")
		if text != "" && text[0] == '?' {
			at = urltext.InQuery
			b = append(b, '?')
			text = text[1:]
		}
	}
	if at == urltext.InQuery {
		b, text = appendPart(b, text, at, "#")
	}
	if text != "" && text[0] == '#' && at != urltext.InFragment {
		b = append(b, '#')
		text = text[1:]
	}
	b = urltext.Append(b, text, urltext.InFragment, false)
	return string(b), urltext.Verify(start, string(b))
}

// appendPart appends text as it may stand at a place, up to one of the characters
// that end it, and returns the rest.
func appendPart(b []byte, text string, at urltext.Place, ends string) (_ []byte, rest string) {
	end := strings.IndexAny(text, ends)
	if end < 0 {
		end = len(text)
	}
	return urltext.Append(b, text[:end], at, false), text[end:]
}
