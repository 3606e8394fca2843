package stele

import (
	"strings"
)

// maxTag is the size in bytes of the longest media type and language.
const maxTag = 255

// isLanguage reports whether tag has the shape of a language tag (BCP 47, RFC
// 5646): subtags of 1 to 8 letters and digits, the first of at least two letters,
// or x or i followed by another subtag. It does not check whether the language exists.
func isLanguage(tag string) bool {
	first, begin := true, 0
	for i := 0; i <= len(tag); i++ {
		if i < len(tag) && tag[i] != '-' {
			if !isLetter(tag[i]) && (first || !isDigit(tag[i])) {
				return false
			}
			continue
		}
		size := i - begin
		if size == 0 || size > 8 {
			return false
		}
		if first && size == 1 && (tag[0]|0x20 != 'x' && tag[0]|0x20 != 'i' || i == len(tag)) {
			return false
		}
		first, begin = false, i+1
	}
	return len(tag) <= maxTag
}

// checkMediaType says why text is not a media type in canonical form, or "": type
// and subtype in lower case (RFC 6838, 4.2), then perhaps parameters, each as
// "; name=value" with its name in lower case (RFC 9110, 5.6.6).
func checkMediaType(text string) *Message {
	if len(text) > maxTag {
		return tooManyBytes(len(text), maxTag)
	}
	kind, _, _ := strings.Cut(text, ";")
	if !isTypeAndSubtype(kind) {
		if lower := strings.ToLower(kind); lower != kind && isTypeAndSubtype(lower) {
			return Messagef("text.capitals", `"{text}" has capitals; write "{lower}"`, kind, lower)
		}
		return Messagef("media-type.invalid", `"{type}" is not a media type; write it as in text/html or text/plain; charset=utf-8`, text)
	}
	var names []string
	for rest := text[len(kind):]; rest != ""; {
		name, after, ok := cutParameter(rest)
		for _, before := range names {
			ok = ok && name != before
		}
		if !ok {
			return Messagef("media-type.parameters", `the parameters of "{type}" are not right at "{rest}"; write it as in text/html or text/plain; charset=utf-8`, kind, rest)
		}
		names, rest = append(names, name), after
	}
	return nil
}

// isTypeAndSubtype reports whether s is two names and a slash between them.
func isTypeAndSubtype(s string) bool {
	main, sub, ok := strings.Cut(s, "/")
	return ok && isTypeName(main) && isTypeName(sub)
}

// isTypeName reports whether s is a restricted-name in lower case (RFC 6838, 4.2).
func isTypeName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isLowerOrDigit(c) && (i == 0 || strings.IndexByte("!#$&-^_.+", c) < 0) {
			return false
		}
	}
	return s != "" && len(s) <= 127
}

func isLowerOrDigit(c byte) bool { return 'a' <= c && c <= 'z' || isDigit(c) }

// cutParameter cuts "; name=value" from the beginning of s. The value is a token,
// or a quoted string if a token can't say it.
func cutParameter(s string) (name, rest string, ok bool) {
	if s, ok = strings.CutPrefix(s, "; "); !ok {
		return "", "", false
	}
	n := token(s)
	name, rest = s[:n], s[n:]
	if name == "" || name != strings.ToLower(name) || !strings.HasPrefix(rest, "=") {
		return "", "", false
	}
	rest = rest[1:]
	if !strings.HasPrefix(rest, `"`) {
		n = token(rest)
		return name, rest[n:], n > 0
	}
	needed := len(rest) > 1 && rest[1] == '"' // the empty string is not a token
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			return name, rest[i+1:], needed
		case c == '\\':
			if i++; i == len(rest) || rest[i] != '"' && rest[i] != '\\' {
				return "", "", false
			}
			needed = true
		case c < ' ' || c > '~':
			return "", "", false
		default:
			needed = needed || token(rest[i:i+1]) == 0
		}
	}
	return "", "", false
}

// token returns the size of the token (RFC 9110, 5.6.2) at the beginning of s.
func token(s string) (n int) {
	for n < len(s) && (isLetter(s[n]) || isDigit(s[n]) || strings.IndexByte("!#$%&'*+-.^_`|~", s[n]) >= 0) {
		n++
	}
	return n
}

// IsMediaType reports whether a text can be the media type of a target.
func IsMediaType(text string) bool { return text != "" && checkMediaType(text) == nil }
