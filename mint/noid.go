package mint

import (
	"math"
	"math/bits"
	"strings"

	"github.com/stele-id/stele"
)

// maxTemplate is the size in bytes of the longest template. Names of bounded
// templates are shorter than the 255 octets that every ARK resolver must take
// (draft, section 3.1).
const maxTemplate = 255

var errZeroTemplate = stele.Messagef("template.zero", "the zero template makes no names; parse one")

// Template says how names are made: ".reedeedk", "bc.sddd", "x5.zeeddk". It is a
// prefix, a dot and a mask. The mask's first letter is the order of names:
//
//   - r: quasi-random, each name of the space once;
//   - s: counting up, until the space is used up;
//   - z: counting up without end, the first digit repeated as needed.
//
// Then follow the digits, d for a decimal one and e for a betanumeric one, and
// last k, if names have a check character. (Kunze: the noid tool's manual.)
//
// A Template is comparable; the zero Template is invalid and makes no name.
type Template struct {
	prefix string
	order  byte
	digits string // of 'd' and 'e'
	check  bool
	total  uint64 // 0 if unbounded
}

// ParseTemplate reads a template. Its errors are of Kind [stele.Invalid].
func ParseTemplate(text string) (Template, error) {
	if len(text) > maxTemplate {
		return Template{}, stele.Invalidf("", maxTemplate, "template.too-long", "a template has at most {most} bytes, this has {size}", maxTemplate, len(text))
	}
	prefix, mask, ok := strings.Cut(text, ".")
	if !ok {
		return Template{}, stele.Invalidf("", len(text), "template.dot-missing", `a template is a prefix, a dot and a mask, such as "{example}"; the dot is missing`, "x5.reedeedk")
	}
	for i, r := range prefix {
		if r >= 0x80 || !IsBetanumeric(byte(r)) {
			return Template{}, stele.Invalidf("", i, "template.prefix-character", "a template's prefix is made of the characters {characters}; {character} is none of them", Betanumeric, stele.Describe(r))
		}
	}
	t := Template{prefix: prefix}
	if err := t.readMask(mask, len(prefix)+1); err != nil {
		return Template{}, err
	}
	return t, nil
}

// readMask reads what follows the dot, which stands before byte pos.
func (t *Template) readMask(mask string, pos int) error {
	if mask == "" || strings.IndexByte("rsz", mask[0]) < 0 {
		return stele.Invalidf("", pos, "template.mask-begins-wrong", "a mask begins with r (quasi-random), s (sequential) or z (sequential without end)")
	}
	t.order, t.digits = mask[0], mask[1:]
	t.digits, t.check = strings.CutSuffix(t.digits, "k")
	if t.digits == "" {
		return stele.Invalidf("", pos+1, "template.mask-too-short", "a mask has at least one d (decimal digit) or e (betanumeric character)")
	}
	t.total = 1
	for i, r := range t.digits {
		if r != 'd' && r != 'e' {
			return stele.Invalidf("", pos+1+i, "template.mask-character", "a mask has d, e and at its end k; {character} is none of them", stele.Describe(r))
		}
		if t.order == 'z' {
			continue
		}
		var over uint64
		if over, t.total = bits.Mul64(t.total, base(byte(r))); over > 0 {
			return stele.Invalidf("", pos+1+i, "template.too-many-names", "the mask has more names than can be counted ({most}); use fewer digits", uint64(math.MaxUint64))
		}
	}
	if t.order == 'z' {
		t.total = 0
	}
	return nil
}

// base returns how many values a digit of the mask has.
func base(digit byte) uint64 {
	if digit == 'd' {
		return 10
	}
	return uint64(radix)
}

// String returns the template's text, "" for the zero Template.
func (t Template) String() string {
	if t.order == 0 {
		return ""
	}
	s := t.prefix + "." + string(rune(t.order)) + t.digits
	if t.check {
		s += "k"
	}
	return s
}

