// Package lsid is the scheme of Life Science Identifiers: names of records and
// things in biology, urn:lsid:authority:namespace:object[:revision] (Life
// Sciences Identifiers Specification, OMG dtc/04-05-01, section 8).
//
// It reads the URN and what carries one: URLs of proxies, and the "lsidres:" of
// the first client programs. It resolves nothing, and asks no authority whether it
// exists.
package lsid

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

const (
	name  = "lsid"
	mark  = "urn:lsid:"
	proxy = "http://lsid.tdwg.org/" // see Spellings
	old   = "lsidres:"

	service = "_lsid._tcp."
)

// Scheme reads LSIDs. It is made by New.
type Scheme struct{}

// New returns the scheme.
func New() stele.Scheme { return Scheme{} }

// Name returns "lsid".
func (Scheme) Name() string { return name }

// Parse reads an LSID; see [stele.Scheme].
func (Scheme) Parse(text string) (stele.ID, error) {
	var r reading
	if err := read(text, &r); err != nil {
		return stele.ID{}, err
	}
	return r.id, nil
}

// reading is what a text says.
type reading struct {
	id  stele.ID
	urn lex.URN
}

// read takes a text apart, for Parse and Explain alike.
func read(text string, r *reading) error {
	c, err := find(text)
	if err != nil {
		return err
	}
	if r.urn, err = lex.SplitURN(name, text, c, c.Pos+len(mark)); err != nil {
		return err
	}
	if err := check(r.urn.NSS, r.urn.Pos); err != nil {
		return err
	}
	// The authority is a name in the DNS, so its case does not count; in the rest
	// it does (section 8).
	urn := text[c.Pos : r.urn.Pos+len(r.urn.NSS)]
	urn = lex.FoldURN(urn, len(mark)+strings.IndexByte(r.urn.NSS, ':'))
	r.id, err = stele.NewID(name, urn)
	return err
}

// find returns where the LSID begins in a text that has one.
func find(text string) (c lex.Carrier, err error) {
	if !lex.Begins(text, "ulh") || text[0]|0x20 == 'u' && (len(text) < 5 || !lex.Begins(text[4:], "l")) {
		return c, stele.ErrForeign // it does not even have an LSID's first letters
	}
	rest, isOld := lex.CutFold(text, old)
	if isOld {
		c.Pos = len(old)
	} else if carrier, ok := lex.FindURN(text); ok {
		c, rest = carrier, text[carrier.Pos:]
	} else {
		return c, stele.ErrForeign
	}
	_, ok := lex.CutFold(rest, mark)
	if !ok && !isOld {
		return c, stele.ErrForeign
	}
	if err := stele.CheckText(name, text); err != nil {
		return c, err
	}
	if !ok {
		return c, stele.Invalidf(name, c.Pos, "lsid.urn-mark-missing", `"{expected}" must follow "{beginning}"`, mark, old)
	}
	return c, nil
}

// fields are the names of what colons separate, in their order.
var fields = [...]string{"authority", "namespace", "object", "revision"}

// check judges the parts of an NSS that RFC 8141 allows, which stands at pos.
func check(nss string, pos int) error {
	if i := strings.IndexByte(nss, '/'); i >= 0 {
		// RFC 2141, by which LSIDs are made, reserves it.
		return stele.Invalidf(name, pos+i, "lsid.slash", `"/" can't stand in an LSID; write "%2F"`)
	}
	start := 0
	for n := 0; ; n++ {
		if n == len(fields) {
			return stele.Invalidf(name, pos+start-1, "lsid.text-after-revision", `nothing can follow the revision; a colon in it is written "%3A"`)
		}
		field, _, more := lex.Cut(nss[start:], ':')
		if field == "" {
			return empty(n, pos+start)
		}
		if n == 0 {
			if bad := lex.Domain(field); bad >= 0 {
				return badAuthority(field, bad, pos)
			}
		}
		if !more && n < 2 {
			return stele.Invalidf(name, pos+len(nss), "lsid.part-missing", "a colon and the {part} must follow the {before}", fields[n+1], fields[n])
		}
		if !more {
			return nil
		}
		start += len(field) + 1
	}
}

func empty(n, pos int) error {
	if n == 3 {
		return stele.Invalidf(name, pos, "lsid.revision-empty", "the revision is empty; leave out the colon before it, or write one")
	}
	return stele.Invalidf(name, pos, "lsid.part-empty", "the {part} is empty; an LSID is urn:lsid:authority:namespace:object, and may end with :revision", fields[n])
}

func badAuthority(field string, bad, pos int) error {
	if bad >= len(field) {
		return stele.Invalidf(name, pos+bad, "lsid.authority-label-missing", "a label is missing; the authority is a domain name, such as ubio.org")
	}
	r, _ := utf8.DecodeRuneInString(field[bad:])
	return stele.Invalidf(name, pos+bad, "lsid.authority-character", "{character} can't stand here; the authority is a domain name, such as ubio.org", stele.Describe(r))
}

// Explain tells the parts of an LSID; see [stele.Scheme].
func (s Scheme) Explain(text string) (stele.Explanation, error) {
	var r reading
	if err := read(text, &r); err != nil {
		return stele.Explanation{}, err
	}
	x := stele.Explanation{ID: r.id, Form: "lsid", Spellings: s.Spellings(r.id)}
	values := strings.Split(r.id.String()[len(mark):], ":")
	for i, value := range values {
		x.Parts = append(x.Parts, stele.Part{Name: fields[i], Value: value})
	}
	x.Parts = append(x.Parts, r.urn.Components()...)
	if !strings.Contains(values[0], ".") {
		x.Warnings = append(x.Warnings, fmt.Sprintf("The authority %q is not a full domain name: it can't be looked up in the DNS.", values[0]))
	}
	x.Warnings = append(x.Warnings, r.urn.Warnings()...)
	return x, nil
}

// Spellings returns the proxy version of id, as its users link to it (TDWG, Life
// Sciences Identifiers Applicability Statement), and the form that client programs
// registered with web browsers.
func (Scheme) Spellings(id stele.ID) []stele.Spelling {
	if !id.IsValid() {
		return nil
	}
	return []stele.Spelling{
		{Name: "TDWG proxy", Text: proxy + id.String()},
		{Name: "lsidres", Text: old + id.String()},
	}
}

// Parents yields the LSID without its revision, the namespace and the authority.
func (Scheme) Parents(id stele.ID) iter.Seq[stele.Prefix] {
	return func(yield func(stele.Prefix) bool) {
		text := id.String()
		for i := len(text) - 1; i > len(mark); i-- {
			if text[i] == ':' && !yield(id.Prefix(i)) {
				return
			}
		}
	}
}

// Cuts reports whether id may be cut after n bytes, where Parents cuts it.
func (Scheme) Cuts(id stele.ID, n int) bool {
	text := id.String()
	return n > len(mark) && n < len(text) && text[n] == ':'
}

// ParsePrefix reads an authority, a namespace, or an LSID without its revision.
func (s Scheme) ParsePrefix(text string) (stele.Prefix, stele.ID, error) {
	return lex.ParsePrefix(s, text, ":x", ":x:x")
}

// Discovery returns the name of the SRV record of an authority, _lsid._tcp and the authority (section 8); see
// [stele.DiscoveredScheme].
func (Scheme) Discovery(prefix string) string {
	rest, ok := strings.CutPrefix(prefix, mark)
	authority, _, _ := strings.Cut(rest, ":")
	if !ok || authority == "" {
		return ""
	}
	return service + authority + "."
}
