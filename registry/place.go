package registry

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	storecopy "github.com/stele-id/stele/store/copy"
	"github.com/stele-id/stele/store/mem"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/postgres"
)

// Place is where a registry is kept: in a database, or else in a folder.
type Place struct {
	URL    string // of a PostgreSQL database; "" for a folder
	Folder string
}

// ParsePlace reads a place as a command line names it.
func ParsePlace(text string) (Place, error) {
	if !postgres.IsURL(text) {
		if text == "" {
			return Place{}, stele.Messagef("config.store-place-missing", "a folder or the URL of a database belongs here")
		}
		return Place{Folder: text}, nil
	}
	return Place{URL: text}, postgres.CheckURL(text)
}

// IsDatabase reports whether the registry is in a database, which several processes may
// share.
func (l Place) IsDatabase() bool { return l.URL != "" }

// String names the place for people: without passwords.
func (l Place) String() string {
	if l.IsDatabase() {
		return postgres.RedactURL(l.URL)
	}
	return l.Folder
}

// Kind is the word for what keeps the registry there.
func (l Place) Kind() string {
	if l.IsDatabase() {
		return "PostgreSQL"
	}
	return "folder"
}

// Flag is the part of a command line that names the place.
func (l Place) Flag() string {
	if l.IsDatabase() {
		return "--store " + l.String()
	}
	return "--data " + l.String()
}

// Exists returns NotFound if there is no registry in the folder. Whether a database has
// one is known when it is opened.
func (l Place) Exists() error {
	if l.IsDatabase() {
		return nil
	}
	there, err := pebble.Exists(l.Folder)
	if err == nil && !there {
		err = failf("open", stele.NotFound, "registry.missing", `there is no registry in "{folder}"; {advice}`, l.Folder, pebble.HowToFind)
	}
	return err
}

// IsSame reports whether two places are one, as far as this machine can tell.
func (l Place) IsSame(other Place) (bool, error) {
	if l.IsDatabase() || other.IsDatabase() {
		return l.URL == other.URL, nil
	}
	if filepath.Clean(l.Folder) == filepath.Clean(other.Folder) {
		return true, nil
	}
	return sameFolder(l.Folder, other.Folder)
}

// ForCopy names the place to package store/copy.
func (l Place) ForCopy() storecopy.Place {
	at := storecopy.Place{Name: l.String(), Absolute: l.String(), Flag: l.Flag()}
	if !l.IsDatabase() {
		if full, err := filepath.Abs(l.Folder); err == nil {
			at.Absolute = full
		}
	}
	return at
}

// OpenStore opens the store at the place.
func (l Place) OpenStore(ctx context.Context, o OpenOptions) (stele.Store, error) {
	if !l.IsDatabase() {
		return l.openFolder(ctx, o)
	}
	if err := postgres.CheckURL(l.URL); err != nil {
		return nil, failf("open", stele.Invalid, "", "STELE_STORE: {cause}", err)
	}
	return postgres.Open(ctx, l.URL, postgres.Options{Now: o.Now, Log: o.Log, Brief: o.Brief})
}

// openFolder opens the store in the folder.
func (l Place) openFolder(ctx context.Context, o OpenOptions) (stele.Store, error) {
	there, err := pebble.Exists(l.Folder)
	if err != nil {
		return nil, err
	}
	created := func() {
		if o.OnCreate != nil {
			o.OnCreate(l.Folder)
		}
	}
	if !there && o.Create {
		if o.MayCreate != nil {
			if err := o.MayCreate(l.Folder); err != nil {
				return nil, err
			}
		}
		if o.DryRun {
			created()
			return mem.New(o.Now), nil
		}
	}
	store, err := pebble.Open(ctx, l.Folder, pebble.Options{Now: o.Now, Log: o.Log, Brief: o.Brief, Existing: !o.Create})
	if errors.Is(err, stele.NotFound) && postgres.IsBackup(l.Folder) {
		return nil, failf("open", stele.NotFound, "registry.is-backup-of-database", `there is no registry in "{folder}": it is a backup of a database; 'stele verify {folder}' checks it, and 'stele restore' puts it into an empty database`, l.Folder)
	}
	if err != nil {
		return nil, err
	}
	if !there {
		created()
	}
	return store, nil
}

// sameFolder reports whether two names are of one folder. The second may not exist.
func sameFolder(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, disk.FileError(err)
	}
	y, err := os.Stat(b)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, disk.FileError(err)
	}
	return os.SameFile(x, y), nil
}
