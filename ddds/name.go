package ddds

import (
	"net/netip"
	"strings"

	"github.com/stele-id/stele"
)

// Limits of names in the DNS (RFC 1035, section 2.3.4), as they are written.
const (
	maxName  = 253 // without the dot at the end
	maxLabel = 63
)

// CanonicalName returns a domain name in the form in which keys are asked for: in
// lower case, with a dot at the end. It must be made of visible ASCII characters,
// of which those that zone files give a meaning to are refused: no escapes are
// needed anywhere then. The root alone is not a key.
func CanonicalName(name string) (string, error) {
	text := strings.TrimSuffix(name, ".")
	if text == "" {
		return "", stele.Invalidf("name", 0, "rule-key.missing", "there is no name")
	}
	if len(text) > maxName {
		return "", stele.Invalidf("name", maxName, "rule-key.too-long", "the name has {size} bytes; {most} are the most", len(text), maxName)
	}
	begin := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] != '.' {
			if c := text[i]; c <= ' ' || c > '~' || strings.IndexByte(`"$();@\`, c) >= 0 {
				return "", stele.Invalidf("name", i, "rule-key.character-not-allowed", "'{character}' can't be in the name of a key", string(rune(c)))
			}
			continue
		}
		switch size := i - begin; {
		case size == 0:
			return "", stele.Invalidf("name", i, "rule-key.label-empty", "two dots follow each other, or the name begins with one")
		case size > maxLabel:
			return "", stele.Invalidf("name", begin, "rule-key.label-too-long", "the label has {size} bytes; {most} are the most", size, maxLabel)
		}
		begin = i + 1
	}
	return lower(text) + ".", nil
}

// lower puts ASCII letters in lower case.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return strings.ToLower(s) // s is ASCII here
		}
	}
	return s
}

// checkOutput returns what a rule gave in the form that its flag asks for: a
// canonical name, an address, a URI.
func checkOutput(flag Flag, text string) (string, error) {
	switch flag.Output() {
	case OutputURI:
		return text, checkURI(text)
	case OutputText:
		return text, nil
	case OutputHost:
		if flag.isExtended() {
			if a, err := netip.ParseAddr(strings.TrimSuffix(text, ".")); err == nil && a.Zone() == "" {
				return a.String(), nil
			}
		}
	}
	return CanonicalName(text)
}

// checkURI refuses what is not an absolute URI, or could be mistaken for something
// else where it is shown or sent: what RFC 3986 has no place for.
func checkURI(text string) error {
	if len(text) > stele.MaxURL {
		return stele.Invalidf("URI", stele.MaxURL, "rule.uri-too-long", "the URI has {size} bytes; {most} are the most", len(text), stele.MaxURL)
	}
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || rest == "" || !isURIScheme(scheme) {
		return stele.Invalidf("URI", 0, "rule.uri-not-absolute", "{text} is not an absolute URI", brief(text))
	}
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || strings.IndexByte("\"<>\\`", c) >= 0 {
			return stele.Invalidf("URI", i, "rule.uri-character-not-allowed", "'{character}' can't be in a URI", string(rune(c)))
		}
	}
	return nil
}

// isURIScheme reports whether s is a scheme (RFC 3986, section 3.1).
func isURIScheme(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isLetter(c) && (i == 0 || !isDigit(c) && c != '+' && c != '-' && c != '.') {
			return false
		}
	}
	return s != ""
}
