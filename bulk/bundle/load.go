package bundle

import (
	"context"
	"io"

	"github.com/stele-id/stele"
)

// Records reads the records of a bundle again after [Read] has checked all of it, and calls each with some versions, in the order of the
// bundle; the caller may keep them. The schemes are those that Read was called with. Conflict if the file was replaced meanwhile.
func (r *Report) Records(ctx context.Context, in io.ReadSeeker, schemes *stele.Schemes, each func([]*stele.Record) error) error {
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return readAgain(ctx, in, schemes, r, each)
}
