package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// IdentityCells begin the names of cells in which accounts at OpenID providers are kept.
const IdentityCells = "identity "

// MaxIdentities is how many accounts may be linked to one user.
const MaxIdentities = 20

// Identity is an account at an OpenID provider that signs a user in. The account is the issuer's
// URL and the subject; an address of mail is none, because providers give it to others later.
type Identity struct {
	Issuer  string    `json:"issuer"`
	Subject string    `json:"subject"`
	User    string    `json:"user"`
	Label   string    `json:"label,omitempty"`  // by which its owner knows it
	Groups  []string  `json:"groups,omitempty"` // that the user has because of this account
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`
	By      string    `json:"by,omitempty"` // the user who linked it

	// Ended is when it was taken from its user. The cell stays, so that a restored backup does
	// not link the account again.
	Ended time.Time `json:"ended,omitzero"`
}

// ID returns a short name of the account, the same in all registries.
func (i *Identity) ID() string { return IdentityID(i.Issuer, i.Subject) }

// IdentityID returns the ID of an account. A subject may have any characters, and the name of a
// cell may not.
func IdentityID(issuer, subject string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(len(issuer)) + " " + issuer + " " + subject))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// Cell returns the identity as it is kept.
func (i *Identity) Cell() (stele.Cell, error) {
	value, err := json.Marshal(i)
	return stele.Cell{Name: IdentityCells + i.ID(), Value: value}, err
}

// ReadIdentity reads an identity from its cell.
func ReadIdentity(c stele.Cell) (i Identity, err error) {
	if err := read(c, &i); err != nil {
		return Identity{}, err
	}
	if c.Name != IdentityCells+i.ID() {
		return Identity{}, damaged(c, stele.Messagef("token.stored-id-differs", "it has another ID inside"))
	}
	return i, nil
}

// Identity returns the identity of an account, and its cell; the zero one if the account was never
// linked. One that was taken away has Ended set.
func (d *Directory) Identity(ctx context.Context, issuer, subject string) (Identity, error) {
	name := IdentityCells + IdentityID(issuer, subject)
	value, err := d.store.Cell(ctx, name)
	if err != nil {
		return Identity{}, tell(err)
	}
	if value == nil {
		return Identity{}, nil
	}
	return ReadIdentity(stele.Cell{Name: name, Value: value})
}

// Arrival is a person whom an OpenID provider or a trusted proxy has signed in.
type Arrival struct {
	Issuer, Subject string   // the account
	IssuerName      string   // of the issuer in the settings
	Label           string   // by which its owner knows it
	Groups          []string // that the user has because of this account, at present

	User string // the user that the account is, as a proxy knows it; "" if only the registry knows
	Name string // of the person there, for the name of a user that is made
	Make bool   // make a user if there is none
}

// ProxyIssuer stands for the trusted proxy where an identity has an issuer's URL.
const ProxyIssuer = "proxy"

// NewName returns a name for a user who is made for an account: what the person is called
// elsewhere, in the characters of names, and after @ the name of the issuer. So the account of a
// person who chooses their name elsewhere is never taken for a user who was added here. Number is 1, and more if the name is taken.
func NewName(wanted, issuer string, number int) string {
	b := make([]byte, 0, len(wanted))
	wanted, _, _ = strings.Cut(strings.ToLower(wanted), "@")
	for i := range len(wanted) {
		c := wanted[i]
		switch plain := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'; {
		case plain, len(b) > 0 && (c == '.' || c == '_' || c == '-'):
			b = append(b, c)
		case len(b) > 0 && b[len(b)-1] != '-' && c < 0x80:
			b = append(b, '-')
		}
	}
	end := "@" + issuer
	if number > 1 {
		end = "-" + strconv.Itoa(number) + end
	}
	name := strings.TrimRight(string(b[:min(len(b), max(MaxName-len(end), 0))]), "-._")
	if name == "" {
		name = "user"
	}
	return name + end
}
