package namespaces

import (
	"errors"
	"strings"

	"github.com/stele-id/stele"
)

// Completer is a [stele.Scheme] that knows what its prefixes are.
type Completer interface {
	// Complete returns an identifier that stands right below a prefix, in any
	// spelling of that: the prefix, in canonical form, is its longest parent. An
	// error if the text is no prefix. ErrForeign as in [stele.Scheme.Parse].
	Complete(prefix string) (stele.ID, error)
}

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

// simple is how many completions are of no scheme in particular.
const simple = 4

// completions are texts that make an identifier of a prefix in at least one
// scheme. They keep their length in canonical form. For a scheme that is no
// Completer, a text is a prefix exactly if one of them makes an identifier of it
// which may be cut there ([stele.Scheme.Cuts]). The digits at the end are for schemes with check digits:
// one of ten is right.
var completions = func() []string {
	list := []string{
		"x", "/x", ":x", ":x:x",
		"/2", "/2000/01.01.00.00", "/x/2000/01.01.00.00", "/01.01.00.00",
		":9780306406157", ":00000000-0000-7000-8000-000000000000", ":se:x",
	}
	for _, stem := range []string{"1", ":1", "-1", ":x-1"} {
		for digit := range 10 {
			list = append(list, stem+string(rune('0'+digit)))
		}
	}
	return list
}()

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
// too, which need not be registered. The roots of schemes are not read. An error, of Kind
// Invalid, if no name begins so, or if names can't be cut there.
func ReadPrefix(schemes *stele.Schemes, text string) (key stele.NamespaceKey, below stele.ID, err error) {
	if err := stele.CheckText("", text); err != nil {
		return key, below, err
	}
	for scheme := range schemes.All() {
		c, ok := scheme.(Completer)
		if !ok {
			continue
		}
		below, err = c.Complete(text)
		if err == stele.ErrForeign {
			continue
		}
		if err != nil {
			return key, below, err
		}
		for p := range scheme.Parents(below) {
			return stele.NamespaceKey{Scheme: p.Scheme(), Prefix: p.String()}, below, nil
		}
	}
	return completePrefix(schemes, text)
}

// IsBelow reports whether a prefix is that of a namespace, given by its prefix, or below it.
func IsBelow(schemes *stele.Schemes, prefix, namespace string) bool {
	_, below, err := ReadPrefix(schemes, prefix)
	return err == nil && schemes.IsWithin(below, namespace)
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

// completePrefix reads a prefix by completing it. Where it fails it looks whether
// a separator too many or too few is all that is wrong.
func completePrefix(schemes *stele.Schemes, text string) (key stele.NamespaceKey, below stele.ID, err error) {
	if p, id, ok := complete(schemes, text); ok {
		return stele.NamespaceKey{Scheme: p.Scheme(), Prefix: p.String()}, id, nil
	}
	// The scheme that claims the text, if there is one, knows why no name begins so.
	if _, err := schemes.Parse(text + completions[0]); err != nil {
		if e, ok := errors.AsType[*stele.SyntaxError](err); ok && e.Scheme != "" && e.Pos < len(text) {
			return key, below, stele.Invalidf(e.Scheme, e.Pos, "%.60q can't begin names: %s", text, e.Reason)
		}
	}
	for _, near := range [...]string{strings.TrimRight(text, "/"), strings.TrimSuffix(text, ":"), text + "/"} {
		// A word and a colon may be a scheme that nobody knows.
		if p, _, ok := complete(schemes, near); ok && (near+":" != text || strings.Contains(near, ":")) {
			return key, below, stele.Invalidf(p.Scheme(), len(text), "names can't be cut here; did you mean %q?", p)
		}
	}
	return key, below, stele.Invalidf("", 0,
		"%.60q is no prefix of names in a known scheme; give one such as ark:12345/x5, 102.100.272/ or urn:example", text)
}

// complete returns the prefix that a text spells, and an identifier right below it.
func complete(schemes *stele.Schemes, text string) (stele.Prefix, stele.ID, bool) {
	ends := completions
	if strings.Contains(text, "://") {
		ends = ends[:simple] // or any URL is a label's domain behind a resolver's host
	}
	for _, end := range ends {
		id, err := schemes.Parse(text + end)
		if err != nil {
			continue
		}
		cut := len(id.String()) - len(end)
		if schemes.Cuts(id, cut) && spells(schemes, id.String()[:cut]+end, id) {
			return id.Prefix(cut), id, true
		}
	}
	return stele.Prefix{}, stele.ID{}, false
}

// spells reports whether text is read as id. It shows that the end of a completed
// text has not fallen into what a scheme leaves out, such as a URL's query.
func spells(schemes *stele.Schemes, text string, id stele.ID) bool {
	again, err := schemes.Parse(text)
	return err == nil && again == id
}
