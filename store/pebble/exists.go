package pebble

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stele-id/stele"
)

// Exists reports whether a folder has a store. It reads the names of the files in the
// folder, and writes nothing. A folder that is not there has none.
func Exists(folder string) (bool, error) { return exists(vfs.Default, folder) }

func exists(fs vfs.FS, folder string) (bool, error) {
	names, err := list(fs, folder)
	return slices.ContainsFunc(names, isManifest), err
}

// isManifest reports whether a file has the list of tables, which every Pebble database
// has one of.
func isManifest(name string) bool { return strings.HasPrefix(name, "MANIFEST-") }

// list returns the names of the files in a folder; none if the folder is not there.
func list(fs vfs.FS, folder string) ([]string, error) {
	names, err := fs.List(folder)
	switch {
	case err == nil, errors.Is(err, os.ErrNotExist):
		return names, nil
	case errors.Is(err, syscall.ENOTDIR):
		return nil, refuse("open", stele.ID{}, stele.Invalid, "store.folder-is-a-file", `"{folder}" is a file, and a registry is a folder; name another with --data`, folder)
	}
	return nil, refuse("open", stele.ID{}, stele.Unavailable, "store.folder-unreadable", `the folder "{folder}" can't be read: {cause}`, folder, err)
}

// checkPlace refuses a folder in which Open may not make a store: one without a store
// if it must be there, and one that has files of something else.
func checkPlace(folder string, o Options) error {
	if folder == "" {
		return nil // newStore refuses it
	}
	fs := o.FS
	if fs == nil {
		fs = vfs.Default
	}
	folder = filepath.Clean(folder)
	names, err := list(fs, folder)
	if err != nil || slices.ContainsFunc(names, isManifest) {
		return err
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, ".sst") }) {
		return refuse("open", stele.ID{}, stele.Internal, "store.manifest-missing", `the store in "{folder}" is damaged: its tables are there, and their list, the file MANIFEST, is missing; restore a backup`, folder)
	}
	if o.Existing {
		return missing(folder)
	}
	if i := slices.IndexFunc(names, isForeign); i >= 0 {
		return refuse("open", stele.ID{}, stele.Invalid, "store.folder-has-other-files", `there is no registry in "{folder}", and none is made there, because the folder has other files, such as "{file}"; name an empty folder or a new one with --data`, folder, names[i])
	}
	return nil
}

// isForeign reports whether a file belongs neither to a store whose creation was
// interrupted, nor to a new file system.
func isForeign(name string) bool {
	for _, own := range []string{"marker.", "OPTIONS-", "temporary."} {
		if strings.HasPrefix(name, own) {
			return false
		}
	}
	for _, own := range []string{".log", ".dbtmp"} {
		if strings.HasSuffix(name, own) {
			return false
		}
	}
	return !slices.Contains([]string{lockFile, HolderFile, "CURRENT", "ingest", "lost+found"}, name)
}

// missing is the error of a folder that has no store.
func missing(folder string) error {
	return refuse("open", stele.ID{}, stele.NotFound, "registry.missing", `there is no registry in "{folder}"; {advice}`, folder, HowToFind)
}

// HowToFind says what to do where there is no registry.
const HowToFind = "name its folder with --data, its database with --store, or its server with --server; serve, register, import, mint, ns add, zone add and user add make a new one"
