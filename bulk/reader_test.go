package bulk

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// readBlocks reads all blocks of a text, however its reads are cut.
func readBlocks(t interface{ Fatal(...any) }, in io.Reader, whole bool, delimiter byte) (blocks []*Block) {
	r := &Reader{in: in, whole: whole, read: func() int64 { return 0 }, line: 1, most: MaxRow, delimiter: delimiter}
	for {
		b, err := r.Next()
		if err == io.EOF {
			return blocks
		} else if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, b)
	}
}

// Blocks are the text, cut between rows, whatever a read gives; and line numbers and
// offsets are those of the text.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOf(rapid.StringMatching(`([a-z,]{0,6}|"([a-z,\n]|""){0,8}"|#[a-z"]{0,4})`)).Draw(t, "rows")
		text := strings.Join(rows, "\n")
		delimiter := rapid.SampledFrom([]byte{0, ','}).Draw(t, "delimiter")
		readers := map[string]io.Reader{
			"byte by byte": iotest.OneByteReader(strings.NewReader(text)),
			"half":         iotest.HalfReader(strings.NewReader(text)),
			"error":        iotest.DataErrReader(strings.NewReader(text)),
		}
		whole := readBlocks(t, strings.NewReader(text), true, delimiter)
		for name, in := range readers {
			blocks := readBlocks(t, in, false, delimiter)
			var all []byte
			for _, b := range blocks {
				if line := 1 + bytes.Count(all, []byte("\n")); b.Line != line {
					t.Fatalf("%s: %q has line %d, want %d", name, b.Text, b.Line, line)
				}
				all = append(all, b.Text...)
				if b.End != int64(len(all)) {
					t.Fatalf("%s: %q ends at %d, want %d", name, b.Text, b.End, len(all))
				}
			}
			if string(all) != text {
				t.Fatalf("%s: the blocks are %q\nwant %q", name, all, text)
			}
			if got, want := cells(blocks, delimiter), cells(whole, delimiter); !cmp.Equal(got, want) {
				t.Fatalf("%s: rows %q\nwant %q", name, got, want)
			}
		}
	})
}

// cells splits blocks into rows, and those into cells.
func cells(blocks []*Block, delimiter byte) (rows []string) {
	for _, b := range blocks {
		for text := b.Text; len(text) > 0; {
			n := RowEnd(text, delimiter)
			if delimiter == 0 {
				n = bytes.IndexByte(text, '\n') + 1
			}
			if n == 0 {
				n = len(text)
			}
			rows = append(rows, string(TrimEnd(text[:n])))
			text = text[n:]
		}
	}
	return rows
}

// What encoding/csv reads is read alike here.
func FuzzCSV(f *testing.F) {
	for _, text := range []string{
		"a,b\n", "a,\"b\nc\",d\r\n", "\"\"\"\",x", ",,\n,", "a,\"b\"\"c\"\n", "\"a\",b\n\n#x\nc", "a\r\n", "\"a\"b,c\n", "a\"b\n", "\"a\n", "\"\n\"",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// encoding/csv changes lines' ends within cells, and knows no other remarks.
		if strings.Contains(text, "\r") || strings.ContainsAny(text, " \t\v\f\u0085\u00a0") || len(text) > 1000 {
			return
		}
		peer := csv.NewReader(strings.NewReader(text))
		peer.Comment, peer.FieldsPerRecord = '#', -1
		want, err := peer.ReadAll()
		if err != nil {
			for rest := []byte(text); len(rest) > 0; { // it must end all the same
				n := RowEnd(rest, ',')
				if n == 0 {
					break
				}
				_, _ = SplitRow(TrimEnd(rest[:n]), ',', nil)
				rest = rest[n:]
			}
			return
		}
		var got [][]string
		for _, b := range readBlocks(t, strings.NewReader(text), true, ',') {
			for _, row := range cells([]*Block{b}, ',') {
				if IsSkipped([]byte(row)) {
					continue
				}
				list, err := SplitRow([]byte(row), ',', nil)
				if err != nil {
					t.Fatalf("%q: %v; encoding/csv reads %q", text, err, want)
				}
				got = append(got, list)
			}
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%q is read as %q\nencoding/csv reads %q", text, got, want)
		}
	})
}

// A cell that is written is read again.
func TestCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.StringMatching(`[a-z ,"#\n\t;é]{0,8}`), 2, 5).Draw(t, "cells")
		var row []byte
		for i, cell := range want {
			if i > 0 {
				row = append(row, ',')
			}
			row = AppendCell(row, cell, ',')
		}
		row = append(row, '\n')
		if n := RowEnd(row, ','); n != len(row) && !IsSkipped(row) {
			t.Fatalf("%q ends at %d, not at %d", row, n, len(row))
		}
		if got, err := SplitRow(TrimEnd(row), ',', nil); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q is read as %q, %v; want %q", row, got, err, want)
		}
	})
}

