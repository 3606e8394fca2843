// Package urn is the scheme of Uniform Resource Names (RFC 8141), with the rules
// that some namespaces add to it: PARADISEC's, those of books (ISBN) and of
// national bibliographies (NBN).
//
// It reads urn:NID:NSS, URLs of resolvers that carry one, and ISBNs as people
// write them. It never decodes a percent-encoding, resolves nothing, and leaves
// the namespaces lsid, hdl, handle and doi to the schemes that know them.
package urn

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

const name = "urn"

// Scheme reads URNs. It is made by New.
type Scheme struct {
	known []namespace
	other namespace
}

// New returns the scheme, with the namespaces that have rules of their own.
func New() stele.Scheme {
	return &Scheme{
		known: []namespace{paradisec(), isbn(), nbn(), uuid()},
		other: namespace{
			form:      "urn",
			canonical: func(urn string, nss, _ int) (string, error) { return lex.FoldURN(urn, nss), nil },
		},
	}
}

// Name returns "urn".
func (s *Scheme) Name() string { return name }

// Parse reads a URN; see [stele.Scheme].
func (s *Scheme) Parse(text string) (stele.ID, error) {
	var r reading
	if err := s.read(text, &r); err != nil {
		return stele.ID{}, err
	}
	return r.id, nil
}

// reading is what a text says.
type reading struct {
	id  stele.ID
	ns  *namespace
	nid string // canonical
	nss string // canonical
	urn lex.URN
}

// read takes a text apart, for Parse and Explain alike.
func (s *Scheme) read(text string, r *reading) error {
	c, ok := lex.FindURN(text)
	if !ok {
		return s.readISBN(text, r)
	}
	start := c.Pos + len("urn:")
	if elsewhere(text[start:]) {
		return stele.ErrForeign
	}
	if err := stele.CheckText(name, text); err != nil {
		return err
	}
	nid, err := cutNID(text[start:], start)
	if err != nil {
		return err
	}
	if r.urn, err = lex.SplitURN(name, text, c, start+len(nid)+1); err != nil {
		return err
	}
	r.ns = s.namespace(nid)
	nss := r.urn.Pos - c.Pos
	canonical, err := r.ns.canonical(text[c.Pos:r.urn.Pos+len(r.urn.NSS)], nss, r.urn.Pos)
	if err != nil {
		return err
	}
	r.nid, r.nss = canonical[len("urn:"):nss-1], canonical[nss:]
	r.id, err = stele.NewID(name, canonical)
	return err
}

// elsewhere reports whether what follows "urn:" is in a namespace that another
// scheme reads.
func elsewhere(rest string) bool {
	if rest == "" {
		return false
	}
	var ok bool
	switch rest[0] | 0x20 {
	case 'l':
		_, ok = lex.CutFold(rest, "lsid:")
	case 'd':
		_, ok = lex.CutFold(rest, "doi:")
	case 'h':
		if _, ok = lex.CutFold(rest, "hdl:"); !ok {
			_, ok = lex.CutFold(rest, "handle:")
		}
	}
	return ok
}

// cutNID returns the namespace identifier at the beginning of rest, which stands
// at pos in the text. RFC 8141, section 2:
//
//	NID = (alphanum) 0*30(ldh) (alphanum)
//
// and it is not "urn", which RFC 2141, section 2.1, keeps from confusion.
func cutNID(rest string, pos int) (string, error) {
	i := 0
	for i < len(rest) && (lex.IsAlnum(rest[i]) || rest[i] == '-') {
		i++
	}
	nid := rest[:i]
	if i < len(rest) && rest[i] != ':' && rest[i] != '?' && rest[i] != '#' {
		r, _ := utf8.DecodeRuneInString(rest[i:])
		return "", stele.Invalidf(name, pos+i, "urn.nid-character-not-allowed", "{character} can't stand in a namespace identifier; it has letters, digits and inner hyphens", stele.Describe(r))
	}
	switch {
	case i < 2:
		return "", stele.Invalidf(name, pos, "urn.nid-missing", `a namespace identifier of 2 to 32 letters, digits and inner hyphens must follow "urn:"`)
	case i > 32:
		return "", stele.Invalidf(name, pos+32, "urn.nid-too-long", "the namespace identifier has {length} characters; it can have 32", i)
	case nid[0] == '-':
		return "", stele.Invalidf(name, pos, "urn.nid-begins-with-hyphen", "a namespace identifier can't begin with a hyphen")
	case nid[i-1] == '-':
		return "", stele.Invalidf(name, pos+i-1, "urn.nid-ends-with-hyphen", "a namespace identifier can't end with a hyphen")
	case i == 3 && lex.Lower(nid) == "urn":
		return "", stele.Invalidf(name, pos, "urn.nid-is-urn", `"urn" is not a namespace; write "urn:" once`)
	case i == len(rest) || rest[i] != ':':
		return "", stele.Invalidf(name, pos+i, "urn.name-missing", "a colon and a name must follow the namespace identifier")
	}
	return nid, nil
}

// Parents yields where the NSS may be cut: before each ":" and "/", and where the
// namespace has a place of its own; last the namespace. What would end with a
// separator names nothing and is left out.
func (s *Scheme) Parents(id stele.ID) iter.Seq[stele.Prefix] {
	return func(yield func(stele.Prefix) bool) {
		text := id.String()
		nid, nss, ok := cutID(text)
		if !ok {
			return
		}
		start, extra := len(text)-len(nss), s.extraCut(nid, nss)
		for i := len(text) - 1; i > start; i-- {
			if isCut(text, i, start+extra) && !yield(id.Prefix(i)) {
				return
			}
		}
		yield(id.Prefix(start - 1))
	}
}

// Cuts reports whether id may be cut after n bytes, where Parents cuts it.
func (s *Scheme) Cuts(id stele.ID, n int) bool {
	text := id.String()
	nid, nss, ok := cutID(text)
	if !ok || n >= len(text) {
		return false
	}
	start := len(text) - len(nss)
	return n == start-1 || n > start && isCut(text, n, start+s.extraCut(nid, nss))
}

// ParsePrefix reads a namespace, or the beginning of its names up to where they may be cut.
func (s *Scheme) ParsePrefix(text string) (stele.Prefix, stele.ID, error) {
	ends := []string{"/x", ":x", ":x:x"}
	if c, ok := lex.FindURN(text); ok {
		nid, nss, _ := strings.Cut(text[c.Pos+len("urn:"):], ":")
		if ns := s.namespace(nid); ns.ends != nil {
			ends = append(ends, ns.ends(nss)...)
		}
	}
	return lex.ParsePrefix(s, text, ends...)
}

// extraCut returns the place of its own at which a namespace cuts an NSS, or -1.
func (s *Scheme) extraCut(nid, nss string) int {
	if ns := s.namespace(nid); ns.cut != nil {
		return ns.cut(nss)
	}
	return -1
}

// isCut reports whether a text may be cut at i, inside its NSS; extra is the place at which
// the namespace cuts it beside.
func isCut(text string, i, extra int) bool {
	return (isSeparator(text[i]) || i == extra) && !isSeparator(text[i-1])
}

func isSeparator(c byte) bool { return c == ':' || c == '/' }

// cutID takes apart a canonical text.
func cutID(text string) (nid, nss string, ok bool) {
	rest, ok := strings.CutPrefix(text, "urn:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}
