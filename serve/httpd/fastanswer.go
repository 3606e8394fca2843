package httpd

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// fastAnswer is the ResponseWriter of the fast path. It makes of an answer the octets that net/http makes of it, and keeps them until
// the handler returns: the answers are small, since a handler declines what is not a redirect. It knows neither statuses of 1xx, nor
// trailers, nor transfer codings: no redirect has them.
type fastAnswer struct {
	head   http.Header
	out    []byte // status line and header fields; nothing before WriteHeader
	body   []byte
	status int // 0 before WriteHeader
	length int // that the handler declares; -1 if it does not

	isHead, typed, dated, closes bool
}

// reset makes it ready for another answer.
func (a *fastAnswer) reset(method string) {
	if a.head == nil || len(a.head) > len(usualFields) {
		a.head = make(http.Header) // a map of at most eight fields is cheaper to use and to clear
	}
	clear(a.head)
	*a = fastAnswer{head: a.head, out: a.out[:0], body: a.body[:0], length: -1, isHead: method == http.MethodHead}
}

// Header implements [http.ResponseWriter].
func (a *fastAnswer) Header() http.Header { return a.head }

// WriteHeader implements [http.ResponseWriter]. What the header has now is what is sent.
func (a *fastAnswer) WriteHeader(status int) {
	if a.status != 0 || status < http.StatusOK {
		return
	}
	a.status = status
	a.out = append(a.out, "HTTP/1.1 "...)
	a.out = strconv.AppendInt(a.out, int64(status), 10)
	a.out = append(append(append(a.out, ' '), http.StatusText(status)...), "\r\n"...)
	start, written := len(a.out), 0
	for _, name := range usualFields {
		if values, ok := a.head[name]; ok {
			a.field(name, values)
			written++
		}
	}
	if written < len(a.head) {
		a.out = a.out[:start]
		a.sorted()
	}
}

// usualFields are the names of the header fields that redirects have, in the order in which net/http writes them. Most answers
// have no others, and their names need not be sorted.
var usualFields = [...]string{"Access-Control-Allow-Origin", "Cache-Control", "Content-Type", "Link", "Location", "Vary"}

// sorted appends the lines of all header fields.
func (a *fastAnswer) sorted() {
	var few [24]string
	names := few[:0]
	for name := range a.head {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if isFieldName(name) {
			a.field(name, a.head[name])
		}
	}
}

// field appends the lines of a header field whose name is a token, and notes what it means to the connection.
func (a *fastAnswer) field(name string, values []string) {
	switch name {
	case "Content-Length":
		n, err := strconv.Atoi(strings.Join(values, ","))
		if err != nil || n < 0 || !hasBody(a.status) {
			return
		}
		a.length = n
	case "Content-Type":
		if a.status == http.StatusNotModified {
			return
		}
		a.typed = true
	case "Content-Encoding":
		a.typed = true // such a body is not guessed
	case "Date":
		a.dated = true
	case "Connection":
		a.closes = slices.Equal(values, closing)
	}
	for _, value := range values {
		a.out = append(append(a.out, name...), ": "...)
		if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 { // faster than ContainsAny
			value = oneLine.Replace(value)
		}
		a.out = append(append(a.out, trimmed(value)...), "\r\n"...)
	}
}

// trimmed returns a value without spaces and tabs at its ends. It is [strings.Trim], which costs more where there are none.
func trimmed(value string) string {
	if n := len(value); n > 0 && (isBlank(value[0]) || isBlank(value[n-1])) {
		return strings.Trim(value, " \t")
	}
	return value
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// oneLine keeps a value from ending its line.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// isFieldName reports whether a text is a token (RFC 9110, section 5.6.2).
func isFieldName(name string) bool {
	for i := range len(name) {
		if c := name[i]; !isAlphanumeric(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}

// hasBody reports whether answers of a status have a body.
func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// Write implements [http.ResponseWriter].
func (a *fastAnswer) Write(b []byte) (int, error) {
	if err := a.room(len(b)); err != nil {
		return 0, err
	}
	a.body = append(a.body, b...)
	return len(b), nil
}

// WriteString is Write without a copy.
func (a *fastAnswer) WriteString(s string) (int, error) {
	if err := a.room(len(s)); err != nil {
		return 0, err
	}
	a.body = append(a.body, s...)
	return len(s), nil
}

// room reports whether n more bytes of a body may be written.
func (a *fastAnswer) room(n int) error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case !hasBody(a.status):
		return http.ErrBodyNotAllowed
	case a.length >= 0 && len(a.body)+n > a.length:
		return http.ErrContentLength
	}
	return nil
}

// finish returns all octets of the answer, and whether the connection may be used again. The date is a whole line.
func (a *fastAnswer) finish(date []byte, ending bool) (octets []byte, again bool) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.dated {
		a.out = append(a.out, date...)
	}
	if a.length < 0 && hasBody(a.status) && (!a.isHead || len(a.body) > 0) {
		a.out = append(a.out, "Content-Length: "...)
		a.out = append(strconv.AppendInt(a.out, int64(len(a.body)), 10), "\r\n"...)
	}
	if !a.typed && len(a.body) > 0 {
		a.out = append(append(append(a.out, "Content-Type: "...), http.DetectContentType(a.body)...), "\r\n"...)
	}
	if ending && !a.closes {
		a.out = append(a.out, "Connection: close\r\n"...)
	}
	a.out = append(a.out, "\r\n"...)
	again = !a.closes && !ending
	if !a.isHead {
		again = again && (a.length < 0 || a.length == len(a.body)) // the client waits for more
		a.out = append(a.out, a.body...)
	}
	return a.out, again
}
