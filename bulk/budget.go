package bulk

import (
	"context"
	"io"
	"sync/atomic"

	"github.com/stele-id/stele"
)

// Budget bounds what is read of a file that a user sent, decompressed as it is: a small file may have very much text in it. Reading
// ends with its context too, also while nothing is handed over yet because all is sorted first.
type Budget struct {
	ctx  context.Context
	most int64
	left atomic.Int64
}

// NewBudget returns a budget of so many bytes.
func NewBudget(ctx context.Context, most int64) *Budget {
	b := &Budget{ctx: ctx, most: most}
	b.left.Store(most)
	return b
}

// Reader returns a reader that counts what is read. A nil budget has no limit.
func (b *Budget) Reader(in io.Reader) io.Reader {
	if b == nil {
		return in
	}
	return &budgetReader{b, in}
}

type budgetReader struct {
	*Budget
	in io.Reader
}

func (r *budgetReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.in.Read(b)
	if r.left.Add(-int64(n)) < 0 {
		return 0, failf(stele.Invalid, "import.text-too-long", "there are more than {most} bytes in it, decompressed; divide the file, or import it with 'stele import'", r.most)
	}
	return n, err
}
