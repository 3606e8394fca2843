package ddds

import (
	"strings"

	"github.com/stele-id/stele"
)

// FirstKey is the First Well Known Rule of an application (RFC 3402, section 3):
// it makes the first key of a name, which is the application unique string.
type FirstKey func(aus string) (key string, err error)

// URNRoot is the parent of the keys of all URN namespaces (RFC 3404, section 4.2;
// RFC 3405, section 3).
const URNRoot = "urn.arpa."

// URIRoot is the parent of the keys of the schemes of all other URIs (RFC 3404, section
// 4.2; RFC 3405, section 3.1).
const URIRoot = "uri.arpa."

// URNKey returns the first rule for URNs under a root: urn:NID:... begins at
// NID.root. An empty root is [URNRoot]. A root with @ before it, as in
// @urn.example.org, is one key with the rules of all namespaces, which is how the
// thesis does it.
func URNKey(root string) (FirstKey, error) {
	name, single := strings.CutPrefix(root, "@")
	if root == "" {
		name = URNRoot
	}
	name, err := CanonicalName(name)
	if err != nil {
		return nil, err
	}
	return func(aus string) (string, error) {
		nid, err := namespaceOf(aus)
		if err != nil || single {
			return name, err
		}
		return CanonicalName(nid + "." + name)
	}, nil
}

// URNString returns the application unique string of a URN, to which rules are applied.
// It is canonical (RFC 3404, section 4.1): scheme and namespace in lower case, digits of
// percent-encodings in upper case, and without components, since none of these tells
// URNs apart (RFC 8141, section 3.1). The rest stays as it is, though case may not count
// there: that depends on the namespace.
func URNString(urn string) (string, error) {
	nid, err := namespaceOf(urn)
	if err != nil {
		return "", err
	}
	nss := urn[len("urn:")+len(nid)+1:]
	if i := strings.IndexAny(nss, "?#"); i >= 0 {
		nss = nss[:i]
	}
	b := make([]byte, 0, len(urn))
	b = append(b, "urn:"+strings.ToLower(nid)+":"...)
	for i := range len(nss) {
		c := nss[i]
		if 'a' <= c && c <= 'f' && (i > 0 && nss[i-1] == '%' || i > 1 && nss[i-2] == '%') {
			c -= 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b), nil
}

// namespaceOf returns the namespace identifier of a URN (RFC 8141, section 2): 2 to
// 32 letters, digits and hyphens, with no hyphen at its ends.
func namespaceOf(urn string) (string, error) {
	const prefix = "urn:"
	if len(urn) < len(prefix) || !strings.EqualFold(urn[:len(prefix)], prefix) {
		return "", stele.Invalidf("urn", 0, "ddds.not-a-urn", "{text} is not a URN; it begins with urn:", brief(urn))
	}
	nid, nss, ok := strings.Cut(urn[len(prefix):], ":")
	if !ok || nss == "" {
		return "", stele.Invalidf("urn", len(urn), "ddds.urn-incomplete", "a URN has a namespace and a name in it, as in urn:isbn:9780141036144")
	}
	for i := range len(nid) {
		if c := nid[i]; !isLetter(c) && !isDigit(c) && (c != '-' || i == 0 || i == len(nid)-1) {
			return "", stele.Invalidf("urn", len(prefix)+i, "ddds.urn-namespace-character", "'{character}' can't stand here in a namespace; use letters, digits, and hyphens inside", string(rune(c)))
		}
	}
	if len(nid) < 2 || len(nid) > 32 {
		return "", stele.Invalidf("urn", len(prefix), "ddds.urn-namespace-wrong-length", "the namespace has {size} characters; 2 to 32 are right", len(nid))
	}
	return nid, nil
}
