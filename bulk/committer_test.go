package bulk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
)

// failing is a registrar that fails at one call: before it does anything, or after it has
// done all, so that its answer is lost.
type failing struct {
	*registrar.Registrar
	left int // calls until it fails
	late bool
}

var errFailing = &stele.Error{Op: "import", Kind: stele.Unavailable, Err: errors.New("the connection was lost")}

func (f *failing) Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error) {
	if f.left--; f.left == 0 && !f.late {
		return nil, errFailing
	}
	errs, err := f.Registrar.Ingest(ctx, records, o)
	if f.left == 0 {
		return nil, errFailing
	}
	return errs, err
}

func (f *failing) IngestNamespace(ctx context.Context, ns *stele.Namespace, o registrar.ImportOptions) error {
	if f.left--; f.left == 0 && !f.late {
		return errFailing
	}
	err := f.Registrar.IngestNamespace(ctx, ns, o)
	if f.left == 0 {
		return errFailing
	}
	return err
}

// lineByLine gives a line a call.
type lineByLine struct{ lines []string }

func (r *lineByLine) Read(b []byte) (int, error) {
	if len(r.lines) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.lines[0])
	r.lines = r.lines[1:]
	return n, nil
}

// TestInterruptedImport interrupts imports at any call, with the work of that call done or
// not, and lets them go on from the bookmark that the registry has. Whatever was reported is
// there, a bookmark never covers a row that was not reported, no row is passed over, and the
// registry ends as after an import without interruption.
func TestInterruptedImport(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	line := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{
			fmt.Sprintf(`{"id":"ark:12345/r%d","url":"https://example.org/%d"}`, rapid.IntRange(1, 5).Draw(t, "record"), rapid.IntRange(1, 3).Draw(t, "url")),
			`nonsense`,
			`# a remark`,
			``,
			fmt.Sprintf(`{"namespace":{"scheme":"ark","prefix":"ark:1234%d/q"}}`, rapid.IntRange(5, 6).Draw(t, "namespace")),
			`{"id":"ark:12345/r9","url":"gopher://example.org/"}`,
		}).Draw(t, "line") + "\n"
	})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(line, 0, 12).Draw(t, "lines")
		update := rapid.Bool().Draw(t, "update")
		limit := bulk.ChunkLimit{Lines: rapid.IntRange(1, 4).Draw(t, "chunk")}

		whole, ctx := newRegistry(schemes)
		last, err := commitLines(ctx, whole, whole, schemes, lines, update, bulk.ChunkLimit{Lines: 100}, nil)
		if err != nil || last != len(lines) {
			t.Fatalf("%d of %d lines, %v", last, len(lines), err)
		}

		r, ctx := newRegistry(schemes)
		to := &failing{Registrar: r}
		for try := 0; ; try++ {
			if to.left, to.late = 0, rapid.Bool().Draw(t, "late"); try < 3 {
				to.left = rapid.IntRange(1, 4).Draw(t, "call that fails")
			}
			reported, err := commitLines(ctx, r, to, schemes, lines, update, limit, func(row *bulk.Row) {
				if row.Record == nil || row.Rejected() {
					return
				}
				if have, err := r.Get(ctx, row.Record.ID); err != nil || have.Version < row.Record.Version {
					t.Fatalf("line %d was reported, and the registry has %v, %v", row.Line, have, err)
				}
			})
			if done := markOf(t, ctx, r); done > reported {
				t.Fatalf("the bookmark says that %d lines are done, and %d were reported", done, reported)
			}
			if err == nil {
				if reported != len(lines) {
					t.Fatalf("it ended after %d of %d lines", reported, len(lines))
				}
				break
			}
			if !errors.Is(err, errFailing) {
				t.Fatal(err)
			}
		}
		if got, want := contents(t, ctx, r), contents(t, ctx, whole); got != want {
			t.Fatalf("with interruptions the registry has\n%s, and without\n%s", got, want)
		}
	})
}

// mark is the bookmark of commitLines.
type mark struct {
	Lines int
	bulk.Counts
}

func markOf(t *rapid.T, ctx context.Context, r *registrar.Registrar) int {
	data, err := r.Bookmark(ctx, "test")
	if err != nil {
		t.Fatal(err)
	}
	var m mark
	if data != nil {
		if err := json.Unmarshal(data, &m); err != nil {
			t.Fatal(err)
		}
	}
	return m.Lines
}

// commitLines imports lines from the bookmark on, and returns how many were reported.
func commitLines(ctx context.Context, r *registrar.Registrar, to bulk.Destination, schemes *stele.Schemes, lines []string, update bool, limit bulk.ChunkLimit, reported func(*bulk.Row)) (int, error) {
	data, err := r.Bookmark(ctx, "test")
	if err != nil {
		return 0, err
	}
	var m mark
	if data != nil {
		if err := json.Unmarshal(data, &m); err != nil {
			return 0, err
		}
	}
	var c *bulk.Committer
	c = &bulk.Committer{
		To: to, Options: registrar.ImportOptions{Update: update}, Limit: limit, Idle: time.Hour, EveryChunk: true, Counts: m.Counts,
		Begin: func(ctx context.Context) (uint64, error) { return r.BeginImport(ctx, "test") },
		Bookmark: func(bool) (string, []byte, error) {
			data, err := json.Marshal(m)
			return "test", data, err
		},
		Committed: func(chunk []*bulk.Block) error {
			m.Counts = c.Counts
			for _, b := range chunk {
				m.Lines = b.Next - 1
				for i := range b.Rows {
					if reported != nil {
						reported(&b.Rows[i])
					}
				}
			}
			return nil
		},
	}
	flowing, stop := context.WithCancel(ctx)
	defer stop()
	in := bulk.NewLines(&lineByLine{lines[m.Lines:]}, m.Lines, 1<<20)
	err = c.Run(ctx, bulk.NewLineParser(schemes, 1<<20, update).Flow(flowing, in, 100, func(err error) error { return err }))
	return m.Lines, err
}

// contents returns what the registry has: records and namespaces, without versions and times.
func contents(t *rapid.T, ctx context.Context, r *registrar.Registrar) string {
	var b strings.Builder
	for ns, err := range r.Namespaces(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if ns.Version > 0 {
			fmt.Fprintln(&b, ns.Key())
		}
	}
	for rec, err := range r.Scan(ctx, stele.NamespaceKey{Scheme: "ark"}, "") {
		if err != nil {
			t.Fatal(err)
		}
		c := *rec
		c.Version, c.Import, c.Created, c.Modified = 0, 0, time.Time{}, time.Time{}
		fmt.Fprintf(&b, "%s\n", document.AppendRecord(nil, &c))
	}
	return b.String()
}
