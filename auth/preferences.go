package auth

import (
	"encoding/json"

	"github.com/stele-id/stele"
)

// PreferenceCells is what the names of cells begin with in which users keep their preferences.
const PreferenceCells = "preferences "

// Preferences is how a user wants the pages and the mail to be. It grants nothing, and only the user sees it.
type Preferences struct {
	User     string `json:"user"`
	Language string `json:"language,omitempty"` // BCP 47; "": as the browser asks

	Digest DigestRate `json:"digest,omitempty"` // "": DigestWeekly
}

// Cell returns the preferences as they are kept.
func (p *Preferences) Cell() (stele.Cell, error) {
	value, err := json.Marshal(p)
	return stele.Cell{Name: PreferenceCells + p.User, Value: value}, err
}

// ReadPreferences reads preferences from their cell.
func ReadPreferences(c stele.Cell) (p Preferences, err error) {
	if err := read(c, &p); err != nil {
		return Preferences{}, err
	}
	if c.Name != PreferenceCells+p.User || !IsName(p.User) {
		return Preferences{}, damaged(c, stele.Messagef("user.stored-name-differs", "it has another name inside"))
	}
	return p, nil
}
