package ibi

import (
	"math/bits"
	"net/netip"
	"strings"
)

// Table 7.6: the digits of base 27. Zero and one are left out, as are letters
// that are mistaken for digits; W and X separate.
const digits27 = "23456789ABCDEFGHJKLMNPQRSTU"

// value27 gives the value of each base 27 digit, in either case, and 255 for
// every other byte.
var value27 = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for v := range len(digits27) {
		c := digits27[v]
		t[c] = byte(v)
		if c >= 'A' {
			t[c|0x20] = byte(v)
		}
	}
	return t
}()

// append27 appends n in base 27 to b.
func append27(b []byte, n uint64) []byte {
	var buf [14]byte
	i := len(buf)
	for {
		i--
		buf[i] = digits27[n%27]
		if n /= 27; n == 0 {
			return append(b, buf[i:]...)
		}
	}
}

// parse27 reads up to 13 base 27 digits. bad is the offset of the first byte
// that is not one, or -1.
func parse27(s string) (n uint64, bad int) {
	for i := range len(s) {
		v := value27[s[i]]
		if v == 255 {
			return 0, i
		}
		n = n*27 + uint64(v)
	}
	return n, -1
}

// An IPv6 address's text is a number of up to 39 digits in base 17 (table 7.5),
// which takes up to 34 digits in base 27: less than 2^162. wide is such a
// number, least significant word first.
type wide [3]uint64

// mulAdd sets w to w*m + a.
func (w *wide) mulAdd(m, a uint64) {
	for i := range w {
		hi, lo := bits.Mul64(w[i], m)
		var carry uint64
		w[i], carry = bits.Add64(lo, a, 0)
		a = hi + carry
	}
}

// divMod sets w to w/d and returns the remainder.
func (w *wide) divMod(d uint64) (rest uint64) {
	top := len(w) - 1
	for top > 0 && w[top] == 0 { // a division costs as much as all the rest
		top--
	}
	for i := top; i >= 0; i-- {
		w[i], rest = bits.Div64(rest, w[i], d)
	}
	return rest
}

const (
	pow27x13 = 4052555153018976267 // 27^13, the largest power in 64 bits
	pow17x15 = 2862423051509815793 // 17^15

	maxV4 = 11 // base 27 digits of the longest IPv4 text, 15 digits in base 11
	maxV6 = 34 // base 27 digits of the longest IPv6 text, 39 digits in base 17
)

// appendAddr appends the canonical text of addr, read as a number in base 11 or
// 17, in base 27 (lines 6, 7 and 10, 11 of algorithm 5). A leading zero of the
// text is lost here; addrText puts it back.
func appendAddr(b []byte, addr netip.Addr) []byte {
	text := addr.String()
	if addr.Is4() {
		var n uint64
		for i := range len(text) {
			n = n*11 + uint64(ipDigit(text[i]))
		}
		return append27(b, n)
	}
	var w wide
	for i := range len(text) {
		w.mulAdd(17, uint64(ipDigit(text[i])))
	}
	var buf [maxV6 + 5]byte
	i := len(buf)
	for w != (wide{}) {
		rest := w.divMod(pow27x13)
		for range 13 {
			i--
			buf[i] = digits27[rest%27]
			rest /= 27
		}
	}
	return append(b, strings.TrimLeft(string(buf[i:]), digits27[:1])...)
}

// ipDigit gives the value of a character of an address: tables 7.4 and 7.5.
func ipDigit(c byte) byte {
	switch {
	case c == '.':
		return 10
	case c == ':':
		return 16
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - '0'
}

// addrText turns the number that digits writes in base 27 into the text of an
// address: base 11 for IPv4, base 17 for IPv6. digits must be valid, not
// too many, and not begin with a zero.
func addrText(buf *[48]byte, digits string, v6 bool) []byte {
	i := len(buf)
	if !v6 {
		for n, _ := parse27(digits); n > 0; n /= 11 {
			i--
			buf[i] = "0123456789."[n%11]
		}
	} else {
		i = base17(buf, digits)
	}
	// The zero that is lost in the number: a text that begins with "." or with
	// one ":" had it.
	if buf[i] == '.' || buf[i] == ':' && (i+1 == len(buf) || buf[i+1] != ':') {
		i--
		buf[i] = '0'
	}
	return buf[i:]
}

// base17 writes the number that digits writes in base 27 to the end of buf, in
// base 17, and returns where it begins.
func base17(buf *[48]byte, digits string) int {
	var w wide
	for len(digits) > 0 {
		chunk := digits[:(len(digits)-1)%13+1]
		n, _ := parse27(chunk)
		w.mulAdd(pow27x13, n) // times nothing in the first round, which may be short
		digits = digits[len(chunk):]
	}
	i := len(buf)
	for w != (wide{}) {
		rest := w.divMod(pow17x15)
		for range 15 {
			if rest == 0 && w == (wide{}) {
				break
			}
			i--
			buf[i] = "0123456789abcdef:"[rest%17]
			rest /= 17
		}
	}
	return i
}
