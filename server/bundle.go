package server

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
)

// bundles returns what prepares bundles of a registry, for the API and the desk.
func (s *server) bundles(r *registry.Registry) func(ctx context.Context, from *registrar.Bundling) (*bundle.Job, error) {
	return func(ctx context.Context, from *registrar.Bundling) (*bundle.Job, error) {
		keys, err := s.logKeys(ctx, r)
		if err == nil && keys == nil {
			err = refuse("bundle", stele.Unavailable, "log.unsigned-server", "the registry signs bundles with the key of its transparency log, which has no name yet; set base to the public URL of the server, or log-origin")
		}
		if err != nil {
			return nil, err
		}
		return access.BundleJob(ctx, r, from, keys, s.now())
	}
}
