package registrar

import (
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// Completer is a [stele.Scheme] that knows what its prefixes are.
type Completer interface {
	// Complete returns an identifier that stands right below a prefix, in any
	// spelling of that: the prefix, in canonical form, is its longest parent. An
	// error if the text is no prefix. ErrForeign as in [stele.Scheme.Parse].
	Complete(prefix string) (stele.ID, error)
}

// simple is how many completions are of no scheme in particular.
const simple = 4

// completions are texts that make an identifier of a prefix in at least one
// scheme. They keep their length in canonical form. For a scheme that is no
// Completer, a text is a prefix exactly if one of them makes an identifier of it
// which may be cut there. The digits at the end are for schemes with check digits:
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
func (r *Registrar) ParsePrefix(text string) (stele.NamespaceKey, error) {
	return ParsePrefix(r.schemes, text)
}

// ParsePrefix is [Registrar.ParsePrefix] for who has no registrar at hand.
func ParsePrefix(schemes *stele.Schemes, text string) (stele.NamespaceKey, error) {
	if name, ok := strings.CutSuffix(text, ":"); ok && schemes.Lookup(name) != nil {
		return stele.NamespaceKey{Scheme: name}, nil
	}
	key, _, err := parsePrefix(schemes, text)
	return key, err
}

// BelowPrefix returns a name right below a prefix, which may be in any spelling. It need
// not be registered.
func BelowPrefix(schemes *stele.Schemes, text string) (stele.ID, error) {
	_, below, err := parsePrefix(schemes, text)
	return below, err
}

// parsePrefix reads a prefix, and returns an identifier right below it too.
func parsePrefix(schemes *stele.Schemes, text string) (key stele.NamespaceKey, below stele.ID, err error) {
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

// completePrefix reads a prefix by completing it. Where it fails it looks whether
// a separator too many or too few is all that is wrong.
func completePrefix(schemes *stele.Schemes, text string) (key stele.NamespaceKey, below stele.ID, err error) {
	if p, id, ok := complete(schemes, text); ok {
		return stele.NamespaceKey{Scheme: p.Scheme(), Prefix: p.String()}, id, nil
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
		for p := range schemes.Parents(id) {
			if len(p.String()) == cut && spells(schemes, p.String()+end, id) {
				return p, id, true
			}
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

// NameBelow returns some name right below a namespace's prefix: it stands for the name
// of a record that has none yet. Invalid for a scheme's root.
func NameBelow(schemes *stele.Schemes, key stele.NamespaceKey) (stele.ID, error) {
	if key.Prefix == "" {
		return stele.ID{}, refuse("mint", stele.ID{}, stele.Invalid, "the root of a scheme has no minter; name a namespace in it")
	}
	_, below, err := parsePrefix(schemes, key.Prefix)
	return below, err
}

// Placeholder returns a name below a namespace that stands for one that a minter will
// make, so that a record can be judged before it has a name. It is another one for each
// n, if the scheme's grammar allows it, and ends in a check character where the
// namespace asks for one.
func Placeholder(schemes *stele.Schemes, ns *stele.Namespace, n int) (stele.ID, error) {
	below, err := NameBelow(schemes, ns.Key())
	if err != nil {
		return below, err
	}
	const odd = "zzzzzzzz" // what no minter makes, in characters that check characters allow
	id, err := schemes.Parse(below.String() + odd + strconv.Itoa(n) + odd)
	if err != nil {
		id = below
	}
	if ns.Checked {
		zone := checkZone(schemes.Lookup(id.Scheme()), id.String())
		if checked, err := schemes.Parse(id.String() + string(mint.CheckChar(zone))); err == nil {
			return checked, nil
		}
	}
	return id, nil
}
