package password

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/secret"
)

// Cells begins the names of cells in which passwords are kept; the name of the user follows.
const Cells = "password "

// Stored is a user's password as it is kept, with the second factor. There is none without the other.
type Stored struct {
	User    string       `json:"user"`
	Hash    string       `json:"hash"` // a PHC string
	Key     secret.Value `json:"totp"` // the secret of the authenticator app
	Step    int64        `json:"step"` // time step of the last code that was accepted
	Created time.Time    `json:"created"`
	Changed time.Time    `json:"changed"`
	Used    time.Time    `json:"used,omitzero"`
}

// Place returns the name of the place for which the secret is encrypted.
func (s *Stored) Place() string { return Cells + s.User }

// Cell returns the password as it is kept. The secret must be encrypted.
func (s *Stored) Cell() (stele.Cell, error) {
	value, err := json.Marshal(s)
	return stele.Cell{Name: Cells + s.User, Value: value}, err
}

// Read reads a password from its cell.
func Read(c stele.Cell) (s Stored, err error) {
	if err := json.Unmarshal(c.Value, &s); err != nil {
		return Stored{}, refuse(stele.Internal, "password.damaged", `the password in the cell "{cell}" is damaged: {cause}`, c.Name, err)
	}
	if c.Name != Cells+s.User || s.Hash == "" || s.Key.IsZero() {
		return Stored{}, refuse(stele.Internal, "password.incomplete", `the password in the cell "{cell}" is damaged: it is of another user, or has no hash or no secret`, c.Name)
	}
	return s, nil
}

// SealCell calls seal with the secret of a cell that holds a password, and with the place that it belongs
// to; isPassword is false for other cells. If seal changes the secret, after is the new value of the cell.
func SealCell(c stele.Cell, seal func(place string, v *secret.Value) (changed bool, err error)) (after []byte, isPassword bool, err error) {
	if !strings.HasPrefix(c.Name, Cells) {
		return nil, false, nil
	}
	s, err := Read(c)
	if err != nil {
		return nil, true, err
	}
	changed, err := seal(s.Place(), &s.Key)
	if err != nil || !changed {
		return nil, true, err
	}
	cell, err := s.Cell()
	return cell.Value, true, err
}
