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

// Grade is how well a type fits the preferences.
type Grade struct {
	Fit   Fit
	Q     int // the weight of the preference that decides
	Exact int // how exact that preference is; more is better
}

// Compare orders grades, the better first: by the four classes of the thesis
// (6.2.2), within them by weight as in HTTP's Accept.
func (g Grade) Compare(h Grade) int {
	return cmp.Or(cmp.Compare(g.Fit, h.Fit), cmp.Compare(h.Q, g.Q), cmp.Compare(h.Exact, g.Exact))
}

// GradeType grades a media type, or an algorithm, "" if it is not known. The most
// exact range that covers it decides (RFC 9110, section 12.5.1).
func GradeType(have string, wanted []Preference) Grade {
	if len(wanted) == 0 {
		return Grade{Fit: Asked, Q: 1000}
	}
	name, params := cutParams(have)
	kind, _, _ := strings.Cut(name, "/")
	best, similar := Grade{Exact: -1}, -1
	for _, p := range wanted {
		want, wantParams := cutParams(p.Range)
		wantKind, wantSub, _ := strings.Cut(want, "/")
		exact := -1
		switch {
		case want == "*/*" || want == "*":
			exact = 0
		case name == "" || !strings.EqualFold(wantKind, kind):
			continue
		case strings.EqualFold(want, name):
			exact = gradeParams(params, wantParams)
		case wantSub == "*" || wantSub == "":
			exact = 1
		}
		if exact > best.Exact || exact >= 0 && exact == best.Exact && p.Q > best.Q {
			best = Grade{Asked, p.Q, exact}
		}
		if exact != 0 {
			similar = max(similar, p.Q)
		}
	}
	switch {
	case best.Exact >= 0 && best.Q > 0:
		return best
	case best.Exact >= 0:
		return Grade{Fit: Refused}
	case similar > 0:
		return Grade{Fit: Similar, Q: similar}
	case name == "":
		return Grade{Fit: Unstated}
	}
	return Grade{Fit: Different}
}
