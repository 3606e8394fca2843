package bulk_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/stele-id/stele/bulk"
)

// A cell that is set is read again, and no other cell and no byte of another cell is
// changed.
func TestSetCell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delimiter := rapid.SampledFrom([]byte(",;\t")).Draw(t, "delimiter")
		parts := rapid.SliceOfN(rapid.StringMatching(`[a-z é]{0,4}|"([a-z,;\n]|""){0,6}"`), 1, 5).Draw(t, "cells")
		row := []byte(strings.Join(parts, string(delimiter)))
		before, err := bulk.SplitRow(row, delimiter, nil)
		if err != nil {
			t.Fatalf("%q: %v", row, err)
		}
		index := rapid.IntRange(0, len(parts)).Draw(t, "index")
		cell := rapid.StringMatching(`[a-z:/ ,;"\n=é]{0,8}`).Draw(t, "cell")
		got, err := bulk.SetCell(row, delimiter, index, cell, rapid.Bool().Draw(t, "quote"))
		if err != nil {
			t.Fatalf("%q, cell %d: %v", row, index, err)
		}
		after, err := bulk.SplitRow(got, delimiter, nil)
		want := append(slices.Clone(before), "")[:max(len(before), index+1)]
		want[index] = cell
		if err != nil || !slices.Equal(after, want) {
			t.Fatalf("%q with %q in cell %d is %q: %q, %v; want %q", row, cell, index, got, after, err, want)
		}
		head := strings.Join(parts[:index], string(delimiter))
		if !bytes.HasPrefix(got, []byte(head)) {
			t.Fatalf("%q does not begin as %q", got, row)
		}
		if index < len(parts) && !bytes.HasSuffix(got, []byte(strings.Join(parts[index+1:], string(delimiter)))) {
			t.Fatalf("%q does not end as %q", got, row)
		}
	})
}

func TestIsQuoted(t *testing.T) {
	for row, want := range map[string]bool{`"a","b"`: true, `"a,b"`: true, `"a",b`: false, `a`: false, ``: false, `"a",`: false, `"a","b`: false, `"a""b"`: true} {
		if got := bulk.IsQuoted([]byte(row), ','); got != want {
			t.Errorf("IsQuoted(%s) = %t", row, got)
		}
	}
}

// A text that is decoded and encoded again has the same bytes, in every encoding that can
// be found out.
func TestEncodeAgain(t *testing.T) {
	texts := map[string][]byte{
		"ascii":   []byte("a,b\r\n"),
		"utf-8":   []byte("é,€\r\n"),
		"cp1252":  []byte("M\xfcnchen \x80\x81\x9d,b\r\n"),
		"latin-1": []byte("M\xfcnchen,b\r\n"),
		"mixed":   []byte("é\xfc\xff,b"),
		"little":  wide("\ufeffa,é€\U0001f6b2\r\n", binary.LittleEndian),
		"big":     wide("\ufeffa,é€\U0001f6b2\r\n", binary.BigEndian),
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) { encodeAgain(t, text, bulk.Auto) })
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	encodeAgain(t, all, bulk.CP1252)
	encodeAgain(t, all, bulk.Latin1)
	encodeAgain(t, all, bulk.UTF8)
	for _, bad := range []string{"\xff\xfea", "\xff\xfe\x00\xd8,\x00", "\xff\xfe\x00\xdc"} {
		d := bulk.NewDecoder(strings.NewReader(bad), bulk.Auto)
		if _, err := io.ReadAll(d); err != nil || !d.Damaged() {
			t.Errorf("%q is not damaged, %v", bad, err)
		}
	}
	if _, err := decoderOf(t, "\xfc", bulk.CP1252).Encoder().Append(nil, []byte("\u4e2d")); err == nil {
		t.Error("cp1252 has a Chinese character")
	}
}

