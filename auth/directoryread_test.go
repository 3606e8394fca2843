package auth

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
)

// delayedStore is a store that takes its time.
type delayedStore struct {
	stele.Store
	delay atomic.Int64 // of each list, nanoseconds
	reads atomic.Int64 // of users
}

func (d *delayedStore) Cells(ctx context.Context, prefix, after string) iter.Seq2[stele.Cell, error] {
	if prefix == UserCells {
		d.reads.Add(1)
	}
	return func(yield func(stele.Cell, error) bool) {
		select {
		case <-time.After(time.Duration(d.delay.Load())):
		case <-ctx.Done():
			yield(stele.Cell{}, ctx.Err())
			return
		}
		d.Store.Cells(ctx, prefix, after)(yield)
	}
}

// newDelayedStore is a testDirectory far from its store, with one user and the user's token, and a
// function that revokes the token elsewhere. Time is that of a bubble.
func newDelayedStore(t *testing.T) (o *testDirectory, store *delayedStore, credential string, revoke func()) {
	o = newTestDirectory(t)
	store = &delayedStore{Store: o.store}
	o.Directory = NewDirectory(store, time.Now)
	o.Age, o.Grace = time.Second, 5*time.Minute
	o.user(User{Name: "ann"})
	credential, made := o.issue("ann", func(t *Token) { t.Expires = time.Time{} })
	o.accepted(credential)
	return o, store, credential, func() {
		made.Revoked = time.Now()
		o.put(made.Cell())
	}
}

const hour = int64(time.Hour)

// A store that is slow is not away: a token that was revoked is refused as soon as that
// could be read.
func TestSlowStore(t *testing.T) {
	for name, wait := range map[string]time.Duration{"busy": time.Second, "idle": 2 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, store, credential, revoke := newDelayedStore(t)
				revoke()
				store.delay.Store(int64(3 * time.Second))
				time.Sleep(wait)
				o.refused(credential, "revoked")
			})
		})
	}
}

// A caller that goes away does not end the reading that others wait for, and those that wait
// do not read one after the other.
func TestSlowStoreTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, store, credential, revoke := newDelayedStore(t)
		revoke()
		store.delay.Store(int64(2 * time.Second)) // four seconds in all
		time.Sleep(time.Second)
		reads := store.reads.Load()
		brief, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := o.Authenticate(brief, credential); stele.KindOf(err) != stele.Unavailable {
			t.Errorf("who went away got %v", err)
		}
		var all sync.WaitGroup
		for range 35 {
			time.Sleep(time.Second / 10)
			all.Go(func() { o.refused(credential, "revoked") })
		}
		all.Wait()
		if n := store.reads.Load() - reads; n != 2 {
			t.Errorf("it was read %d times", n)
		}
	})
}

// A store that does not answer at all is away: the directory waits for it once. What the
// store says when it is back counts.
func TestSilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, store, credential, revoke := newDelayedStore(t)
		store.delay.Store(hour)
		time.Sleep(time.Second)
		o.accepted(credential)
		began := time.Now()
		for range 60 {
			o.accepted(credential)
			time.Sleep(time.Second)
		}
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("it was waited %s for a store that is away", waited-time.Minute)
		}
		store.delay.Store(0)
		revoke()
		for range tryAgain + patience {
			_, _ = o.Authenticate(t.Context(), credential)
			time.Sleep(time.Second)
		}
		o.refused(credential, "revoked")
	})
}

// Once a store is back, a caller that asks long after gets its state and not the old one.
func TestStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, store, credential, revoke := newDelayedStore(t)
		store.delay.Store(hour)
		time.Sleep(time.Second)
		o.accepted(credential)
		store.delay.Store(0)
		revoke()
		time.Sleep(time.Minute)
		o.refused(credential, "revoked")
	})
}
