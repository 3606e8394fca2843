package ftp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Limits on the replies of a server.
const (
	maxLine   = 2048 // bytes
	maxLines  = 512  // of one reply: greetings are long
	maxDelays = 8    // replies that it is ready in a while
)

// Reply is what a server answers to a command.
type Reply struct {
	Code int    // from 100 to 599
	Text string // of its last line
}

// String returns the reply as it may be shown.
func (r Reply) String() string { return fmt.Sprintf("%d %.200q", r.Code, r.Text) }

// errReply says that a server does not speak FTP.
var errReply = stele.Messagef("ftp.reply-malformed", "what came is not a reply of an FTP server")

// readReply reads a reply (RFC 959, section 4.2): a code and a text, or several lines of
// which the first has a hyphen after the code, and the last the same code and a blank.
func readReply(r *bufio.Reader) (Reply, error) {
	line, err := readLine(r)
	if err != nil {
		return Reply{}, err
	}
	code, rest, ok := cutCode(line)
	if !ok {
		return Reply{}, errReply
	}
	text, more := strings.CutPrefix(rest, "-")
	for range maxLines {
		if !more {
			return Reply{code, strings.TrimPrefix(text, " ")}, nil
		}
		if line, err = readLine(r); err != nil {
			return Reply{}, err
		}
		// A line that has the code alone ends it too: there are servers that leave out the blank.
		if last, rest, ok := cutCode(line); ok && last == code && !strings.HasPrefix(rest, "-") {
			text, more = rest, false
		}
	}
	return Reply{}, stele.Messagef("ftp.reply-endless", "the server's reply has no end")
}

// cutCode takes the code from the beginning of a line.
func cutCode(line string) (code int, rest string, ok bool) {
	if len(line) < 3 || line[0] < '1' || line[0] > '5' || line[1] < '0' || line[1] > '9' || line[2] < '0' || line[2] > '9' {
		return 0, "", false
	}
	if rest = line[3:]; rest != "" && rest[0] != ' ' && rest[0] != '-' {
		return 0, "", false
	}
	return int(line[0]-'0')*100 + int(line[1]-'0')*10 + int(line[2]-'0'), rest, true
}

// readLine reads a line, which ends with a line feed and perhaps a carriage return before it.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", stele.Messagef("ftp.reply-line-too-long", "a line of the server's reply is too long")
	case errors.Is(err, io.EOF):
		return "", errClosed
	case err != nil:
		return "", err
	}
	return string(bytes.TrimRight(line, "\r\n")), nil
}

// kindOf says what a code means for the client.
func kindOf(code int) stele.Kind {
	switch {
	case code == 550, code == 553: // RFC 959, section 4.2.2: not found, or no access
		return stele.NotFound
	case code == 530, code == 532, code == 332, code == 331:
		return stele.Unauthenticated
	case code < 500:
		return stele.Unavailable
	}
	return stele.Conflict
}

// parseExtended reads the port of a reply to EPSV (RFC 2428, section 3): "... (|||6446|)".
// The delimiter may be another character; protocol and address are left out.
func parseExtended(text string) (uint16, bool) {
	_, inner, ok := strings.Cut(text, "(")
	if !ok {
		return 0, false
	}
	inner, _, ok = strings.Cut(inner, ")")
	if !ok || len(inner) < 5 || inner[0] < 33 || inner[0] > 126 || inner[0] >= '0' && inner[0] <= '9' {
		return 0, false
	}
	mark := inner[:1]
	digits, ok := strings.CutPrefix(inner, mark+mark+mark)
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, mark); !ok {
		return 0, false
	}
	return parsePort(digits)
}

func parsePort(digits string) (uint16, bool) {
	n, err := strconv.ParseUint(digits, 10, 16)
	return uint16(n), err == nil && n > 0
}

// parsePassive reads the address of a reply to PASV (RFC 959, section 4.2): six numbers,
// somewhere in the text.
func parsePassive(text string) (netip.AddrPort, bool) {
	begin := strings.IndexAny(text, "0123456789")
	if begin < 0 {
		return netip.AddrPort{}, false
	}
	text = text[begin:]
	if end := strings.IndexFunc(text, func(r rune) bool { return r != ',' && (r < '0' || r > '9') }); end >= 0 {
		text = text[:end]
	}
	words := strings.Split(text, ",")
	if len(words) != 6 {
		return netip.AddrPort{}, false
	}
	var b [6]byte
	for i, word := range words {
		n, err := strconv.ParseUint(word, 10, 8)
		if err != nil {
			return netip.AddrPort{}, false
		}
		b[i] = byte(n)
	}
	port := uint16(b[4])<<8 | uint16(b[5])
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[:4])), port), port > 0
}

// parseSize reads the number of a reply to SIZE (RFC 3659, section 4.1).
func parseSize(text string) (int64, bool) {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 63)
	return int64(n), err == nil
}

// parseTime reads the time of a reply to MDTM (RFC 3659, section 2.3), which is UTC:
// 20261115140300, perhaps followed by a fraction.
func parseTime(text string) (time.Time, bool) {
	whole, _, _ := strings.Cut(strings.TrimSpace(text), ".")
	t, err := time.Parse("20060102150405", whole)
	return t, err == nil
}
