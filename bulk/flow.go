package bulk

import (
	"context"
	"io"
	"runtime"
	"sync"
	"time"
)

// Rows is what an import reads. One goroutine cuts it into blocks, and several parse them.
type Rows interface {
	// Next returns the next block, with what Parse needs. What can be read before an error
	// comes first; then the error, or io.EOF.
	Next() (*Block, error)

	// Parse fills in what the rows of a block say. Several goroutines call it.
	Parse(b *Block)

	// SkipTo continues where a block ended, which had this End and this Next line. It is
	// called before the first Next.
	SkipTo(end int64, line int) error

	// Done returns how many bytes of the file are handed over, as far as that is known.
	Done() int64
}

// Flow is an import under way: one goroutine reads, some parse, and the
// caller takes the blocks and commits.
type Flow struct {
	blocks chan *Block   // in order; their done is closed when they are parsed
	room   chan struct{} // a token for each piece in flight
	err    error         // why reading ended, if not at the end; set before blocks is closed
}

// NewFlow starts reading and parsing. It ends when the context does, or when all is
// read. If reading fails, explain says why. At most so many pieces of text, of 256 KiB, are
// read and not released: that bounds the memory of an import.
func NewFlow(ctx context.Context, rows Rows, pieces int, explain func(error) error) *Flow {
	f := &Flow{blocks: make(chan *Block, pieces), room: make(chan struct{}, pieces)}
	work := make(chan *Block)
	var parsers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		parsers.Go(func() {
			for b := range work {
				parseBlock(rows, b)
				close(b.done)
			}
		})
	}
	go func() {
		f.err = f.read(ctx, rows, work, explain)
		close(work)
		parsers.Wait()
		close(f.blocks)
	}()
	return f
}

// read hands blocks to the parsers and, in order, to the caller.
func (f *Flow) read(ctx context.Context, rows Rows, work chan<- *Block, explain func(error) error) error {
	text := 0 // bytes for which no room is taken yet
	for {
		b, err := nextBlock(rows)
		if err == io.EOF {
			return nil
		} else if err != nil {
			return explain(err)
		}
		b.done = make(chan struct{})
		// A block that is smaller than a piece takes room with others: a client may send a line
		// at a time, and must not use up the room with a few hundred bytes.
		for text += b.bytes(); text >= blockBytes; text -= blockBytes {
			select {
			case f.room <- struct{}{}:
				b.pieces++
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case f.blocks <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case work <- b:
		case <-ctx.Done():
			close(b.done)
			return ctx.Err()
		}
	}
}

// Blocks returns the channel of blocks, in order. It is closed at the end.
func (f *Flow) Blocks() <-chan *Block { return f.blocks }

// Parsed is closed when the rows of the block are there.
func (b *Block) Parsed() <-chan struct{} { return b.done }

// Wait waits until reading and parsing have ended, and passes over the blocks that are left. The context of the flow has ended,
// or all was read. After it the rows can be closed.
func (f *Flow) Wait() {
	for range f.blocks {
	}
}

// longestRead is how long an import that has failed waits for its reader.
const longestRead = 2 * time.Second

// waitSome is Wait for rows that may come from a pipe, whose reader can't be woken: it does not wait for ever.
func (f *Flow) waitSome() {
	done := make(chan struct{})
	go func() { defer close(done); f.Wait() }()
	timer := time.NewTimer(longestRead)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// Release gives back the room of a block.
func (f *Flow) Release(b *Block) {
	for range b.pieces {
		<-f.room
	}
}
