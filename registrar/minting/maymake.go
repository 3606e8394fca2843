package minting

import (
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// MayMake reports whether the minter of a namespace may make names that begin with a text, or may have made some by a template that it had before: states are those of all its templates.
// It says that it may where it can't be known. Names of dates are not told apart: all that begin as such names do are possible.
func MayMake(schemes *stele.Schemes, ns *stele.Namespace, states TemplateStates, begin string) bool {
	for _, of := range states {
		if ns.Prefix != "" && templateMakes(schemes, ns, of, begin) {
			return true
		}
	}
	switch ns.Minter.Kind {
	case stele.NoMinter:
		return false
	case stele.MinterNOID:
		return templateMakes(schemes, ns, templateState(ns.Minter), begin)
	case stele.MinterUUID:
		link, err := joint(schemes, ns, uuid{}.String())
		return err != nil || meets(begin, ns.Prefix+link, "0123456789abcdef-", len(uuid{}.String()))
	case stele.MinterIBI, stele.MinterPILIN:
		keys, err := DatePrefixes(schemes, ns)
		if err != nil {
			return true
		}
		for _, key := range keys {
			if meets(begin, key.Prefix, "", -1) {
				return true
			}
		}
		return false
	}
	return true
}

// templateMakes reports whether a template may make names that begin with a text.
func templateMakes(schemes *stele.Schemes, ns *stele.Namespace, of TemplateState, begin string) bool {
	t, err := newTemplate(schemes, ns, of)
	if err != nil {
		return true
	}
	prefix, mask, _ := strings.Cut(of.Template, ".")
	digits := strings.TrimSuffix(mask[1:], "k")
	set, length := "0123456789", len(digits)
	if strings.Contains(digits, "e") || t.check {
		set = mint.Betanumeric
	}
	if t.check {
		length++
	}
	if mask[0] == 'z' || of.Expand > 0 { // it grows
		length = -1
	}
	return meets(begin, t.prefix+prefix, set, length)
}

// meets reports whether a text can be the beginning of a name that is a fixed text and then so many characters of a set; any number if length is negative, and all of them
// if the set is empty. Case does not count.
func meets(begin, fixed, set string, length int) bool {
	begin, fixed = strings.ToLower(begin), strings.ToLower(fixed)
	if strings.HasPrefix(fixed, begin) {
		return true
	}
	rest, ok := strings.CutPrefix(begin, fixed)
	switch {
	case !ok:
		return false
	case set == "":
		return true
	case length >= 0 && len(rest) > length:
		return false
	}
	return strings.Trim(rest, set) == ""
}
