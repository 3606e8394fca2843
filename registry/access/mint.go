package access

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/terminal"
	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/registrar/minting"
)

// A batch of names takes about this long, so that a million names are quick, and a minter
// that makes one name a second gives one each second.
const (
	shortBatch = 10 * time.Millisecond
	longBatch  = 100 * time.Millisecond
	maxBatch   = 8192
)

// MintBatches makes n names and calls each with every batch of them. The names that were
// made before an error are used, so each is called with them too.
func (l *Registry) MintBatches(ctx context.Context, pool []stele.NamespaceKey, n int, each func([]minting.Label) error) error {
	for batch := 1; n > 0; {
		began := l.Now()
		labels, err := l.MintPool(ctx, pool, min(batch, n))
		if err := errors.Join(each(labels), err); err != nil {
			return err
		}
		n -= len(labels)
		switch took := l.Now().Sub(began); {
		case took < shortBatch:
			batch = min(2*batch, maxBatch)
		case took > longBatch:
			batch = max(1, batch/2)
		}
	}
	return nil
}

// PlaceIBI finds the prefix of an IBI server's namespace: that of its repository
// names, or else of its IBIps.
func (l *Registry) PlaceIBI(ns *stele.Namespace) error {
	if err := ns.Validate(); err != nil {
		return err
	}
	namer, ok := l.Schemes.Lookup(ns.Scheme).(namespaces.DateNamer)
	if !ok {
		return stele.Messagef("minter.scheme-without-dates", "the scheme {scheme} makes no names of dates", ns.Scheme)
	}
	prefixes, _, err := namer.DateNames(ns)
	if err != nil {
		return err
	}
	ns.Prefix = prefixes[0]
	return nil
}

// ParsePool reads the prefixes of a pool of namespaces.
func (l *Registry) ParsePool(texts []string) (keys []stele.NamespaceKey, err error) {
	for _, text := range texts {
		key, err := l.ParsePrefix(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// EnsureMinter makes sure that a namespace exists and that its minter has the settings of
// want that were given. It makes the namespace if there is none. Conflict if a setting
// differs, except for the granularity, which it changes. In a dry run it changes nothing.
func (l *Registry) EnsureMinter(ctx context.Context, want *stele.Namespace, given func(setting string) bool, dryRun bool) error {
	key := want.Key()
	have, err := l.Namespace(ctx, key)
	if errors.Is(err, stele.NotFound) {
		if dryRun {
			return want.Validate()
		}
		_, err = l.AddNamespace(ctx, want)
		return err
	}
	if err != nil {
		return err
	}
	if odd := minting.Conflicting(&have.Minter, &want.Minter, given); odd != "" {
		set := "makes no new names"
		if now := minting.Describe(&have.Minter); now != "" {
			set = "makes names by " + now
		}
		return stele.Errorf("mint", stele.ID{}, stele.Conflict,
			"mint.namespace-differs", "the namespace {namespace} {setting}, and --{flag} says otherwise; leave it out, or change the namespace with 'stele ns set'", key, set, odd)
	}
	if dryRun || !given("granularity") || minting.SameGranularity(have.Minter.Granularity, want.Minter.Granularity) {
		return nil
	}
	_, err = l.SetNamespace(ctx, key, 0, func(ns *stele.Namespace) error {
		ns.Minter.Granularity = want.Minter.Granularity
		return nil
	})
	return err
}

// SkipTo sets the counter of a namespace's template to n, or ahead by n, and returns where it
// is then. Exhausted if the template does not have as many names.
func (l *Registry) SkipTo(ctx context.Context, key stele.NamespaceKey, n uint64, ahead bool) (uint64, error) {
	status, err := l.MinterStatus(ctx, key)
	if err != nil {
		return 0, err
	}
	to := n
	if ahead {
		to += status.Given
	}
	if to < n || status.Total > 0 && to > status.Total {
		return 0, stele.Errorf("skip", stele.ID{}, stele.Exhausted, "namespace.template-used-up", "the template of {namespace} has {total} names; {given} are given", key, terminal.Grouped(int64(status.Total)), terminal.Grouped(int64(status.Given)))
	}
	return to, l.SkipCounter(ctx, key, to)
}

// NamespaceDetails is what the registry knows of a namespace beside its settings.
type NamespaceDetails struct {
	Parent *stele.Namespace // nil if there is none
	Count  uint64           // of the records that count for it
	Minter minting.Status   // zero if it makes no names
}

// DescribeNamespace returns what is above a namespace, how many names it has, and how far
// its minter is.
func (l *Registry) DescribeNamespace(ctx context.Context, ns *stele.Namespace) (d NamespaceDetails, err error) {
	if d.Count, err = l.Count(ctx, ns.Key()); err != nil {
		return d, err
	}
	if d.Parent, err = l.ParentNamespace(ctx, ns.Key()); err != nil && !errors.Is(err, stele.NotFound) {
		return d, err
	}
	if ns.Minter.Kind == stele.NoMinter {
		return d, nil
	}
	d.Minter, err = l.MinterStatus(ctx, ns.Key())
	return d, err
}
