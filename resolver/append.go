package resolver

import "strings"

// Append puts a text after a URL, as the Handle System's proxy does with its parameter
// urlappend. The text may go on with the path, begin or go on with the query, and have
// a fragment. Scheme, user, host and port stay the URL's own, and the path stays below
// the URL's.
func Append(target, text string) (string, error) {
	if text == "" {
		return target, nil
	}
	if len(text) > maxQuery {
		return "", errQuery
	}
	start, _, hasFragment := strings.Cut(target, "#")
	var b strings.Builder
	b.WriteString(target)
	at := inPath
	switch {
	case hasFragment:
		at = inFragment
	case strings.Contains(start, "?"):
		at = inQuery
	case strings.IndexByte("/?#", text[0]) < 0 && isBareHost(start):
		b.WriteByte('/')
	}
	if at == inPath {
		text = appendPart(&b, text, at, "?#")
		if text != "" && text[0] == '?' {
			at = inQuery
			b.WriteByte('?')
			text = text[1:]
		}
	}
	if at == inQuery {
		text = appendPart(&b, text, at, "#")
	}
	if text != "" && text[0] == '#' && at != inFragment {
		b.WriteByte('#')
		text = text[1:]
	}
	escape(&b, text, inFragment, false)
	return b.String(), verify(start, b.String())
}

// appendPart writes text as it may stand at a place, up to one of the characters
// that end it, and returns the rest.
func appendPart(b *strings.Builder, text string, at place, ends string) (rest string) {
	end := strings.IndexAny(text, ends)
	if end < 0 {
		end = len(text)
	}
	escape(b, text[:end], at, false)
	return text[end:]
}
