package httpd

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Security is how a server makes clients use https.
type Security struct {
	// Redirect sends clients that read in clear to https, and refuses all else that comes in
	// clear. /healthz and /readyz are answered: their clients follow no redirect.
	Redirect bool

	// Base is the public address, https://id.example.org. If it is not of https, the host is
	// the one in the request, if it is the server's (see [IsOwnHost]), and Port its port (0:
	// 443).
	Base    string
	Port    int
	OwnName func(name string) bool

	// Remember is for how long a browser should use https of itself (RFC 6797); 0: the server
	// does not send the header.
	Remember time.Duration
}

// Before returns a handler that enforces this before it calls next.
func (s Security) Before(next http.Handler) http.Handler {
	if !s.Redirect && s.Remember <= 0 {
		return next
	}
	remember := []string{"max-age=" + strconv.FormatInt(int64(s.Remember/time.Second), 10)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.TLS != nil && s.Remember > 0: // section 7.2: not in clear
			w.Header()["Strict-Transport-Security"] = remember
		case r.TLS == nil && s.Redirect:
			t := readTarget(r)
			if first, _ := t.segment(); first != "healthz" && first != "readyz" {
				s.send(w, r, t)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// send answers a request that came in clear.
func (s Security) send(w http.ResponseWriter, r *http.Request, t requestTarget) {
	base, reads := s.base(r), r.Method == http.MethodGet || r.Method == http.MethodHead
	head := w.Header()
	head["Content-Type"], head["X-Content-Type-Options"] = []string{textType}, noSniff
	status, text := http.StatusPermanentRedirect, "Come by https.\n"
	switch {
	case r.Header["Authorization"] != nil:
		status, text = http.StatusForbidden, "Nothing is answered here but by https. The token that was sent could be read on its way: revoke it, and use a new one by https.\n"
	case !reads || base == "" || r.ContentLength != 0:
		status, text = http.StatusForbidden, "Nothing is answered here but by https.\n"
	default:
		location := base + "/" + escape(t.path, true)
		if t.asked {
			location += "?" + escapeQuery(t.query)
		}
		head["Location"], head["Cache-Control"] = []string{location}, oneDay
	}
	if status != http.StatusPermanentRedirect {
		head["Cache-Control"], head["Connection"] = notKept, closing
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(text)) // if this fails the client is gone
	}
}

// base returns the public address, of https; "" if there is none.
func (s Security) base(r *http.Request) string {
	if strings.HasPrefix(s.Base, "https://") {
		return s.Base
	}
	if !IsOwnHost(r, s.OwnName) {
		return ""
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil { // it has no port
		host = strings.Trim(r.Host, "[]")
	}
	if s.Port != 0 && s.Port != 443 {
		return "https://" + net.JoinHostPort(host, strconv.Itoa(s.Port))
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return "https://" + host
}
