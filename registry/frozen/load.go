package frozen

import (
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registry"
)

// What is committed together.
const (
	ingestVersions = 100_000
	commitVersions = 3000
	commitBytes    = 8 << 20
)

// maxUnkept is how many versions of namespaces a bundle may lack. A bundle says itself which version of a namespace is the first that it has,
// and something is written for each one before that.
const maxUnkept = 100_000

// load fills the registry, and seals it.
func (m *maker) load(ctx context.Context, report *bundle.Report) (err error) {
	o := m.o.Registry
	o.Create, o.Brief, o.Hosts = true, true, report.Head.Hosts
	r, err := registry.Open(ctx, registry.Place{Folder: filepath.Join(m.folder, registryFolder)}, m.o.Bundle.Schemes, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	l := &loader{store: r.Store, tree: namespaces.New(m.o.Bundle.Schemes)}
	if err := l.namespaces(ctx, m.spaces); err != nil {
		return err
	}
	loaded := func(int) {}
	if m.o.Loading != nil {
		loaded = m.o.Loading(int64(report.Counts.Versions))
	}
	err = report.Records(ctx, m.in, m.o.Bundle.Schemes, func(list []*stele.Record) error {
		if err := l.records(ctx, list); err != nil {
			return err
		}
		loaded(len(list))
		return nil
	})
	if err != nil {
		return err
	}
	if err := l.fixed(ctx, m.fixed, m.o.Bundle.Schemes); err != nil {
		return err
	}
	if err := r.Store.Seal(ctx, stele.Reason(stele.Frozen(report.Head.Origin, report.Head.At)).Error()); err != nil {
		return err
	}
	return disk.Sync(m.folder)
}

// loader writes what a bundle has to a store that has nothing.
type loader struct {
	store stele.Store
	tree  *namespaces.Tree
}

// namespaces writes the versions of namespaces.
func (l *loader) namespaces(ctx context.Context, list []*bundle.NamespaceVersion) error {
	var rounds [][]*stele.Namespace // the first version of each namespace, then the second ones
	var current []*stele.Namespace
	at, unkept := 0, uint64(0)
	for _, v := range list {
		n := *v.Namespace
		if at == 0 {
			if n.Version > maxUnkept || unkept+n.Version > maxUnkept {
				return failf(stele.Invalid, "archive.versions-missing", "{namespace} begins with version {version} in the bundle: more than {most} versions of namespaces are missing before those that the bundle has, so that no registry has made it; get the bundle again from the registry that it names", n.Key(), n.Version, maxUnkept)
			}
			unkept += n.Version - 1
			for ; uint64(at)+1 < n.Version; at++ { // earlier versions are not kept: something has to stand for them
				rounds = put(rounds, at, &stele.Namespace{Scheme: n.Scheme, Prefix: n.Prefix, Version: uint64(at) + 1, Created: n.Created, Modified: n.Created})
			}
		}
		if v.Current { // the archive answers itself, whatever registry has taken over
			n.HandOver = stele.HandOver{}
			current = append(current, &n)
		}
		rounds = put(rounds, at, &n)
		if at++; v.Current {
			at = 0
		}
	}
	if errs := l.tree.Add(current...); len(errs) > 0 {
		return errs[0]
	}
	for _, round := range rounds {
		if err := l.store.Apply(ctx, &stele.Commit{Namespaces: round}); err != nil {
			return err
		}
	}
	return nil
}

func put(rounds [][]*stele.Namespace, at int, n *stele.Namespace) [][]*stele.Namespace {
	if at == len(rounds) {
		rounds = append(rounds, nil)
	}
	rounds[at] = append(rounds[at], n)
	return rounds
}

// counts says for which namespace a name counts.
func (l *loader) counts(id stele.ID) (stele.NamespaceKey, uint64) {
	if node := l.tree.Of(id); node != nil {
		return node.Key(), 0
	}
	return stele.NamespaceKey{Scheme: id.Scheme()}, 0
}

// fixed writes which bytes names stand for.
func (l *loader) fixed(ctx context.Context, list []bundle.Fixed, schemes *stele.Schemes) error {
	for part := range slices.Chunk(list, commitVersions) {
		var c stele.Commit
		for i := range part {
			cell, err := part[i].Cell(schemes)
			if err != nil {
				return err
			}
			c.Cells = append(c.Cells, cell)
		}
		if err := l.store.Apply(ctx, &c); err != nil {
			return err
		}
	}
	return nil
}

// records writes versions of records, in the order of the bundle. Those of a record may come with several calls.
func (l *loader) records(ctx context.Context, list []*stele.Record) error {
	var firsts []*stele.Record        // of one version
	var runs, later [][]*stele.Record // of several; versions of records that are there
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].ID == list[0].ID {
			n++
		}
		group := list[:n]
		list = list[n:]
		if group[0].Version > 1 {
			later = append(later, group)
			continue
		}
		run := runLength(group)
		if run == 1 {
			firsts = append(firsts, group[0])
		} else {
			runs = append(runs, group[:run])
		}
		if run < len(group) {
			later = append(later, group[run:])
		}
	}
	if err := l.ingest(ctx, firsts); err != nil {
		return err
	}
	if err := l.runs(ctx, runs); err != nil {
		return err
	}
	return l.later(ctx, later)
}

// runLength returns how many versions of a new record one commit may have ([stele.Commit]).
func runLength(list []*stele.Record) int {
	size := 0
	for n, rec := range list {
		size += rec.StoredSize()
		if n > 0 && (!rec.Withheld.IsZero() || n > stele.MaxEarlier || size > commitBytes) {
			return n
		}
	}
	return len(list)
}

// ingest adds records of one version.
func (l *loader) ingest(ctx context.Context, list []*stele.Record) error {
	for len(list) > 0 {
		n := min(len(list), ingestVersions)
		errs, err := l.store.Ingest(ctx, list[:n], l.counts, nil, nil)
		if err != nil {
			return err
		}
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		list = list[n:]
	}
	return nil
}

// runs adds records with their histories.
func (l *loader) runs(ctx context.Context, runs [][]*stele.Record) error {
	b := batch{l: l}
	for _, run := range runs {
		if err := b.add(ctx, run...); err != nil {
			return err
		}
	}
	return b.commit(ctx)
}

// later adds versions to records that are there: one of each record with a commit.
func (l *loader) later(ctx context.Context, groups [][]*stele.Record) error {
	for len(groups) > 0 {
		b := batch{l: l}
		var next [][]*stele.Record
		for _, g := range groups {
			if err := b.add(ctx, g[0]); err != nil {
				return err
			}
			if len(g) > 1 {
				next = append(next, g[1:])
			}
		}
		if err := b.commit(ctx); err != nil {
			return err
		}
		groups = next
	}
	return nil
}

// batch is what is committed together.
type batch struct {
	l    *loader
	list []*stele.Record
	size int
}

func (b *batch) add(ctx context.Context, list ...*stele.Record) error {
	b.list = append(b.list, list...)
	for _, rec := range list {
		b.size += rec.StoredSize()
	}
	if len(b.list) < commitVersions && b.size < commitBytes {
		return nil
	}
	return b.commit(ctx)
}

func (b *batch) commit(ctx context.Context) error {
	if len(b.list) == 0 {
		return nil
	}
	err := b.l.store.Apply(ctx, &stele.Commit{Records: b.list, Counter: b.l.counts})
	b.list, b.size = nil, 0
	return err
}
