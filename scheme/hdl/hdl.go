// Package hdl reads handles and DOIs: RFC 3650 to 3652, and what the Handle
// System's own software, release 9 ("HS9" below), makes of them.
//
// A handle is a prefix, a slash and a local name: 102.100.272/Y35XYS0QH. The
// prefix is the naming authority, the local name is whatever that authority
// likes. A DOI is a handle whose prefix begins with "10.". ASCII letters count
// in any case (so HS9 and the Global Handle Registry; RFC 3652, 2.1.3, leaves it
// to the service); all others count as they are, and nothing is normalised.
//
// # Canonical form
//
// ASCII letters are in upper case. A handle with a prefix of digits and dots
// stands alone, 10.1000/182; any other has "hdl:" in front, hdl:0.NA/10.1000,
// since a bare one would be taken for something else.
//
// # Spellings
//
// In a bare handle and after "hdl:" and "doi:" each character is itself: "%",
// "?" and "#" belong to the name. In URLs, "info:" and "urn:" a name is
// percent-encoded and is decoded exactly once; what stands beside it (query,
// fragment, the components of RFC 8141) is left out. The DOI's own spellings
// take DOIs only, and shortDOIs (10/abcde), which are handles. On hosts that are
// not known as proxies a handle must have a prefix of digits and dots, since the
// path may as well be a PURL.
//
// # Decided here
//
// A prefix has segments of letters, digits, "-" and "_" with single dots between
// them. RFC 3651 allows more; no such prefix was ever given out, and a ":" or "%"
// there is a mark written twice or an encoding not undone. A local name is not
// empty, and neither begins nor ends with a space: HS9's proxy strips spaces, so
// clients could not ask for it. "urn:doi:10.123:456" is 10.123/456, as the DOI
// Handbook has it and HS9 reads it.
//
// The package resolves nothing, and never guesses at what a broken name may have
// meant.
package hdl

import (
	"iter"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// name is the scheme's name.
const name = "hdl"

// mark stands before handles whose prefix is not digits and dots.
const mark = "hdl:"

// Scheme is the [stele.Scheme] of handles and DOIs.
type Scheme struct {
	now func() time.Time
}

var (
	_ stele.URIScheme      = (*Scheme)(nil)
	_ stele.ClaimingScheme = (*Scheme)(nil)
)

// New returns the scheme. It calls now only to decide whether a local name could be a
// PILIN suffix: none has a date in the future.
func New(now func() time.Time) *Scheme { return &Scheme{now} }

// Name returns "hdl".
func (s *Scheme) Name() string { return name }

// Parse reads a handle or DOI in any of its spellings; see the package comment.
func (s *Scheme) Parse(text string) (stele.ID, error) {
	var r reading
	err := r.read(text)
	return r.id, err
}

// Parents yields id cut before each slash of its local name, and last its prefix
// with the slash after it: of 20.500.12345/A/B these are 20.500.12345/A and
// 20.500.12345/.
func (s *Scheme) Parents(id stele.ID) iter.Seq[stele.Prefix] {
	return func(yield func(stele.Prefix) bool) {
		text := id.String()
		authority := strings.IndexByte(text, '/') + 1
		for end := len(text); end > authority; {
			// A cut right after the prefix's slash (the local name begins with
			// one) is the authority, which comes once.
			end = max(authority, strings.LastIndexByte(text[:end], '/'))
			if p := id.Prefix(end); p.IsValid() && !yield(p) {
				return
			}
		}
	}
}

// Cuts reports whether id may be cut after n bytes: after its prefix and the slash that
// follows it, and before each slash of its local name.
func (s *Scheme) Cuts(id stele.ID, n int) bool {
	text := id.String()
	authority := strings.IndexByte(text, '/') + 1
	return n > 0 && n < len(text) && (n == authority || n > authority && text[n] == '/')
}

// ParsePrefix reads a naming authority with its slash, or the beginning of handles up to a
// slash of the local name: 102.100.272/, 20.500.12345/A.
func (s *Scheme) ParsePrefix(text string) (stele.Prefix, stele.ID, error) {
	return lex.ParsePrefix(s, text, "X", "/X")
}

// Spellings returns the spellings in common use: a URL of the proxy, the marks
// and the URI of RFC 4452. Those longer than [stele.MaxText] are left out.
func (s *Scheme) Spellings(id stele.ID) []stele.Spelling {
	if !id.IsValid() {
		return nil
	}
	handle, marked := strings.CutPrefix(id.String(), mark)
	all := make([]stele.Spelling, 0, 4)
	add := func(name, text string) {
		if len(text) <= stele.MaxText {
			all = append(all, stele.Spelling{Name: name, Text: text})
		}
	}
	prefix, _, _ := strings.Cut(handle, "/")
	switch {
	case !marked && isDOI(prefix):
		add("URL", escape("https://doi.org/", handle))
		add("DOI", "doi:"+handle)
		add("RFC 4452", escape("info:doi/", handle))
		add("Handle", mark+handle)
		return all
	case prefix == shortDOI:
		add("URL", escape("https://doi.org/", handle))
	case marked:
		// The proxy reads it without the mark too, but others may take the path
		// for something else (a URN, an IBI label), as does the proxy with API/.
		add("URL", escape("https://hdl.handle.net/hdl:", handle))
	default:
		add("URL", escape("https://hdl.handle.net/", handle))
	}
	if !marked {
		add("Handle", mark+handle)
	}
	add("RFC 4452", escape("info:hdl/", handle))
	return all
}

// URI implements [stele.URIScheme]: hdl:20.500.12345/A, and of a DOI doi:10.1000/182, which
// is found as a handle too.
func (s *Scheme) URI(text string) (schemes []string, rest string) {
	handle, marked := strings.CutPrefix(text, mark)
	prefix, _, _ := strings.Cut(handle, "/")
	if !marked && (isDOI(prefix) || prefix == shortDOI) {
		return []string{"doi", name}, encode("", handle, false)
	}
	return []string{name}, encode("", handle, false)
}

// authorities begins the names of records that describe prefixes (RFC 3650, section 3.1).
const authorities = mark + "0.NA/"

// Claims implements [stele.ClaimingScheme]: the record of a prefix, 0.NA/20.500.12345, belongs to
// the namespace of that prefix, 20.500.12345/. A namespace below a part of the local name has none.
func (s *Scheme) Claims(prefix string) []string {
	authority, below, ok := strings.Cut(strings.TrimPrefix(prefix, mark), "/")
	if !ok || below != "" || authority == "" {
		return nil
	}
	return []string{authorities + authority}
}
