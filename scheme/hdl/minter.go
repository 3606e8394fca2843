package hdl

import (
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// DateNames tells which handles a namespace's minter makes by PILIN's rule: the
// namespace's prefix and a suffix of the millisecond.
func (*Scheme) DateNames(ns *stele.Namespace) (prefixes []string, at func(mint.Date) ([]stele.ID, error), err error) {
	if ns.Minter.Kind != stele.MinterPILIN {
		return nil, nil, stele.Invalidf(name, 0, "hdl.minter-not-of-dates", `the minter "{kind}" makes no handles of dates`, ns.Minter.Kind)
	}
	if !strings.HasSuffix(ns.Prefix, "/") {
		return nil, nil, stele.Invalidf(name, 0, "hdl.pilin-prefix-malformed", `PILIN's suffixes stand directly after a prefix and its slash, such as 102.100.272/; "{prefix}" is none`, ns.Prefix)
	}
	return []string{ns.Prefix}, func(d mint.Date) ([]stele.ID, error) {
		suffix, err := EncodePILIN(d.Time())
		if err != nil {
			return nil, &stele.Error{Op: "mint", Kind: stele.Exhausted, Err: err}
		}
		id, err := stele.NewID(name, ns.Prefix+suffix)
		return []stele.ID{id}, err
	}, nil
}
