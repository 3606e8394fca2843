package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/search"
)

// SearchFolder returns the folder of the search index for a program that opens the registry and
// is not told of another one: beside the folder of the registry, or in the user's cache for a
// database.
func (l Place) SearchFolder() (string, error) {
	if !l.IsDatabase() {
		return filepath.Clean(l.Folder) + "-search", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", failf("search", stele.Unavailable, "search.cache-folder-unknown", "there is no folder for the search index: {cause}; name one in STELE_SEARCH_INDEX", err)
	}
	sum := sha256.Sum256([]byte(l.String()))
	return filepath.Join(cache, "stele", "search-"+hex.EncodeToString(sum[:8])), nil
}

// OpenSearch opens the search index of the registry in a folder; "" for a temporary one, which
// Close removes. It must be called before the registry is used by several goroutines.
func (r *Registry) OpenSearch(ctx context.Context, folder string, log *slog.Logger) error {
	if folder == "" {
		temporary, err := os.MkdirTemp("", "stele-search-")
		if err != nil {
			return failf("search", stele.Unavailable, "search.folder-not-made", `the folder "{folder}" of the search index can't be made: {cause}`, os.TempDir(), err)
		}
		folder, r.temporary = temporary, temporary
	}
	index, err := search.Open(ctx, search.Options{
		Folder: folder, Source: r.Store, Log: log,
		Lagging: r.lagging,
	})
	if err != nil {
		return err
	}
	r.Search = &search.Finder{
		Index: index, Schemes: r.Schemes, Get: r.Registrar.Get,
		Sight: func(ctx context.Context, within stele.NamespaceKey) (search.Sight, error) {
			return r.Registrar.Sight(ctx, within)
		},
	}
	return nil
}

// closeSearch closes the search index, if it is open.
func (r *Registry) closeSearch() error {
	if r.Search == nil {
		return nil
	}
	err := r.Search.Index.Close()
	if r.temporary != "" {
		err = errors.Join(err, os.RemoveAll(r.temporary))
	}
	return err
}

// Purge removes what was erased from the files of the store and of the search index, which is
// made anew.
func (r *Registry) Purge(ctx context.Context) error {
	if err := r.Store.Purge(ctx); err != nil {
		return err
	}
	if r.Search != nil {
		return r.Search.Index.Erase(ctx)
	}
	if r.place == (Place{}) {
		return nil
	}
	folder, err := r.place.SearchFolder()
	if err != nil {
		return err
	}
	return search.Remove(folder)
}
