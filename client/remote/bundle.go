package remote

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// BundleQuery is which bundle is asked for.
type BundleQuery struct {
	Prefixes []string // of its names; none: all names of the registry
	Gzip     bool

	// State is what an earlier answer returned, and Offset how much of that answer the caller has: the rest is asked for. Conflict if the
	// server can't go on with it.
	State  string
	Offset int64
}

// Bundle asks for a bundle of names. It returns the bundle, which the caller closes, and what stands for it, or "" if it can't be gone on with later. The
// caller checks what it got: a bundle ends with its digests.
func (r *Registry) Bundle(ctx context.Context, q BundleQuery) (in io.ReadCloser, state string, err error) {
	query := url.Values{}
	if len(q.Prefixes) > 0 {
		query.Set("prefix", strings.Join(q.Prefixes, " "))
	}
	if q.Gzip {
		query.Set("gzip", "true")
	}
	if q.State != "" {
		query.Set("state", q.State)
		query.Set("offset", strconv.FormatInt(q.Offset, 10))
	}
	s, err := r.open(ctx, &ask{method: http.MethodGet, path: "bundle", query: query, again: true}, nil, streamStill)
	if err != nil {
		return nil, "", under("bundle", stele.ID{}, err)
	}
	return s, s.header.Get(apijson.BundleState), nil
}

// TakenBundles returns the last bundles that were made by hand of namespaces that the user owns.
func (r *Registry) TakenBundles(ctx context.Context) ([]registrar.TakenBundle, error) {
	return gather(ctx, r, "list bundles", listOf("bundles", ""), func(d *apijson.TakenBundle) (registrar.TakenBundle, error) {
		return registrar.TakenBundle{Namespace: stele.NamespaceKey{Scheme: d.Scheme, Prefix: d.Prefix}, Made: d.Made, By: d.By, Manifest: d.Manifest, Change: d.Change, Records: d.Records,
			Versions: d.Versions, Wider: d.Wider, Checked: d.Checked, CheckedBy: d.CheckedBy, CheckedChange: d.CheckedChange}, nil
	})
}

// NoteChecked notes that the user has checked a bundle, which is named by its manifest.
func (r *Registry) NoteChecked(ctx context.Context, manifest string) error {
	return r.post(ctx, "note bundle", "bundles", apijson.CheckedBundle{Manifest: manifest})
}
