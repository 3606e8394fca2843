package bulk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// A sheet is a file that is read and written again, with some cells filled in. What is
// not filled in keeps its bytes: quotation marks, line ends, encoding.

// SetCell returns a row, without its line end, that has another text in one of its cells.
// All other bytes stay as they are. An index that is the number of cells adds a cell at
// the end. The new cell has quotation marks if it needs them or if quote is set.
func SetCell(row []byte, delimiter byte, index int, cell string, quote bool) ([]byte, error) {
	begin := 0
	for i := 0; ; i++ {
		end, err := cellEnd(row[begin:], delimiter, i)
		if err != nil {
			return nil, err
		}
		end += begin
		if i == index {
			out := append(make([]byte, 0, len(row)+len(cell)+3), row[:begin]...)
			return append(appendCell(out, cell, delimiter, quote || bytes.HasPrefix(row[begin:end], []byte{'"'})), row[end:]...), nil
		}
		if end == len(row) {
			if i+1 != index {
				return nil, stele.Messagef("row.cell-missing", "the row has {cells} cells, so there is no cell {cell}", i+1, index+1)
			}
			out := append(make([]byte, 0, len(row)+len(cell)+4), row...)
			return appendCell(append(out, delimiter), cell, delimiter, quote), nil
		}
		begin = end + 1
	}
}

// appendCell is AppendCell, or with quote the cell in quotation marks.
func appendCell(b []byte, cell string, delimiter byte, quote bool) []byte {
	if !quote {
		return AppendCell(b, cell, delimiter)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(cell, `"`, `""`)...)
	return append(b, '"')
}

// IsQuoted reports whether every cell of a row is in quotation marks, as some programs
// write all cells.
func IsQuoted(row []byte, delimiter byte) bool {
	for i := 0; ; i++ {
		end, err := cellEnd(row, delimiter, i)
		if err != nil || end == 0 || row[0] != '"' {
			return false
		}
		if end == len(row) {
			return true
		}
		row = row[end+1:]
	}
}

// Encoder writes a text in the encoding in which a [Decoder] read it: what is decoded and
// encoded again has the same bytes, unless the decoder says that it is damaged.
type Encoder struct {
	mode  Encoding
	order binary.ByteOrder
}

// Encoder returns the encoder for the encoding that was taken so far.
func (d *Decoder) Encoder() Encoder { return Encoder{d.mode, d.order} }

// Mark returns the byte order mark that stood before the text; nil if there was none.
func (d *Decoder) Mark() []byte {
	if !d.marked {
		return nil
	}
	return d.Encoder().append16(nil, 0xfeff)
}

// Damaged reports whether UTF-16 was read that stands for no characters, so that its
// bytes are lost.
func (d *Decoder) Damaged() bool { return d.damaged }

// errNoCharacter says that an encoding lacks a character.
var errNoCharacter = stele.Messagef("file.encoding-lacks-character", "has no such character")

// Append appends a text that is in UTF-8 to b.
func (e Encoder) Append(b, text []byte) ([]byte, error) {
	switch e.mode {
	case UTF16:
		for len(text) > 0 {
			r, n := utf8.DecodeRune(text)
			text = text[n:]
			if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
				b = e.append16(e.append16(b, uint16(high)), uint16(low))
			} else {
				b = e.append16(b, uint16(r))
			}
		}
		return b, nil
	case CP1252, Latin1:
		for len(text) > 0 {
			r, n := utf8.DecodeRune(text)
			text = text[n:]
			c, ok := byteOf(r, e.mode)
			if !ok {
				return nil, fmt.Errorf("%s %w: %q", e.mode, errNoCharacter, r)
			}
			b = append(b, c)
		}
		return b, nil
	}
	return append(b, text...), nil
}

func (e Encoder) append16(b []byte, c uint16) []byte {
	if e.order == binary.BigEndian {
		return binary.BigEndian.AppendUint16(b, c)
	}
	return binary.LittleEndian.AppendUint16(b, c)
}

// byteOf returns the byte of a character in an encoding of one byte a character.
func byteOf(r rune, e Encoding) (byte, bool) {
	if e == CP1252 {
		if i := slices.Index(cp1252[:], r); i >= 0 {
			return byte(0x80 + i), true
		}
		return byte(r), r < 0x80 || r >= 0xa0 && r <= 0xff
	}
	return byte(r), r <= 0xff
}
