// Package mail sends mail to users: invitations, one-time links, requests to confirm an address, digests.
//
// A [Transport] hands a letter to the mail server that the operator has set. A [Queue] keeps letters in
// cells of the registry until the server has accepted them, so that all servers of a database see
// them and a restart loses none; its [Queue.Run] sends them, one server at a time each. A [Writer] makes
// letters of templates in the reader's language.
//
// The package never decides who gets mail, and sends nothing if the operator has not named a mail server.
package mail

import (
	"crypto/x509"
	"net"
	"net/mail"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// Security is how the connection to the mail server is encrypted.
type Security string

const (
	StartTLS Security = "starttls" // from the second command on; refused if the server can't (RFC 3207)
	TLS      Security = "tls"      // from the first byte (RFC 8314)
	NoTLS    Security = "none"     // not at all: for a server on this machine
)

// Settings say through which server mail is sent.
type Settings struct {
	Server   string // HOST:PORT; "": no mail is sent
	Security Security
	User     string // at the server; "": the server wants none
	Password string
	From     string         // address of the sender, with a name or without
	ReplyTo  string         // where answers go; "": to From
	Roots    *x509.CertPool // that authenticate the server; nil: those of the system
}

// Validate reports what is wrong with the settings.
func (s *Settings) Validate() error {
	host, _, err := net.SplitHostPort(s.Server)
	if err != nil || host == "" {
		return stele.Messagef("mail.server-invalid", `"{server}" is not a mail server; write HOST:PORT, as in mail.example.org:587`, s.Server)
	}
	if s.Security == NoTLS && !isLoopback(host) {
		return stele.Messagef("mail.not-encrypted", "mail is sent without encryption to a server on this machine only; {host} is not one, so use starttls or tls", host)
	}
	for _, text := range []string{s.From, s.ReplyTo} {
		if text == "" && s.From != "" {
			continue
		}
		if _, err := parseSender(text); err != nil {
			return err
		}
	}
	return nil
}

// isLoopback reports whether a host is this machine without asking the DNS.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() || strings.EqualFold(host, "localhost")
}

// parseSender reads an address with a name or without.
func parseSender(text string) (*mail.Address, error) {
	a, err := mail.ParseAddress(text)
	if err == nil {
		a.Address, err = auth.ParseAddress(a.Address)
	}
	if err != nil || stele.CheckText("", text) != nil {
		return nil, stele.Messagef("mail.sender-invalid", `"{address}" can't be the sender of mail; write it as in "Archive <ids@example.org>"`, text)
	}
	return a, nil
}

// Letter is a mail to one user.
type Letter struct {
	ID      string    `json:"id"` // Message-ID, without angle brackets; the same at each attempt
	To      string    `json:"to"` // as [auth.ParseAddress] returns it
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	HTML    string    `json:"html"`
	Date    time.Time `json:"date"`

	Language string `json:"language,omitempty"` // BCP 47
	// Unsubscribe is the URL that ends letters of this kind by a POST (RFC 8058); "": there are no
	// regular letters of this kind.
	Unsubscribe string `json:"unsubscribe,omitempty"`

	// Digest is what the letter was made of, if it is a digest; see [Options.Renew].
	Digest *DigestOf `json:"digest,omitempty"`

	// Expires is when the letter is worth nothing, since its link has expired; zero: never.
	Expires time.Time `json:"expires,omitzero"`
}

// DigestOf is what a digest was made of.
type DigestOf struct {
	User string    `json:"user"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	// Told are keys of what the user was told before, so that what is new comes first when the texts are made anew.
	Told []string `json:"told,omitempty"`
}

// Limits on letters.
const (
	MaxLetter  = 256 << 10 // bytes of all texts of a letter
	maxSubject = 200       // bytes
)

// check refuses a letter that can't be sent as it is. Addresses are parsed again, and no header has a
// control character: a line end would begin another header.
func (l *Letter) check() error {
	to, err := auth.ParseAddress(l.To)
	if err != nil {
		return err
	}
	l.To = to
	if l.Subject = Line(l.Subject); len(l.Subject) > maxSubject {
		l.Subject = strings.ToValidUTF8(l.Subject[:maxSubject], "")
	}
	for _, header := range []string{l.ID, l.Language, l.Unsubscribe} {
		if strings.ContainsFunc(header, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '<' || c == '>' }) {
			return stele.Messagef("mail.header-invalid", "a header of the mail has a character that it can't have")
		}
	}
	if n := len(l.Subject) + len(l.Text) + len(l.HTML); n > MaxLetter {
		return stele.Messagef("mail.too-large", "the mail has {size} bytes; {most} are the most", n, MaxLetter)
	}
	return nil
}

// Line returns a text on one line: control characters and line ends become spaces.
func Line(text string) string {
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Zl, c) || unicode.Is(unicode.Zp, c) || unicode.Is(unicode.Cf, c) || c == utf8.RuneError {
			return ' '
		}
		return c
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// refuse makes an error of this package.
func refuse(kind stele.Kind, code, text string, args ...any) error {
	return stele.Errorf("send mail", stele.ID{}, kind, code, text, args...)
}
