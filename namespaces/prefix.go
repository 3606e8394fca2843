package namespaces

import (
	"strings"

	"github.com/stele-id/stele"
)

// Joiner is a [stele.Scheme] whose names may follow a prefix with and without a separator.
type Joiner interface {
	// Joint returns what stands between the prefix of a namespace and a name that its
	// minter makes: a separator, or nothing.
	Joint(prefix string) string
}

// Joints returns what may stand between the prefix of a namespace and the names that its
// minter makes, the most likely first: ":" after urn:example, "/" after ark:12345, nothing
// after 102.100.272/.
func Joints(schemes *stele.Schemes, key stele.NamespaceKey) []string {
	if j, ok := schemes.Lookup(key.Scheme).(Joiner); ok {
		return []string{j.Joint(key.Prefix)}
	}
	return []string{"", ":", "/"}
}

// ParsePrefix reads the prefix of a namespace in any spelling. A scheme's name and
// a colon is its root.
func ParsePrefix(schemes *stele.Schemes, text string) (stele.NamespaceKey, error) {
	if name, ok := strings.CutSuffix(text, ":"); ok && schemes.Lookup(name) != nil {
		return stele.NamespaceKey{Scheme: name}, nil
	}
	key, _, err := ReadPrefix(schemes, text)
	return key, err
}

// ReadPrefix reads a prefix in any spelling, and returns an identifier right below it
// too, which need not be registered; see [stele.Schemes.ParsePrefix]. It does not read the
// roots of schemes.
func ReadPrefix(schemes *stele.Schemes, text string) (stele.NamespaceKey, stele.ID, error) {
	p, below, err := schemes.ParsePrefix(text)
	return stele.NamespaceKey{Scheme: p.Scheme(), Prefix: p.String()}, below, err
}

// IsBelow reports whether a prefix is that of a namespace, given by its prefix, or below it.
func IsBelow(schemes *stele.Schemes, prefix, namespace string) bool {
	key, below, err := ReadPrefix(schemes, prefix)
	// The name below a prefix that is the namespace's, or above it, may be one of the namespace all the same.
	return err == nil && strings.HasPrefix(key.Prefix, namespace) && schemes.IsWithin(below, namespace)
}

// IsFollowed reports whether other names can begin with a name and be cut after it, so that
// something can follow it. Nothing follows an ISBN, or an LSID with its revision.
func IsFollowed(schemes *stele.Schemes, id stele.ID) bool {
	key, _, err := ReadPrefix(schemes, id.String())
	return err == nil && key == stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()}
}

// HasFollowed reports whether something can follow names of the namespace with that key.
func HasFollowed(schemes *stele.Schemes, key stele.NamespaceKey) bool {
	if key.Prefix == "" {
		return true // names of every kind are below the root of a scheme
	}
	// Only names below it can be followed, or only the name that its prefix is.
	if id, err := schemes.Parse(key.Prefix); err == nil && id.String() == key.Prefix && IsFollowed(schemes, id) {
		return true
	}
	_, below, err := ReadPrefix(schemes, key.Prefix)
	return err == nil && IsFollowed(schemes, below)
}
