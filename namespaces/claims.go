package namespaces

import (
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// DateNamer is a [stele.Scheme] that makes names of dates: IBI, and handles by
// PILIN's rule.
type DateNamer interface {
	// DateNames tells which names the namespace's minter makes. Of each date
	// there is one name below each prefix, in the order of the prefixes; the first
	// is the identifier, the others are aliases. Each prefix is a parent of its
	// names. Different dates give different names. An error, of Kind Invalid, if
	// the settings can make no names.
	DateNames(ns *stele.Namespace) (prefixes []string, at func(d mint.Date) ([]stele.ID, error), err error)
}

// DateNames tells which names the namespace's minter makes of dates, as a [DateNamer]
// does; at is nil if it makes none. The names below the prefixes belong to the namespace,
// wherever they stand: the IBIps of a server do not begin as its repository names do.
func DateNames(schemes *stele.Schemes, ns *stele.Namespace) (prefixes []string, at func(d mint.Date) ([]stele.ID, error), err error) {
	if ns.Minter.Kind != stele.MinterIBI && ns.Minter.Kind != stele.MinterPILIN {
		return nil, nil, nil
	}
	namer, ok := schemes.Lookup(ns.Scheme).(DateNamer)
	if !ok {
		return nil, nil, &stele.Error{Op: "mint", Kind: stele.Invalid, Err: stele.Messagef("minter.scheme-without-dates", "the scheme {scheme} makes no names of dates", ns.Scheme)}
	}
	return namer.DateNames(ns)
}
