package auth

import (
	"encoding/json"
	"net/mail"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// MailboxCells begins the names of cells in which the mail addresses of users are kept.
const MailboxCells = "mailbox "

// MailboxCredential is in a link by which a user confirms a mail address.
const MailboxCredential CredentialKind = "stele-mail_"

// MaxAddress is how many bytes a mail address has: what SMTP can carry (RFC 5321, section 4.5.3.1.3,
// without the angle brackets).
const MaxAddress = 254

// ConfirmLife is how long a user has to confirm an address.
const ConfirmLife = 3 * 24 * time.Hour

// Mailbox is the mail address of a user. It is for sending mail and nothing else: it never says who
// a user is. Only the user and administrators see it.
type Mailbox struct {
	User      string    `json:"user"`
	Address   string    `json:"address,omitempty"` // that the user has confirmed
	Confirmed time.Time `json:"confirmed,omitzero"`
	Language  string    `json:"language,omitempty"` // BCP 47: of the pages when the address was set

	Asked *AskedAddress `json:"asked,omitempty"` // an address that is not confirmed
}

// AskedAddress is an address that a user must confirm before it is used.
type AskedAddress struct {
	Address string    `json:"address"`
	Expires time.Time `json:"expires"`

	// ID and Hash are those of the credential in the mail that asks; Link is the ID of the one-time link
	// that was sent there: who signs in by it has read the mail.
	ID   string `json:"id,omitempty"`
	Hash []byte `json:"hash,omitempty"`
	Link string `json:"link,omitempty"`
}

// ParseAddress reads a mail address without a name, and returns it as it is written in mail. It
// refuses what would need quotes or SMTPUTF8, which many servers do not take.
func ParseAddress(text string) (string, error) {
	text = strings.TrimSpace(text)
	parsed, err := mail.ParseAddress(text)
	plain := err == nil && parsed.Name == "" && parsed.Address == text && len(text) <= MaxAddress &&
		strings.Count(text, "@") == 1 && strings.Contains(text[strings.Index(text, "@"):], ".") &&
		!strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),:;<>[\]`, c) })
	if !plain {
		return "", stele.Messagef("mail.address-invalid", `"{address}" can't be used as a mail address; write one as in ann@example.org`, cutText(text))
	}
	return text, nil
}

// cutText shortens a text for a message.
func cutText(text string) string {
	if len(text) > MaxAddress {
		return strings.ToValidUTF8(text[:MaxAddress], "") + "..."
	}
	return text
}

// Cell returns the mailbox as it is kept.
func (m *Mailbox) Cell() (stele.Cell, error) {
	value, err := json.Marshal(m)
	return stele.Cell{Name: MailboxCells + m.User, Value: value}, err
}

// ReadMailbox reads a mailbox from its cell.
func ReadMailbox(c stele.Cell) (m Mailbox, err error) {
	if err := read(c, &m); err != nil {
		return Mailbox{}, err
	}
	if c.Name != MailboxCells+m.User || !IsName(m.User) {
		return Mailbox{}, damaged(c, stele.Messagef("user.stored-name-differs", "it has another name inside"))
	}
	return m, nil
}

// ParseMailboxCredential reads the credential in a link that confirms an address; false if it can't be one.
func ParseMailboxCredential(text string) (Credential, bool) {
	return parseCredential(MailboxCredential, text)
}
