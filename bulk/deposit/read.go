package deposit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
)

// Kept is a deposit at a place, as the name of its list tells.
type Kept struct {
	Name   string    `json:"name"`
	At     time.Time `json:"at"`
	Change uint64    `json:"change"`
}

// All returns the deposits at a place, the oldest first.
func All(ctx context.Context, from Destination) (list []Kept, err error) {
	err = from.List(ctx, listsFolder, func(name string, _ int64) error {
		l, ok := parseListName(name)
		if !ok {
			return nil // another file
		}
		if len(list) >= maxLists {
			return failf(stele.Exhausted, "deposit.too-many-lists", "the place has more than {most} deposits; begin anew at another one", maxLists)
		}
		list = append(list, Kept{l.name, l.at, l.change})
		return nil
	})
	slices.SortFunc(list, func(a, b Kept) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Change, b.Change), cmp.Compare(a.Name, b.Name))
	})
	return list, err
}

// Last returns the last deposit that was made at a time or before it; the last of all if the time is zero. NotFound if there is
// none.
func Last(ctx context.Context, from Destination, until time.Time) (*List, error) {
	list, err := All(ctx, from)
	if err != nil {
		return nil, err
	}
	if !until.IsZero() {
		list = slices.DeleteFunc(list, func(k Kept) bool { return k.At.After(until) })
	}
	switch {
	case len(list) == 0 && until.IsZero():
		return nil, failf(stele.NotFound, "deposit.none", "there is no deposit at this place; 'stele escrow deposit' makes one")
	case len(list) == 0:
		return nil, failf(stele.NotFound, "deposit.none-before", "there is no deposit at this place that was made before {time}", until)
	}
	return readList(ctx, from, list[len(list)-1].Name)
}

func readList(ctx context.Context, from Destination, name string) (*List, error) {
	text, err := from.Get(ctx, name, maxList)
	if err != nil {
		return nil, err
	}
	return parseList(name, text)
}

// lastReadable returns the last deposit whose list is not damaged; nil if there is none. A new deposit does not need those before it.
func lastReadable(ctx context.Context, from Destination) (*List, error) {
	all, err := All(ctx, from)
	if err != nil {
		return nil, err
	}
	for _, k := range slices.Backward(all[max(0, len(all)-5):]) {
		l, err := readList(ctx, from, k.Name)
		if stele.KindOf(err) != stele.Invalid {
			return l, err
		}
	}
	return nil, nil
}

// read returns the content of an object, which is what its name says.
func (o *Object) read(ctx context.Context, from Destination) ([]byte, error) {
	damaged := func(cause error) error {
		return failf(stele.Invalid, "deposit.object-damaged", "{object}, with content of {file}: {cause}; remove {object} at the place, and the next deposit brings it again", o.name(), o.about, cause)
	}
	data, err := from.Get(ctx, o.name(), o.Stored)
	switch {
	case stele.KindOf(err) == stele.NotFound:
		return nil, failf(stele.NotFound, "deposit.object-missing", "{object}, with content of {file}, is not at the place any more", o.name(), o.about)
	case err != nil:
		return nil, err
	case int64(len(data)) != o.Stored:
		return nil, damaged(stele.Messagef("deposit.object-other-length", "it has {bytes} bytes at the place, and had {said}", len(data), o.Stored))
	}
	if o.Gzip {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err == nil {
			data, err = io.ReadAll(io.LimitReader(z, o.Size+1))
		}
		if err != nil {
			return nil, damaged(stele.Messagef("deposit.object-not-gzip", "it can't be decompressed"))
		}
	}
	if sum := sumOf(data); sum != o.Sum || int64(len(data)) != o.Size {
		return nil, damaged(stele.Messagef("deposit.object-changed", "its content has the SHA-256 {digest}, and not that of its name, since it was changed", sum))
	}
	return data, nil
}

// Rebuild is a bundle that is made again from a deposit.
type Rebuild struct {
	From     Destination
	List     *List
	Progress func(bytes int64) // is called with how many bytes of content were read since; nil: is not

	// After is called when all files of the objects up to a number are in the archive; nil: is not.
	After func(objects int) error
}

// write writes the files of the objects from a number on, with which a file begins, to an archive. Some objects are fetched while
// others are written.
func (b *Rebuild) write(ctx context.Context, from int, to *bundle.Archive) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type fetched struct {
		data []byte
		err  error
	}
	queue := make(chan chan fetched, uploads)
	go func() {
		defer close(queue)
		for i := from; i < len(b.List.Objects); i++ {
			o, answer := &b.List.Objects[i], make(chan fetched, 1)
			select {
			case queue <- answer:
			case <-ctx.Done():
				return
			}
			go func() {
				data, err := o.read(ctx, b.From)
				answer <- fetched{data, err}
			}()
		}
	}()
	next := from
	var left int64
	for answer := range queue {
		var f fetched
		select {
		case f = <-answer:
		case <-ctx.Done():
			return ctx.Err()
		}
		if f.err != nil {
			return f.err
		}
		var err error
		if left, err = b.List.Objects[next].write(f.data, left, to); err != nil {
			return err
		}
		next++
		if b.Progress != nil {
			b.Progress(int64(len(f.data)))
		}
		if b.After != nil && left == 0 {
			if err := b.After(next); err != nil {
				return err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return to.End()
}

// write writes the content of an object, given how many bytes of the last file are still to come. It returns how many are after it.
func (o *Object) write(data []byte, left int64, to *bundle.Archive) (int64, error) {
	n := min(left, int64(len(data)))
	if _, err := to.Write(data[:n]); err != nil {
		return 0, err
	}
	data, left = data[n:], left-n
	for _, f := range o.Files {
		if err := to.Begin(f.Name, f.Size); err != nil {
			return 0, err
		}
		n := min(f.Size, int64(len(data)))
		if _, err := to.Write(data[:n]); err != nil {
			return 0, err
		}
		data, left = data[n:], f.Size-n
	}
	return left, nil
}

// Check fetches all objects of the deposit, makes the bundle again without keeping it, and checks that as [bundle.Read] does: so the
// deposit is one that a registry could be taken over from.
func (b *Rebuild) Check(ctx context.Context, o bundle.Options) (*bundle.Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := b.write(ctx, 0, bundle.NewArchive(out, &b.List.Bundle, false, 0))
		_ = out.CloseWithError(err) // it never fails
		written <- err
	}()
	report, err := bundle.Read(ctx, in, o)
	_ = in.Close() // it never fails
	if failed := <-written; failed != nil && !errors.Is(failed, io.ErrClosedPipe) {
		return nil, failed // why the archive ended too early
	}
	if err != nil {
		return nil, err
	}
	return report, b.compare(report)
}

// compare makes sure that the bundle is the one that the list says.
func (b *Rebuild) compare(report *bundle.Report) error {
	if hex.EncodeToString(report.Manifest[:]) != b.List.Manifest || report.Head.Changes != b.List.Bundle.Changes {
		return failf(stele.Invalid, "deposit.of-other-bundle", "{list} says another manifest than the bundle has that is made of its objects", b.List.Name)
	}
	return nil
}
