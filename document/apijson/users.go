package apijson

import "time"

// User is a user as it is shown.
type User struct {
	Name     string    `json:"name" minLength:"1" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._@-]*$" example:"ann"`
	Groups   []string  `json:"groups,omitempty" maxItems:"100" maxLength:"64" doc:"Whose member the user is."`
	Admin    bool      `json:"admin,omitempty" doc:"May do everything."`
	Disabled bool      `json:"disabled,omitempty" doc:"May do no more than the public."`
	Created  time.Time `json:"created" readOnly:"true"`
	Modified time.Time `json:"modified" readOnly:"true"`
	By       string    `json:"by,omitempty" readOnly:"true" doc:"Who made the last change."`
}

// NewUser is a user as it is sent.
type NewUser struct {
	Name     string   `json:"name" minLength:"1" maxLength:"64" pattern:"^[a-z0-9][a-z0-9._@-]*$" example:"ann"`
	Groups   []string `json:"groups,omitempty" maxItems:"100" maxLength:"64"`
	Admin    bool     `json:"admin,omitempty"`
	Disabled bool     `json:"disabled,omitempty"`
}

// UserSettings are what can be changed of a user.
type UserSettings struct {
	Groups   []string `json:"groups,omitempty" maxItems:"100" maxLength:"64"`
	Admin    bool     `json:"admin,omitempty"`
	Disabled bool     `json:"disabled,omitempty"`
}

// UserPage is a part of a list of users.
type UserPage struct {
	Items []User `json:"items"`
	Next  string `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}

// Self describes the caller.
type Self struct {
	Name   string   `json:"name"`
	Groups []string `json:"groups,omitempty"`
	Admin  bool     `json:"admin,omitempty" doc:"May do everything, everywhere, by this token."`
	Roles  []Role   `json:"roles,omitempty" doc:"Roles in namespaces, 1000 at most; those of an administrator are not listed."`

	Token      string    `json:"token,omitempty" doc:"The ID of the token with which this was asked." example:"4k2m9x0q7rbc"`
	Expires    time.Time `json:"expires,omitzero" doc:"When the token ends, with those above it; without it, never."`
	Scopes     []string  `json:"scopes,omitempty" doc:"What the token may be used for; without it, all that you may do."`
	Namespaces []string  `json:"namespaces,omitempty" doc:"To which the token is limited; without it, to none."`
}

// Role is a role in a namespace.
type Role struct {
	Namespace string `json:"namespace" example:"ark:12345"`
	Role      string `json:"role" enum:"reader,editor,owner"`
}

// NewLink asks for a link that signs a user in to the desk once.
type NewLink struct {
	User    string `json:"user" minLength:"1" maxLength:"64" example:"ann"`
	Seconds int    `json:"seconds,omitempty" minimum:"900" maximum:"604800" doc:"How long it lasts; without it, a day."`
}

// MadeLink is a link that was made. Its secret is nowhere else.
type MadeLink struct {
	Credential string    `json:"credential" doc:"The secret part of the link, which follows /.desk/link/ in its address."`
	ID         string    `json:"id" example:"4k2m9x0q7rbc"`
	User       string    `json:"user" example:"ann"`
	Expires    time.Time `json:"expires"`
}

// Token is a token as it is shown: without its secret.
type Token struct {
	ID      string    `json:"id" doc:"By which it is revoked. It is not secret." example:"4k2m9x0q7rbc"`
	User    string    `json:"user"`
	Label   string    `json:"label,omitempty" doc:"What it is for."`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero" doc:"From then on the server refuses it; without it, it never expires."`
	Revoked time.Time `json:"revoked,omitzero"`
	LastUse time.Time `json:"lastUse,omitzero" doc:"To the minute or so."`
	By      string    `json:"by,omitempty" doc:"Who made it."`

	Parent     string   `json:"parent,omitempty" doc:"The token that made it. Without it, it is a child of its user." example:"0f3t8h2w9ynd"`
	Scopes     []string `json:"scopes,omitempty" doc:"What it may be used for; without it, all that its user may do."`
	Namespaces []string `json:"namespaces,omitempty" doc:"To which it is limited; without it, to none."`
	EndedWith  string   `json:"endedWith,omitempty" doc:"The token above it that was revoked, and this one with it."`
	Shut       bool     `json:"shut,omitempty" doc:"A restore suspended it: the server refuses it until an administrator opens it."`
}

// NewToken is a token that a caller asks for.
type NewToken struct {
	User    string     `json:"user,omitempty" maxLength:"64" doc:"Whose it will be; without it, yours."`
	Label   string     `json:"label,omitempty" maxLength:"200" doc:"What it is for." example:"nightly import"`
	Expires *time.Time `json:"expires,omitempty" doc:"Until when it lasts, a year at most unless an administrator asks, and no longer than the token with which it is asked; without it, as long as that, and for a year at most."`
	Never   bool       `json:"never,omitempty" doc:"It does not expire; for administrators whose own token never does."`

	Scopes     []string `json:"scopes,omitempty" enum:"read,mint,write,admin,backup,metrics" maxItems:"6" doc:"What it may be used for; without it, all that the token may be used for with which it is asked. Write includes read and mint, backup includes read, and admin all."`
	Namespaces []string `json:"namespaces,omitempty" maxItems:"100" doc:"The namespaces to which it is limited, with all below them; without it, those of the token with which it is asked, or none." example:"[\"ark:12345\"]"`
}

// MadeToken is a token with its credential.
type MadeToken struct {
	Credential string `json:"credential" doc:"What is sent as Authorization: Bearer. It is shown this once, and kept nowhere."`
	Token      Token  `json:"token"`
}

// TokenPage is a part of a list of tokens.
type TokenPage struct {
	Items []Token `json:"items"`
	Next  string  `json:"next,omitempty" doc:"The cursor of the next page; without it this is the last."`
}