// Total returns how many names there are. bounded is false, and n is 0, if they
// don't end.
func (t Template) Total() (n uint64, bounded bool) { return t.total, t.order != 'z' }

// IsShuffled reports whether a seed decides in which order the names come.
func (t Template) IsShuffled() bool { return t.order == 'r' }

// Name returns the n-th name, from 0, without the authority. Its check character
// is that of authority, a slash and the name, or of the name alone if authority
// is empty. The seed chooses the order of a quasi-random template and means
// nothing to others; it and the authority must stay the same for all names of a
// namespace. Past the last name the error's Kind is [stele.Exhausted].
func (t Template) Name(authority string, n, seed uint64) (string, error) {
	if t.order == 0 {
		return "", &stele.Error{Op: "mint", Kind: stele.Invalid, Err: errZeroTemplate}
	}
	if t.order != 'z' && n >= t.total {
		return "", &stele.Error{Op: "mint", Kind: stele.Exhausted, Err: stele.Messagef(
			"template.exhausted", "all {total} names of the template {template} are given; make a longer one", t.total, t)}
	}
	if t.order == 'r' {
		p := newPermutation(t.total, seed)
		n = p.at(n)
	}
	return t.Write(authority, n), nil
}

// Write returns the name that has a number in the mask, from 0, whatever the order of names is. The
// check character is as for [Template.Name]. A number that the mask has no place for loses its first
// digits, unless the template is unbounded.
func (t Template) Write(authority string, n uint64) string {
	// The number is written from its end, into the end of a buffer that holds the
	// longest mask, or the longest number, and the check character.
	var buf [maxTemplate + 64]byte
	end := len(buf) - 1
	at := end
	for i := len(t.digits) - 1; i >= 0 || n > 0 && t.order == 'z'; i-- {
		b := base(t.digits[max(i, 0)])
		at--
		buf[at] = Betanumeric[n%b]
		n /= b
	}
	at -= len(t.prefix)
	copy(buf[at:], t.prefix)
	if t.check {
		buf[end] = Betanumeric[sum(authority, buf[at:end])%uint(radix)]
		end++
	}
	return string(buf[at:end])
}

// sum weighs a name as it stands after its authority.
func sum[T string | []byte](authority string, name T) uint {
	if authority == "" {
		return weigh(0, 0, name)
	}
	return weigh(weigh(0, 0, authority), len(authority)+1, name) // the slash counts 0
}

// Index is the inverse of [Template.Name]: it returns which name of the template
// this is. ok is false if it is not one, by its form or by its check character. So a
// registry knows whether its minter has given a name, or will.
func (t Template) Index(authority, name string, seed uint64) (n uint64, ok bool) {
	if n, ok = t.Read(authority, name); ok && t.order == 'r' {
		p := newPermutation(t.total, seed)
		n = p.index(n)
	}
	return n, ok
}

// Read is the inverse of [Template.Write]: it returns the number that a name writes.
func (t Template) Read(authority, name string) (n uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, t.prefix)
	if !ok || t.order == 0 || len(name) > maxTemplate+64 {
		return 0, false
	}
	if t.check {
		last := len(digits) - 1
		if last < 0 || !agree(sum(authority, name[:len(name)-1]), digits[last]) {
			return 0, false
		}
		digits = digits[:last]
	}
	return t.number(digits)
}

// number reads the digits of a name.
func (t Template) number(digits string) (n uint64, ok bool) {
	more := len(digits) - len(t.digits)
	if more < 0 || more > 0 && (t.order != 'z' || digits[0] == '0') {
		return 0, false
	}
	for i := range len(digits) {
		b, v := base(t.digits[max(i-more, 0)]), values[digits[i]]
		if v < 0 || uint64(v) >= b {
			return 0, false
		}
		over, low := bits.Mul64(n, b)
		var carry uint64
		if n, carry = bits.Add64(low, uint64(v), 0); over > 0 || carry > 0 {
			return 0, false
		}
	}
	return n, true
}
