package urn

import (
	"strings"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// isbn is the namespace of International Standard Book Numbers (RFC 8254,
// ISO 2108). Hyphens do not count, the check digit must hold, and the 10 digits
// of a book from before 2007 are its 13 digits without 978, with a check digit of
// their own. The canonical form is the 13 digits.
//
// The printed form, with hyphens, takes the International ISBN Agency's table of
// ranges, which changes; so it is read, and never written.
func isbn() namespace {
	return namespace{
		nid:       "isbn",
		form:      "isbn",
		title:     "books, International Standard Book Number",
		canonical: isbnCanonical,
		explain:   isbnExplain,
		spellings: isbnSpellings,
		ends:      func(string) []string { return []string{":9780306406157"} },
	}
}

// readISBN reads an ISBN as people write it: "ISBN 978-0-306-40615-7", also with
// "ISBN:", "isbn:", "ISBN-10" or "ISBN-13" before it.
func (s *Scheme) readISBN(text string, r *reading) error {
	pos, size := isbnMark(text)
	if pos < 0 {
		return stele.ErrForeign
	}
	if err := stele.CheckText(name, text); err != nil {
		return err
	}
	digits, err := readISBN(text[pos:], pos, " -")
	if err != nil {
		return err
	}
	if size != 0 && digits.size != size {
		return stele.Invalidf(name, pos, "isbn.length-differs", "the text says ISBN-{stated}, and has {digits} digits", size, digits.size)
	}
	canonical := digits.urn()
	r.ns = s.namespace("isbn")
	r.nid, r.nss = r.ns.nid, canonical[len("urn:isbn:"):]
	r.id, err = stele.NewID(name, canonical)
	return err
}

// isbnMark returns where the number begins in a text that is marked as an ISBN,
// and how many digits the mark promises, 0 if it does not say; pos is -1 if there
// is not a mark.
func isbnMark(text string) (pos, size int) {
	rest, ok := lex.CutFold(text, "isbn")
	if !ok {
		return -1, 0
	}
	if after, ok := strings.CutPrefix(rest, "-10"); ok {
		rest, size = after, 10
	} else if after, ok := strings.CutPrefix(rest, "-13"); ok {
		rest, size = after, 13
	}
	after, colon := strings.CutPrefix(rest, ":")
	after, space := strings.CutPrefix(after, " ")
	if !colon && !space {
		return -1, 0
	}
	return len(text) - len(after), size
}

// isbnDigits are the 10 or 13 digits of an ISBN; the last of 10 may be 'X'.
type isbnDigits struct {
	digit [13]byte
	size  int
}

func isbnCanonical(urn string, nss, pos int) (string, error) {
	digits, err := readISBN(urn[nss:], pos, "-")
	if err != nil {
		return "", err
	}
	if digits.size == len(urn)-nss && digits.size == 13 {
		return lex.FoldURN(urn, nss), nil
	}
	return digits.urn(), nil
}

// readISBN reads a number that stands at pos in the text. The separators may
// stand singly between digits.
func readISBN(number string, pos int, separators string) (d isbnDigits, err error) {
	for i := 0; i < len(number); i++ {
		c := number[i]
		switch {
		case lex.IsDigit(c) && d.size < 13 && (d.size != 10 || d.digit[9] != 'X'):
			d.digit[d.size] = c
			d.size++
		case lex.IsDigit(c) || c|0x20 == 'x' && d.size == 9 && i+1 < len(number):
			return d, mistyped(pos+i, stele.Messagef("isbn.too-many-digits", "an ISBN has 10 digits, of which the last may be X, or 13"), slips(number, separators))
		case c|0x20 == 'x' && d.size == 9:
			d.digit[9] = 'X'
			d.size++
		case strings.IndexByte(separators, c) < 0:
			r, _ := utf8.DecodeRuneInString(number[i:])
			return d, mistyped(pos+i,
				stele.Messagef("isbn.character", "{character} can't stand in an ISBN here; it has 10 or 13 digits, with single hyphens between them", stele.Describe(r)), slips(number, separators))
		case i == 0 || !lex.IsDigit(number[i-1]) || i+1 == len(number):
			return d, stele.Invalidf(name, pos+i, "isbn.separator-misplaced", "'{character}' can only stand singly between the digits of an ISBN", string(rune(c)))
		}
	}
	if d.size != 10 && d.size != 13 {
		return d, stele.Invalidf(name, pos+len(number), "isbn.wrong-length", "an ISBN has 10 or 13 digits; this has {digits}", d.size)
	}
	if d.size == 13 && string(d.digit[:4]) == "9790" {
		return d, stele.Invalidf(name, pos, "isbn.is-ismn", "numbers that begin with 9790 are of printed music (ISMN, ISO 10957), not of books")
	}
	if d.size == 13 && !d.hasPrefix() {
		return d, mistyped(pos, stele.Messagef("isbn.prefix", "an ISBN of 13 digits begins with 978 or 979"), d.corrections())
	}
	last := d.digit[d.size-1]
	if want := d.check(); want != last {
		return d, mistyped(pos+len(number)-1,
			stele.Messagef("isbn.check-digit-wrong", "the check digit '{digit}' of the ISBN is wrong: to its other digits belongs '{expected}'; a digit is mistyped", string(rune(last)), string(rune(want))), d.corrections())
	}
	return d, nil
}

// slips returns the books that are meant if one character of the number, which is
// not a digit, stands for one, or if an X was swapped with its neighbour.
func slips(number, separators string) []string {
	var d isbnDigits
	odd := 0
	for _, r := range number {
		if r < utf8.RuneSelf && strings.IndexByte(separators, byte(r)) >= 0 {
			continue
		}
		if d.size == len(d.digit) {
			return nil
		}
		c := byte('?')
		switch {
		case r < utf8.RuneSelf && lex.IsDigit(byte(r)):
			c = byte(r)
		case r == 'x' || r == 'X':
			c = 'X'
		default:
			odd++
		}
		d.digit[d.size] = c
		d.size++
	}
	if odd > 1 || d.size != 10 && d.size != 13 {
		return nil
	}
	return d.corrections()
}

func (d *isbnDigits) hasPrefix() bool {
	return d.digit[0] == '9' && d.digit[1] == '7' && (d.digit[2] == '8' || d.digit[2] == '9' && d.digit[3] != '0')
}

// check returns the check digit that belongs to the others.
func (d *isbnDigits) check() byte {
	if d.size == 10 {
		return check10(d.digit[:9])
	}
	return check13(d.digit[:12])
}

// check10 sums the digits times 10, 9, ... 2; the check digit, times 1, brings
// that to a multiple of 11.
func check10(nine []byte) byte {
	sum := 0
	for i, c := range nine {
		sum += (10 - i) * int(c-'0')
	}
	if n := (11 - sum%11) % 11; n < 10 {
		return byte('0' + n)
	}
	return 'X'
}

// check13 sums the digits times 1, 3, 1, ... 3; the check digit brings that to a
// multiple of 10.
func check13(twelve []byte) byte {
	sum := 0
	for i, c := range twelve {
		sum += (1 + i%2*2) * int(c-'0')
	}
	return byte('0' + (10-sum%10)%10)
}

// urn returns the book's canonical name.
func (d *isbnDigits) urn() string {
	const before = "urn:isbn:978"
	if d.size == 13 {
		return before[:len(before)-3] + string(d.digit[:])
	}
	var b [len(before) + 10]byte
	copy(b[:], before)
	copy(b[len(before):], d.digit[:9])
	b[len(b)-1] = check13(b[len(b)-13 : len(b)-1])
	return string(b[:])
}

// isValid reports whether all rules hold for digits that were changed.
func (d *isbnDigits) isValid() bool {
	if d.size == 13 && !d.hasPrefix() {
		return false
	}
	for _, c := range d.digit[:d.size-1] {
		if !lex.IsDigit(c) {
			return false
		}
	}
	return d.check() == d.digit[d.size-1]
}

// corrections returns the books that are meant if two neighbours were swapped, or
// one digit replaced.
func (d isbnDigits) corrections() []string {
	var found suggestions
	try := func(changed isbnDigits) {
		if changed.isValid() {
			found.add(changed.urn())
		}
	}
	for i := range d.size - 1 {
		c := d
		c.digit[i], c.digit[i+1] = c.digit[i+1], c.digit[i]
		try(c)
	}
	for i := d.size - 1; i >= 0; i-- { // the check digit first
		for _, digit := range []byte("0123456789X") {
			c := d
			c.digit[i] = digit
			try(c)
		}
	}
	return found
}

// isbn10 returns the older form of 13 digits, "" for those of 979, which never
// had one.
func isbn10(thirteen string) string {
	nine, ok := strings.CutPrefix(thirteen, "978")
	if !ok || len(nine) != 10 {
		return ""
	}
	nine = nine[:9]
	return nine + string(check10([]byte(nine)))
}

func isbnExplain(nss string, x *stele.Explanation) {
	if ten := isbn10(nss); ten != "" {
		x.Parts = append(x.Parts, stele.Part{Name: "isbn10", Value: ten, Note: "as before 2007"})
	}
	x.Parts = append(x.Parts, stele.Part{Name: "isbn13", Value: nss})
}

func isbnSpellings(nss string) []stele.Spelling {
	all := []stele.Spelling{{Name: "ISBN", Text: "ISBN " + nss}}
	if ten := isbn10(nss); ten != "" {
		all = append(all, stele.Spelling{Name: "ISBN-10", Text: "urn:isbn:" + ten})
	}
	return all
}
