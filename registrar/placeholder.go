package registrar

import (
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
)

// ParsePrefix reads the prefix of a namespace in any spelling. A scheme's name and
// a colon is its root.
func (r *Registrar) ParsePrefix(text string) (stele.NamespaceKey, error) {
	return namespaces.ParsePrefix(r.schemes, text)
}

// NameBelow returns some name right below a namespace's prefix: it stands for the name
// of a record that has none yet. Invalid for a scheme's root.
func NameBelow(schemes *stele.Schemes, key stele.NamespaceKey) (stele.ID, error) {
	if key.Prefix == "" {
		return stele.ID{}, refuse("mint", stele.ID{}, stele.Invalid, "the root of a scheme has no minter; name a namespace in it")
	}
	_, below, err := namespaces.ReadPrefix(schemes, key.Prefix)
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
	name := odd + strconv.Itoa(n) + odd
	id, err := schemes.Parse(below.String() + name)
	if err != nil {
		id = below
	}
	// Where minters join names to the prefix otherwise, it is one of theirs.
	if link, err := joint(schemes, ns, name); err == nil {
		if made, err := schemes.Parse(ns.Prefix + link + name); err == nil {
			id = made
		}
	}
	if ns.Checked {
		zone := checkZone(schemes.Lookup(id.Scheme()), id.String())
		if checked, err := schemes.Parse(id.String() + string(mint.CheckChar(zone))); err == nil {
			return checked, nil
		}
	}
	return id, nil
}
