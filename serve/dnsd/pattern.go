package dnsd

import (
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// pattern is an ERE, without the anchors, that matches a name or the beginning of names as
// clients apply rules to them: URNs and ARKs as they are, other names as URIs (RFC 3404,
// section 4.1).
type pattern struct {
	ere    string
	fold   bool // it is to be used with the flag i
	groups int  // that the ERE has
	rest   int  // where in the ERE the name itself begins: 0, or after the scheme of a URI that is not a part of it
}

// newPattern makes a pattern of a canonical text. The head of a name, such as urn:example,
// is written in any case; what follows counts as it is, if case does. URIs are canonical
// when rules are applied to them, so they have no such head.
func newPattern(schemes *stele.Schemes, scheme, text string, c casing) (p pattern) {
	list, rest, ok := schemes.URI(scheme, text)
	if !ok {
		n := headLen(text)
		if c != caseCounts || !hasLetters(text[n:]) {
			return pattern{ere: ddds.Quote(text), fold: true}
		}
		return pattern{ere: anyBytes(n) + ddds.Quote(text[n:])}
	}
	p.fold = c != caseCounts
	p.ere, p.groups = alternatives(list)
	p.ere += ":"
	if !strings.HasSuffix(text, ":"+rest) {
		p.rest = len(p.ere)
	}
	p.ere += ddds.Quote(rest)
	return p
}

// alternatives makes an ERE of words, which are letters: https? of http and https, else
// (doi|hdl), which is a group.
func alternatives(words []string) (ere string, groups int) {
	if len(words) == 1 {
		return words[0], 0
	}
	if long, short := words[0], words[1]; len(words) == 2 && len(long) == len(short)+1 && strings.HasPrefix(long, short) {
		return long + "?", 0
	}
	return "(" + strings.Join(words, "|") + ")", 1
}

func anyBytes(n int) string {
	if n == 0 {
		return ""
	}
	return ".{" + strconv.Itoa(n) + "}"
}

// identifierPattern makes an ERE that matches one identifier and no other. tells says that
// it must tell case variants apart, after the head.
func identifierPattern(schemes *stele.Schemes, scheme, id string, tells bool) (ere string, fold bool) {
	c := caseLower
	if tells {
		c = caseCounts
	}
	p := newPattern(schemes, scheme, id, c)
	return "^" + p.ere + "$", p.fold
}
