package deposit

import (
	"context"
	"time"

	"github.com/stele-id/stele"
)

const op = "escrow"

func failf(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: op, Kind: kind, Err: stele.Messagef(code, text, args...)}
}

// Destination is a place that keeps deposits. Names have slashes between their parts. Its methods are called by several goroutines at
// once. An error of the kind Unavailable may pass: what failed is tried again. No error has a secret in it.
type Destination interface {
	// Put keeps data under a name, and returns when they are durable. If something is there under the name, Put leaves it as it is and
	// returns nil. Readers see all of the data or nothing. It does not keep the slice.
	Put(ctx context.Context, name string, data []byte) error

	// Get returns what is kept under a name. NotFound if nothing is; Invalid if it has more than most bytes, of which Get does not read
	// many more.
	Get(ctx context.Context, name string, most int64) ([]byte, error)

	// List calls each with all names in a folder and in those in it, in any order, and with how many bytes each has. A folder that is not
	// there is empty. It ends with the error of each, if that returns one.
	List(ctx context.Context, folder string, each func(name string, size int64) error) error

	// Close ends connections.
	Close() error
}

// patient tries again what failed and may pass.
type patient struct {
	Destination
	wait func(ctx context.Context, d time.Duration) error
}

// How often something is tried, and after which time the second time; each further time it is twice as long.
const (
	attempts   = 4
	firstPause = time.Second
)

func (p *patient) again(ctx context.Context, do func() error) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := do()
		if err == nil || n == attempts || stele.KindOf(err) != stele.Unavailable || ctx.Err() != nil {
			return err
		}
		if p.wait(ctx, pause) != nil {
			return err
		}
		pause *= 2
	}
}

func (p *patient) Put(ctx context.Context, name string, data []byte) error {
	return p.again(ctx, func() error { return p.Destination.Put(ctx, name, data) })
}

func (p *patient) Get(ctx context.Context, name string, most int64) (data []byte, err error) {
	err = p.again(ctx, func() error {
		data, err = p.Destination.Get(ctx, name, most)
		return err
	})
	return data, err
}

func (p *patient) List(ctx context.Context, folder string, each func(name string, size int64) error) error {
	type entry struct {
		name string
		size int64
	}
	var list []entry // so that a caller never sees a name twice
	err := p.again(ctx, func() error {
		list = list[:0]
		return p.Destination.List(ctx, folder, func(name string, size int64) error {
			if len(list) >= maxStored {
				return failf(stele.Exhausted, "deposit.place-too-full", "the place has more than {most} objects; begin anew at another one", maxStored)
			}
			list = append(list, entry{name, size})
			return nil
		})
	})
	for i := 0; i < len(list) && err == nil; i++ {
		err = each(list[i].name, list[i].size)
	}
	return err
}
