package urn

import (
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// nbn is the namespace of National Bibliography Numbers (RFC 8458):
//
//	nbn-nss = prefix "-" nbn-string
//	prefix  = iso-cc *( ":" subspc )
//
// Case does not count in the prefix, which is a country's code and the
// sub-namespaces that its library gave away; in the number it does, unless the
// country says otherwise. Croatia writes a colon in place of the hyphen. As it
// can't be told then where the prefix ends, only the code of the country is taken
// to be the prefix.
func nbn() namespace {
	return namespace{
		nid:       "nbn",
		form:      "nbn",
		title:     "national libraries, National Bibliography Number",
		canonical: nbnCanonical,
		explain:   nbnExplain,
		spellings: nbnSpellings,
		cut:       nbnCut,
		ends:      nbnEnds,
	}
}

func nbnCanonical(urn string, start, pos int) (string, error) {
	nss := urn[start:]
	if bad, reason := nbnFault(nss); bad >= 0 {
		return "", &stele.Error{Op: "parse", Kind: stele.Invalid, Err: &stele.SyntaxError{Scheme: name, Pos: pos + bad, Reason: reason}}
	}
	if isGerman(nss) {
		return germanCanonical(urn, start, pos)
	}
	return lex.FoldURN(urn, start+max(nbnCut(nss), len("cc"))), nil
}

// nbnFault returns where the structure of a National Bibliography Number is
// broken and why; bad is -1 if it is not.
func nbnFault(nss string) (bad int, reason *stele.Message) {
	for i := range len("cc") {
		if i >= len(nss) || !lex.IsAlpha(nss[i]) {
			return i, stele.Messagef("urn.nbn-country", `the two letters of a country's code must follow "urn:nbn:", as in urn:nbn:fi-fe201003181510`)
		}
	}
	if len(nss) < len("cc:x") || nss[2] != ':' && nss[2] != '-' {
		return len("cc"), stele.Messagef("urn.nbn-number-missing", "a hyphen and a number, or a colon and a sub-namespace, must follow the code of the country")
	}
	hyphen := nbnCut(nss)
	if hyphen < 0 {
		return -1, nil
	}
	for i := len("cc"); i < hyphen; i++ {
		if nss[i] == ':' && !lex.IsAlnum(nss[i+1]) {
			return i + 1, stele.Messagef("urn.nbn-sub-namespace-empty", "the sub-namespace is empty; write letters or digits between the colons")
		}
	}
	if hyphen+1 == len(nss) {
		return len(nss), stele.Messagef("urn.nbn-hyphen", "a number must follow the hyphen")
	}
	return -1, nil
}

// nbnCut returns where the hyphen stands that ends the prefix, or -1.
func nbnCut(nss string) int {
	for i := range len(nss) {
		if c := nss[i]; c == '-' {
			return i
		} else if !lex.IsAlnum(c) && c != ':' {
			break
		}
	}
	return -1
}

// nbnEnds returns what may follow the beginning of a number: the code of a country, and the
// end of a German number with its check digit.
func nbnEnds(nss string) []string {
	if nss == "" {
		return []string{":fi:x"}
	}
	if !isGerman(nss) {
		return []string{"-x"}
	}
	var ends []string
	for _, end := range [...]string{":1", "-1", ":x-1"} {
		if digit, bad := germanDigit(nss + end + "0"); bad < 0 {
			ends = append(ends, end+string(digit))
		}
	}
	return ends
}

func nbnExplain(nss string, x *stele.Explanation) {
	if nbnCut(nss) < 0 {
		x.Warnings = append(x.Warnings, "The number has no hyphen before it, as RFC 8458 asks: it can't be told from the sub-namespaces.")
	}
	if isGerman(nss) {
		germanExplain(nss, x)
	}
}

// nbnSpellings knows the one resolver that serves two countries. Others have
// theirs, under addresses that have changed.
func nbnSpellings(nss string) []stele.Spelling {
	if isGerman(nss) || strings.HasPrefix(nss, "ch:") {
		return []stele.Spelling{{Name: "DNB resolver", Text: "https://nbn-resolving.org/urn:nbn:" + nss}}
	}
	return nil
}
