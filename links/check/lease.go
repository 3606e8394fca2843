package check

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/stele-id/stele"
	leases "github.com/stele-id/stele/internal/lease"
)

// errLost says that another server checks links by now.
var errLost = stele.Messagef("links.lease-lost", "another server checks links now")

// leaseValue is what the cell of the lease has.
type leaseValue struct {
	Server string    `json:"server"`
	Until  time.Time `json:"until"`
}

// lease is the right to check, which one server has at a time.
type lease struct {
	c    *Checker
	name string

	mu    sync.Mutex
	value []byte
	until time.Time
}

// take takes the lease; nil if another server has it.
func (c *Checker) take(ctx context.Context) (*lease, error) {
	random := make([]byte, 8)
	if _, err := io.ReadFull(c.o.Rand, random); err != nil {
		return nil, stele.Errorf("check links", stele.ID{}, stele.Internal, "job.no-random-bits", "there are no random bits: {cause}", err)
	}
	before, err := c.o.Registrar.CheckCell(asServer(ctx), leaseCell)
	if err != nil {
		return nil, err
	}
	if before != nil {
		var other leaseValue
		if json.Unmarshal(before, &other) == nil && !leases.IsFree(other.Server, other.Until, c.now()) { // to take it is safe, as each commit needs the lease
			return nil, nil
		}
	}
	l := &lease{c: c, name: hex.EncodeToString(random)}
	if err := l.write(ctx, before, l.name, c.o.Lease); errors.Is(err, stele.Conflict) && !errors.Is(err, stele.ErrSealed) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *lease) write(ctx context.Context, before []byte, name string, life time.Duration) error {
	until := l.c.now().Add(life)
	after, err := json.Marshal(&leaseValue{name, until})
	if err != nil {
		return err
	}
	if err := l.c.o.Registrar.KeepChecks(asServer(ctx), stele.CellChange{Name: leaseCell, Before: before, After: after}); err != nil {
		return err
	}
	l.value, l.until = after, until
	return nil
}

// held returns the value of the lease, if it is still this server's.
func (l *lease) held() ([]byte, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.value, l.c.now().Before(l.until)
}

// renew prolongs the lease.
func (l *lease) renew(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.write(ctx, l.value, l.name, l.c.o.Lease)
	if errors.Is(err, stele.Conflict) && !errors.Is(err, stele.ErrSealed) {
		return errLost
	}
	return err
}

// leave gives the lease back, so that another server need not wait.
func (l *lease) leave(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.write(context.WithoutCancel(ctx), l.value, "", 0) // it ends by itself if this fails
}

// keepRenewed prolongs the lease until the context ends, and calls lost if another server has it.
func (l *lease) keepRenewed(ctx context.Context, lost func(error)) {
	tick := time.NewTicker(l.c.o.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := l.renew(ctx); errors.Is(err, errLost) {
			lost(err)
			return
		} else if err != nil && ctx.Err() == nil {
			if _, ok := l.held(); !ok {
				lost(errLost)
				return
			}
		}
	}
}
