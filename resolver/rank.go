package resolver

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// Fit says how well a target's media type, or its language, fits what was asked
// for. The better come first. A range with a wildcard asks for all that it
// covers, and no preferences ask for everything.
type Fit uint8

const (
	Asked     Fit = iota // it was asked for
	Similar              // audio/wav for audio/mpeg, or pt for pt-BR
	Unstated             // the target does not say what it is
	Different            // something else was asked for
	Refused              // it was asked for with weight 0: anything but this
)

var fitNames = [...]string{"asked for", "similar", "unstated", "different", "refused"}

// String returns the fit in words.
func (f Fit) String() string {
	if int(f) < len(fitNames) {
		return fitNames[f]
	}
	return fmt.Sprintf("Fit(%d)", uint8(f))
}

// grade is how well a target fits the preferences of one sort.
type grade struct {
	fit   Fit
	q     int // the weight of the preference that decides
	exact int // how exact that preference is; more is better
}

// anything is the grade where nothing is preferred.
var anything = grade{Asked, 1000, 0}

func (g grade) compare(h grade) int {
	return cmp.Or(cmp.Compare(g.fit, h.fit), cmp.Compare(h.q, g.q), cmp.Compare(h.exact, g.exact))
}

// candidate is a target and how it fits.
type candidate struct {
	target   stele.Target
	media    grade
	language grade
	protocol int // place among the protocols asked for, or behind them
}

// compare is the order of choice: by media type as in the EDDDS (those asked for,
// then those of the same type, then those that name none, then the rest; weights
// and wildcards as HTTP's Accept has them), by language in the same way, by
// protocol; then as the owner says, by order and preference.
func (c *candidate) compare(d *candidate) int {
	return cmp.Or(
		c.media.compare(d.media),
		c.language.compare(d.language),
		cmp.Compare(c.protocol, d.protocol),
		cmp.Compare(c.target.Order, d.target.Order),
		cmp.Compare(c.target.Preference, d.target.Preference),
	)
}

// String says why the candidate stands where it stands.
func (c *candidate) String() string {
	return fmt.Sprintf("type %q %s, weight %d; language %q %s, weight %d; order %d, preference %d",
		c.target.Type, c.media.fit, c.media.q, c.target.Language, c.language.fit, c.language.q, c.target.Order, c.target.Preference)
}

// rank appends the targets that give the service to the list, which is empty, the
// best first. Equals come in an order that random decides. Only partial ones are
// taken if asked so.
func rank(list []candidate, targets []stele.Target, q *Request, partial bool, random func(int) int) []candidate {
	for i := range targets {
		t := &targets[i]
		if t.Service != q.Service || partial && !t.Partial {
			continue
		}
		c := candidate{target: *t, media: anything, language: anything}
		if len(q.Protocols) > 0 {
			if c.protocol = slices.IndexFunc(q.Protocols, func(p string) bool { return hasProtocol(t.URL, p) }); c.protocol < 0 {
				c.protocol = len(q.Protocols)
			}
		}
		if q.OnlyProtocols && c.protocol == len(q.Protocols) {
			continue
		}
		if len(q.Accept) > 0 {
			c.media = gradeMedia(t.Type, q.Accept)
		}
		if len(q.Languages) > 0 {
			c.language = gradeLanguage(t.Language, q.Languages)
		}
		list = append(list, c)
	}
	if len(list) < 2 {
		return list
	}
	if random != nil {
		for i := len(list) - 1; i > 0; i-- {
			j := random(i + 1)
			list[i], list[j] = list[j], list[i]
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return a.compare(&b) })
	return list
}

// hasProtocol reports whether a URL's scheme is the one given.
func hasProtocol(url, scheme string) bool {
	return len(url) > len(scheme) && url[len(scheme)] == ':' && strings.EqualFold(url[:len(scheme)], scheme)
}

