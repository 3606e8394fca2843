package registrar

import (
	"context"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// maxLanguage is how many bytes the tag of a language may have.
const maxLanguage = 35 // RFC 5646, section 4.4.1

// Preferences returns how the caller wants the pages to be. A user who has set nothing has the
// zero preferences.
func (r *Registrar) Preferences(ctx context.Context) (auth.Preferences, error) {
	p, _, err := r.preferences(ctx, "show preferences")
	return p, err
}

// preferences reads those of the caller, and their cell.
func (r *Registrar) preferences(ctx context.Context, op string) (auth.Preferences, stele.Cell, error) {
	if err := identify(ctx, op); err != nil {
		return auth.Preferences{}, stele.Cell{}, err
	}
	return r.preferencesOf(ctx, op, auth.From(ctx).Name)
}

// preferencesOf reads those of a user, and their cell.
func (r *Registrar) preferencesOf(ctx context.Context, op, user string) (auth.Preferences, stele.Cell, error) {
	none := auth.Preferences{User: user}
	cell := stele.Cell{Name: auth.PreferenceCells + none.User}
	var err error
	if cell.Value, err = r.store.Cell(ctx, cell.Name); err != nil || cell.Value == nil {
		return none, cell, tell(op, err)
	}
	p, err := r.preferred.Read(cell, auth.ReadPreferences)
	if err != nil {
		return none, cell, tell(op, err)
	}
	return p, cell, nil
}

// SetPreferences changes the caller's own preferences: change is called with a copy of them, and
// again if another request was faster. A token that is limited can't change them.
func (r *Registrar) SetPreferences(ctx context.Context, change func(*auth.Preferences)) (auth.Preferences, error) {
	const op = "set preferences"
	for attempt := 1; ; attempt++ {
		before, held, err := r.preferences(ctx, op)
		if err != nil {
			return auth.Preferences{}, err
		}
		if auth.From(ctx).IsLimited() {
			return auth.Preferences{}, refuse(op, stele.ID{}, stele.Forbidden, "preferences.token-limited", "this token may not be used to change preferences; use one that has no limits")
		}
		next := before
		change(&next)
		next.User = before.User
		if len(next.Language) > maxLanguage {
			return auth.Preferences{}, refuse(op, stele.ID{}, stele.Invalid, "preferences.language-too-long", "the language has {size} bytes; {most} are the most", len(next.Language), maxLanguage)
		}
		if next.Digest != "" && !slices.Contains(auth.DigestRates(), next.Digest) {
			return auth.Preferences{}, refuse(op, stele.ID{}, stele.Invalid, "preferences.digest-unknown", `"{rate}" does not say how often digests are sent; choose daily, weekly or off`, next.Digest)
		}
		if next == before {
			return before, nil
		}
		cell, err := next.Cell()
		if err != nil {
			return auth.Preferences{}, tell(op, err)
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: held.Value, After: cell.Value}}})
		if err == nil {
			return next, nil
		}
		if !r.again(ctx, err, attempt) {
			return auth.Preferences{}, err
		}
	}
}
