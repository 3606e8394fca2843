package stele

import "cmp"

// MaxText is the size in bytes of the longest text that is read as an
// identifier, and of the longest canonical form. Longer input is refused before
// it is looked at. (ARK asks for at least 255 octets, section 3.1 of its draft.)
const MaxText = 4096

// ID is a persistent identifier: a scheme and the canonical text of a name in
// it. Two IDs are equal (==) exactly if they name the same thing by their
// scheme's rules, so an ID can be a map's key. The zero ID is invalid.
//
// An ID is made by parsing, with [Schemes.Parse] or a [Scheme]'s own Parse, and
// can't be changed. It marshals as its canonical text. It does not unmarshal:
// reading a name takes the list of schemes, which is never global; see
// [Schemes.Reader].
type ID struct {
	scheme string
	text   string
}

// NewID puts together an ID from a scheme's name and a text that is known to be
// canonical there. It is meant for schemes, which have just made that text, and for
// stores, which kept it; all other callers parse. It checks what holds in all schemes:
// size and legibility.
func NewID(scheme, canonical string) (ID, error) {
	if !isSchemeName(scheme) {
		return ID{}, Invalidf("", 0, "scheme.name-malformed", `"{scheme}" is not a name of a scheme`, scheme)
	}
	if err := CheckText(scheme, canonical); err != nil {
		return ID{}, err
	}
	return ID{scheme, canonical}, nil
}

// StoredID returns the ID that a store kept as the name of a scheme and a canonical text. It
// checks neither, so that what was stored stays readable when the rules for new names change:
// only the form in which stores keep IDs uses it (package store/binary).
func StoredID(scheme, canonical string) ID { return ID{scheme, canonical} }

// Scheme returns the name of id's scheme, "" for the zero ID.
func (id ID) Scheme() string { return id.scheme }

// String returns id's canonical text, "" for the zero ID.
func (id ID) String() string { return id.text }

// IsValid reports whether id is not the zero ID.
func (id ID) IsValid() bool { return id.scheme != "" }

// Compare orders IDs by scheme, then bytewise by text.
func (id ID) Compare(other ID) int {
	if c := cmp.Compare(id.scheme, other.scheme); c != 0 {
		return c
	}
	return cmp.Compare(id.text, other.text)
}

// MarshalText returns the canonical text. The zero ID has none: an error.
func (id ID) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// AppendText appends the canonical text to b. The zero ID has none: an error.
func (id ID) AppendText(b []byte) ([]byte, error) {
	if !id.IsValid() {
		return b, &Error{Op: "marshal", Kind: Invalid, Err: errZeroID}
	}
	return append(b, id.text...), nil
}

// Prefix is the beginning of identifiers in a scheme: what a namespace or a
// registered ancestor is known by, such as ark:12345/x5 or 102.100.272/. It is
// comparable like an ID; the zero Prefix is invalid. A Prefix need not be an
// identifier, and an identifier may also be a Prefix.
type Prefix struct {
	scheme string
	text   string
}

// Scheme returns the name of p's scheme, "" for the zero Prefix.
func (p Prefix) Scheme() string { return p.scheme }

// String returns p's canonical text.
func (p Prefix) String() string { return p.text }

// IsValid reports whether p is not the zero Prefix.
func (p Prefix) IsValid() bool { return p.scheme != "" }

// Prefix returns the first n bytes of id's text as a Prefix. It is for schemes,
// which know where their names may be cut. An n that leaves nothing, or nothing
// out, gives the zero Prefix.
func (id ID) Prefix(n int) Prefix {
	if n <= 0 || n >= len(id.text) {
		return Prefix{}
	}
	return Prefix{id.scheme, id.text[:n]}
}

// isSchemeName reports whether s can name a scheme: lower-case letters.
func isSchemeName(s string) bool {
	for i := range len(s) {
		if s[i] < 'a' || s[i] > 'z' {
			return false
		}
	}
	return s != ""
}
