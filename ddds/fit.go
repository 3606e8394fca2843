package ddds

import (
	"cmp"
	"fmt"
	"strings"
)

// Preference is a media range, such as audio/mpeg, audio/* or */*, and how much it
// is wanted. For N2S it is an algorithm, such as RSA.
type Preference struct {
	Range string `json:"range"`
	Q     int    `json:"q"` // in thousandths, from 0 (never) to 1000
}

// Fit says how well the type that a rule offers fits what was asked for. The
// better come first. A range with a wildcard asks for all that it covers, and no
// preferences ask for everything.
type Fit uint8

const (
	Asked     Fit = iota // it was asked for: type and subtype
	Similar              // it is of the same type: audio/wav for audio/mpeg
	Unstated             // the rule names no type
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

// MarshalText returns the fit in words.
func (f Fit) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// grade is how well a type fits the preferences.
type grade struct {
	fit   Fit
	q     int // the weight of the preference that decides
	exact int // how exact that preference is; more is better
}

// compare orders grades, the better first: by the four classes of the thesis
// (6.2.2), within them by weight as in HTTP's Accept.
func (g grade) compare(h grade) int {
	return cmp.Or(cmp.Compare(g.fit, h.fit), cmp.Compare(h.q, g.q), cmp.Compare(h.exact, g.exact))
}

// gradeType grades the type of an offer, "" if it names none. The most exact range
// that covers it decides (RFC 9110, section 12.5.1).
func gradeType(have string, wanted []Preference) grade {
	if len(wanted) == 0 {
		return grade{Asked, 1000, 0}
	}
	kind, _, _ := strings.Cut(have, "/")
	best, similar := grade{exact: -1}, -1
	for _, p := range wanted {
		want, params, _ := strings.Cut(p.Range, ";")
		want = strings.TrimSpace(want)
		wantKind, wantSub, _ := strings.Cut(want, "/")
		exact := -1
		switch {
		case want == "*/*" || want == "*":
			exact = 0
		case have == "" || !strings.EqualFold(wantKind, kind):
			continue
		case strings.EqualFold(want, have) && params == "":
			exact = 3
		case strings.EqualFold(want, have):
			exact = 2 // the rule can't say whether the parameters hold
		case wantSub == "*" || wantSub == "":
			exact = 1
		}
		if exact > best.exact || exact >= 0 && exact == best.exact && p.Q > best.q {
			best = grade{Asked, p.Q, exact}
		}
		if want != "*/*" && want != "*" {
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
	case have == "":
		return grade{fit: Unstated}
	}
	return grade{fit: Different}
}
