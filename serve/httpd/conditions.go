package httpd

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/stele-id/stele/resolver"
)

// entityTag returns the strong validator of a representation. The media type is a part of
// it: two representations of one resource never share a tag, even if their bytes are the
// same (RFC 9110, section 8.8.1).
func entityTag(mediaType string, body []byte) string {
	hash := sha256.New()
	hash.Write([]byte(mediaType))
	hash.Write([]byte{0})
	hash.Write(body)
	return `"` + base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:12]) + `"`
}

// judge evaluates the conditions of a request against the representation that would be
// sent, in the order of RFC 9110, section 13.2.2: its status is 200 if the representation is
// to be sent, 304 or 412. The head has the tag and, where it is known, the date of the
// representation. Conditions count for GET and HEAD alone; what else is answered here does
// not depend on a representation.
func judge(r *http.Request, head http.Header) int {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return http.StatusOK
	}
	tag := head.Get("Etag")
	modified, dated := conditionDate(head, "Last-Modified")
	if wanted, ok := r.Header["If-Match"]; ok {
		if !matches(wanted, tag, false) {
			return http.StatusPreconditionFailed
		}
	} else if since, ok := conditionDate(r.Header, "If-Unmodified-Since"); ok && dated && modified.After(since) {
		return http.StatusPreconditionFailed
	}
	if known, ok := r.Header["If-None-Match"]; ok {
		if matches(known, tag, true) {
			return http.StatusNotModified
		}
	} else if since, ok := conditionDate(r.Header, "If-Modified-Since"); ok && dated && !modified.After(since) {
		return http.StatusNotModified
	}
	return http.StatusOK
}

// conditionDate returns the date in a header. One that can't be read, or that is given several
// times, is ignored (RFC 9110, sections 13.1.3 and 13.1.4).
func conditionDate(head http.Header, name string) (time.Time, bool) {
	values := head[name]
	if len(values) != 1 {
		return time.Time{}, false
	}
	t, err := http.ParseTime(values[0])
	return t, err == nil
}

// matches reports whether a tag is in the lists of a header, or one of them is "*". Weak tags
// count where a comparison is weak (RFC 9110, section 8.8.3.2).
func matches(lists []string, tag string, weakly bool) bool {
	for _, list := range lists {
		for item := range strings.SplitSeq(list, ",") {
			item = strings.TrimSpace(item)
			if weakly {
				item = strings.TrimPrefix(item, "W/")
			}
			if item == "*" || item == tag {
				return true
			}
		}
	}
	return false
}

// lastModified returns since when the answer for a record is what it is: it is made of the
// record and of its namespace. A date of HTTP has whole seconds, and a record may change
// twice in one, so lastModified returns the second after the change: a client that saw the
// first of two changes never gets a 304 for the second. It is not later than now (RFC 9110,
// section 8.8.2.1). It is zero if nothing is known.
func (h *Handler) lastModified(res *resolver.Resolution) time.Time {
	if res.Record == nil || res.Record.Modified.IsZero() {
		return time.Time{}
	}
	last := res.Record.Modified
	if ns := res.Namespace; ns != nil && ns.Modified.After(last) {
		last = ns.Modified
	}
	if whole := last.Truncate(time.Second); whole.Before(last) {
		last = whole.Add(time.Second)
	}
	if now := h.o.Now(); last.After(now) {
		return now
	}
	return last
}
