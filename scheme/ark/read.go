package ark

import (
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// minNAAN is the size of the shortest NAAN. The draft allows one character, but
// none shorter than five was ever assigned (section 2.3).
const minNAAN = 5

// reading is an ARK as it was read.
type reading struct {
	canon string // the normal form
	naan  int    // where in canon the NAAN ends
	name  int    // where in canon the base name ends
	last  int    // where in the text the base name's last character stands

	inflection string // "?", "??" or "?info", by which a service is asked for
	query      string // any other query, without its "?"
	found      trait
}

// trait is what a text has besides its ARK, or otherwise than in normal form.
type trait uint8

const (
	hasQuery    trait = 1 << iota // a query that is not an inflection
	hasFragment                   // a URL's fragment
	upperNAAN                     // capital letters in the NAAN
	oddHyphen                     // hyphens that are not ASCII
	guestInside                   // characters that the draft does not list
	untidy                        // anything that tidy has to do
)

// read reads an ARK and demands its check character where one is known to be.
func (s *Scheme) read(text string, r *reading) error {
	if err := r.normalise(text); err != nil {
		return err
	}
	return s.verify(r)
}

// normalise brings a text into the normal form of section 3.2.
func (r *reading) normalise(text string) error {
	pos := locate(text)
	if pos < 0 {
		return stele.ErrForeign
	}
	if err := stele.CheckText(name, text); err != nil {
		return err
	}
	core := text[:r.cutQuery(text, pos)]
	start := pos // of the NAAN
	if strings.HasPrefix(core[pos:], "/") {
		start++
	}
	slash, err := r.scanNAAN(core, start)
	if err != nil {
		return err
	}
	end, err := r.scanName(core, slash)
	if err != nil {
		return err
	}
	switch {
	case r.found&untidy != 0:
		r.canon = tidy(core[start:end])
	case start == pos && core[pos-len(label):pos] == label:
		r.canon = core[pos-len(label) : end]
	default:
		r.canon = label + core[start:end]
	}
	r.naan = strings.IndexByte(r.canon, '/')
	r.name = r.naan + 1
	for r.name < len(r.canon) && !isStructural(r.canon[r.name]) {
		r.name++
	}
	return nil
}

// locate returns where in a text the first label ends, or -1 if there is none: at
// the text's beginning, or at that of an element of a URL's path, with its
// protocol or without. There, browsers and wikis often write the colon encoded. What
// stands before the label is the name mapping authority, which does not count (section
// 2.1), so it is not checked.
func locate(text string) int {
	if len(text) > stele.MaxText {
		text = text[:stele.MaxText] // CheckText refuses it if it bears the label
	}
	if lex.Begins(text, "a") {
		if _, ok := lex.CutFold(text, label); ok {
			return len(label)
		}
	}
	if len(text) < len("https:") || !mayMark(text[len("https:"):]) {
		return -1
	}
	path, pos := text, 0
	if link, ok := lex.ParseLink(text); ok {
		path, pos = link.Path, link.PathPos
	} else if host, _, _ := lex.Cut(text, '/'); !isHost(host) {
		return -1
	}
	for {
		i := strings.IndexByte(path, '/')
		if i < 0 || strings.IndexByte(path[:i], '?') >= 0 {
			return -1
		}
		path, pos = path[i+1:], pos+i+1
		if _, ok := lex.CutFold(path, label); ok {
			return pos + len(label)
		}
		if _, ok := lex.CutFold(path, "ark%3a"); ok {
			return pos + len("ark%3a")
		}
	}
}

// isHost reports whether a text begins with a host, as people leave out the
// protocol: n2t.net/ark:/12345/x1. A prefix of digits and dots is a handle's, and
// what follows the host of a handle proxy is a handle.
func isHost(s string) bool {
	top := strings.LastIndexByte(s, '.') + 1
	if top == 0 || lex.Domain(s) >= 0 || !lex.IsAlpha(s[top]) {
		return false
	}
	_, isProxy := lex.HandleProxy(s)
	return !isProxy
}

// mayMark reports whether a URL, after its protocol, can have a label in it: a
// colon, or an encoded one. Most have not.
func mayMark(s string) bool {
	return strings.IndexByte(s, ':') >= 0 || strings.IndexByte(s, '%') >= 0
}

// cutQuery notes what follows the ARK that begins before pos, and returns where
// the ARK ends. An inflection is written like a query (section 1.2), but only
// these three are inflections; "?info&x=1" is some server's query.
func (r *reading) cutQuery(text string, pos int) (end int) {
	end = len(text)
	if i := strings.IndexByte(text[pos:end], '#'); i >= 0 {
		r.found |= hasFragment
		end = pos + i
	}
	i := strings.IndexByte(text[pos:end], '?')
	if i < 0 {
		return end
	}
	switch q := text[pos+i : end]; q {
	case "?", "??", "?info":
		r.inflection = q
	default:
		r.found |= hasQuery
		r.query = q[1:]
	}
	return pos + i
}

// scanNAAN checks the NAAN at start and returns where the slash after it stands.
func (r *reading) scanNAAN(core string, start int) (slash int, err error) {
	n := 0
	i := start
	for i < len(core) && core[i] != '/' {
		c := core[i]
		switch {
		case mint.IsBetanumeric(c):
			n++
		case 'A' <= c && c <= 'Z' && mint.IsBetanumeric(c|0x20):
			n++
			r.found |= upperNAAN | untidy
		case c == '-':
			r.found |= untidy
		case oddHyphenLen(core[i:]) > 0:
			r.found |= oddHyphen | untidy
			i += oddHyphenLen(core[i:]) - 1
		default:
			return i, badNAAN(core, i)
		}
		i++
	}
	switch {
	case n == 0 && strings.HasPrefix(core[start:], "/"):
		return i, stele.Invalidf(name, start, "ark.too-many-slashes", `not more than one slash stands between "{label}" and the NAAN`, label)
	case n == 0:
		return i, stele.Invalidf(name, start, "ark.naan-missing", `there is no NAAN; after "{label}" comes the number of an authority, a slash and a name`, label)
	case n < minNAAN:
		return i, stele.Invalidf(name, start, "ark.naan-too-short", "this NAAN has {length} characters; NAANs have {least} or more", n, minNAAN)
	case i == len(core):
		return i, stele.Invalidf(name, i, "ark.name-missing", "there is no name; after the NAAN come a slash and a name")
	}
	return i, nil
}

// badNAAN makes the error for a character that no NAAN has.
func badNAAN(core string, i int) error {
	c, _ := utf8.DecodeRuneInString(core[i:])
	if c == '%' {
		return stele.Invalidf(name, i, "ark.naan-percent-encoded", "a NAAN is not percent-encoded; decode the text first")
	}
	return stele.Invalidf(name, i, "ark.naan-character", "a NAAN is made of the characters {characters}; {character} is none of them", mint.Betanumeric, stele.Describe(c))
}

// What a byte may do in a name or a qualifier (section 3.1). Other characters of a
// URL's path (RFC 3986, 3.3) than the draft lists are in wide use: commas in IIIF's
// qualifiers, colons in the names of FamilySearch. They are let in, with a
// warning; encoding them would make another name.
const (
	stranger = iota // nothing; the zero value
	plain           // stand for itself
	separator
	hyphen
	percent
	guest // stand for itself, with a warning
)

var class = func() (class [256]uint8) {
	for c := range class {
		switch {
		case lex.IsAlnum(byte(c)) || strings.IndexByte("=~*+@_$", byte(c)) >= 0:
			class[c] = plain
		case strings.IndexByte("!&'(),:;", byte(c)) >= 0:
			class[c] = guest
		}
	}
	class['/'], class['.'], class['-'], class['%'] = separator, separator, hyphen, percent
	return class
}()

// scanName checks the name and its qualifiers after the slash, and returns where
// they end, without separators and hyphens at their end.
func (r *reading) scanName(core string, slash int) (end int, err error) {
	end = slash
	separated, inName := true, true
	for i := slash + 1; i < len(core); i++ {
		switch class[core[i]] {
		case plain:
		case guest:
			r.found |= guestInside
		case percent:
			if n := oddHyphenLen(core[i:]); n > 0 {
				r.found |= oddHyphen | untidy
				i += n - 1
				continue
			}
			if i+2 >= len(core) || !lex.IsHex(core[i+1]) || !lex.IsHex(core[i+2]) {
				return i, stele.Invalidf(name, i, "ark.percent-sign-alone", `two hexadecimal digits must follow a '{sign}'; write the sign itself as "{encoded}"`, string(rune('%')), "%25")
			}
			if core[i+1] >= 'a' || core[i+2] >= 'a' {
				r.found |= untidy
			}
			i += 2
		case separator:
			if separated {
				r.found |= untidy
			}
			separated = true
			inName = inName && end == slash
			continue
		case hyphen:
			r.found |= untidy
			continue
		default:
			n := oddHyphenLen(core[i:])
			if n == 0 {
				return i, badName(core, i)
			}
			r.found |= oddHyphen | untidy
			i += n - 1
			continue
		}
		separated = false
		end = i + 1
		if inName {
			r.last = i
		}
	}
	if end == slash {
		return end, stele.Invalidf(name, slash+1, "ark.name-missing", "there is no name; after the NAAN come a slash and a name")
	}
	return end, nil
}

// badName makes the error for a character that no ARK has.
func badName(core string, i int) error {
	c, _ := utf8.DecodeRuneInString(core[i:])
	if c < utf8.RuneSelf {
		return stele.Invalidf(name, i, "ark.character-not-encoded", `'{character}' can't stand in an ARK; write it as "{encoded}" if it is part of the name`, string(rune(c)), percentEncoded(byte(c)))
	}
	return stele.Invalidf(name, i, "ark.character-not-allowed", "{character} can't stand in an ARK, which is made of ASCII letters, digits and =~*+@_$", stele.Describe(c))
}

func percentEncoded(c byte) string {
	const digits = "0123456789ABCDEF"
	return string([]byte{'%', digits[c>>4], digits[c&15]})
}

// oddHyphenLen returns the length of one of U+2010 to U+2015 at the beginning of s,
// 0 if there is none: hyphens and dashes that typesetting puts in the place of a
// hyphen (section 3.2, step 6). A browser sends them percent-encoded.
func oddHyphenLen(s string) int {
	if strings.HasPrefix(s, "\u2010"[:2]) && len(s) > 2 && 0x90 <= s[2] && s[2] <= 0x95 {
		return len("\u2010")
	}
	if rest, ok := lex.CutFold(s, "%e2%80%9"); ok && rest != "" && '0' <= rest[0] && rest[0] <= '5' {
		return len("%e2%80%90")
	}
	return 0
}

// tidy takes the steps 4 to 8 of section 3.2 on a NAAN, a slash and what follows,
// which have been scanned, and puts the label before them. Hyphens go before
// separators are looked at: they may stand between two. Of separators in a row
// the first remains, of those at an end none.
func tidy(core string) string {
	var b strings.Builder
	b.Grow(len(label) + len(core))
	b.WriteString(label)
	inNAAN, pending := true, byte(0)
	for i := 0; i < len(core); i++ {
		c := core[i]
		switch {
		case c == '-':
			continue
		case c >= utf8.RuneSelf || c == '%' && oddHyphenLen(core[i:]) > 0:
			i += oddHyphenLen(core[i:]) - 1
			continue
		case isStructural(c):
			if pending == 0 {
				pending = c
			}
			inNAAN = false
			continue
		}
		if pending != 0 {
			b.WriteByte(pending)
			pending = 0
		}
		switch {
		case c == '%':
			b.WriteByte(c)
			b.WriteByte(lex.UpperHex(core[i+1]))
			b.WriteByte(lex.UpperHex(core[i+2]))
			i += 2
		case inNAAN && 'A' <= c && c <= 'Z':
			b.WriteByte(c | 0x20)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
