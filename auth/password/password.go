// Package password has what signing in by a password needs: which passwords are accepted, how
// they are hashed (argon2id), the codes of authenticator apps (TOTP, RFC 6238), and the form in which
// both are stored.
//
// It computes. It reads no store, no clock, and does not know who may sign in; package registrar
// decides that.
package password

import (
	"unicode/utf8"

	"golang.org/x/text/secure/precis"

	"github.com/stele-id/stele"
)

// Limits on passwords. NIST SP 800-63B-4, section 3.1.1.2, asks for 15 characters at least and for a
// maximum of 64 or more.
const (
	MinLength = 15   // characters
	MaxSize   = 1024 // bytes
)

// Prepare returns a password in the one form in which it is hashed: that of the OpaqueString profile
// of PRECIS (RFC 8265, section 4.2). Letters with diacritics are composed (NFC), since keyboards
// differ in how they send "é"; spaces of other widths become U+0020; case and all else stay. It is an error
// if the password is longer than [MaxSize], or has characters that can't be typed twice the same,
// such as control characters.
func Prepare(text string) (string, error) {
	if len(text) > MaxSize {
		return "", tooLong(len(text))
	}
	prepared, err := precis.OpaqueString.String(text)
	if err != nil || !utf8.ValidString(text) {
		return "", stele.Messagef("password.characters", "the password has a character that can't be used, such as a tab or another control character")
	}
	if len(prepared) > MaxSize {
		return "", tooLong(len(prepared))
	}
	return prepared, nil
}

func tooLong(size int) error {
	return stele.Messagef("value.too-long", "has {size} bytes; {most} are the most", size, MaxSize)
}

// Check reports why a new password is not accepted, or nil. Context are names that an attacker would try
// first: those of the user, of the site and of its host. There are no rules of which characters a
// password must have: they make passwords that people forget, and not better ones.
func Check(text string, context ...string) error {
	if text == "" {
		return stele.Messagef("password.missing-text", "type a password")
	}
	prepared, err := Prepare(text)
	if err != nil {
		return err
	}
	if n := utf8.RuneCountInString(prepared); n < MinLength {
		return stele.Messagef("password.too-short", "the password has {count} characters; it needs {least} or more, such as four or five words", n, MinLength)
	}
	if isCommon(prepared, context) {
		return stele.Messagef("password.common", "the password is easy to guess: it is made of names, words or rows of keys that attackers try first; choose other words")
	}
	return nil
}
