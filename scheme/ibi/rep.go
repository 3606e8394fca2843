package ibi

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// defaultRepPort is left out of a repository name (algorithm 1, line 12).
const defaultRepPort = 80

// appendRepSuffix is algorithm 2: the date in UTC, with seconds only where they
// or the fraction are not zero.
func appendRepSuffix(b []byte, d mint.Date) []byte {
	t := time.Unix(d.Unix(), 0).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = append2(append2(b, year/100), year%100)
	b = append2(append(b, '/'), int(month))
	b = append2(append(b, '.'), day)
	b = append2(append(b, '.'), hour)
	b = append2(append(b, '.'), minute)
	fraction, digits := d.Fraction()
	if second != 0 || digits > 0 {
		b = append2(append(b, '.'), second)
	}
	if digits > 0 {
		b = append(b, '.')
		for n := decimals(fraction); n < digits; n++ {
			b = append(b, '0')
		}
		b = strconv.AppendUint(b, fraction, 10)
	}
	return b
}

// append2 appends n in two digits.
func append2(b []byte, n int) []byte {
	return append(b, byte('0'+n/10), byte('0'+n%10))
}

// decimals returns how many decimal digits n has.
func decimals(n uint64) int {
	digits := 1
	for ; n >= 10; n /= 10 {
		digits++
	}
	return digits
}

// readRep reads a repository name, table 6.1, and refuses what algorithms 1 to 3
// could not have made: otherwise two labels would mean one thing.
func (l *label) readRep(s string) fault {
	domain, rest, _ := lex.Cut(s, '/')
	word, rest, _ := lex.Cut(rest, '/')
	year, date, _ := lex.Cut(rest, '/')

	l.form = FormRep
	dotless := strings.TrimSuffix(domain, ".")
	if f := checkDomain(dotless); f.reason != nil {
		return f
	}
	if f := notProxy(dotless); f.reason != nil {
		return f
	}
	name, f := l.readWord(word)
	if f.reason != nil {
		f.pos += len(domain) + 1
		return f
	}
	if len(name)+1+len(dotless) > 253 {
		return fault{len(domain) + 1, stele.Messagef("ibi.host-too-long", "the host name is longer than the 253 characters that one can have")}
	}
	if f := l.readDate(year, date); f.reason != nil {
		f.pos += len(domain) + len(word) + 2
		return f
	}
	if len(dotless) != len(domain) { // "sid.inpe.br./mtc-m18": the root's dot
		s = dotless + s[len(domain):]
	}
	l.text = lex.Lower(s)
	return fault{}
}

// hostName puts the host's name together again: algorithm 1 backwards.
func (l label) hostName() string {
	domain, rest, _ := lex.Cut(l.text, '/')
	word, _, _ := lex.Cut(rest, '/')
	if i := strings.IndexAny(word, ".@"); i >= 0 {
		word = word[:i]
	}
	return word + "." + domain
}

// checkDomain checks the rule "subdomain" of table 6.1.
func checkDomain(s string) fault {
	if bad := lex.Domain(s); bad >= 0 {
		return fault{bad, wrongByte(s, bad, stele.Messagef("ibi.domain-characters", "a domain name is of letters, digits and inner hyphens, in labels of 1 to 63"))}
	}
	if last := strings.LastIndexByte(s, '.') + 1; !lex.IsAlpha(s[last]) {
		return fault{last, stele.Messagef("ibi.domain-last-label", "the last label of a domain name begins with a letter")}
	}
	return fault{}
}

// notProxy refuses the domains under which people write handles without the URL's
// protocol, doi.org/10.1000/182: a label would be ambiguous.
func notProxy(domain string) fault {
	if _, ok := lex.HandleProxy(domain); ok {
		return fault{0, stele.Messagef("ibi.handle-proxy", "this is the host of a handle proxy; what stands below it is a handle")}
	}
	return fault{}
}

// wrongByte says which character at s[pos] breaks the rule.
func wrongByte(s string, pos int, rule *stele.Message) *stele.Message {
	if pos >= len(s) {
		return stele.Messagef("ibi.something-missing", "something is missing here: {cause}", rule)
	}
	r, _ := utf8.DecodeRuneInString(s[pos:])
	return stele.Messagef("ibi.character", "{character} can't stand here: {cause}", stele.Describe(r), rule)
}

// readWord reads the first word of the host name and the port after it. A word
// has no dot, so what follows one is a port.
func (l *label) readWord(s string) (word string, f fault) {
	word, l.port = s, defaultRepPort
	if i := max(strings.LastIndexByte(s, '.'), strings.LastIndexByte(s, '@')); i >= 0 {
		word, l.legacy = s[:i], s[i] == '@'
		port, reason := readPort(s[i+1:])
		switch {
		case reason != nil:
			return "", fault{i + 1, reason}
		case port == defaultRepPort && !l.legacy:
			return "", fault{i, stele.Messagef("ibi.default-host-port", `port 80 is left out: remove ".80"`)}
		}
		l.port = port
	}
	if bad := lex.Label(word); bad >= 0 {
		return "", fault{bad, wrongByte(word, bad, stele.Messagef("ibi.host-characters", "the first word of a host name is of letters, digits and inner hyphens, and a port may follow it"))}
	}
	return word, fault{}
}

