package copy

import (
	"context"
	"errors"
	"sync"

	"github.com/stele-id/stele"
)

// readers is how many goroutines look up records at once: with a database most of the
// time is the network's.
const readers = 4

// portion is some changes on their way to the copy.
type portion struct {
	commits []*stele.Commit
	changes uint64
	err     error
}

// read reads the changes that follow one, and what they made.
func (c *Copier) read(ctx context.Context, after uint64) (p portion) {
	var changes []stele.Change
	for change, err := range c.From.Changes(ctx, after) {
		if err != nil {
			return portion{err: err}
		}
		if changes = append(changes, change); len(changes) == c.AtOnce {
			break
		}
	}
	if len(changes) == 0 {
		return portion{err: fail(stele.Internal, "copy.source-lacks-change", "change {change} is missing in {source}; 'stele verify' tells more", after+1, c.FromPlace)}
	}
	p.changes = uint64(len(changes))
	records, err := c.versions(ctx, changes)
	if err != nil {
		return portion{err: err}
	}
	p.commits, p.err = c.commits(ctx, changes, records)
	return p
}

// versions reads the versions of records that the changes made; nil where it was a
// namespace's.
func (c *Copier) versions(ctx context.Context, changes []stele.Change) ([]*stele.Record, error) {
	places := make(map[stele.ID][]int)
	for i, change := range changes {
		if change.ID.IsValid() {
			places[change.ID] = append(places[change.ID], i)
		}
	}
	records := make([]*stele.Record, len(changes))
	ids := make(chan stele.ID)
	errs := make([]error, readers)
	var readers sync.WaitGroup
	for i := range errs {
		readers.Go(func() {
			for id := range ids {
				if errs[i] == nil {
					errs[i] = c.versionsOf(ctx, id, changes, places[id], records)
				}
			}
		})
	}
	for id := range places {
		ids <- id
	}
	close(ids)
	readers.Wait()
	return records, errors.Join(errs...)
}

// versionsOf reads the versions of one record, at places in the list of changes.
func (c *Copier) versionsOf(ctx context.Context, id stele.ID, changes []stele.Change, places []int, records []*stele.Record) error {
	missing := len(places)
	take := func(rec *stele.Record) {
		for _, i := range places {
			if records[i] == nil && changes[i].Version == rec.Version {
				records[i] = rec
				missing--
			}
		}
	}
	now, err := c.From.Record(ctx, id)
	if err != nil {
		return err
	}
	if take(now); missing == 0 {
		return nil
	}
	for _, i := range places {
		if records[i] != nil {
			continue
		}
		rec, err := c.From.Version(ctx, id, changes[i].Version)
		if errors.Is(err, stele.NotFound) {
			break
		} else if err != nil {
			return err
		}
		take(rec)
	}
	if missing == 0 {
		return nil
	}
	return fail(stele.Internal, "copy.source-lacks-version", "a version of {id} that is in the list of changes is missing in {source}; 'stele verify' tells more", id, c.FromPlace)
}

// commits makes commits of the changes. In one of them records come before namespaces, and
// nothing comes twice.
func (c *Copier) commits(ctx context.Context, changes []stele.Change, records []*stele.Record) (list []*stele.Commit, err error) {
	var commit *stele.Commit
	var seen map[stele.ID]bool
	var changed map[stele.NamespaceKey]bool
	kept := make(map[stele.NamespaceKey]map[uint64]*stele.Namespace)
	size := 0
	for i, change := range changes {
		rec := records[i]
		if commit == nil || size > commitBytes || rec != nil && (len(changed) > 0 || seen[change.ID]) || rec == nil && changed[change.Namespace] {
			commit, size = new(stele.Commit), 0
			seen, changed = make(map[stele.ID]bool), make(map[stele.NamespaceKey]bool)
			list = append(list, commit)
		}
		commit.Replay = append(commit.Replay, change)
		if rec != nil {
			size += rec.StoredSize()
			seen[change.ID] = true
			commit.Records = append(commit.Records, rec)
			continue
		}
		if kept[change.Namespace] == nil {
			if kept[change.Namespace], err = namespaceVersions(ctx, c.From, change.Namespace); err != nil {
				return nil, err
			}
		}
		step := kept[change.Namespace][change.Version]
		if step == nil {
			step = unkept(change)
		}
		changed[change.Namespace] = true
		commit.Namespaces = append(commit.Namespaces, step)
	}
	return list, nil
}

// namespaceVersions returns the versions of a namespace that a store keeps, by number.
func namespaceVersions(ctx context.Context, from stele.Store, key stele.NamespaceKey) (map[uint64]*stele.Namespace, error) {
	kept := make(map[uint64]*stele.Namespace)
	for ns, err := range from.NamespaceHistory(ctx, key) {
		if err != nil {
			return nil, err
		}
		kept[ns.Version] = ns
	}
	return kept, nil
}

// unkeptTitle is the title of versions of namespaces that were not kept.
const unkeptTitle = "(this version was not kept)"

// unkept stands in a copy for a version of a namespace that the registry does not have: an
// earlier program, which kept the newest one only, wrote it. When it was made is known.
func unkept(change stele.Change) *stele.Namespace {
	return &stele.Namespace{Scheme: change.Namespace.Scheme, Prefix: change.Namespace.Prefix, Version: change.Version, Title: unkeptTitle, Modified: change.At}
}
