package usage

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/netip"
	"strings"
)

// MaskLog returns a log file without its readers, for a server that counts it: addresses do not travel. Each line keeps its length, its time, the path of its
// request and its user agent. In place of the address it has a hash with a key that is in the memory of this process only, or of the network of the address if
// networks says so. In place of names of users, of queries that do not name what is asked for and of all fields that are not counted it has x, and of
// referring pages only the host stays. A line or a request that can't be read is x.
//
// So the server counts the same as it would of the file itself, except countries, and knows a file that it has counted, masked or not.
func MaskLog(in io.Reader, networks bool) io.Reader {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails, see crypto/rand
	return &logMask{in: bufio.NewReaderSize(in, maxLogLine), key: key, cut: networks}
}

type logMask struct {
	in   *bufio.Reader
	key  []byte
	cut  bool   // tell readers apart by the network of their addresses
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
	b = solid(b, l.client[len(b)-1:]) // before the next field, which is not counted either: the line keeps its length
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
	b = append(maskRequest(b, rest[:len(rest)-len(after)-1], l.method+l.target != ""), '"')
	rest = afterSize(after)
	b = append(b, after[:len(after)-len(rest)]...)
	if _, ok := parseLogLine(body, true); ok { // the user agent stays
		b, rest = maskReferrer(b, rest)
		_, after, _ := cutQuoted(rest[len(` "`):])
		b, rest = append(b, rest[:len(rest)-len(after)]...), after
	}
	return append(solid(b, rest), end...)
}

// maskRequest appends the field of a request without the query of its target, which may have anything that a reader typed. Only the query of
// /uri-res/ names what is asked for. A request that can't be read has no target.
func maskRequest(b []byte, field string, readable bool) []byte {
	if !readable || hasOddEscape(field) {
		return solid(b, field)
	}
	begin, end := strings.IndexByte(field, '?')+1, strings.LastIndexByte(field, ' ')
	if begin == 0 || begin > end || strings.Contains(field[:begin], nameInQuery) {
		return append(b, field...)
	}
	return append(solid(append(b, field[:begin]...), field[begin:end]), field[end:]...)
}

// hasOddEscape reports whether a field has a blank or a question mark as an escape: servers do not write them so, and where the query is would not be sure.
func hasOddEscape(field string) bool {
	for _, escape := range []string{`\ `, `\?`, `\x20`, `\x3f`, `\x3F`} {
		if strings.Contains(field, escape) {
			return true
		}
	}
	return false
}

// afterSize returns what follows the status and the size of an answer.
func afterSize(text string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(text, " "), " ")
	_, rest, _ = strings.Cut(rest, " ")
	return rest
}

// maskReferrer appends the field of a referring page without the page, and returns what follows it.
func maskReferrer(b []byte, text string) (masked []byte, rest string) {
	_, rest, _ = cutQuoted(text[1:])
	field := text[1 : len(text)-len(rest)-1]
	b = append(b, '"')
	scheme, place, ok := strings.Cut(field, "://")
	host, page := place, ""
	if at := strings.IndexAny(place, "/?#"); at >= 0 {
		host, page = place[:at], place[at:]
	}
	switch {
	case field == "-":
		b = append(b, '-')
	case !ok || strings.Contains(scheme+host, `\`):
		b = solid(b, field)
	default:
		b = append(append(b, scheme...), "://"...)
		if at := strings.LastIndexByte(host, '@'); at >= 0 { // a name and a password
			b, host = solid(b, host[:at]), host[at:]
		}
		b = append(b, host...)
		if page != "" {
			b = solid(append(b, '/'), page[1:])
		}
	}
	return append(b, '"'), rest
}

// solid appends x in place of each byte of a text.
func solid(b []byte, text string) []byte {
	for range len(text) {
		b = append(b, 'x')
	}
	return b
}

// hidden appends x in place of each byte of a text, except blanks and hyphens.
func hidden(b []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; c {
		case ' ', '-':
			b = append(b, c)
		default:
			b = append(b, 'x')
		}
	}
	return b
}

// reader appends a text which tells readers apart: it is not an address. It is as long as the address of the reader, or as that of the network: readers
// of a network have the same text, and no more bytes than the shortest address in it.
func (m *logMask) reader(b []byte, client string) []byte {
	known := client
	if from, err := netip.ParseAddr(client); err == nil && m.cut {
		known = cut(from).String()
		client = client[:min(len(client), len(known))]
	}
	mac := hmac.New(sha256.New, m.key)
	_, _ = mac.Write([]byte(known)) // a hash never fails
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
