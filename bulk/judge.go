package bulk

import (
	"context"
	"time"

	"github.com/stele-id/stele/registrar"
)

// JudgeOptions say how rows are judged.
type JudgeOptions struct {
	Update    bool             // change records that are registered already
	Keep      bool             // keep when records were made and changed elsewhere; see [registrar.ImportOptions]
	KeepTypes []string         // types of handle values that are left out, which registered records keep
	Each      func(rows []Row) // is called with all rows in their order, and what would become of them
}

// Judge finds out what an import of rows would do, and writes nothing. It is the dry run of
// [FileImport], with rows that get names on the way. If reading fails, explain says why.
// When it returns, nothing reads the rows any more.
func Judge(ctx context.Context, to Destination, rows Rows, explain func(error) error, o JudgeOptions) (Counts, error) {
	c := &Committer{
		To:        to,
		Options:   registrar.ImportOptions{Update: o.Update, Keep: o.Keep, KeepTypes: o.KeepTypes, DryRun: true},
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
	flow := NewFlow(flowing, rows, inFlight, explain)
	defer flow.Wait() // the caller closes the rows
	defer stop()
	err := c.Run(ctx, flow)
	return c.Counts, err
}
