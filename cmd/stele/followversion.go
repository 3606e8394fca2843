package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/stele-id/stele"
)

// A store that several processes share says more than others do.
type (
	applier interface{ Applied() uint64 }
	lagger  interface{ Lagging() (time.Time, bool) }

	rewinder interface{ Rewind(last uint64) }
)

// lagging reports whether what is read from the store may be older than what was read
// before, and since when; see [resolver.Options].
func (r *registry) lagging() (since time.Time, yes bool) {
	if l, ok := r.store.(lagger); ok {
		return l.Lagging()
	}
	return time.Time{}, false
}

// accessAge is for how long users and tokens are taken to be as they were, and
// accessGrace for how much longer while the database can't be read.
const (
	accessAge   = time.Second
	accessGrace = 5 * time.Minute
)

// share makes the registry one that other processes write to, too. It must be called
// before anything is read.
func (r *registry) share(ctx context.Context, now func() time.Time, log *slog.Logger) (err error) {
	r.directory.Age, r.directory.Grace = accessAge, accessGrace
	if err := r.readGenerations(ctx); err != nil {
		return err
	}
	r.follower, err = newFollower(ctx, r, now, log)
	return err
}

// version returns the number of a state that has all that this process has written: the
// token with which whoever wrote it sees it everywhere.
func (r *registry) version(ctx context.Context) (stele.Position, error) {
	if f := r.follower; f != nil {
		if a, ok := r.store.(applier); ok {
			return stele.Position{Generation: r.knownGenerations().Last().ID, Change: max(a.Applied(), f.position.Load())}, nil
		}
	}
	return r.store.Position(ctx)
}

// await returns when answers are from a state that has all changes up to this one. A
// Conflict that is stele.ErrRestored if it is of another generation; Unavailable if it
// takes too long, or would: anybody may ask for any number.
func (r *registry) await(ctx context.Context, token stele.Position) error {
	f := r.follower
	const what = "the version token"
	if err := r.knownGenerations().Judge(what, token); err != nil {
		if f == nil || f.catchUp(ctx) != nil { // it may have begun since
			return err
		}
		if err := r.knownGenerations().Judge(what, token); err != nil {
			return err
		}
	}
	version := token.Change
	if f == nil { // nobody else writes, so nothing is worth waiting for
		last, err := r.store.LastChange(ctx)
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
		pause(waiting, awaitAgain)
	}
}

// has reports whether a state is known to be reached without asking anybody.
func (f *follower) has(version uint64) bool {
	_, behind := f.registry.lagging()
	return !behind && f.position.Load() >= version
}

// reached is has for who has just caught up: a copy of the store may have it, too.
func (f *follower) reached(version uint64) bool {
	return f.position.Load() >= version && f.seen.Load() >= version
}

// isFar reports whether a state is so far ahead that it is not worth waiting for.
func (f *follower) isFar(version uint64) bool {
	seen := f.seen.Load()
	return version > seen && version-seen > awaitFar
}

func late(version, have uint64) error {
	return refuse("await", stele.Unavailable, "change %d was asked for, and this server has %d; try again, or leave Stele-Version out", version, have)
}

// ready returns an error if the database has not answered for a while, not even a copy
// of it that can only be read.
func (f *follower) ready() error {
	if silence := f.now().Sub(time.Unix(0, f.heard.Load())); silence > cutOff {
		return refuse("serve", stele.Unavailable, "the database has not answered for %s; names that are kept in memory are resolved, and no others", silence.Round(time.Second))
	}
	return nil
}
