package bulk

import (
	"context"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// JudgeOptions say how a text is judged.
type JudgeOptions struct {
	Format
	Update bool             // change records that are registered already
	Each   func(rows []Row) // is called with all rows in their order, and what would become of them
}

// Judge finds out what an import of a file would do, and writes nothing. It is the dry run of
// [FileImport], with rows that get names on the way. It returns the reader, which knows the
// encoding then.
func Judge(ctx context.Context, to Destination, schemes *stele.Schemes, f *File, o JudgeOptions) (Counts, *Reader, error) {
	rows := NewReader(f)
	rows.Lone = true
	parser, err := NewParser(schemes, rows, f.Name, o.Format)
	if err != nil {
		return Counts{}, rows, err
	}
	c := &Committer{
		To:        to,
		Options:   registrar.ImportOptions{Update: o.Update, DryRun: true},
		Limit:     ChunkLimit{Rows: ChunkRows, Bytes: chunkBytes},
		Idle:      time.Second,
		Bookmark:  func(bool) (string, []byte, error) { return "", nil, nil },
		rehearsal: newRehearsal(),
	}
	c.Committed = func(chunk []*Block) error {
		for _, b := range chunk {
			o.Each(b.Rows)
		}
		return nil
	}
	flowing, stop := context.WithCancel(ctx)
	defer stop()
	err = c.Run(ctx, parser.Flow(flowing, rows, inFlight, f.ReadError))
	return c.Counts, rows, err
}
