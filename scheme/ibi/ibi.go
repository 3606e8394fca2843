// Package ibi is the scheme of Internet Based Identifiers, Brazil's standard
// ABNT NBR 16066, after the report RTC-10-I of its commission. A label is born
// from the server that gives it and the date at which it is given, and has two
// forms: the repository name, from a host name, which people can read,
//
//	sid.inpe.br/mtc-m18@80/2009/02.16.17.46
//
// and the IBIp, from an IP address, which is opaque,
//
//	8JMKD3MGP8W/34PGRBS
//
// The package makes both from a prefix and a date (algorithms 1 to 3 and 5 to 7)
// and takes both apart again. It issues no dates: that is package mint's
// temporal distributor (algorithm 4).
package ibi

import (
	"iter"
	"net/netip"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// Name is the scheme's name.
const Name = "ibi"

// The two forms of a label, as an Explanation calls them.
const (
	FormRep  = "rep"  // repository name, chapter 6
	FormIBIp = "ibip" // opaque, chapter 7
)

// Scheme reads and explains IBIs.
type Scheme struct {
	now func() time.Time
}

var _ stele.OriginScheme = (*Scheme)(nil)

// New returns the scheme. The clock serves to warn of labels from the future.
func New(now func() time.Time) *Scheme { return &Scheme{now} }

// Name returns "ibi".
func (*Scheme) Name() string { return Name }

// Parse reads a label of either form, alone, after "ibi/" or "rep/", or in the
// URL of a resolver.
func (*Scheme) Parse(text string) (stele.ID, error) {
	s, ok := find(text)
	if !ok {
		return stele.ID{}, stele.ErrForeign
	}
	var l label
	if err := s.read(text, &l); err != nil {
		return stele.ID{}, err
	}
	return stele.NewID(Name, l.text)
}

// label is what a text is found to hold.
type label struct {
	form   string
	text   string // canonical
	port   uint16
	legacy bool       // "@" before the port
	addr   netip.Addr // of an IBIp
	date   mint.Date
}

// Origin implements [stele.OriginScheme]: a label is born from the host name or the IP address of a server, and its port.
func (*Scheme) Origin(id stele.ID) (from stele.Origin, ok bool) {
	var l label
	if at, ok := find(id.String()); !ok || at.read(id.String(), &l) != nil {
		return stele.Origin{}, false
	}
	if l.form == FormIBIp {
		return stele.Origin{Addr: l.addr, Port: l.port}, true
	}
	return stele.Origin{Host: l.hostName(), Port: l.port}, true
}

// fault says where in a label something is wrong. The zero fault says that nothing is.
type fault struct {
	pos    int
	reason *stele.Message
}

// source is where a text has its label.
type source struct {
	raw     string // the label as it stands in the text
	pos     int    // where
	escaped bool   // in a URL: percent-encodings are to be decoded
	unsure  bool   // it only looks like a label: if it is not valid, the text is foreign
	extra   string // a URL's query or fragment, which is not part of the name
}

// read takes the label of s apart. Positions in errors are those of the text.
func (s *source) read(text string, l *label) error {
	if err := stele.CheckText(Name, text); err != nil {
		return err
	}
	raw := s.raw
	if s.escaped {
		decoded, bad := lex.Unescape(raw)
		if bad >= 0 {
			return stele.Invalidf(Name, s.pos+bad, "ibi.percent-sign-alone", `"{sign}" needs two hexadecimal digits after it`, "%")
		}
		raw = decoded
	}
	var f fault
	if strings.Count(raw, "/") == 1 {
		f = l.readIBIp(raw)
	} else {
		f = l.readRep(raw)
	}
	if f.reason != nil && s.unsure {
		return stele.ErrForeign
	}
	if f.reason != nil {
		pos := f.pos
		if s.escaped {
			pos = lex.Offset(s.raw, pos)
		}
		return &stele.Error{Op: "parse", Kind: stele.Invalid, Err: &stele.SyntaxError{Scheme: Name, Pos: s.pos + pos, Reason: f.reason}}
	}
	return nil
}

// find says where text has a label, if it claims to have one. The number of
// slashes distinguishes the two forms, and whether "ibi/" or "rep/" stands before
// a label or begins one ("rep" could be a top-level domain). A first part of
// digits and dots alone begins a handle.
func find(text string) (s source, ok bool) {
	if lex.Begins(text, "h") {
		if link, ok := lex.ParseLink(text); ok {
			return findInLink(link)
		}
	}
	first, rest, ok := lex.Cut(text, '/')
	if !ok || strings.IndexByte(first, ':') >= 0 {
		return s, false
	}
	if _, isProxy := lex.HandleProxy(first); isProxy {
		return s, false
	}
	switch n := strings.Count(rest, "/"); {
	case n == 0:
		return source{raw: text}, isWord(first)
	case isWay(first) && (n == 1 || n == 3):
		return source{raw: rest, pos: len(first) + 1}, true
	case n == 2:
		return source{raw: text}, hasDate(rest) && !isNumeric(first)
	}
	return s, false
}

// findInLink looks for a label in a resolver's URL. After /ibi/ and /rep/ a
// label is expected. A path alone must be one: most URLs of two or four parts are
// not labels.
func findInLink(link lex.Link) (s source, ok bool) {
	path, ok := strings.CutPrefix(link.Path, "/")
	if !ok || link.Host == "" {
		return s, false
	}
	s = source{raw: path, pos: link.PathPos + 1, escaped: strings.IndexByte(path, '%') >= 0}
	s.extra = link.Query + link.Fragment
	first, rest, _ := lex.Cut(path, '/')
	if isWay(first) {
		s.raw, s.pos = rest, s.pos+len(first)+1
		n := strings.Count(rest, "/")
		return s, n == 1 || n == 3 || s.escaped && n == 0
	}
	s.unsure = true
	switch strings.Count(rest, "/") {
	case 0:
		return s, looksIBIp(first) && looksIBIp(rest) && separator(first) > 0
	case 2:
		_, date, _ := lex.Cut(rest, '/')
		return s, len(date) > 7 && date[4] == '/' && date[7] == '.' && !isNumeric(first)
	}
	return s, false
}

// isWay reports whether s is one of the words after which resolvers expect a
// label.
func isWay(s string) bool {
	return len(s) == 3 && (strings.EqualFold(s, "ibi") || strings.EqualFold(s, "rep"))
}

// isWord reports whether s is of letters and digits, with at least one letter.
func isWord(s string) bool {
	letter := false
	for i := range len(s) {
		if !lex.IsAlnum(s[i]) {
			return false
		}
		letter = letter || lex.IsAlpha(s[i])
	}
	return letter
}

// isNumeric reports whether s is of digits and dots.
func isNumeric(s string) bool {
	for i := range len(s) {
		if !lex.IsDigit(s[i]) && s[i] != '.' {
			return false
		}
	}
	return true
}

// hasDate reports whether the last two parts of word/year/date begin with a
// digit.
func hasDate(s string) bool {
	_, date, _ := lex.Cut(s, '/')
	year, rest, _ := lex.Cut(date, '/')
	return year != "" && rest != "" && lex.IsDigit(year[0]) && lex.IsDigit(rest[0])
}

// looksIBIp reports whether s could be half of an IBIp.
func looksIBIp(s string) bool {
	for i := range len(s) {
		if value27[s[i]] == 255 && !isSeparator(s[i]) {
			return false
		}
	}
	return s != ""
}

// Parents yields the year and the prefix of a repository name and then its
// domain; an IBIp has its prefix only.
func (*Scheme) Parents(id stele.ID) iter.Seq[stele.Prefix] {
	return func(yield func(stele.Prefix) bool) {
		text := id.String()
		for {
			i := strings.LastIndexByte(text, '/')
			if i < 0 || !yield(id.Prefix(i)) {
				return
			}
			text = text[:i]
		}
	}
}

// Cuts reports whether id may be cut after n bytes, where Parents cuts it.
func (*Scheme) Cuts(id stele.ID, n int) bool {
	text := id.String()
	return n > 0 && n < len(text) && text[n] == '/'
}

// ParsePrefix reads the prefix of IBIps or of repository names, a domain, or a prefix with a
// year. It does not read URLs: each would be the domain of a label after a resolver's host.
func (s *Scheme) ParsePrefix(text string) (stele.Prefix, stele.ID, error) {
	if strings.Contains(text, "://") {
		return lex.ParsePrefix(s, text)
	}
	const year, date = "/2000", "/01.01.00.00"
	return lex.ParsePrefix(s, text, date, "/X", "/2", year+date, "/x"+year+date)
}

// Spellings returns the label as resolvers of the IBI network take it.
func (*Scheme) Spellings(id stele.ID) []stele.Spelling {
	if !id.IsValid() {
		return nil
	}
	return []stele.Spelling{
		{Name: "relative", Text: "ibi/" + id.String()},
		{Name: "URL", Text: "http://urlib.net/ibi/" + id.String()},
	}
}
