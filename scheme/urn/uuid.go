package urn

import (
	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// uuid is the namespace of Universally Unique Identifiers (RFC 9562): 32
// hexadecimal digits in five groups. They are read in any case and written in lower
// case (section 4), so case does not count.
func uuid() namespace {
	return namespace{
		nid:       "uuid",
		form:      "urn",
		title:     "Universally Unique Identifier",
		canonical: uuidCanonical,
		ends:      func(string) []string { return []string{":00000000-0000-7000-8000-000000000000"} },
	}
}

func uuidCanonical(urn string, nss, pos int) (string, error) {
	const shape = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	text := urn[nss:]
	for i := range len(shape) {
		if i == len(text) {
			break
		}
		if c := text[i]; shape[i] == '-' && c != '-' || shape[i] != '-' && !lex.IsHex(c) {
			return "", stele.Invalidf(name, pos+i, "uuid.character-not-allowed", "'{character}' can't stand here; a UUID is of hexadecimal digits, such as {example}", string(rune(c)), shape)
		}
	}
	if len(text) != len(shape) {
		return "", stele.Invalidf(name, pos+min(len(text), len(shape)), "uuid.wrong-length", "a UUID has {expected} characters, such as {example}; this has {length}", len(shape), shape, len(text))
	}
	return lex.FoldURN(urn, len(urn)), nil
}
