package ibi

import (
	"net/netip"

	"github.com/stele-id/stele"

	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

const (
	defaultIBIpPort = 800         // left out of an IBIp (algorithm 5, line 1)
	epoch           = 807_235_200 // 1995-08-01T00:00:00Z (algorithm 6, line 2)
)

// appendIBIpSuffix is algorithm 6. The report writes the fraction as an integer,
// so that .5 and .05 would share a label. Labels must be injective: each leading
// zero of the fraction is a leading zero digit ("2") here, and fractions without
// leading zeros are exactly the report's. The date is not before epoch.
func appendIBIpSuffix(b []byte, d mint.Date) []byte {
	b = append27(b, uint64(d.Unix()-epoch))
	fraction, digits := d.Fraction()
	if digits == 0 {
		return b
	}
	b = append(b, 'W')
	for n := decimals(fraction); n < digits; n++ {
		b = append(b, digits27[0])
	}
	return append27(b, fraction)
}

// readIBIp reads an IBIp, table 7.1, and refuses what algorithms 5 to 7 could
// not have made.
func (l *label) readIBIp(s string) fault {
	prefix, suffix, _ := lex.Cut(s, '/')
	l.form = FormIBIp
	for i := range len(s) {
		if value27[s[i]] == 255 && !isSeparator(s[i]) && i != len(prefix) {
			return fault{i, wrongByte(s, i, stele.Messagef("ibi.ibip-alphabet", "an IBIp is of the digits 2 to 9 and the letters but I, O, V, Y and Z"))}
		}
	}
	if f := l.readAddr(prefix); f.reason != nil {
		return f
	}
	if f := l.readSuffix(suffix); f.reason != nil {
		f.pos += len(prefix) + 1
		return f
	}
	l.text = lex.Upper(s)
	return fault{}
}

// isSeparator reports whether c is W or X.
func isSeparator(c byte) bool { return c|0x20 == 'w' || c|0x20 == 'x' }

// separator returns where s has its first W or X, or -1.
func separator(s string) int {
	for i := range len(s) {
		if isSeparator(s[i]) {
			return i
		}
	}
	return -1
}

// readAddr reads the prefix: algorithm 5 backwards.
func (l *label) readAddr(s string) fault {
	sep := separator(s)
	if sep < 0 {
		return fault{len(s), stele.Messagef("ibi.prefix-unterminated", "the prefix has no W (IPv4) or X (IPv6) after the address")}
	}
	v6 := s[sep]|0x20 == 'x'
	digits, limit := s[:sep], maxV4
	if v6 {
		limit = maxV6
	}
	switch {
	case digits == "":
		return fault{0, stele.Messagef("ibi.prefix-without-address", "the prefix has no address before W or X")}
	case digits[0] == '2':
		return fault{0, stele.Messagef("ibi.address-leading-zero", "an address does not begin with 2, the zero of base 27")}
	case len(digits) > limit:
		return fault{limit, stele.Messagef("ibi.address-too-long", "this is longer than any IP address")}
	}
	if f := l.readIBIpPort(s[sep+1:]); f.reason != nil {
		f.pos += sep + 1
		return f
	}
	var buf [48]byte
	text := addrText(&buf, digits, v6)
	addr, ok := parseAddr(text, v6)
	if !ok {
		return fault{0, stele.Messagef("ibi.not-an-address", `the prefix decodes to "{text}", which is not an IP address`, string(text))}
	}
	l.addr = addr
	return fault{}
}

// parseAddr reads the decoded text of an address, which need not be canonical.
func parseAddr(text []byte, v6 bool) (addr netip.Addr, ok bool) {
	if v6 {
		addr, err := netip.ParseAddr(string(text))
		return addr, err == nil && addr.Is6()
	}
	var octets [4]byte
	for i := range octets {
		n, digits := 0, 0
		for ; digits < len(text) && text[digits] != '.'; digits++ {
			if n = n*10 + int(text[digits]-'0'); n > 255 || digits > 2 {
				return addr, false
			}
		}
		last := digits == len(text)
		if digits == 0 || last != (i == 3) {
			return addr, false
		}
		octets[i] = byte(n)
		if !last {
			text = text[digits+1:]
		}
	}
	return netip.AddrFrom4(octets), true
}

// readIBIpPort reads what follows W or X.
func (l *label) readIBIpPort(s string) fault {
	l.port = defaultIBIpPort
	if s == "" {
		return fault{}
	}
	if s[0] == '2' {
		return fault{0, stele.Messagef("ibi.port-leading-zero", "a port does not begin with 2, the zero of base 27")}
	}
	if len(s) > 4 {
		return fault{4, stele.Messagef("ibi.port-too-long", "this is longer than any port")}
	}
	n, bad := parse27(s)
	switch {
	case bad >= 0:
		return fault{bad, stele.Messagef("ibi.prefix-second-separator", "a second separator; a prefix has one")}
	case n > 65535:
		return fault{0, stele.Messagef("ibi.port-too-large", "port {port} is more than 65535", n)}
	case n == defaultIBIpPort:
		return fault{0, stele.Messagef("ibi.default-port", "port 800 is left out: end the prefix after W or X")}
	}
	l.port = uint16(n)
	return fault{}
}

// readSuffix reads the date: algorithm 6 backwards.
func (l *label) readSuffix(s string) fault {
	whole, fraction, fractional := s, "", false
	if i := separator(s); i >= 0 {
		if s[i]|0x20 == 'x' {
			return fault{i, stele.Messagef("ibi.suffix-separator", "X can't stand in a suffix; W separates the fraction")}
		}
		whole, fraction, fractional = s[:i], s[i+1:], true
	}
	switch {
	case whole == "":
		return fault{0, stele.Messagef("ibi.seconds-missing", "the suffix has no seconds")}
	case whole[0] == '2' && whole != "2":
		return fault{0, stele.Messagef("ibi.seconds-leading-zero", "seconds do not begin with 2, the zero of base 27")}
	case len(whole) > 8: // 27^8 seconds reach past the year 9999
		return fault{8, stele.Messagef("ibi.date-too-late", "this date is after the year 9999")}
	}
	seconds, _ := parse27(whole)
	var atto uint64
	if fractional {
		var f fault
		if atto, f = readFraction27(fraction); f.reason != nil {
			f.pos += len(whole) + 1
			return f
		}
	}
	d, err := mint.NewDate(int64(seconds)+epoch, atto)
	if err != nil {
		return fault{0, stele.Messagef("ibi.date-too-late", "this date is after the year 9999")}
	}
	l.date = d
	return fault{}
}

// readFraction27 reads a fraction as attoseconds: a zero digit for each of its
// leading zeros, then the rest as an integer.
func readFraction27(s string) (atto uint64, f fault) {
	zeros := 0
	for zeros < len(s) && s[zeros] == '2' {
		zeros++
	}
	if zeros == len(s) {
		return 0, fault{0, stele.Messagef("ibi.fraction-zero", "a fraction of zero is left out: remove it and its W")}
	}
	if len(s)-zeros > 13 {
		return 0, fault{0, stele.Messagef("ibi.fraction-too-long", "a fraction has at most {most} digits", mint.MaxFraction)}
	}
	n, bad := parse27(s[zeros:])
	if bad >= 0 {
		return 0, fault{zeros + bad, stele.Messagef("ibi.suffix-second-separator", "a second separator; a suffix has one W")}
	}
	digits := zeros + decimals(n)
	switch {
	case digits > mint.MaxFraction:
		return 0, fault{0, stele.Messagef("ibi.fraction-too-long", "a fraction has at most {most} digits", mint.MaxFraction)}
	case n%10 == 0:
		return 0, fault{0, stele.Messagef("ibi.fraction-trailing-zero", "the fraction {fraction} ends in a zero, which no label is made with", n)}
	}
	for ; digits < mint.MaxFraction; digits++ {
		n *= 10
	}
	return n, fault{}
}
