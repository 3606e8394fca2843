package usage

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"strings"
)

// MaskLog returns a log file without its readers, for a server that counts it: addresses do not travel. Each line keeps its length, its time, its request and
// its user agent. In place of the address it has a hash with a key that is in the memory of this process only, in place of names of users and all fields that are not counted x, and of
// referring pages only the host stays. A line that can't be read is x.
//
// So the server counts the same as it would of the file itself, except countries, and knows a file that it has counted, masked or not.
func MaskLog(in io.Reader) io.Reader {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails, see crypto/rand
	return &logMask{in: bufio.NewReaderSize(in, maxLogLine), key: key}
}

type logMask struct {
	in   *bufio.Reader
	key  []byte
	long bool   // the line goes on
	rest []byte // that is not read yet
	err  error
}

func (m *logMask) Read(b []byte) (int, error) {
	for len(m.rest) == 0 {
		if m.err != nil {
			return 0, m.err
		}
		text, err := m.in.ReadSlice('\n')
		whole := err == nil && !m.long
		switch m.long = errors.Is(err, bufio.ErrBufferFull); {
		case m.long:
		case err != nil:
			m.err = err
		}
		m.rest = m.line(string(text), whole)
	}
	n := copy(b, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// line masks a line, or a part of one that is too long.
func (m *logMask) line(text string, whole bool) []byte {
	body := strings.TrimSuffix(text, "\n")
	end := text[len(body):]
	if r := strings.TrimSuffix(body, "\r"); end != "" && r != body {
		body, end = r, "\r\n"
	}
	l, ok := parseLogLine(body, false)
	if !whole || !ok {
		return append(hidden(nil, body), end...)
	}
	b := make([]byte, 0, len(text))
	b = append(m.reader(b, l.client), ' ')
	rest := body[len(l.client)+1:]
	who, rest, _ := strings.Cut(rest, " [")
	ident, user, _ := strings.Cut(who, " ")
	b = append(hidden(b, ident), ' ')
	if l.user != "" {
		b = hidden(b, user)
	} else {
		b = append(b, user...)
	}
	b = append(b, " ["...)
	clock, rest, _ := strings.Cut(rest, `] "`)
	b = append(append(b, clock...), `] "`...)
	_, after, _ := cutQuoted(rest)
	b = append(b, rest[:len(rest)-len(after)]...)
	at := len(after) // status and size
	if quote := strings.IndexByte(after, '"'); quote >= 0 {
		at = quote
	}
	fields := strings.SplitAfterN(after[:at], " ", 4) // "", status, size
	for i, f := range fields {
		if i < 3 {
			b = append(b, f...)
		} else {
			b = hidden(b, f)
		}
	}
	rest = after[at:]
	if len(fields) == 4 && fields[3] != "" { // it is not the format combined
		return append(hidden(b, rest), end...)
	}
	b, rest = maskReferrer(b, rest)
	if strings.HasPrefix(rest, ` "`) { // the user agent
		_, after, ok := cutQuoted(rest[2:])
		if ok {
			b, rest = append(b, rest[:len(rest)-len(after)]...), after
		}
	}
	return append(hidden(b, rest), end...)
}

// maskReferrer appends the field of a referring page without the page, and returns what follows it.
func maskReferrer(b []byte, text string) (masked []byte, rest string) {
	if !strings.HasPrefix(text, `"`) {
		return b, text
	}
	_, rest, ok := cutQuoted(text[1:])
	if !ok {
		return b, text
	}
	field := text[:len(text)-len(rest)]
	at := strings.Index(field, "://")
	if at < 0 || strings.ContainsRune(field, '\\') {
		if field == `"-"` {
			return append(b, field...), rest
		}
		return append(hidden(append(b, '"'), field[1:len(field)-1]), '"'), rest
	}
	host := strings.IndexAny(field[at+3:], `/?#"`) + at + 3 // the last one is there
	b = append(b, field[:host]...)
	if user := strings.IndexByte(field[at+3:host], '@'); user >= 0 {
		b = append(hidden(b[:len(b)-(host-at-3)], field[at+3:at+3+user]), field[at+3+user:host]...)
	}
	page := field[host : len(field)-1]
	if page != "" {
		b = append(b, '/')
		b = hidden(b, page[1:])
	}
	return append(b, '"'), rest
}

// hidden appends x in place of each byte of a text, except blanks, hyphens and quotation marks.
func hidden(b []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; c {
		case ' ', '-', '"':
			b = append(b, c)
		default:
			b = append(b, 'x')
		}
	}
	return b
}

// reader appends a text of the same length as the address of a reader, which tells readers apart: it is not an address.
func (m *logMask) reader(b []byte, client string) []byte {
	mac := hmac.New(sha256.New, m.key)
	_, _ = mac.Write([]byte(client)) // a hash never fails
	text := base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	for len(text) < len(client) {
		text += "x"
	}
	if len(client) > 1 {
		b = append(b, 'r') // no address begins so
		client = client[1:]
	}
	return append(b, text[:len(client)]...)
}
