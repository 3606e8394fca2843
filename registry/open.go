package registry

import (
	"context"
	"errors"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	storecopy "github.com/stele-id/stele/store/copy"
)

// OpenOptions are how the registry at a place is opened. For its store alone Now and Log of
// Options suffice.
type OpenOptions struct {
	Options // Shared is set by Open

	Brief  bool // the process closes the registry soon
	Create bool // make a registry in a folder that has none
	DryRun bool // make it in memory instead

	// MayCreate refuses to make a registry in a folder; nil allows it.
	MayCreate func(folder string) error

	// OnCreate is called with the folder when a registry was made there, or when a dry run
	// begins with an empty one; nil for nothing.
	OnCreate func(folder string)

	// Unfinished allows a registry that a restore has not finished; the restore itself sets
	// it.
	Unfinished bool

	// Hosts are PURL hosts that a registry stores if it may be created, and OnHost is called
	// for each that it did not have; nil for nothing.
	Hosts  []string
	OnHost func(host string)
}

// Open opens the registry at a place. A registry in a database follows what other
// processes write, unless it is opened briefly.
func Open(ctx context.Context, at Place, schemes *stele.Schemes, o OpenOptions) (*Registry, error) {
	store, err := at.OpenStore(ctx, o)
	if err != nil {
		return nil, err
	}
	if !o.Unfinished {
		if err := storecopy.RefuseUnfinished(ctx, store, at.ForCopy()); err != nil {
			return nil, errors.Join(err, store.Close())
		}
	}
	o.Shared = at.IsDatabase() && !o.Brief
	r := New(store, schemes, o.Options)
	r.place = at
	if err := r.begin(ctx, o); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// begin reads what an open registry needs from its store.
func (r *Registry) begin(ctx context.Context, o OpenOptions) error {
	if err := r.learnHosts(ctx, o); err != nil {
		return err
	}
	if err := r.ReadGenerations(ctx); err != nil {
		return err
	}
	if !o.Shared {
		return nil
	}
	return r.Share(ctx, o.Now, o.Log)
}

// learnHosts makes the schemes know the PURL hosts of the registry. Those that the options
// name are stored there where a registry may be created: before hosts belonged to the
// registry, they were only a setting.
func (r *Registry) learnHosts(ctx context.Context, o OpenOptions) error {
	if err := r.Registrar.LearnHosts(ctx); err != nil {
		return err
	}
	if len(o.Hosts) == 0 || !o.Create {
		return nil
	}
	added, err := r.Registrar.AddHosts(auth.With(ctx, auth.Local()), o.Hosts...)
	switch {
	case errors.Is(err, stele.ErrSealed), errors.Is(err, stele.Unavailable):
		return nil // the registry is read only; this process knows the hosts
	case err != nil:
		return err
	}
	for _, host := range added {
		if o.OnHost != nil {
			o.OnHost(host)
		}
	}
	return nil
}

// compactor is a store that can rewrite its files, so that values that were replaced are
// gone from them.
type compactor interface {
	Compact(ctx context.Context) error
}

// Compact makes the store rewrite its files without values that were replaced, if the
// store can do that.
func (r *Registry) Compact(ctx context.Context) error {
	if c, ok := r.Store.(compactor); ok {
		return c.Compact(ctx)
	}
	return nil
}
