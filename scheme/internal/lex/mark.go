package lex

import "strings"

// HasMark reports whether a part of a URL's path begins with mark, in any case
// of letters: a word in lower case and a colon, which browsers and wikis often
// encode. A scheme calls it to leave texts with another scheme's name to that scheme.
func HasMark(path, mark string) bool {
	for {
		i := strings.IndexByte(path, '/')
		if i < 0 {
			return false
		}
		path = path[i+1:]
		if IsMark(path, mark) {
			return true
		}
	}
}

// IsMark reports whether s begins with mark; see [HasMark].
func IsMark(s, mark string) bool {
	rest, ok := CutFold(s, strings.TrimSuffix(mark, ":"))
	if !ok || rest == "" {
		return false
	}
	if rest[0] == ':' {
		return true
	}
	_, ok = CutFold(rest, "%3a")
	return ok
}