// gradeMedia grades a media type, "" if it is not known. The most exact range
// that covers it decides (RFC 9110, section 12.5.1).
func gradeMedia(media string, wanted []Preference) grade {
	name, params := cutParams(media)
	kind, _, _ := strings.Cut(name, "/")
	best, similar := grade{exact: -1}, -1
	for _, p := range wanted {
		wantName, wantParams := cutParams(p.Range)
		wantKind, wantSub, _ := strings.Cut(wantName, "/")
		exact := -1
		switch {
		case wantName == "*/*":
			exact = 0
		case name == "":
		case strings.EqualFold(wantName, name):
			exact = gradeParams(params, wantParams)
		case !strings.EqualFold(wantKind, kind):
		case wantSub == "*":
			exact = 1
		}
		if exact > best.exact || exact >= 0 && exact == best.exact && p.Q > best.q {
			best = grade{Asked, p.Q, exact}
		}
		if name != "" && strings.EqualFold(wantKind, kind) {
			similar = max(similar, p.Q)
		}
	}
	switch {
	case best.exact >= 0 && best.q > 0:
		return best
	case best.exact >= 0:
		return grade{fit: Refused}
	case similar > 0:
		return grade{Similar, similar, 0}
	case name == "":
		return grade{fit: Unstated}
	}
	return grade{fit: Different}
}

// gradeParams tells how exact a range of the same type and subtype is: the more
// of its parameters the target has, the more. One that the target does not name
// can't be held against it, but makes the range less exact than one without; -1
// if the target has another value.
func gradeParams(have, want string) int {
	exact := 3
	for want != "" {
		var name, value string
		name, value, want = cutParam(want)
		switch got, ok := findParam(have, name); {
		case !ok:
			return 2
		case !strings.EqualFold(got, value):
			return -1
		}
		exact++
	}
	return exact
}

// findParam returns the value of a parameter.
func findParam(params, name string) (value string, ok bool) {
	for params != "" {
		var n string
		if n, value, params = cutParam(params); strings.EqualFold(n, name) {
			return value, true
		}
	}
	return "", false
}

// cutParams cuts a media type or range from its parameters.
func cutParams(media string) (name, params string) {
	name, params, _ = strings.Cut(media, ";")
	return strings.TrimSpace(name), params
}

// cutParam cuts the first of some parameters from the rest. Quotation marks
// around its value are removed.
func cutParam(params string) (name, value, rest string) {
	quoted, end := false, len(params)
	for i := 0; i < len(params) && end == len(params); i++ {
		switch c := params[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == ';' && !quoted:
			end = i
		}
	}
	if end < len(params) {
		rest = params[end+1:]
	}
	name, value, _ = strings.Cut(strings.TrimSpace(params[:end]), "=")
	if n := len(value); n > 1 && value[0] == '"' && value[n-1] == '"' {
		value = value[1 : n-1]
	}
	return name, value, rest
}

// gradeLanguage grades a language tag, "" if it is not known. A range covers the
// tags that it is the beginning of (RFC 4647, section 3.3.1); a tag that is the
// beginning of a range is similar, as in section 3.4.
func gradeLanguage(tag string, wanted []Preference) grade {
	best, similar := grade{exact: -1}, grade{fit: Similar}
	for _, p := range wanted {
		exact := -1
		switch {
		case p.Range == "*":
			exact = 0
		case tag == "":
		case beginsTag(tag, p.Range):
			exact = len(p.Range)
		case beginsTag(p.Range, tag) && p.Q > 0:
			if g := (grade{Similar, p.Q, len(tag)}); g.compare(similar) < 0 {
				similar = g
			}
		}
		if exact > best.exact || exact >= 0 && exact == best.exact && p.Q > best.q {
			best = grade{Asked, p.Q, exact}
		}
	}
	switch {
	case best.exact >= 0 && best.q > 0:
		return best
	case best.exact >= 0:
		return grade{fit: Refused}
	case similar.q > 0:
		return similar
	case tag == "":
		return grade{fit: Unstated}
	}
	return grade{fit: Different}
}

// beginsTag reports whether a tag consists of the first subtags of another.
func beginsTag(tag, begin string) bool {
	return len(tag) >= len(begin) && strings.EqualFold(tag[:len(begin)], begin) && (len(tag) == len(begin) || tag[len(begin)] == '-')
}
