package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// User is a person or a program with a name of its own in the registry.
type User struct {
	Name     string    `json:"name"`
	Groups   []string  `json:"groups,omitempty"`
	Admin    bool      `json:"admin,omitempty"`
	Disabled bool      `json:"disabled,omitempty"` // may do nothing more than the public
	Created  time.Time `json:"created"`
	Modified time.Time `json:"modified"`
	By       string    `json:"by,omitempty"` // the principal of the last change
}

// Token is one credential of a user, without its secret.
type Token struct {
	ID      string    `json:"id"`
	User    string    `json:"user"`
	Label   string    `json:"label,omitempty"` // what it is for, in its owner's words
	Hash    []byte    `json:"hash,omitempty"`  // of the secret; only the Directory gets it
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // from then on it is not valid; zero: never
	Revoked time.Time `json:"revoked,omitzero"`
	Shut    bool      `json:"shut,omitempty"`   // by a restore that could not know whether it was revoked; see registrar.OpenTokens
	LastUse time.Time `json:"lastUse,omitzero"` // to the minute or so
	By      string    `json:"by,omitempty"`     // the user who made it

	// Parent is the ID of the token that made this one. It is "" for a child of the user:
	// one that was made without a token, or before tokens had parents.
	Parent string `json:"parent,omitempty"`

	Scopes     []Scope  `json:"scopes,omitempty"`     // what it may be used for; none: all that its user may do
	Namespaces []string `json:"namespaces,omitempty"` // to which it is limited; none: to no namespace

	// EndedWith is the ID of the token above this one that was revoked or removed, so that
	// this one is not valid. It is not stored; see [Tree].
	EndedWith string `json:"endedWith,omitempty"`
}

// Ended reports whether the token was revoked or has expired, or one above it was revoked or
// removed.
func (t *Token) Ended(now time.Time) bool {
	return t.EndedWith != "" || !t.Revoked.IsZero() || !t.Expires.IsZero() && !now.Before(t.Expires)
}

// Limits on users and tokens.
const (
	MaxName   = 64
	MaxGroups = 100
	MaxLabel  = 200
	MaxTokens = 1000 // of one user
)

// How long a token lasts by default, and how long at most unless an administrator makes it: a
// day more, for clocks that differ.
const (
	TokenLife    = 365 * 24 * time.Hour
	MaxTokenLife = TokenLife + 24*time.Hour
)

// IsName reports whether a text can be the name of a user or a group: 1 to 64 of
// a-z, 0-9, and . _ @ - , beginning with a letter or a digit.
func IsName(text string) bool {
	for i := range len(text) {
		c := text[i]
		plain := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !plain && (i == 0 || c != '.' && c != '_' && c != '@' && c != '-') {
			return false
		}
	}
	return text != "" && len(text) <= MaxName
}

func nameRule() error {
	return stele.Messagef("user.name-rule", "a name has 1 to 64 of a-z, 0-9, and . _ @ -, and begins with a letter or a digit")
}

// Validate reports everything that is wrong with the user, as [stele.Problems] in an Error of
// Kind Invalid.
func (u *User) Validate() error {
	var problems stele.Problems
	add := func(path, code, text string, args ...any) {
		problems = append(problems, stele.Problem{Path: path, Err: stele.Messagef(code, text, args...)})
	}
	switch {
	case !IsName(u.Name):
		add("name", "user.name-not-allowed", `"{name}" can't be used: {cause}`, u.Name, nameRule())
	case u.Name == localName:
		add("name", "user.name-reserved", "{name} stands for who works on the data folder directly; choose another name", localName)
	}
	if len(u.Groups) > MaxGroups {
		add("groups", "list.too-long", "there are {count}; {most} are the most", len(u.Groups), MaxGroups)
	} else {
		for i, g := range u.Groups {
			switch {
			case !IsName(g):
				add(fmt.Sprintf("groups[%d]", i), "group.name-not-allowed", `"{group}" can't be used: {cause}`, g, nameRule())
			case slices.Contains(u.Groups[:i], g):
				add(fmt.Sprintf("groups[%d]", i), "user.group-repeated", "{group} is there twice; leave it out", g)
			}
		}
	}
	if len(problems) > 0 {
		return &stele.Error{Op: "validate user", Kind: stele.Invalid, Err: problems}
	}
	return nil
}

// Validate reports everything that is wrong with what a caller can set of a token, as
// [User.Validate] does.
func (t *Token) Validate() error {
	var problems stele.Problems
	t.validateLimits(func(path, code, text string, args ...any) {
		problems = append(problems, stele.Problem{Path: path, Err: stele.Messagef(code, text, args...)})
	})
	if len(t.Label) > MaxLabel {
		problems = append(problems, stele.Problem{Path: "label", Err: stele.Messagef("value.too-long", "has {size} bytes; {most} are the most", len(t.Label), MaxLabel)})
	} else if t.Label != "" {
		if err := stele.CheckText("", t.Label); err != nil {
			problems = append(problems, stele.Problem{Path: "label", Err: errors.Unwrap(err)})
		}
	}
	if year := t.Expires.Year(); year > 9999 {
		problems = append(problems, stele.Problem{Path: "expires", Err: stele.Messagef("token.expiry-year-too-late", "the year {year} is too far away; 9999 is the last", year)})
	}
	if len(problems) > 0 {
		return &stele.Error{Op: "validate token", Kind: stele.Invalid, Err: problems}
	}
	return nil
}

// The names of cells in which users and tokens are kept, and when a token was used
// last.
const (
	UserCells  = "user "
	TokenCells = "token "
	UsedCells  = "used "
)

// Cell returns the user as it is kept.
func (u *User) Cell() (stele.Cell, error) {
	value, err := json.Marshal(u)
	return stele.Cell{Name: UserCells + u.Name, Value: value}, err
}

// Cell returns the token as it is kept. When it was used last is kept elsewhere.
func (t *Token) Cell() (stele.Cell, error) {
	kept := *t
	kept.LastUse, kept.EndedWith = time.Time{}, ""
	value, err := json.Marshal(&kept)
	return stele.Cell{Name: TokenCells + t.ID, Value: value}, err
}

// ReadUser reads a user from its cell.
func ReadUser(c stele.Cell) (u User, err error) {
	if err := read(c, &u); err != nil {
		return User{}, err
	}
	if c.Name != UserCells+u.Name || !IsName(u.Name) {
		return User{}, damaged(c, stele.Messagef("user.stored-name-differs", "it has another name inside"))
	}
	return u, nil
}

// ReadToken reads a token from its cell.
func ReadToken(c stele.Cell) (t Token, err error) {
	if err := read(c, &t); err != nil {
		return Token{}, err
	}
	if c.Name != TokenCells+t.ID || !isID(t.ID) {
		return Token{}, damaged(c, stele.Messagef("token.stored-id-differs", "it has another ID inside"))
	}
	t.EndedWith = ""
	return t, nil
}

// read reads the JSON of a cell. It refuses unknown fields: a later program may have written
// a restriction there, which this one can't apply.
func read(c stele.Cell, v any) error {
	dec := json.NewDecoder(bytes.NewReader(c.Value))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return damaged(c, err)
	}
	return nil
}

func damaged(c stele.Cell, err error) error {
	return &stele.Error{Op: "read access", Kind: stele.Internal,
		Err: stele.Messagef("user.cell-damaged", `cell "{cell}" is damaged, or a newer program wrote it: {cause}`, c.Name, err)}
}