func decoderOf(t testing.TB, text string, e bulk.Encoding) *bulk.Decoder {
	d := bulk.NewDecoder(strings.NewReader(text), e)
	if _, err := io.ReadAll(d); err != nil {
		t.Fatal(err)
	}
	return d
}

func encodeAgain(t testing.TB, text []byte, e bulk.Encoding) {
	t.Helper()
	d := bulk.NewDecoder(bytes.NewReader(text), e)
	decoded, err := io.ReadAll(d)
	if err != nil {
		t.Fatal(err)
	}
	if d.Damaged() {
		return
	}
	got, err := d.Encoder().Append(d.Mark(), decoded)
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("%q becomes %q, %v", text, got, err)
	}
}

func wide(text string, order binary.AppendByteOrder) (b []byte) {
	for _, c := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, c)
	}
	return b
}

// The decoder takes any bytes, in pieces of any size, and gives UTF-8 that is the same
// however it is cut. What is encoded again has the same bytes.
func FuzzDecoder(f *testing.F) {
	for _, text := range []string{"", "a,b\n", "é", "M\xfcnchen \x80", "\xff\xfea\x00", "\xfe\xff\x00a", "\xff\xfe\x00\xd8", "\xc3", "\xef\xbb\xbfid,url\n", "é\xfc"} {
		for _, e := range []byte{0, 1, 2, 3, 4} {
			f.Add([]byte(text), e)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, which byte) {
		e := bulk.Encodings()[int(which)%len(bulk.Encodings())]
		whole, err := io.ReadAll(bulk.NewDecoder(bytes.NewReader(text), e))
		if err != nil {
			t.Fatal(err)
		}
		cut, err := io.ReadAll(bulk.NewDecoder(&slowReader{text}, e))
		if err != nil || !bytes.Equal(whole, cut) {
			t.Fatalf("%q in %s is %q at once, and %q byte by byte, %v", text, e, whole, cut, err)
		}
		if len(whole) > 3*len(text)+3 {
			t.Fatalf("%d bytes became %d", len(text), len(whole))
		}
		encodeAgain(t, text, e)
	})
}

// slowReader gives a byte at a time.
type slowReader struct{ rest []byte }

func (r *slowReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	p[0] = r.rest[0]
	r.rest = r.rest[1:]
	return 1, nil
}

// A header of any cells is read or refused, and one that is read has a field for each
// column, none of them twice.
func FuzzHeader(f *testing.F) {
	for _, text := range []string{"id,url", "PID;Link;Title", "Shelf mark\tpid", "id,id", "", "\"a\"\"b\",url", "meta.x,meta.what,what", "sep=;", ",,", "ark,doi", "\u00a0id , URL"} {
		f.Add(text, "Shelf mark=meta.shelf", "id")
		f.Add(text, "*=meta", "")
	}
	f.Fuzz(func(t *testing.T, line, mapping, id string) {
		row := bulk.TrimEnd([]byte(line))
		delimiter := bulk.Delimiter(row)
		bulk.Separator(row)
		if delimiter == 0 {
			delimiter = ','
		}
		cells, err := bulk.SplitRow(row, delimiter, nil)
		if err != nil {
			return
		}
		bulk.IsHeader(cells)
		columns, err := bulk.ParseMap([]string{mapping})
		if err != nil {
			columns = nil
		}
		h, err := bulk.NewHeader(cells, bulk.HeaderOptions{Map: columns, ID: id})
		if err != nil {
			return
		}
		seen := make(map[string]bool)
		for _, field := range h {
			if field == "" || seen[field] && field != bulk.Ignored {
				t.Fatalf("%q has the field %q in %q", line, field, h)
			}
			seen[field] = true
		}
		if len(h) != len(cells) {
			t.Fatalf("%d cells, %d fields", len(cells), len(h))
		}
		for _, o := range []bulk.RowOptions{{}, {Merges: true}, {Merges: true, EmptyClears: true}} {
			_, _ = h.Document(cells, o)
		}
	})
}
