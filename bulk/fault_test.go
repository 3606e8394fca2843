package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/scheme/all"
)

// faulty are rows whose parser or reader panics.
type faulty struct {
	blocks []*bulk.Block
	reader bool // Next panics after the blocks
}

func (f *faulty) Next() (*bulk.Block, error) {
	if len(f.blocks) == 0 && f.reader {
		panic("the reader")
	}
	if len(f.blocks) == 0 {
		return nil, io.EOF
	}
	b := f.blocks[0]
	f.blocks = f.blocks[1:]
	return b, nil
}

func (f *faulty) Parse(b *bulk.Block) {
	if b.Text != nil {
		b.Rows = append(b.Rows, bulk.Row{Line: b.Line})
		panic("the text")
	}
	for i := range b.Rows {
		bulk.ParseRow(&b.Rows[i], func(row *bulk.Row) {
			var none []int
			row.Record = new(stele.Record)
			if row.Line == 2 {
				_ = none[row.Line]
			}
			row.Err = errors.New("line 1 is parsed")
		})
	}
	if len(b.Rows) == 1 {
		panic("the block")
	}
}

func (*faulty) SkipTo(int64, int) error { return nil }
func (*faulty) Done() int64             { return 0 }

// TestFaults: a panic of a parser rejects the row, or the rows of the block with all their text, and one of a reader ends the
// import with an error. The program goes on.
func TestFaults(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, ctx := newRegistry(schemes)
	wanted := []struct{ start, part string }{
		{"1 a ", "line 1 is parsed"}, {"2 b ", "fault_test.go"}, {"3 c ", "the block"}, {"4 d\ne ", "the text"}, {"", "the reader"},
	}
	blocks := func() *faulty {
		return &faulty{reader: true, blocks: []*bulk.Block{
			{Line: 1, Next: 3, Size: 2, Rows: []bulk.Row{{Line: 1, Text: []byte("a")}, {Line: 2, Text: []byte("b")}}},
			{Line: 3, Next: 4, Size: 1, Rows: []bulk.Row{{Line: 3, Text: []byte("c")}}},
			{Line: 4, Next: 6, Text: []byte("d\ne")},
		}}
	}
	check := func(how string, got []string, last error) {
		t.Helper()
		if got = append(got, fmt.Sprint(last)); len(got) != len(wanted) {
			t.Fatalf("%s: %q", how, got)
		}
		for i, want := range wanted {
			if !strings.HasPrefix(got[i], want.start) || !strings.Contains(got[i], want.part) {
				t.Errorf("%s: %q, want %q", how, got[i], want)
			}
			if i > 0 && !strings.Contains(got[i], "because of a fault in the program") {
				t.Errorf("%s: %q does not say that it is a fault", how, got[i])
			}
		}
		if stele.KindOf(last) != stele.Internal {
			t.Errorf("%s: %v is of the kind %v", how, last, stele.KindOf(last))
		}
	}
	var got []string
	add := func(row *bulk.Row) { got = append(got, fmt.Sprintf("%d %s %v", row.Line, row.Text, row.Err)) }
	_, err = bulk.Judge(ctx, r, blocks(), func(err error) error { return err }, bulk.JudgeOptions{Each: func(rows []bulk.Row) {
		for i := range rows {
			add(&rows[i])
		}
	}})
	check("Judge", got, err)
	got = nil
	for row, err := range bulk.All(blocks()) {
		if err != nil {
			check("All", got, err)
			return
		}
		add(row)
	}
	t.Error("All ended without an error")
}

// slow are rows whose second block comes after the context has ended.
type slow struct {
	faulty
	waiting context.CancelFunc
	ctx     context.Context
	calls   int
	left    atomic.Bool // nothing reads any more
}

func (s *slow) Next() (*bulk.Block, error) {
	if s.calls++; s.calls == 1 {
		return &bulk.Block{Line: 1, Next: 2, Rows: []bulk.Row{{Line: 1, Err: errors.New("refused")}, {Line: 2, Err: errors.New("refused")}}}, nil
	}
	s.waiting()
	<-s.ctx.Done()
	time.Sleep(20 * time.Millisecond) // a caller that does not wait is found
	s.left.Store(true)
	return nil, io.EOF
}

func (*slow) Parse(*bulk.Block) {}

// TestJudgeWaits: when Judge returns, nothing reads the rows any more, so that they can be closed.
func TestJudgeWaits(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r, ctx := newRegistry(schemes)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	rows := &slow{waiting: stop, ctx: ctx}
	if _, err := bulk.Judge(ctx, r, rows, func(err error) error { return err }, bulk.JudgeOptions{Each: func([]bulk.Row) {}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if !rows.left.Load() {
		t.Error("Judge returned while a goroutine was reading the rows")
	}
}
