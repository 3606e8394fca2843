package stele

import (
	"encoding"
	"errors"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// ErrForeign is what a [Scheme] answers to a text that bears none of its marks:
// not a wrong identifier of this scheme, but one that it does not claim. It is of Kind
// [Invalid].
var ErrForeign error = &Error{
	Op:   "parse",
	Kind: Invalid,
	Err:  &SyntaxError{Reason: Messagef("identifier.no-mark", "the text has no mark of this scheme")},
}

// Scheme is a grammar of identifiers. A Scheme keeps no state and may be used by
// many goroutines at once. What each must hold to is tested by package
// scheme/schemetest.
type Scheme interface {
	// Name returns the scheme's name, lower-case letters: "ark".
	Name() string

	// Parse reads text in any spelling that the scheme's users write and returns
	// the identifier in canonical form. Texts that name the same thing give the
	// same ID, and the ID's own text gives that ID again. What stands beside a
	// name without being part of it (a URL's host, a query, a fragment) is left
	// out.
	//
	// Any bytes are answered: with an ID, with ErrForeign if the text has no mark
	// of this scheme, or with an Error of Kind Invalid that holds a SyntaxError.
	// It takes time linear in len(text), and none to speak of past MaxText.
	Parse(text string) (ID, error)

	// Explain accepts exactly what Parse accepts, with the same ID and the same
	// errors, and tells all that is encoded in the text.
	Explain(text string) (Explanation, error)

	// Spellings returns the other ways in which id is written, the commonest
	// first, without its canonical text. Each is read back as id by Parse. The
	// id must be one of this scheme's.
	Spellings(id ID) []Spelling

	// Parents yields what contains id by the structure of its text: id without its
	// last part, and so on. Each is a proper prefix of id's text, and each is shorter
	// than the one before. The id must be one of this scheme's.
	Parents(id ID) iter.Seq[Prefix]

	// Cuts reports whether the first n bytes of id's text can be the prefix of a
	// namespace that id belongs to, or a name that contains id. Every parent is one.
	// Where names may be cut at any character, as in ARKs and PURLs, others are too. No
	// prefix is empty, or the whole text. It takes no memory. The id must be one of this
	// scheme's.
	Cuts(id ID, n int) bool

	// ParsePrefix reads the beginning of names in any spelling, such as the prefix of a
	// namespace. It returns the prefix in canonical form, and an identifier right below it,
	// which need not be registered: the prefix is one of the places where Cuts cuts it. The
	// prefix's own text gives that prefix again. Every parent of an identifier is a prefix,
	// unless it is so long that no name below it is within MaxText.
	//
	// Any bytes are answered, with errors as those of Parse, in time linear in len(text).
	ParsePrefix(text string) (Prefix, ID, error)
}

// PassingScheme is a Scheme whose names pass on what follows them to their targets, although
// the targets do not say so.
type PassingScheme interface {
	Scheme

	// PassesOn reports whether a name passes on the rest of a longer name, or if that is
	// empty the query.
	PassesOn(rest string) bool
}

// OriginScheme is a Scheme whose names say which server made them.
type OriginScheme interface {
	Scheme

	// Origin returns the server that made a name; ok is false if the name does not say it.
	Origin(id ID) (from Origin, ok bool)
}

// Origin is a server, by its name or by its address.
type Origin struct {
	Host string     // "" if Addr is valid
	Addr netip.Addr // the zero Addr if Host is not empty
	Port uint16
}

// CheckedScheme is a Scheme that says which part of a name a check character ends. In other
// schemes it is the whole name in lower case.
type CheckedScheme interface {
	Scheme

	// CheckZone returns the part of a name, in canonical form, that its check character
	// ends.
	CheckZone(text string) string
}

// HostScheme is a Scheme of names under hosts, which a registry knows and can add to. A
// host is never removed: names under it would not parse any more. Hosts may be added
// while other goroutines read names.
type HostScheme interface {
	Scheme

	// Hosts returns the hosts, in canonical form and in order.
	Hosts() []string

	// AddHosts adds hosts, all or none; those that are known already change nothing.
	// Invalid if one can't be a host.
	AddHosts(hosts ...string) error

	// HostOf returns the host of a name, "" if it is not a name of this scheme. The host
	// need not be known.
	HostOf(id ID) string

	// HostPrefix returns what all names under a host begin with.
	HostPrefix(host string) string
}

// PlaceScheme is a Scheme that tells more of a name to a reader who knows which namespaces
// are registered.
type PlaceScheme interface {
	Scheme

	// Place returns what x tells, with what the prefixes of the namespaces that the name
	// is in add to it, or correct. The longest prefix is the first. It changes nothing
	// of x itself.
	Place(x Explanation, prefixes []string) Explanation
}

// ClaimingScheme is a Scheme in which names that do not begin with the prefix of a namespace
// belong to it all the same, because they describe it: 0.NA/20.500.12345 is the record of the
// prefix 20.500.12345.
type ClaimingScheme interface {
	Scheme

	// Claims returns what belongs to the namespace with this prefix, in canonical form: names,
	// with all that is below them.
	Claims(prefix string) []string
}

// URIScheme is a Scheme whose names are URIs, or have a common spelling that is one, but not
// URNs. Clients look for such names in the DNS by the scheme of the URI (RFC 3404, section
// 4.2).
type URIScheme interface {
	Scheme

	// URI returns a name, or the beginning of names, as a URI in two parts: the schemes
	// that the URI can have, that of the usual spelling first, and what follows the colon
	// after any of them. It is canonical and percent-encoded (RFC 3404, section 4.1). The
	// text must be canonical in this scheme. The beginning of a name gives the beginning of
	// its URI, unless it ends within a character.
	URI(text string) (schemes []string, rest string)
}

// DiscoveredScheme is a Scheme whose clients find the server of an authority by an SRV record
// (RFC 2782).
type DiscoveredScheme interface {
	Scheme

	// Discovery returns the name of the SRV record of the authority of all names that begin with
	// a prefix, absolute and in lower case: "_lsid._tcp.example.org."; "" if they have several
	// authorities. The prefix must be canonical.
	Discovery(prefix string) string
}

// Schemes is the list of schemes that a program knows, in order of precedence:
// the first that claims a text reads it. It is constructed, never global; a
// program makes one (package scheme/all) and hands it on.
type Schemes struct {
	list []Scheme
}

// NewSchemes makes a list of schemes. Two of one name are an error.
func NewSchemes(list ...Scheme) (*Schemes, error) {
	for i, s := range list {
		if !isSchemeName(s.Name()) {
			return nil, Messagef("scheme.name-not-lower-case", `"{scheme}" can't name a scheme: lower-case letters only`, s.Name())
		}
		if slices.ContainsFunc(list[:i], func(t Scheme) bool { return t.Name() == s.Name() }) {
			return nil, Messagef("scheme.name-twice", `two schemes are named "{scheme}"`, s.Name())
		}
	}
	return &Schemes{slices.Clone(list)}, nil
}

// All yields the schemes in order of precedence.
func (s *Schemes) All() iter.Seq[Scheme] { return slices.Values(s.list) }

// Names returns the names of the schemes, in the same order.
func (s *Schemes) Names() (names []string) {
	for _, scheme := range s.list {
		names = append(names, scheme.Name())
	}
	return names
}

// Hosts returns the hosts whose names the schemes read, in order.
func (s *Schemes) Hosts() (hosts []string) {
	for _, scheme := range s.list {
		if hosted, ok := scheme.(HostScheme); ok {
			hosts = append(hosts, hosted.Hosts()...)
		}
	}
	return hosts
}

// Lookup returns the scheme of that name, or nil.
func (s *Schemes) Lookup(name string) Scheme {
	for _, scheme := range s.list {
		if scheme.Name() == name {
			return scheme
		}
	}
	return nil
}

// Parse reads text by the first scheme that claims it. Its error, if any, is
// that scheme's, or says that no scheme knows the text; its Kind is Invalid.
func (s *Schemes) Parse(text string) (ID, error) {
	if err := CheckText("", text); err != nil {
		return ID{}, err
	}
	for _, scheme := range s.list {
		id, err := scheme.Parse(text)
		if err != ErrForeign {
			return id, err
		}
	}
	return ID{}, s.unclaimed(text)
}

// Explain reads text as Parse does and tells all that is encoded in it.
func (s *Schemes) Explain(text string) (Explanation, error) {
	if err := CheckText("", text); err != nil {
		return Explanation{}, err
	}
	for _, scheme := range s.list {
		x, err := scheme.Explain(text)
		if err != ErrForeign {
			return x, err
		}
	}
	return Explanation{}, s.unclaimed(text)
}

// IsPlaced reports whether the namespaces that a name is in add to its explanation; see
// [PlaceScheme].
func (s *Schemes) IsPlaced(id ID) bool {
	_, ok := s.Lookup(id.Scheme()).(PlaceScheme)
	return ok
}

// Place returns what x tells, with what the namespaces that the name is in add to it, the
// nearest first; see [PlaceScheme].
func (s *Schemes) Place(x Explanation, ancestors []*Namespace) Explanation {
	scheme, ok := s.Lookup(x.ID.Scheme()).(PlaceScheme)
	if !ok {
		return x
	}
	var prefixes []string
	for _, ns := range ancestors {
		// A namespace may have names that its minter's settings lead to.
		if ns.Prefix != "" && s.IsWithin(x.ID, ns.Prefix) {
			prefixes = append(prefixes, ns.Prefix)
		}
	}
	return scheme.Place(x, prefixes)
}

// Equivalent reports whether two texts are spellings of one identifier.
func (s *Schemes) Equivalent(a, b string) (bool, error) {
	x, errA := s.Parse(a)
	y, errB := s.Parse(b)
	return x == y && errA == nil && errB == nil, errors.Join(errA, errB)
}

// Spellings returns the other ways in which id is written; see [Scheme].
func (s *Schemes) Spellings(id ID) []Spelling {
	if scheme := s.Lookup(id.Scheme()); scheme != nil {
		return scheme.Spellings(id)
	}
	return nil
}

// Parents yields id's parents, longest first; see [Scheme].
func (s *Schemes) Parents(id ID) iter.Seq[Prefix] {
	if scheme := s.Lookup(id.Scheme()); scheme != nil {
		return scheme.Parents(id)
	}
	return func(func(Prefix) bool) {}
}

// Cuts reports whether the first n bytes of id's text are a prefix that id can belong
// to; see [Scheme].
func (s *Schemes) Cuts(id ID, n int) bool {
	if n <= 0 || n >= len(id.String()) {
		return false
	}
	scheme := s.Lookup(id.Scheme())
	return scheme != nil && scheme.Cuts(id, n)
}

// ParsePrefix reads the beginning of names in any spelling by the first scheme that claims
// it; see [Scheme]. An error, of Kind Invalid, if no name begins so, or if names can't be cut
// there.
func (s *Schemes) ParsePrefix(text string) (Prefix, ID, error) {
	if err := CheckText("", text); err != nil {
		return Prefix{}, ID{}, err
	}
	p, below, err := s.parsePrefix(text)
	if err == nil {
		return p, below, nil
	}
	// The scheme that claims the text, if there is one, knows why no name begins so, unless it
	// complains of a separator at the end.
	e, claimed := errors.AsType[*SyntaxError](err)
	claimed = claimed && e.Scheme != "" && e.Pos < len(text)
	if !claimed || e.Pos >= len(strings.TrimRight(text, ":/")) {
		// A separator too many or too few is perhaps all that is wrong.
		for _, near := range [...]string{strings.TrimRight(text, "/"), strings.TrimSuffix(text, ":"), text + "/"} {
			// A word and a colon may be a scheme that is not known.
			if p, _, err := s.parsePrefix(near); err == nil && (near+":" != text || strings.Contains(near, ":")) {
				return Prefix{}, ID{}, Invalidf(p.Scheme(), len(text), "prefix.wrong-cut", `names can't be cut here; did you mean "{suggestion}"?`, p)
			}
		}
	}
	if claimed {
		return Prefix{}, ID{}, Invalidf(e.Scheme, e.Pos, "prefix.invalid", `"{text}" can't begin names: {reason}`, text, e.Reason)
	}
	return Prefix{}, ID{}, Invalidf("", 0,
		"prefix.scheme-unknown", `"{text}" is not a prefix of names in a known scheme; give one such as ark:12345/x5, 102.100.272/ or urn:example`, text)
}

// parsePrefix is ParsePrefix, with the error of the scheme that claims the text.
func (s *Schemes) parsePrefix(text string) (Prefix, ID, error) {
	for _, scheme := range s.list {
		p, below, err := scheme.ParsePrefix(text)
		if err == ErrForeign {
			continue
		}
		return p, below, err
	}
	return Prefix{}, ID{}, ErrForeign
}

// IsWithin reports whether id is what a prefix names, or belongs to it.
func (s *Schemes) IsWithin(id ID, prefix string) bool {
	return strings.HasPrefix(id.String(), prefix) && (len(prefix) == len(id.String()) || s.Cuts(id, len(prefix)))
}

// URI returns a canonical name, or the beginning of names, of a scheme as a URI; see
// [URIScheme]. ok is false if names of the scheme are not found as URIs.
func (s *Schemes) URI(scheme, text string) (list []string, rest string, ok bool) {
	if u, is := s.Lookup(scheme).(URIScheme); is {
		list, rest = u.URI(text)
	}
	return list, rest, len(list) > 0
}

// Reader returns a value that unmarshals text into id by way of Parse, for flags
// and for JSON. (ID can't do so by itself: there is no global list of schemes.)
func (s *Schemes) Reader(id *ID) encoding.TextUnmarshaler { return &reader{s, id} }

type reader struct {
	schemes *Schemes
	id      *ID
}

func (r *reader) UnmarshalText(text []byte) error {
	// Before the copy: a megabyte is refused at once.
	if len(text) > MaxText {
		return tooLong("", len(text))
	}
	id, err := r.schemes.Parse(string(text))
	if err == nil {
		*r.id = id
	}
	return err
}

// unclaimed makes the error for a text that no scheme knows, with a hint for the
// commonest reasons.
func (s *Schemes) unclaimed(text string) error {
	pos, hint := 0, ""
	odd := strings.IndexFunc(text, func(r rune) bool { return LooksLike(r) != 0 })
	switch {
	case odd >= 0:
		r, _ := utf8.DecodeRuneInString(text[odd:])
		pos, hint = odd, "; it has "+Describe(r)
	case text[0] == ' ' || text[len(text)-1] == ' ':
		hint = "; remove the spaces around it"
	case strings.IndexByte(text, '%') >= 0:
		hint = "; it seems to be percent-encoded, decode it first"
	}
	names := make([]string, len(s.list))
	for i, scheme := range s.list {
		names[i] = scheme.Name()
	}
	return Invalidf("", pos, "identifier.scheme-unknown", "this is an identifier of no known scheme ({schemes}){hint}", strings.Join(names, ", "), hint)
}

// Discovery returns the name of the SRV record by which clients find the server of names of a
// scheme that begin with a prefix; see [DiscoveredScheme]. It is "" if there is none.
func (s *Schemes) Discovery(scheme, prefix string) string {
	if d, ok := s.Lookup(scheme).(DiscoveredScheme); ok {
		return d.Discovery(prefix)
	}
	return ""
}
