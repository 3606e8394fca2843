package resolver

import (
	"context"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
)

// Bounds of the search for what may have been meant: a client must not be able to
// overload the registry with it, or to list it.
const (
	maxLookups = 32
	maxNearest = 5
	maxZone    = 64 // bytes; a check character says little of more
)

// UnknownError says that a name leads nowhere. It stands in an error of Kind
// NotFound. A registered name that the client may not know of gives the same error as
// one that is not registered.
type UnknownError struct {
	Mistyped bool       // the check character does not hold
	Nearest  []stele.ID // registered names that a mistake turns into this one, or of which it would be a part
}

// Error says what may have been meant.
func (e *UnknownError) Error() string { return e.message().Error() }

// Unwrap returns the message, which has a code.
func (e *UnknownError) Unwrap() error { return e.message() }

func (e *UnknownError) message() *stele.Message {
	names := make([]string, len(e.Nearest))
	for i, id := range e.Nearest {
		names[i] = id.String()
	}
	near := strings.Join(names, " or ")
	switch {
	case near == "" && !e.Mistyped:
		return stele.Messagef("resolve.unknown", "no such name is registered here")
	case near == "":
		return stele.Messagef("resolve.unknown-mistyped", "no such name is registered here, and its check character does not hold: look for a wrong or swapped character")
	case !e.Mistyped:
		return stele.Messagef("resolve.unknown-near", "no such name is registered here; did you mean {names}?", near)
	}
	return stele.Messagef("resolve.unknown-mistyped-near", "no such name is registered here, and its check character does not hold; did you mean {names}?", near)
}

// unknown makes the error for a name that leads nowhere.
func (w *walk) unknown(ctx context.Context, ns *stele.Namespace) error {
	unknown := &UnknownError{}
	if ns != nil && ns.Checked {
		if err := w.nearest(ctx, ns, unknown); err != nil {
			return err
		}
	}
	if len(unknown.Nearest) == 0 {
		if err := w.slips(ctx, unknown); err != nil {
			return err
		}
	}
	return &stele.Error{Op: "resolve", ID: w.q.ID, Kind: stele.NotFound, Err: unknown}
}

// slips looks for what may have been meant without a check character's help: the
// name in small letters, without the stop or bracket of the sentence it was copied
// from, or the whole of which it would be a part. A client can't list names with it:
// all are made of the one that was asked for.
func (w *walk) slips(ctx context.Context, e *UnknownError) error {
	text := w.q.ID.String()
	var near []string
	for _, other := range []string{strings.TrimRight(text, ".,;:!?'\")]}>"), strings.ToLower(text)} {
		if other != text && other != "" {
			near = append(near, other)
		}
	}
	found, err := w.Registered(ctx, near, w.q.Who)
	if err != nil {
		return err
	}
	e.Nearest = append(e.Nearest, found...)
	if w.whole != nil && !slices.Contains(e.Nearest, w.whole.ID) {
		e.Nearest = append(e.Nearest, w.whole.ID)
	}
	return nil
}

// nearest looks for what may have been meant by a name whose check character does
// not hold. Where the name has qualifiers, the check character may stand before
// them.
func (w *walk) nearest(ctx context.Context, ns *stele.Namespace, e *UnknownError) error {
	text := w.q.ID.String()
	lookups, last := 0, ""
	for _, end := range w.ends(len(ns.Prefix)) {
		zone := w.checkZone(text[:end])
		start := locate(text, zone)
		if zone == last || len(zone) > maxZone || start < 0 {
			continue
		}
		if mint.Checked(zone) {
			e.Mistyped = len(e.Nearest) > 0
			return nil
		}
		e.Mistyped, last = true, zone
		for _, fixed := range mint.Repairs(zone, max(0, len(ns.Prefix)-start)) {
			near := []string{text[:start] + restore(text[start:], zone, fixed)}
			if qualifiers := text[start+len(zone):]; qualifiers != "" {
				near = []string{near[0] + qualifiers, near[0]}
			}
			if lookups += len(near); lookups > maxLookups || len(e.Nearest) == maxNearest {
				return nil
			}
			found, err := w.Registered(ctx, near, w.q.Who)
			if err != nil {
				return err
			}
			e.Nearest = append(e.Nearest, found[:min(1, len(found))]...)
		}
	}
	return nil
}

// ends returns where the name proper may end, the longest first: at the end of the
// text, or where qualifiers begin. A cut between two letters (a shoulder) is not an
// end.
func (w *walk) ends(prefix int) (ends []int) {
	text := w.q.ID.String()
	ends = append(ends, len(text))
	for p := range w.schemes.Parents(w.q.ID) {
		if n := len(p.String()); n > prefix && n <= 2*maxZone && !isAlphanumeric(text[n]) {
			ends = append(ends, n)
		}
	}
	return ends
}

// checkZone returns the part of a canonical text that a check character ends. It
// is what the registrar demands of new names: the scheme says, or else it is the
// whole text in lower case, which is the case of check characters.
func (w *walk) checkZone(text string) string {
	if s, ok := w.schemes.Lookup(w.q.ID.Scheme()).(stele.CheckedScheme); ok {
		return s.CheckZone(text)
	}
	return strings.ToLower(text)
}

// locate returns where a zone, in any case of letters, stands in a text between
// characters that are not letters or digits; -1 if nowhere.
func locate(text, zone string) int {
	for i := 0; zone != "" && i+len(zone) <= len(text); i++ {
		if end := i + len(zone); (i == 0 || !isAlphanumeric(text[i-1])) && (end == len(text) || !isAlphanumeric(text[end])) &&
			strings.EqualFold(text[i:end], zone) {
			return i
		}
	}
	return -1
}

// restore returns a zone that was fixed with its letters as the text has them.
func restore(text, zone, fixed string) string {
	b := []byte(fixed)
	for i := range b {
		if fixed[i] == zone[i] {
			b[i] = text[i]
		}
	}
	return string(b)
}
