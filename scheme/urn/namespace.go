package urn

import (
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// namespace is what one NID adds to RFC 8141. Functions that it does not need
// are nil, except canonical. The NSS that they take is canonical.
type namespace struct {
	nid   string // lower case
	form  string // of its names, in an Explanation
	title string // what the namespace is of, for people

	// canonical judges a URN that RFC 8141 allows, whose NSS begins at nss in it
	// and at pos in the text, and returns its canonical form; urn itself if it is
	// that. The canonical form's NSS begins at nss too.
	canonical func(urn string, nss, pos int) (string, error)
	// explain adds to an Explanation.
	explain func(nss string, x *stele.Explanation)
	// spellings returns the other ways to write urn:nid:nss.
	spellings func(nss string) []stele.Spelling
	// ends returns what may follow the beginning of an NSS, or the NID if that is "", where
	// the namespace has rules for its names, such as a check digit. The NSS is as it was
	// written.
	ends func(nss string) []string
	// cut returns where else than at ":" and "/" names may be cut, or -1.
	cut func(nss string) int
}

// namespace returns the rules for nid, in any case of letters.
func (s *Scheme) namespace(nid string) *namespace {
	for i := range s.known {
		ns := &s.known[i]
		if len(nid) != len(ns.nid) {
			continue
		}
		if _, ok := lex.CutFold(nid, ns.nid); ok {
			return ns
		}
	}
	return &s.other
}

// mistyped makes the error for a name whose check digit, at pos, shows that it is
// wrong.
func mistyped(pos int, reason *stele.Message, suggestions []string) error {
	return &stele.Error{
		Op:   "parse",
		Kind: stele.Invalid,
		Err:  &stele.SyntaxError{Scheme: name, Pos: pos, Reason: reason, Suggestions: suggestions},
	}
}

// maxSuggestions is how many corrections of a mistyped name are offered.
const maxSuggestions = 64

// suggestions collects corrections, each once.
type suggestions []string

func (s *suggestions) add(text string) {
	for _, have := range *s {
		if have == text {
			return
		}
	}
	if !s.full() {
		*s = append(*s, strings.Clone(text))
	}
}

func (s *suggestions) full() bool { return len(*s) >= maxSuggestions }
