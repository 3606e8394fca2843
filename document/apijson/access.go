package apijson

import "time"

// NewInvitation adds a user, with a link to begin with.
type NewInvitation struct {
	Name      string   `json:"name" minLength:"1" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._@-]*$" example:"ann"`
	Groups    []string `json:"groups,omitempty" maxItems:"100" maxLength:"64"`
	Admin     bool     `json:"admin,omitempty" doc:"May do everything."`
	Namespace string   `json:"namespace,omitempty" doc:"Where the user gets a role; without it, nowhere." example:"ark:12345"`
	Role      string   `json:"role,omitempty" enum:"reader,editor,owner" doc:"The role there."`
	Seconds   int      `json:"seconds,omitempty" minimum:"900" maximum:"604800" doc:"How long the link lasts; without it, a day."`
}

// MadeInvitation is a user who was invited, and the link, whose secret is nowhere else.
type MadeInvitation struct {
	User User     `json:"user"`
	Link MadeLink `json:"link"`
}

// Link is a one-time link that was not used yet: without its secret.
type Link struct {
	ID      string    `json:"id" doc:"By which it is ended. It is not secret." example:"4k2m9x0q7rbc"`
	User    string    `json:"user" doc:"Whom it signs in." example:"ann"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	By      string    `json:"by,omitempty" doc:"Who made it."`
}

// LinkPage is a part of a list of links.
type LinkPage struct {
	Items []Link `json:"items"`
	Next  string `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// Account is an account elsewhere by which a user signs in.
type Account struct {
	ID      string    `json:"id" doc:"By which it is unlinked."`
	User    string    `json:"user" example:"ann"`
	Issuer  string    `json:"issuer" doc:"The address of the OpenID provider, or proxy."`
	Subject string    `json:"subject" doc:"The account there."`
	Label   string    `json:"label,omitempty" doc:"By which its owner knows it."`
	Groups  []string  `json:"groups,omitempty" doc:"That the user has because of it."`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`
	By      string    `json:"by,omitempty" doc:"Who linked it."`
}

// AccountPage is a part of a list of accounts.
type AccountPage struct {
	Items []Account `json:"items"`
	Next  string    `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// Passkey is a passkey of a user: without its keys.
type Passkey struct {
	ID      string    `json:"id" doc:"By which it is renamed or removed."`
	User    string    `json:"user" example:"ann"`
	Name    string    `json:"name" doc:"In its owner's words." example:"Telephone"`
	Site    string    `json:"site" doc:"The host that it is for." example:"id.example.org"`
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`
	Copied  time.Time `json:"copied,omitzero" doc:"When its counter went back last: it may have been copied."`
}

// PasskeyPage is a part of a list of passkeys.
type PasskeyPage struct {
	Items []Passkey `json:"items"`
	Next  string    `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// PasskeyName is what can be changed of a passkey.
type PasskeyName struct {
	Name string `json:"name" minLength:"1" maxLength:"100" example:"Old telephone"`
}
