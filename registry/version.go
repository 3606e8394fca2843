package registry

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/stele-id/stele"
)

// lagging reports whether what is read from the store may be older than what was read
// before, and since when; see [resolver.Options].
func (r *Registry) lagging() (since time.Time, yes bool) {
	if l, ok := r.Store.(stele.Replicated); ok {
		return l.Lagging()
	}
	return time.Time{}, false
}

// accessAge is for how long users and tokens are cached, and accessGrace for how much
// longer while the database can't be read.
const (
	accessAge   = time.Second
	accessGrace = 5 * time.Minute
)

// Share makes the registry one that other processes write to, too. It must be called
// before anything is read.
func (r *Registry) Share(ctx context.Context, now func() time.Time, log *slog.Logger) (err error) {
	r.Directory.Age, r.Directory.Grace = accessAge, accessGrace
	if err := r.ReadGenerations(ctx); err != nil {
		return err
	}
	r.Follower, err = newFollower(ctx, r, now, log)
	return err
}

// catchUp returns when all is told that other processes had committed before it was called.
func (r *Registry) catchUp(ctx context.Context) error {
	if r.Follower == nil {
		return nil
	}
	return r.Follower.catchUp(ctx)
}

// Version returns the number of a state that has all that this process has written: the
// token with which the writer sees it on every server.
func (r *Registry) Version(ctx context.Context) (stele.Position, error) {
	if f := r.Follower; f != nil {
		if a, ok := r.Store.(stele.Shared); ok {
			return stele.Position{Generation: r.KnownGenerations().Last().ID, Change: max(a.Applied(), f.position.Load())}, nil
		}
	}
	return r.Store.Position(ctx)
}

// Await returns when answers are from a state that has all changes up to this one. A
// Conflict that is stele.ErrRestored if it is of another generation; Unavailable if it
// takes too long, or would: any client may ask for any number.
func (r *Registry) Await(ctx context.Context, token stele.Position) error {
	f := r.Follower
	const what = "the version token"
	if err := r.KnownGenerations().Judge(what, token); err != nil {
		if f == nil || f.catchUp(ctx) != nil { // it may have begun since
			return err
		}
		if err := r.KnownGenerations().Judge(what, token); err != nil {
			return err
		}
	}
	version := token.Change
	if f == nil { // no other process writes, so nothing is worth waiting for
		last, err := r.Store.LastChange(ctx)
		if err == nil && last < version {
			err = late(version, last)
		}
		return err
	}
	if f.has(version) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, awaitLongest)
	defer cancel()
	for {
		err := f.catchUp(waiting)
		switch {
		case err == nil && f.reached(version):
			return nil
		case err == nil && f.isFar(version):
			return late(version, f.position.Load())
		case ctx.Err() != nil:
			return ctx.Err()
		case waiting.Err() != nil:
			return errors.Join(late(version, f.position.Load()), err)
		}
		select {
		case <-waiting.Done():
		case <-time.After(awaitAgain):
		}
	}
}

// has reports whether a state is known to be reached, without asking the store.
func (f *Follower) has(version uint64) bool {
	_, lags := f.registry.lagging()
	return !lags && f.position.Load() >= version
}

// reached is has for a caller that has just caught up: a copy of the store may have the
// state, too.
func (f *Follower) reached(version uint64) bool {
	return f.position.Load() >= version && f.seen.Load() >= version
}

// isFar reports whether a state is so far ahead that it is not worth waiting for.
func (f *Follower) isFar(version uint64) bool {
	seen := f.seen.Load()
	return version > seen && version-seen > awaitFar
}

func late(version, have uint64) error {
	return failf("await", stele.Unavailable, "request.version-not-reached", "change {change} was asked for, and this server has {last}; try again, or leave Stele-Version out", version, have)
}

// Ready returns an error if the database has not answered for a while, not even a copy
// of it that can only be read.
func (f *Follower) Ready() error {
	if silence := f.now().Sub(time.Unix(0, f.heard.Load())); silence > cutOff {
		return failf("serve", stele.Unavailable, "registry.database-silent", "the database has not answered for {duration}; names that are kept in memory are resolved, and no others", silence.Round(time.Second))
	}
	return nil
}
