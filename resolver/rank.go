package resolver

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
)

// How well a target's media type, or its language, fits what was asked for is graded
// as the EDDDS grades the types that rules offer, so that the web and the DNS choose
// alike.
type (
	Fit   = ddds.Fit
	grade = ddds.Grade
)

// The fits, the better first; see [ddds.Fit].
const (
	Asked     = ddds.Asked
	Similar   = ddds.Similar
	Unstated  = ddds.Unstated
	Different = ddds.Different
	Refused   = ddds.Refused
)

// anything is the grade where nothing is preferred.
var anything = grade{Fit: Asked, Q: 1000}

// candidate is a target and how it fits.
type candidate struct {
	target   stele.Target
	number   int // of the target in its list
	media    grade
	language grade
	protocol int // place among the protocols asked for, or after them
}

// compare is the order of choice: by media type as in the EDDDS (those asked for,
// then those of the same type, then those that name none, then the rest; weights
// and wildcards as HTTP's Accept has them), by language in the same way, by
// protocol; then as the owner says, by order and preference.
func (c *candidate) compare(d *candidate) int {
	return cmp.Or(
		c.media.Compare(d.media),
		c.language.Compare(d.language),
		cmp.Compare(c.protocol, d.protocol),
		cmp.Compare(c.target.Order, d.target.Order),
		cmp.Compare(c.target.Preference, d.target.Preference),
	)
}

// mediaSaid says which type a target states, and how well it fits: q is that of HTTP.
func (c *candidate) mediaSaid() *stele.Message {
	if c.target.Type == "" {
		return stele.Messagef("trace.type-unstated", "no type stated")
	}
	return stele.Messagef("trace.type", `type "{type}" {fit}, q={q}`, c.target.Type, fitSaid(c.media.Fit), float64(c.media.Q)/1000)
}

// languageSaid says the same of the language.
func (c *candidate) languageSaid() *stele.Message {
	if c.target.Language == "" {
		return stele.Messagef("trace.language-unstated", "no language stated")
	}
	return stele.Messagef("trace.language", `language "{language}" {fit}, q={q}`, c.target.Language, fitSaid(c.language.Fit), float64(c.language.Q)/1000)
}

// fitSaid says how well something fits what was asked for.
func fitSaid(f Fit) *stele.Message {
	switch f {
	case Asked:
		return stele.Messagef("trace.fit-asked", "asked for")
	case Similar:
		return stele.Messagef("trace.fit-similar", "similar")
	case Unstated:
		return stele.Messagef("trace.fit-unstated", "unstated")
	case Different:
		return stele.Messagef("trace.fit-different", "different")
	case Refused:
		return stele.Messagef("trace.fit-refused", "refused")
	}
	return stele.Messagef("trace.fit-other", "({fit})", f)
}

// rank appends the targets that give the service to the list, which is empty, the
// best first. Equals come in the order in which the record lists them, except
// mirrors: those of one type and language change places as random says. Only partial
// ones are taken if asked so.
func rank(list []candidate, targets []stele.Target, q *Request, partial bool, random func(int) int) []candidate {
	for i := range targets {
		t := &targets[i]
		if t.Service != q.Service || partial && !t.Partial {
			continue
		}
		c := candidate{target: *t, number: i, media: anything, language: anything}
		if len(q.Protocols) > 0 {
			if c.protocol = slices.IndexFunc(q.Protocols, func(p string) bool { return hasProtocol(t.URL, p) }); c.protocol < 0 {
				c.protocol = len(q.Protocols)
			}
		}
		if q.OnlyProtocols && c.protocol == len(q.Protocols) {
			continue
		}
		if len(q.Accept) > 0 {
			c.media = ddds.GradeType(t.Type, q.Accept)
		}
		if len(q.Languages) > 0 {
			c.language = gradeLanguage(t.Language, q.Languages)
		}
		list = append(list, c)
	}
	if len(list) < 2 {
		return list
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return a.compare(&b) })
	if random != nil {
		for first := 0; first < len(list); {
			end := first + 1
			for end < len(list) && list[first].compare(&list[end]) == 0 {
				end++
			}
			shuffleMirrors(list[first:end], random)
			first = end
		}
	}
	return list
}

// shuffleMirrors changes the places of mirrors among candidates that compare equal:
// each group of one type and language keeps the places that it has as a group. A
// client that accepts anything is so never sent to another kind of thing by chance.
func shuffleMirrors(equals []candidate, random func(int) int) {
	for i := range equals { // Fisher and Yates, within the group of each candidate
		n := 1
		for k := i + 1; k < len(equals); k++ {
			if equals[i].mirrors(&equals[k]) {
				n++
			}
		}
		if n == 1 {
			continue
		}
		skip := random(n)
		for k := i; ; k++ {
			if !equals[i].mirrors(&equals[k]) {
				continue
			}
			if skip == 0 {
				equals[i], equals[k] = equals[k], equals[i]
				break
			}
			skip--
		}
	}
}

// mirrors reports whether two candidates say that they are the same kind of thing.
func (c *candidate) mirrors(d *candidate) bool {
	return c.target.Type == d.target.Type && strings.EqualFold(c.target.Language, d.target.Language)
}

// hasProtocol reports whether a URL's scheme is the one given.
func hasProtocol(url, scheme string) bool {
	return len(url) > len(scheme) && url[len(scheme)] == ':' && strings.EqualFold(url[:len(scheme)], scheme)
}

// gradeLanguage grades a language tag, "" if it is not known. A range covers the
// tags that it is the beginning of (RFC 4647, section 3.3.1); a tag that is the
// beginning of a range is similar, as in section 3.4.
func gradeLanguage(tag string, wanted []Preference) grade {
	best, similar := grade{Exact: -1}, grade{Fit: Similar}
	for _, p := range wanted {
		exact := -1
		switch {
		case p.Range == "*":
			exact = 0
		case tag == "":
		case beginsTag(tag, p.Range):
			exact = len(p.Range)
		case beginsTag(p.Range, tag) && p.Q > 0:
			if g := (grade{Fit: Similar, Q: p.Q, Exact: len(tag)}); g.Compare(similar) < 0 {
				similar = g
			}
		}
		if exact > best.Exact || exact >= 0 && exact == best.Exact && p.Q > best.Q {
			best = grade{Fit: Asked, Q: p.Q, Exact: exact}
		}
	}
	switch {
	case best.Exact >= 0 && best.Q > 0:
		return best
	case best.Exact >= 0:
		return grade{Fit: Refused}
	case similar.Q > 0:
		return similar
	case tag == "":
		return grade{Fit: Unstated}
	}
	return grade{Fit: Different}
}

// beginsTag reports whether a tag consists of the first subtags of another.
func beginsTag(tag, begin string) bool {
	return len(tag) >= len(begin) && strings.EqualFold(tag[:len(begin)], begin) && (len(tag) == len(begin) || tag[len(begin)] == '-')
}