// A row that never ends is passed over, and what is held of it has a limit.
func TestLongRow(t *testing.T) {
	const size = 3*MaxRow + 5
	text := io.MultiReader(strings.NewReader("a\n"), io.LimitReader(endless('x'), size), strings.NewReader("\nb\n"))
	blocks := readBlocks(t, text, true, 0)
	var got []string
	for _, b := range blocks {
		if b.Long > 0 {
			got = append(got, fmt.Sprintf("%d: %d bytes", b.Line, b.Long))
		} else {
			got = append(got, fmt.Sprintf("%d: %s", b.Line, b.Text))
		}
		if cap(b.Text) > MaxRow+2*blockBytes {
			t.Errorf("a block holds %d bytes", cap(b.Text))
		}
	}
	want := []string{"1: a\n", fmt.Sprintf("2: %d bytes", size), "3: b\n"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

type endless byte

func (c endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(c)
	}
	return len(b), nil
}

// What came before an error of the file is read, and then the error is returned.
func TestReadError(t *testing.T) {
	bad := errors.New("bad disk")
	r := &Reader{in: io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(bad)), whole: true, read: func() int64 { return 0 }, line: 1, most: MaxRow}
	b, err := r.Next()
	if err != nil || string(b.Text) != "a\n" {
		t.Fatalf("first %v, %v", b, err)
	}
	if _, err := r.Next(); !errors.Is(err, bad) {
		t.Errorf("then %v, want %v", err, bad)
	}
}

// pieces reads at random sizes.
type pieces struct{ r io.Reader }

func (p pieces) Read(b []byte) (int, error) { return p.r.Read(b[:1+rand.N(len(b))]) }

// TestLines: however the bytes come, the lines are the same.
func TestLines(t *testing.T) {
	const maxLine = 1 << 20
	long := strings.Repeat("x", maxLine+blockBytes+7)
	text := "a\n\nb\r\n" + long + "\nc\n" + long
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader("a\n\nb\r\nc")), "pieces": pieces{strings.NewReader(text)},
		"end with data": iotest.DataErrReader(strings.NewReader(text)),
	} {
		in, lines, longs, last := NewLines(r, 0, maxLine), "", 0, 0
		for {
			b, err := in.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(name, err)
			}
			if b.Line != last+1 {
				t.Errorf("%s: a block begins with line %d, after %d", name, b.Line, last)
			}
			if len(b.Text) > maxLine+2*blockBytes {
				t.Errorf("%s: a block has %d bytes", name, len(b.Text))
			}
			if last = b.Next - 1; b.Long > 0 {
				longs++
				continue
			}
			for line := range strings.Lines(string(b.Text)) {
				if len(line) > maxLine { // it was read in one go
					longs++
					continue
				}
				lines += line
			}
		}
		want, count := "a\n\nb\r\nc\n", 2
		if name == "bytes" {
			want, count = "a\n\nb\r\nc", 0
		}
		if lines != want || longs != count || last != 4+count {
			t.Errorf("%s: %.40q, %d long, %d lines", name, lines, longs, last)
		}
	}
	// The beginning of a line without its end is not a line.
	in := NewLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrUnexpectedEOF)), 0, maxLine)
	if b, err := in.Next(); err != nil || string(b.Text) != "a\n" {
		t.Errorf("got %+v, %v", b, err)
	}
	if _, err := in.Next(); err != io.ErrUnexpectedEOF {
		t.Errorf("got %v", err)
	}
}

// lineByLine reads a line at a time, as from a client that flushes each.
type lineByLine struct{ left int }

func (l *lineByLine) Read(b []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	l.left--
	return copy(b, "# a line\n"), nil
}

// TestFlowOfSmallPieces: lines that come one at a time do not use up the room of a flow, so
// that a chunk of them is committed at once and not after a pause. Large ones do.
func TestFlowOfSmallPieces(t *testing.T) {
	const lines = 10_000
	f := NewLineParser(nil, MaxRow, false).Flow(t.Context(), NewLines(&lineByLine{lines}, 0, MaxRow), 2, func(err error) error { return err })
	taken, next := 0, 1
	for b := range f.Blocks() { // none is released before all are taken
		if <-b.Parsed(); b.Line != next {
			t.Fatalf("a block begins with line %d, after %d", b.Line, next-1)
		}
		next, taken = b.Next, taken+1
	}
	if f.err != nil || next != lines+1 || taken == 0 {
		t.Errorf("%d lines came, %v", next-1, f.err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	large := strings.NewReader(strings.Repeat("# "+strings.Repeat("x", blockBytes)+"\n", 100))
	f = NewLineParser(nil, MaxRow, false).Flow(ctx, NewLines(large, 0, MaxRow), 2, func(err error) error { return err })
	first := <-f.Blocks()
	<-f.Blocks()
	select {
	case b := <-f.Blocks():
		t.Errorf("line %d was read though the room for two pieces is taken", b.Line)
	case <-time.After(20 * time.Millisecond):
	}
	f.Release(first)
	if b := <-f.Blocks(); b.Line != 3 {
		t.Errorf("line %d came when there was room for line 3", b.Line)
	}
	cancel()
	for range f.Blocks() {
	}
}