// readPort reads a port in decimal, 1 to 65535, without leading zeros.
func readPort(s string) (port uint16, reason *stele.Message) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || s[0] == '0' || s[0] == '+' {
		return 0, stele.Messagef("ibi.port-invalid", `"{port}" is not a port: 1 to 65535 in digits, without leading zeros`, s)
	}
	return uint16(n), nil
}

// readDate reads the suffix, algorithm 2 backwards.
func (l *label) readDate(year, rest string) fault {
	if len(year) != 4 || !allDigits(year) {
		return fault{0, stele.Messagef("ibi.year-invalid", `"{year}" is not a year: four digits, from 1970 to 9999`, year)}
	}
	y := int(num2(year))*100 + int(num2(year[2:]))
	if y < 1970 {
		return fault{0, stele.Messagef("ibi.year-too-early", "no label is older than 1970")}
	}
	const at = 5 // where rest begins, after the year and "/"
	fields, fraction, f := splitDate(rest)
	if f.reason != nil {
		f.pos += at
		return f
	}
	for i, v := range fields {
		low, high := 0, [...]int{12, 31, 23, 59, 59}[i]
		if i < 2 {
			low = 1
		}
		if i == 1 {
			high = daysIn(y, fields[0])
		}
		if v < low || v > high {
			return fault{at + 3*i, noSuchTime(i, v)}
		}
	}
	if fraction == "" && len(rest) > len("02.16.17.46") && fields[4] == 0 {
		return fault{at + len("02.16.17.46"), stele.Messagef("ibi.zero-seconds", `seconds of 00 are left out: remove ".00"`)}
	}
	unix := time.Date(y, time.Month(fields[0]), fields[1], fields[2], fields[3], fields[4], 0, time.UTC).Unix()
	atto, f := readFraction(fraction)
	if f.reason != nil {
		f.pos += at + len("02.16.17.46.00.")
		return f
	}
	d, err := mint.NewDate(unix, atto)
	if err != nil {
		return fault{0, stele.Messagef("ibi.date-invalid", "{cause}", err)}
	}
	l.date = d
	return fault{}
}

// dateShape says what the part of a date after the year is like.
func dateShape() *stele.Message {
	return stele.Messagef("ibi.date-shape", "month.day.hour.minute with two digits each, then perhaps .second and .fraction")
}

// noSuchTime says that a part of a date has a value that it can't have.
func noSuchTime(part, value int) *stele.Message {
	number := fmt.Sprintf("%02d", value)
	switch part {
	case 0:
		return stele.Messagef("ibi.no-such-month", "that year has no month {month}", number)
	case 1:
		return stele.Messagef("ibi.no-such-day", "that month has no day {day}", number)
	case 2:
		return stele.Messagef("ibi.no-such-hour", "that day has no hour {hour}", number)
	case 3:
		return stele.Messagef("ibi.no-such-minute", "that hour has no minute {minute}", number)
	}
	return stele.Messagef("ibi.no-such-second", "that minute has no second {second}", number)
}

// splitDate splits month.day.hour.minute[.second[.fraction]].
func splitDate(s string) (fields [5]int, fraction string, f fault) {
	for i := range fields {
		at := 3 * i
		if i == 4 && len(s) == at-1 {
			break // no seconds
		}
		if i > 0 && (len(s) < at || s[at-1] != '.') {
			return fields, "", fault{min(len(s), at-1), wrongByte(s, at-1, dateShape())}
		}
		for p := at; p < at+2; p++ {
			if p >= len(s) || !lex.IsDigit(s[p]) {
				return fields, "", fault{min(len(s), p), wrongByte(s, p, dateShape())}
			}
		}
		fields[i] = int(num2(s[at:]))
	}
	const end = len("02.16.17.46.00")
	if len(s) <= end {
		return fields, "", fault{}
	}
	fraction = s[end+1:]
	switch {
	case s[end] != '.':
		return fields, "", fault{end, wrongByte(s, end, dateShape())}
	case fraction == "" || !allDigits(fraction):
		bad := strings.IndexFunc(fraction, func(r rune) bool { return r < '0' || r > '9' })
		bad = end + 1 + max(bad, 0)
		return fields, "", fault{bad, wrongByte(s, bad, stele.Messagef("ibi.fraction-characters", "a fraction is of digits"))}
	}
	return fields, fraction, fault{}
}

// readFraction reads the digits of a fraction as attoseconds.
func readFraction(s string) (atto uint64, f fault) {
	if s == "" {
		return 0, fault{}
	}
	if len(s) > mint.MaxFraction {
		return 0, fault{mint.MaxFraction, stele.Messagef("ibi.fraction-too-long", "a fraction has at most {most} digits", mint.MaxFraction)}
	}
	if s[len(s)-1] == '0' {
		return 0, fault{len(s) - 1, stele.Messagef("ibi.fraction-ends-in-zero", "a fraction does not end in 0: remove it")}
	}
	for i := range mint.MaxFraction {
		atto *= 10
		if i < len(s) {
			atto += uint64(s[i] - '0')
		}
	}
	return atto, fault{}
}

// num2 reads two digits.
func num2(s string) byte { return (s[0]-'0')*10 + s[1] - '0' }

func allDigits(s string) bool {
	for i := range len(s) {
		if !lex.IsDigit(s[i]) {
			return false
		}
	}
	return true
}

// daysIn returns how many days the month has, 31 for one that does not exist.
func daysIn(year, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}
