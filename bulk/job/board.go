// Package job does bulk changes in the background: it imports files that users sent, replaces the
// beginning of many targets, accepts addresses to which targets have moved, and reverts imports.
//
// A [Board] keeps uploads and jobs in cells of the registry, so that all servers of a database see
// them and a job goes on after a restart. A [Runner] works on jobs, one server at a time on each:
// the server holds a lease, which another takes over when it expires. A step that is done again
// changes nothing: names that a job made are written down before they are registered, and versions
// have the number of the job's import.
//
// A job has the rights of its user at the time of each step, and no others. Users see their own
// uploads and jobs; administrators see all jobs.
package job

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// Limits on what is kept. Larger files are for 'stele import'.
const (
	MaxUpload  = 16 << 20       // bytes of an upload
	MaxRows    = 50_000         // of an upload
	MaxUploads = 5              // of a user, that no job has taken
	UploadLife = 24 * time.Hour // of an upload that no job has taken

	MaxOpen = 3                   // jobs of a user that have not ended
	MaxKept = 100                 // jobs of a user
	Life    = 30 * 24 * time.Hour // of a job that has ended, and of its files

	maxAllUploads = 40        // of all users
	maxAllOpen    = 50        // jobs of all users that have not ended
	pieceBytes    = 512 << 10 // of an upload in a cell
)

// What the names of cells begin with. The ID follows, and the number of a piece or a part.
const (
	uploadCells = registrar.WorkCells + "upload " // what is known of an upload
	pieceCells  = registrar.WorkCells + "piece "  // its bytes
	jobCells    = registrar.WorkCells + "job "    // a job
	leaseCells  = registrar.WorkCells + "lease "  // which server works on it; there is one while the job is open
	partCells   = registrar.WorkCells + "part "   // what a job did to some rows
	ruleCells   = registrar.WorkCells + "rules "  // the rules that a namespace had before a job changed them
)

// Options are what a Board needs. Rand is crypto/rand's Reader if nil.
type Options struct {
	Registrar *registrar.Registrar
	Schemes   *stele.Schemes
	Now       func() time.Time
	Rand      io.Reader
}

// Board keeps uploads and jobs. It is used by many goroutines at once.
type Board struct {
	o     Options
	wake  chan struct{} // a job is there
	turns chan struct{} // holds a value for each judgement under way
	most  time.Duration // that a look at many records takes

	mu     sync.Mutex
	judged []*Judgement // the last ones

	orphaned map[string]bool // uploads with pieces and nothing else, when it was looked for them last
}

// judgements is how many files are judged at once, and kept in memory when they are.
const judgements = 3

// previewTime is how long a look at many records takes at most, with the time that it waits for
// others: less than a server has for an answer.
const previewTime = 20 * time.Second

// NewBoard makes a Board.
func NewBoard(o Options) *Board {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return &Board{o: o, wake: make(chan struct{}, 1), turns: make(chan struct{}, judgements), most: previewTime}
}

// look looks at many records: it waits until there are few others who do, and ends when it takes
// too long.
func (b *Board) look(ctx context.Context, at func(context.Context) error) error {
	bounded, stop := context.WithTimeout(ctx, b.most)
	defer stop()
	select {
	case b.turns <- struct{}{}:
		defer func() { <-b.turns }()
	case <-bounded.Done():
		if err := ctx.Err(); err != nil {
			return err
		}
		return refuse(stele.Exhausted, "job.too-many-previews", "the server looks at too many changes of this kind at the moment; try again in a minute")
	}
	err := at(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return refuse(stele.Invalid, "job.preview-too-long", "it takes too long to look at so many records here; choose fewer of them, or use the command line")
	}
	return err
}

// now returns the time as it is kept.
func (b *Board) now() time.Time { return b.o.Now().UTC().Round(0) }

// asServer returns a context in which cells can be kept. The functions that use it have made
// sure that the caller may see what they keep.
func asServer(ctx context.Context) context.Context { return auth.With(ctx, auth.Local()) }

// NewID returns an ID that can't be guessed, for a job that may be started later.
func (b *Board) NewID() (string, error) {
	const letters = "0123456789bcdfghjkmnpqrstvwxz"
	random := make([]byte, 16)
	if _, err := io.ReadFull(b.o.Rand, random); err != nil {
		return "", refuse(stele.Internal, "job.no-random-bits", "there are no random bits: {cause}", err)
	}
	for i, c := range random {
		random[i] = letters[int(c)%len(letters)]
	}
	return string(random), nil
}

// isID reports whether a text can be an ID, so that it can be a part of a cell's name.
func isID(text string) bool {
	return len(text) == 16 && !strings.ContainsFunc(text, func(c rune) bool { return (c < '0' || c > '9') && (c < 'a' || c > 'z') })
}

// identify returns the user who calls.
func identify(ctx context.Context) (auth.Principal, error) {
	who := auth.From(ctx)
	if !who.IsKnown() {
		return who, refuse(stele.Unauthenticated, "request.anonymous", "say who you are; send a token")
	}
	return who, nil
}

// read reads a cell; false if there is none.
func (b *Board) read(ctx context.Context, name string, v any) (value []byte, ok bool, err error) {
	value, err = b.o.Registrar.WorkCell(asServer(ctx), name)
	if err != nil || value == nil {
		return nil, false, err
	}
	return value, true, decode(name, value, v)
}

func decode(name string, value []byte, v any) error {
	if err := json.Unmarshal(value, v); err != nil {
		return refuse(stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, name, err)
	}
	return nil
}

// change returns the change that gives a cell a value.
func change(name string, before []byte, v any) (stele.CellChange, error) {
	after, err := json.Marshal(v)
	return stele.CellChange{Name: name, Before: before, After: after}, err
}

// remove removes all cells whose names begin with a text, some at a time.
func (b *Board) remove(ctx context.Context, prefix string) error {
	const atOnce = 16
	ctx = asServer(ctx)
	for {
		var list []stele.CellChange
		for c, err := range b.o.Registrar.WorkList(ctx, prefix, "") {
			if err != nil {
				return err
			}
			if list = append(list, stele.CellChange{Name: c.Name, Before: c.Value}); len(list) == atOnce {
				break
			}
		}
		if len(list) == 0 {
			return nil
		}
		if err := b.o.Registrar.KeepWork(ctx, list...); err != nil {
			return err
		}
	}
}

// refuse makes an error of a bulk change.
func refuse(kind stele.Kind, code, text string, args ...any) error {
	return stele.Errorf("bulk change", stele.ID{}, kind, code, text, args...)
}

// CountOpen returns how many jobs of all users have not ended. Only the server may ask.
func (b *Board) CountOpen(ctx context.Context) (n int, err error) {
	for _, err := range b.o.Registrar.WorkList(ctx, leaseCells, "") {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
