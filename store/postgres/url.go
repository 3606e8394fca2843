package postgres

import (
	"net/url"
	"strings"

	"github.com/stele-id/stele"
)

// IsURL reports whether a text is the URL of a database, or is meant to be.
func IsURL(text string) bool { return strings.Contains(text, "://") }

// CheckURL refuses what is not the URL of a database. It never repeats the text, which may
// have a password.
func CheckURL(text string) error {
	scheme, _, _ := strings.Cut(text, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		return stele.Messagef("config.database-url-missing", "the URL of a database belongs here, such as postgres://stele@db.example.org/stele")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return stele.Messagef("config.database-url-malformed", "this is not a URL; write postgres://USER@HOST:PORT/DATABASE, with several HOST:PORT and commas between them if there are more, and with % and two digits for each of @ / : ? # % in a password")
	case strings.Trim(u.Path, "/") == "":
		return stele.Messagef("config.database-url-names-none", "the URL names no database; write postgres://USER@HOST:PORT/DATABASE")
	}
	return nil
}

// hidden stands where a secret was.
const hidden = "xxxxx"

// RedactURL returns the URL of a database without the secrets in it. A text that is not a
// good URL may have them anywhere, so nothing of it is returned.
func RedactURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || strings.Contains(u.Host+u.Path+u.RawQuery+u.Fragment, "@") {
		return "postgres://" + hidden
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || !IsURL(text) {
		return "postgres://" + hidden
	}
	if _, has := u.User.Password(); has {
		u.User = url.UserPassword(u.User.Username(), hidden)
	}
	for _, secret := range []string{"password", "sslpassword"} {
		if query.Has(secret) {
			query.Set(secret, hidden)
			u.RawQuery = query.Encode()
		}
	}
	return u.String()
}
