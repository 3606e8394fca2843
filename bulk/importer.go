package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// What is committed together. A crash costs the work on one chunk.
const (
	ChunkRows  = 100_000 // in a store at hand
	chunkBytes = 26 << 20
)

// inFlight is how many pieces of text are read and not committed.
const inFlight = 160

// Bookmark is how far an import is. The registry keeps it: that of a chunk is
// committed with the next one, so that all that it says is durable, and a crash in
// between costs only a second look at records that are there already.
type Bookmark struct {
	Counts
	Import  uint64 `json:"import,omitempty"` // the number of the import
	Offset  int64  `json:"offset"`
	Line    int    `json:"line"`
	Rejects int64  `json:"rejects,omitempty"` // bytes of the file of rejected rows
	Done    bool   `json:"done,omitempty"`
}

// Progress shows how far an import is.
type Progress interface {
	Add(rows int)
	Tick() // a second has passed
}

// Importer reads rows and commits them in chunks.
type Importer struct {
	To        Destination
	Rejects   *Rejects
	Key       string // names the bookmark; "" for none
	Label     string // what is imported, for people
	ChunkRows int    // rows that are committed together
	MaxErrors int    // rejected rows after which the import ends; negative: never
	Update    bool   // change records that are registered already
	Fresh     bool   // ignore the times and authors of creation and change that records give
	DryRun    bool   // write nothing
	Secrets   bool   // records may have secrets in clear, which the registry encrypts
	MarkFirst bool   // keep the number of the import before the first record is written

	KeepTypes []string // types of handle values that are left out, which registered records keep

	Changed func(row *Row, fields []registrar.FieldChange) // what an update would change, in a dry run

	Mark    Bookmark // where the import is
	Reasons Reasons  // why rows were rejected in this run

	progress  Progress
	committer *Committer
	read      atomic.Int64
	failed    int // rows that were rejected in this run
}

// Resume reads how far an earlier run of the import was.
func (im *Importer) Resume(ctx context.Context) error {
	if im.Key == "" || im.DryRun {
		return nil
	}
	data, err := im.To.Bookmark(ctx, im.Key)
	if err != nil || data == nil {
		return err
	}
	var m Bookmark
	if err := json.Unmarshal(data, &m); err != nil {
		return failf(stele.Internal, "import.bookmark-damaged", "the bookmark of the import is damaged ({cause}); start over with --again", err)
	}
	im.Mark, im.Rejects.size = m, m.Rejects
	return nil
}

// Read returns how much of the file is done.
func (im *Importer) Read() int64 { return im.read.Load() }

// Overflowed reports whether a dry run saw more names than it remembers, so that names that
// come twice were not all found.
func (im *Importer) Overflowed() bool {
	return im.committer != nil && im.committer.rehearsal != nil && im.committer.rehearsal.full
}

// ErrTooMany says that more rows were rejected than may be.
var ErrTooMany = stele.Messagef("import.too-many-rejected", "too many lines are rejected")

// Run imports what rows bring, from the bookmark on. The number of the import and what
// became of the rows are kept with it, also after an interrupt. If reading fails, explain
// says why.
func (im *Importer) Run(ctx context.Context, rows Rows, explain func(error) error, start func() Progress) (err error) {
	defer func() { err = errors.Join(err, im.Rejects.Close()) }()
	if im.Mark.Offset > 0 {
		if err := rows.SkipTo(im.Mark.Offset, im.Mark.Line); err != nil {
			return explain(err)
		}
	}
	im.read.Store(rows.Done())
	im.progress = start()
	im.committer = &Committer{
		To:        im.To,
		Options:   registrar.ImportOptions{Update: im.Update, DryRun: im.DryRun, Keep: !im.Fresh, Import: im.Mark.Import, Secrets: im.Secrets, KeepTypes: im.KeepTypes},
		Limit:     ChunkLimit{Rows: im.ChunkRows, Bytes: chunkBytes},
		Idle:      time.Second,
		Begin:     im.begin,
		Bookmark:  im.bookmark,
		Committed: im.committed,
		Tick:      im.progress.Tick,
		Counts:    im.Mark.Counts,
	}
	if im.DryRun {
		im.committer.rehearsal = newRehearsal()
	}
	flowing, stop := context.WithCancel(ctx)
	defer stop()
	flow := NewFlow(flowing, rows, inFlight, explain)
	if err = im.committer.Run(ctx, flow); err != nil {
		stop()
		flow.waitSome()
	}
	return err
}

// begin returns the number of the import.
func (im *Importer) begin(ctx context.Context) (number uint64, err error) {
	if im.Mark.Import, err = im.To.BeginImport(ctx, im.Label); err != nil || !im.MarkFirst || im.Key == "" {
		return im.Mark.Import, err
	}
	mark := Bookmark{Import: im.Mark.Import}
	data, err := json.Marshal(&mark)
	if err == nil {
		_, err = im.To.Ingest(ctx, nil, registrar.ImportOptions{Import: mark.Import, Name: im.Key, Bookmark: data})
	}
	return im.Mark.Import, err
}

// bookmark returns where the import is.
func (im *Importer) bookmark(done bool) (name string, data []byte, err error) {
	im.Mark.Done = done
	if im.Key == "" || im.DryRun {
		return "", nil, nil
	}
	data, err = json.Marshal(&im.Mark)
	return im.Key, data, err
}

// committed makes the chunk's end the place where the import is.
func (im *Importer) committed(chunk []*Block) error {
	var rejected []Row
	rows := 0
	for _, b := range chunk {
		rows += len(b.Rows)
		for i := range b.Rows {
			switch row := &b.Rows[i]; {
			case row.Rejected():
				rejected = append(rejected, *row)
				im.Reasons.add(row)
			case row.Changes != nil:
				im.Changed(row, row.Changes)
			}
		}
	}
	excess := 0
	if im.MaxErrors >= 0 {
		excess = max(0, im.failed+len(rejected)-im.MaxErrors)
	}
	im.failed += len(rejected)
	if err := im.Rejects.Add(rejected); err != nil {
		return err
	}
	last := chunk[len(chunk)-1]
	im.Mark.Counts, im.Mark.Rejects = im.committer.Counts, im.Rejects.size
	im.Mark.Offset, im.Mark.Line = last.End, last.Next
	im.read.Store(last.Read)
	im.progress.Add(rows)
	if excess > 0 {
		return ErrTooMany
	}
	return nil
}
