package ways

import (
	"context"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
)

// Outcome is what one way says of a name.
type Outcome struct {
	Via    client.Via
	Result client.Result
	Err    error
}

// Comparison is what all ways say of a name.
type Comparison struct {
	Outcomes   []Outcome
	Agree      bool
	Unanswered error // of a way that does not answer: whether all agree is not known; nil if all answered
}

// Compare tries all ways. There must be one.
func Compare(ctx context.Context, schemes *stele.Schemes, id stele.ID, q client.Request, list List) Comparison {
	c := Comparison{Agree: true}
	for _, w := range list {
		res, err := w.Resolve(ctx, q)
		if err != nil && stele.KindOf(err) == stele.Unavailable {
			c.Unanswered = stele.Errorf("compare", id, stele.Unavailable, "resolve.way-unanswered", "{way} does not answer: {cause}", w.Via, err)
		}
		c.Outcomes = append(c.Outcomes, Outcome{w.Via, res, err})
	}
	for i := range c.Outcomes[1:] {
		c.Agree = c.Agree && c.Outcomes[0].agrees(schemes, &c.Outcomes[i+1])
	}
	return c
}

// agrees reports whether two ways say the same: one location, or two that are equally
// good, or that there is none for the same reason.
func (o *Outcome) agrees(schemes *stele.Schemes, other *Outcome) bool {
	if o.Err != nil || other.Err != nil {
		return o.Err != nil && other.Err != nil && stele.KindOf(o.Err) == stele.KindOf(other.Err)
	}
	a, b := &o.Result, &other.Result
	return a.Found == b.Found && (a.Location == b.Location || sameQuestion(schemes, a.Location, b.Location) || slices.Contains(a.Equals, b.Location) || slices.Contains(b.Equals, a.Location))
}

// sameQuestion reports whether two URLs ask one resolver the same: what follows the question
// mark is one name, perhaps in two spellings. A rule in the DNS has the canonical one, and the
// client asks over HTTP in that of the user.
func sameQuestion(schemes *stele.Schemes, a, b string) bool {
	here, name, ok := strings.Cut(a, "?")
	there, other, ok2 := strings.Cut(b, "?")
	if !ok || !ok2 || here != there {
		return false
	}
	same, err := schemes.Equivalent(name, other)
	return same && err == nil
}
