package bulk

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Encoding is how characters stand in a file.
type Encoding string

const (
	Auto   Encoding = "auto" // found out from the bytes
	UTF8   Encoding = "utf-8"
	CP1252 Encoding = "cp1252" // Windows-1252, of Windows in western Europe and America
	Latin1 Encoding = "latin-1"
	UTF16  Encoding = "utf-16"
)

// Encodings returns those that [NewDecoder] takes.
func Encodings() []Encoding { return []Encoding{Auto, UTF8, CP1252, Latin1, UTF16} }

// Title returns the name of the encoding for people.
func (e Encoding) Title() string {
	switch e {
	case CP1252:
		return "Windows-1252 (cp1252)"
	case Latin1:
		return "Latin-1 (ISO 8859-1)"
	case UTF8, UTF16:
		return strings.ToUpper(string(e))
	}
	return string(e)
}

// Decoder reads a text in any of the encodings and gives it in UTF-8.
//
// UTF-16 is known by its byte order mark. Apart from that, a text is UTF-8 until bytes
// come that can't be. If there was no character outside ASCII before them, and there are
// not more in UTF-8 than such bytes in the next part of the text, the text is taken for
// cp1252, of which Latin-1 is a part. Otherwise they are passed on, for the reader of
// that line to refuse.
type Decoder struct {
	in      io.Reader
	mode    Encoding
	started bool
	order   binary.ByteOrder // of UTF-16
	raw     []byte           // what is read and not decoded
	out     []byte           // what is decoded and not handed over
	err     error

	wide   bool // a character outside ASCII was read as UTF-8
	lines  int  // with bytes that were not UTF-8
	inLine bool // the present line is counted
	c1     bool // bytes that Latin-1 has no characters for

	marked  bool // UTF-16 had a byte order mark
	damaged bool // UTF-16 had bytes that stand for no character
}

// NewDecoder returns a decoder of a text.
func NewDecoder(in io.Reader, e Encoding) *Decoder { return &Decoder{in: in, mode: e} }

// Found returns the encoding that was taken so far, and how many lines have characters
// that are another one's. Bytes that cp1252 and Latin-1 read alike are called Latin-1.
func (d *Decoder) Found() (e Encoding, lines int) {
	switch {
	case d.mode == Auto:
		return UTF8, 0
	case d.mode == CP1252 && !d.c1:
		return Latin1, d.lines
	}
	return d.mode, d.lines
}

// ahead is how much of a text is looked at to find out its encoding.
const ahead = 64 << 10

func (d *Decoder) Read(p []byte) (int, error) {
	for len(d.out) == 0 {
		if len(d.raw) == 0 && d.err != nil {
			return 0, d.err
		}
		d.fill()
		d.begin()
		n := d.decode()
		d.raw = append(d.raw[:0], d.raw[n:]...)
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

// fill reads until there is enough to look at, or the end.
func (d *Decoder) fill() {
	for d.err == nil && len(d.raw) < ahead {
		have := len(d.raw)
		d.raw = append(d.raw, make([]byte, ahead)...)
		n, err := d.in.Read(d.raw[have:])
		d.raw, d.err = d.raw[:have+n], err
		if n > 0 && d.mode != Auto && (d.started || len(d.raw) >= 2) {
			return // nothing has to be found out, or there is enough for a byte order mark
		}
	}
}

// begin looks for a byte order mark.
func (d *Decoder) begin() {
	if d.started {
		return
	}
	d.started = true
	switch {
	case d.mode != Auto && d.mode != UTF16:
	case bytes.HasPrefix(d.raw, []byte("\xff\xfe")):
		d.mode, d.order, d.raw, d.marked = UTF16, binary.LittleEndian, d.raw[2:], true
	case bytes.HasPrefix(d.raw, []byte("\xfe\xff")):
		d.mode, d.order, d.raw, d.marked = UTF16, binary.BigEndian, d.raw[2:], true
	case d.mode == UTF16:
		d.order = binary.LittleEndian // what Windows writes
	}
}

// decode decodes what is there, and returns how many bytes that were.
func (d *Decoder) decode() int {
	d.out = d.out[:0]
	switch d.mode {
	case UTF16:
		return d.decode16()
	case CP1252, Latin1:
		d.decode8(d.raw)
		return len(d.raw)
	case UTF8:
		d.out = append(d.out, d.raw...)
		return len(d.raw)
	}
	n := 0
	for n < len(d.raw) {
		if d.raw[n] < utf8.RuneSelf {
			n++
			continue
		}
		if !utf8.FullRune(d.raw[n:]) && d.err == nil {
			break // the rest of it comes
		}
		r, size := utf8.DecodeRune(d.raw[n:])
		if r == utf8.RuneError && size == 1 && !d.wide {
			if good, bad := census(d.raw[n:], d.err != nil); bad > good {
				d.mode = CP1252
				d.out = append(d.out, d.raw[:n]...)
				d.decode8(d.raw[n:])
				return len(d.raw)
			}
		}
		d.wide = true
		n += size
	}
	d.out = append(d.out, d.raw[:n]...)
	if n == 0 && d.err != nil {
		n = len(d.raw)
	}
	return n
}

// census counts characters outside ASCII in UTF-8, and bytes that can't be such. If the
// text does not end here, the beginning of a character at its end is neither.
func census(text []byte, ends bool) (good, bad int) {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1 && (ends || utf8.FullRune(text)):
			bad++
		case r >= utf8.RuneSelf && n > 1:
			good++
		}
		text = text[n:]
	}
	return good, bad
}

// decode8 decodes a text of one byte a character.
func (d *Decoder) decode8(text []byte) {
	for _, c := range text {
		switch {
		case c == '\n':
			d.inLine = false
		case c >= utf8.RuneSelf && !d.inLine:
			d.inLine = true
			d.lines++
		}
		r := rune(c)
		if 0x80 <= c && c < 0xa0 && d.mode == CP1252 {
			r, d.c1 = cp1252[c-0x80], true
		}
		d.out = utf8.AppendRune(d.out, r)
	}
}

// cp1252 has the characters of the bytes 80 to 9F. The five that have none are control
// characters, as in Latin-1, which no record takes.
var cp1252 = [32]rune{
	0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8d, 0x017d, 0x8f,
	0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d, 0x017e, 0x0178,
}

// decode16 decodes UTF-16.
func (d *Decoder) decode16() int {
	n := 0
	for len(d.raw)-n >= 2 {
		r, size := rune(d.order.Uint16(d.raw[n:])), 2
		if utf16.IsSurrogate(r) {
			switch {
			case len(d.raw)-n >= 4:
				if both := utf16.DecodeRune(r, rune(d.order.Uint16(d.raw[n+2:]))); both != utf8.RuneError {
					r, size = both, 4
				} else {
					r, d.damaged = utf8.RuneError, true
				}
			case d.err == nil:
				return n
			default:
				r, d.damaged = utf8.RuneError, true
			}
		}
		if r == '\n' {
			d.inLine = false
		} else if r >= utf8.RuneSelf && !d.inLine {
			d.inLine = true
			d.lines++
		}
		d.out = utf8.AppendRune(d.out, r)
		n += size
	}
	if n == 0 && d.err != nil && len(d.raw) > 0 { // half a character at the end
		d.out = utf8.AppendRune(d.out, utf8.RuneError)
		n, d.damaged = len(d.raw), true
	}
	return n
}
