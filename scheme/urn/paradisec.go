package urn

import "github.com/stele-id/stele/scheme/internal/lex"

// paradisec is the namespace of the Pacific and Regional Archive for Digital
// Sources in Endangered Cultures: urn:paradisec:<collection>:<item>:<name>. Case
// does not count in any of it.
func paradisec() namespace {
	return namespace{
		nid:       "paradisec",
		form:      "urn",
		title:     "the archive PARADISEC",
		canonical: func(urn string, _, _ int) (string, error) { return lex.FoldURN(urn, len(urn)), nil },
	}
}
