package minting

import (
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/namespaces"
)

// NameBelow returns a name right below a namespace's prefix: it stands for the name
// of a record that has none yet. Invalid for a scheme's root.
func NameBelow(schemes *stele.Schemes, key stele.NamespaceKey) (stele.ID, error) {
	if key.Prefix == "" {
		return stele.ID{}, stele.Errorf("mint", stele.ID{}, stele.Invalid, "mint.root-has-no-minter", "the root of a scheme has no minter; name a namespace in it")
	}
	_, below, err := namespaces.ReadPrefix(schemes, key.Prefix)
	return below, err
}

// Placeholder returns a name below a namespace that stands for one that a minter will
// make, so that a record can be judged before it has a name. It differs for each
// n, if the scheme's grammar allows it, and ends in a check character where the
// namespace asks for one.
func Placeholder(schemes *stele.Schemes, ns *stele.Namespace, n int) (stele.ID, error) {
	below, err := NameBelow(schemes, ns.Key())
	if err != nil {
		return below, err
	}
	const odd = "zzzzzzzz" // a text that minters do not make, in characters that check characters allow
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
		zone := CheckZone(schemes.Lookup(id.Scheme()), id.String())
		if checked, err := schemes.Parse(id.String() + string(mint.CheckChar(zone))); err == nil {
			return checked, nil
		}
	}
	return id, nil
}

// Shape returns a text with the separators that all names of a minter have after what joins
// them to the prefix: the literal part of a template, since a mask has no separators, or a
// UUID. It is empty for names of dates, which the scheme makes.
func Shape(m stele.Minter) string {
	switch m.Kind {
	case stele.MinterNOID:
		return m.Template[:max(strings.LastIndexByte(m.Template, '.'), 0)]
	case stele.MinterUUID:
		return uuid{}.String()
	}
	return ""
}
