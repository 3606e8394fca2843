package password

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// What authenticator apps compute unless they are told otherwise, and some cannot compute else.
const (
	Digits = 6
	Period = 30 * time.Second

	keySize = 20 // bytes of a secret (RFC 4226, section 4, R6)
	skew    = 1  // steps by which a clock may be wrong (RFC 6238, section 5.2)
)

// NewKey makes the secret that an authenticator app shares with the server.
func NewKey(random io.Reader) ([]byte, error) {
	key := make([]byte, keySize)
	if _, err := io.ReadFull(random, key); err != nil {
		return nil, refuse(stele.Unavailable, "token.no-random-bits", "no random bits: {cause}", err)
	}
	return key, nil
}

// KeyText returns a secret as users type it into an app.
func KeyText(key []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(key)
}

// KeyURI returns a secret as apps read it from a QR code: the otpauth URI of the Key Uri Format. Site names the
// account for the user.
func KeyURI(site, user string, key []byte) string {
	return "otpauth://totp/" + url.PathEscape(site) + ":" + url.PathEscape(user) + "?secret=" + KeyText(key) +
		"&issuer=" + strings.ReplaceAll(url.QueryEscape(site), "+", "%20") + fmt.Sprintf("&algorithm=SHA1&digits=%d&period=%d", Digits, int(Period.Seconds()))
}

// Step returns the number of the time step in which a time is (RFC 6238, section 4.2).
func Step(at time.Time) int64 { return at.Unix() / int64(Period.Seconds()) }

// Code returns the code of a time step.
func Code(key []byte, step int64) string { return hotp(key, uint64(step), Digits) }

// hotp returns the code of a counter (RFC 4226, section 5.3).
func hotp(key []byte, counter uint64, digits int) string {
	m := hmac.New(sha1.New, key)
	m.Write(binary.BigEndian.AppendUint64(nil, counter))
	sum := m.Sum(nil)
	at := sum[len(sum)-1] & 0xf
	number := uint64(binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff)
	modulus := uint64(1)
	for range digits {
		modulus *= 10
	}
	return fmt.Sprintf("%0*d", digits, number%modulus)
}

// Match returns the time step of which a user has typed the code, if it is near a time, and after the last step of
// which a code was accepted: a code is accepted once (RFC 6238, section 5.2).
func Match(key []byte, typed string, now time.Time, last int64) (step int64, ok bool) {
	typed = strings.Join(strings.Fields(typed), "")
	for n := Step(now) - skew; n <= Step(now)+skew; n++ {
		if subtle.ConstantTimeCompare([]byte(Code(key, n)), []byte(typed)) == 1 && n > last {
			step, ok = n, true
		}
	}
	return step, ok
}
