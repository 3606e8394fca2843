package zonemap

import (
	"net/netip"
	"strings"

	"github.com/stele-id/stele"
)

// Head returns the size of what is written in any case wherever names have a head: the
// scheme and the first thing after it, urn:example or ark:12345. It is 0 for names
// without.
func Head(text string) int {
	scheme := strings.IndexByte(text, ':')
	if scheme < 0 {
		return 0
	}
	if n := strings.IndexAny(text[scheme+1:], ":/"); n >= 0 {
		return scheme + 1 + n
	}
	return len(text)
}

// URIs is the root of the keys of all URIs that are not URNs: below arpa it is uri.arpa.
const URIs = "uri"

// Key is where clients begin to look for the names under a prefix.
type Key struct {
	// Root is what the keys are below: urn, ark or [URIs]. Below arpa it is urn.arpa.
	Root string

	// Labels are the keys, in lower case: the namespace of a URN (RFC 3404, section 4.2),
	// the NAAN of an ARK, the schemes of a URI, that of the usual spelling first.
	Labels []string

	// Host is the host in a URI that has one, absolute: the rules at the keys of such
	// schemes lead to it (RFC 3404, section 5.3).
	Host string
}

// KeyOf returns the key of a namespace. ok is false if nothing in its names can be a label:
// clients find them over HTTP only. So it is with IBIs, which have no URIs of their own.
func KeyOf(schemes *stele.Schemes, ns stele.NamespaceKey) (k Key, ok bool) {
	if list, rest, ok := schemes.URI(ns.Scheme, ns.Prefix); ok {
		k = Key{Root: URIs, Labels: list}
		if authority, ok := strings.CutPrefix(rest, "//"); ok {
			k.Host, ok = hostOf(authority)
			return k, ok
		}
		return k, true
	}
	scheme, label, _ := strings.Cut(ns.Prefix[:Head(ns.Prefix)], ":")
	for i := range len(label) {
		c := label[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return Key{}, false
		}
	}
	return Key{Root: scheme, Labels: []string{strings.ToLower(label)}}, label != "" && len(label) <= 63
}

// hostOf returns the host in what follows the slashes of a URI. ok is false if it is an
// address, which is not a name of the DNS.
func hostOf(authority string) (host string, ok bool) {
	host, _, _ = strings.Cut(authority, "/")
	host, _, _ = strings.Cut(host, ":")
	_, err := netip.ParseAddr(host)
	return strings.ToLower(host) + ".", host != "" && err != nil
}

// RootOf returns the root that the keys of a scheme are below; see [Key].
func RootOf(schemes *stele.Schemes, scheme string) string {
	if _, is := schemes.Lookup(scheme).(stele.URIScheme); is {
		return URIs
	}
	return scheme
}
