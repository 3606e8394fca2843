package usage

import (
	"strconv"
	"strings"
	"time"
)

// maxLogLine is how many bytes a line of a log file has at most.
const maxLogLine = 64 << 10

// logLine is a request and its answer, as a line of a log file tells it.
type logLine struct {
	at       int64  // in Unix seconds
	client   string // an address, or a host name
	user     string // who the client said it is; "" if it did not
	method   string
	target   string // of the request, as it was sent
	status   int
	referrer string
	agent    string
}

// parseLogLine reads a line in the format "common" of Apache and nginx:
//
//	192.0.2.1 - - [17/Nov/2026:12:00:00 +0000] "GET /ark:12345/x1 HTTP/1.1" 302 0
//
// or, if combined says so, in the format "combined", which has the referring page and the user agent after that. What follows is
// not looked at: many operators add fields. The line has no end. A request that the server could not read has no method.
func parseLogLine(line string, combined bool) (l logLine, ok bool) {
	client, rest, ok := strings.Cut(line, " ")
	if !ok || client == "" {
		return logLine{}, false
	}
	l.client = client
	who, rest, ok := strings.Cut(rest, " [") // names of users may have blanks
	if !ok {
		return logLine{}, false
	}
	_, user, ok := strings.Cut(who, " ")
	if !ok {
		return logLine{}, false
	}
	l.user = withoutDash(user)
	clock, rest, ok := strings.Cut(rest, `] "`)
	if !ok || len(clock) != len(logTime) {
		return logLine{}, false
	}
	at, err := time.Parse(logTime, clock)
	if l.at = at.Unix(); err != nil || l.at < 0 {
		return logLine{}, false
	}
	request, rest, ok := cutQuoted(rest)
	if !ok {
		return logLine{}, false
	}
	l.method, l.target = cutRequest(request)
	status, rest, _ := strings.Cut(strings.TrimPrefix(rest, " "), " ")
	if l.status, err = strconv.Atoi(status); err != nil || len(status) != 3 || l.status < 100 {
		return logLine{}, false
	}
	size, rest, more := strings.Cut(rest, " ")
	if _, err := strconv.ParseUint(size, 10, 64); err != nil && size != "-" {
		return logLine{}, false
	}
	if !combined {
		return l, true
	}
	for _, field := range []*string{&l.referrer, &l.agent} {
		if !more || !strings.HasPrefix(rest, `"`) {
			return logLine{}, false
		}
		if *field, rest, ok = cutQuoted(rest[1:]); !ok {
			return logLine{}, false
		}
		*field = withoutDash(*field)
		rest, more = strings.CutPrefix(rest, " ")
	}
	return l, true
}

const logTime = "02/Jan/2006:15:04:05 -0700"

// withoutDash returns a field; "-" stands for none.
func withoutDash(text string) string {
	if text == "-" {
		return ""
	}
	return text
}

// cutRequest returns the method and the target of a request; neither if it is not one.
func cutRequest(request string) (method, target string) {
	method, rest, ok := strings.Cut(request, " ")
	if !ok {
		return "", ""
	}
	at := strings.LastIndexByte(rest, ' ')
	if at < 0 || !isProtocol(rest[at+1:]) {
		return "", ""
	}
	return method, rest[:at]
}

// isProtocol reports whether a text is a version of HTTP, such as HTTP/1.1 or HTTP/2. A client can write anything there, which is not to stay in a log
// that is masked.
func isProtocol(text string) bool {
	isDigit := func(c byte) bool { return '0' <= c && c <= '9' }
	version, ok := strings.CutPrefix(text, "HTTP/")
	return ok && (len(version) == 1 || len(version) == 3 && version[1] == '.' && isDigit(version[2])) && isDigit(version[0])
}

// cutQuoted returns what stands before the next quotation mark, and what follows that. Servers write quotation marks and control
// characters with a reverse solidus: Apache as \" and \\, nginx as \x22 and \x5C.
func cutQuoted(text string) (inside, rest string, ok bool) {
	at := strings.IndexAny(text, `"\`)
	if at >= 0 && text[at] == '"' {
		return text[:at], text[at+1:], true
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], true
		case c != '\\':
			b.WriteByte(c)
		case i+3 < len(text) && text[i+1] == 'x':
			n, err := strconv.ParseUint(text[i+2:i+4], 16, 8)
			if err != nil {
				return "", "", false
			}
			b.WriteByte(byte(n))
			i += 3
		case i+1 < len(text):
			i++
			b.WriteByte(unescaped(text[i]))
		}
	}
	return "", "", false
}

// unescaped returns the character that an escape stands for.
func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}
