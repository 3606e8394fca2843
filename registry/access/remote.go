package access

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/remote"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/publish"
)

// remoteChunkRows is how many records of an import go to a server at a time.
const remoteChunkRows = 10_000

// Remote is the registry of a server.
type Remote struct{ *remote.Registry }

// NewRemote returns the registry of a server.
func NewRemote(r *remote.Registry, now func() time.Time) *Registry {
	return &Registry{Backend: &Remote{r}, Schemes: r.Schemes(), Now: now, Place: r.String(), ChunkRows: remoteChunkRows}
}

// Source returns what zones are made from.
func (d *Remote) Source() publish.Store { return remoteStore{d.Registry} }

// Meant returns the error as it is: a server says itself what may have been meant.
func (d *Remote) Meant(_ context.Context, _ stele.ID, err error) error { return err }

// remoteStore is the registry of a server as zones read it: records and namespaces as they
// are now. It has no keys and no feed of changes, which only the server reads.
type remoteStore struct{ r *remote.Registry }

var _ publish.Store = remoteStore{}

// Record returns the record that has this name.
func (s remoteStore) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	return s.r.Get(ctx, name)
}

// Scan yields records in the order of their identifiers. The prefix may be any text, but
// a server lists only what is below a place where names can be cut: that list is longer,
// and Scan leaves out what does not begin with the prefix.
func (s remoteStore) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	q := remote.Listing{Key: s.cut(scheme, prefix), After: after}
	if q.Key.Prefix != prefix && after < prefix {
		q.After = prefix[:len(prefix)-1] // all that begin with it come after it
	}
	return func(yield func(*stele.Record, error) bool) {
		for rec, err := range s.r.List(ctx, q) {
			if err == nil && !strings.HasPrefix(rec.ID.String(), prefix) {
				if rec.ID.String() > prefix {
					return
				}
				continue
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// cut returns the longest beginning of a text at which names can be cut.
func (s remoteStore) cut(scheme, text string) stele.NamespaceKey {
	for end := len(text); end > 0; end-- {
		key, err := namespaces.ParsePrefix(s.r.Schemes(), text[:end])
		if err == nil && key.Scheme == scheme && key.Prefix == text[:end] {
			return key
		}
	}
	return stele.NamespaceKey{Scheme: scheme}
}

// LastChange returns the number of the last change.
func (s remoteStore) LastChange(ctx context.Context) (uint64, error) { return s.r.LastChange(ctx) }

// ZoneStates yields what the server keeps about zones.
func (s remoteStore) ZoneStates(ctx context.Context) iter.Seq2[stele.ZoneState, error] {
	return s.r.ZoneStates(ctx)
}

// ZoneState returns what the server keeps about a zone.
func (s remoteStore) ZoneState(ctx context.Context, zone string) (stele.ZoneState, error) {
	for z, err := range s.r.ZoneStates(ctx) {
		if err != nil || z.Zone == zone {
			return z, err
		}
	}
	last, err := s.r.LastChange(ctx)
	return stele.ZoneState{Zone: zone, Last: last, Since: last, At: last}, err
}

// Namespaces yields the namespaces that a user made or changed.
func (s remoteStore) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return func(yield func(*stele.Namespace, error) bool) {
		for ns, err := range s.r.Namespaces(ctx) {
			if err == nil && ns.Version == 0 {
				continue
			}
			if !yield(ns, err) || err != nil {
				return
			}
		}
	}
}

// Version returns one version of a record.
func (s remoteStore) Version(ctx context.Context, id stele.ID, version uint64) (*stele.Record, error) {
	return s.r.Version(ctx, id, version)
}

// Count returns how many records count for a namespace.
func (s remoteStore) Count(ctx context.Context, key stele.NamespaceKey) (uint64, error) {
	return s.r.Count(ctx, key)
}

// untold is the error of an operation that only the server can do with its store.
func untold(what string) error {
	return stele.Errorf(what, stele.ID{}, stele.Invalid, "command.server-only", "only the server itself does this with its registry; run it there, on the folder")
}

func untoldAll[T any](what string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		yield(none, untold(what))
	}
}

// What follows only the server can read.

func (remoteStore) Changes(context.Context, uint64) iter.Seq2[stele.Change, error] {
	return untoldAll[stele.Change]("list changes")
}

func (remoteStore) ZoneChanges(context.Context, string, uint64) iter.Seq2[stele.Change, error] {
	return untoldAll[stele.Change]("list changes")
}

func (remoteStore) Cells(context.Context, string, string) iter.Seq2[stele.Cell, error] {
	return untoldAll[stele.Cell]("read cells")
}
