package fetch

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/stele-id/stele"
)

// File fetches something into a part, until it is whole. It continues what is there already
// if that is of the same thing. It tries again while it gets further, and a few times more.
//
// Errors are of Kind NotFound or Gone if nothing is there, Forbidden or Unauthenticated if
// it is not public, Unavailable if the caller may try again, and Conflict if a server
// breaks the protocol, is not to be trusted, or has something too large.
func (f *Fetcher) File(ctx context.Context, q Request, p *Part) (Info, error) {
	best, fails := int64(0), 0
	for range maxAttempts {
		info, err := f.attempt(ctx, &q, p)
		switch {
		case err == nil:
			return info, nil
		case ctx.Err() != nil:
			return Info{}, fail(stele.Unavailable, "fetch.stopped-part-kept", "{cause}; what is there is kept, try again to go on", cause(ctx))
		case stele.KindOf(err) != stele.Unavailable:
			return Info{}, err
		}
		fails++
		if p.size > best {
			best, fails = p.size, 1
		}
		if fails >= f.o.Tries {
			return Info{}, err
		}
		if err := pause(ctx, f.o.Pause<<(fails-1)); err != nil {
			continue // which says so
		}
	}
	return Info{}, fail(stele.Unavailable, "fetch.attempts-exhausted", "{attempts} attempts did not bring all of it; try again to go on", maxAttempts)
}

func cause(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return stele.Messagef("fetch.timed-out", "it takes longer than it may")
	}
	return stele.Messagef("fetch.interrupted", "it was interrupted")
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// attempt asks once, and once more from the beginning if it can't resume.
func (f *Fetcher) attempt(ctx context.Context, q *Request, p *Part) (Info, error) {
	from, m := p.resumable(q.Location)
	o, err := f.ask(ctx, q, from, m)
	if errors.Is(err, errChanged) && from > 0 {
		o, err = f.ask(ctx, q, 0, &mark{Size: -1})
	}
	if err != nil {
		return Info{}, err
	}
	defer o.close()
	if err := q.judge(o.size); err != nil {
		return Info{}, err
	}
	if o.from == 0 {
		if err := p.begin(note{q.Location, o.mark}); err != nil {
			return Info{}, err
		}
	}
	if o.body != nil {
		if err := q.take(p, o); err != nil {
			return Info{}, err
		}
	}
	if o.size >= 0 && p.size != o.size {
		return Info{}, fail(stele.Unavailable, "fetch.incomplete", "{bytes} bytes of {expected} came; try again to go on", p.size, o.size)
	}
	info := o.info()
	info.Size, info.Resumed = p.size, o.from
	return info, q.judge(p.size)
}

// judge says whether something may have a size; -1 is one that is not known yet.
func (q *Request) judge(size int64) error {
	switch {
	case size < 0:
		return nil
	case len(q.Sizes) > 0 && !slices.Contains(q.Sizes, size):
		return fail(stele.Conflict, "fetch.size-differs-bytes", "{cause}: {bytes} bytes", ErrSize, size)
	case size > q.most():
		return fail(stele.Conflict, "fetch.too-large", "it has {bytes} bytes, and no more than {limit} are wanted; allow more with --max-size", size, q.most())
	}
	return nil
}

// most is how many bytes are wanted.
func (q *Request) most() int64 {
	most := int64(1<<63 - 1)
	if q.MaxSize > 0 {
		most = q.MaxSize
	}
	if len(q.Sizes) > 0 {
		most = min(most, slices.Max(q.Sizes))
	}
	return most
}

// take reads the body into the part. It discards a body that exceeds the limit: it would
// be as long the next time.
func (q *Request) take(p *Part, o *offer) error {
	buffer := make([]byte, 128<<10)
	for {
		n, err := o.body.Read(buffer)
		if p.size+int64(n) > q.most() {
			if err := p.begin(p.note); err != nil {
				return err
			}
			if len(q.Sizes) > 0 {
				return fail(stele.Conflict, "fetch.size-differs-more", "{cause}: more than {limit} bytes", ErrSize, q.most())
			}
			return fail(stele.Conflict, "fetch.too-large-size-unknown", "more than {limit} bytes come, and the server does not say how many; allow more with --max-size", q.most())
		}
		if _, bad := p.Write(buffer[:n]); bad != nil {
			return fail(stele.Invalid, "", "{cause}", bad)
		}
		if q.Progress != nil {
			q.Progress(p.size, o.size)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fail(stele.Unavailable, "fetch.interrupted-after", "after {bytes} bytes: {cause}; try again to go on", p.size, reasonOf(err))
		}
	}
}

// reasonOf returns an error without what was tried.
func reasonOf(err error) error {
	if e, ok := err.(*stele.Error); ok && e.Err != nil {
		return e.Err
	}
	return err
}

// Read fetches something small, of at most so many bytes, and tries once.
func (f *Fetcher) Read(ctx context.Context, q Request, most int64) ([]byte, Info, error) {
	o, err := f.ask(ctx, &q, 0, &mark{Size: -1})
	if err != nil {
		return nil, Info{}, err
	}
	defer o.close()
	text, err := io.ReadAll(io.LimitReader(o.body, most+1))
	switch {
	case err != nil:
		return nil, Info{}, fail(stele.Unavailable, "fetch.failed", `"{url}": {cause}; try again`, o.url, reasonOf(err))
	case int64(len(text)) > most || o.size > most:
		return nil, Info{}, fail(stele.Conflict, "fetch.longer-than-allowed", `"{url}" is longer than the {limit} bytes it may have`, o.url, most)
	}
	info := o.info()
	info.Size = int64(len(text))
	return text, info, nil
}
