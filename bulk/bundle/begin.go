package bundle

import (
	"context"
	"encoding/json"

	"github.com/stele-id/stele"
)

// Begin decides of which state of the registry the bundle is, as Write does otherwise, and returns a text that stands for it. A job that gets it
// with Resume writes the same bytes later, as long as the registry is in the same generation. The caller makes sure that the
// text is not changed while it is kept: what it says is signed.
func (j *Job) Begin(ctx context.Context) ([]byte, error) {
	w := &writer{job: j}
	if err := w.fix(ctx); err != nil {
		return nil, err
	}
	j.begun = &begun{Form, w.head, w.note, w.cosigned, j.Gzip}
	return json.Marshal(j.begun)
}

// Resume makes the job write the bundle that another one began. Conflict if it is of other names, or the registry does not have that
// state any more.
func (j *Job) Resume(ctx context.Context, state []byte) error {
	var b begun
	w := &writer{job: j}
	if json.Unmarshal(state, &b) != nil || b.Form != Form || b.Gzip != j.Gzip || !w.fits(ctx, &b) {
		return &stele.Error{Op: opWrite, Kind: stele.Conflict, Err: stele.Messagef("bundle.state-gone", "the bundle that was begun can't be gone on with; ask for it from its beginning")}
	}
	j.begun = &b
	return nil
}
