package main

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/api"
)

// What stands beside the data folder for a while. Such a folder is removed when serve
// begins: a server that was killed left it. The names that stay, of registries that
// were replaced, are others.
const (
	sendingMark = ".sending-" // a backup that is sent
	stagingMark = ".staging-" // a backup that is unpacked
)

// folderMark is the time in the name of a folder.
const folderMark = "20060102T150405.000000000Z"

// upkeep is what the API can do and tell that only the server can.
func (s *server) upkeep(f *shift) api.Upkeep {
	r := f.registry
	up := api.Upkeep{
		Version: version,
		Ending:  f.ending,
		Backup:  func(ctx context.Context) (fs.FS, uint64, func() error, error) { return s.copyAside(ctx, r) },
		Stage:   s.stageBackup,
		Keys:    &keyDesk{r, s.now},
		Secondaries: func(ctx context.Context, zone string) ([]stele.SecondaryAnswer, error) {
			return registry.AskZoneSecondaries(ctx, *s.notify, r.Store, zone)
		},
	}
	if s.store == "" { // the disk of a database is elsewhere
		up.Disk = func() (free, total uint64, err error) { return disk.Space(s.data) }
	}
	if s.certificates != nil {
		up.Certificates = func() (list []api.Certificate) {
			ends := s.certificates.expiries()
			for _, name := range slices.Sorted(maps.Keys(ends)) {
				list = append(list, api.Certificate{Name: name, NotAfter: ends[name]})
			}
			return list
		}
	}
	if zones := zonesOf(r); zones != nil {
		up.Zones = func(ctx context.Context) (names []string, err error) {
			list, err := zones.List(ctx)
			for _, zone := range list {
				names = append(names, zone.Zone)
			}
			return names, err
		}
	}
	return up
}

// removeLeft removes what a server that was killed left beside the data folder.
func (s *server) removeLeft() {
	data, err := registry.RealFolder(s.data)
	if err != nil || s.store != "" {
		return
	}
	entries, err := os.ReadDir(filepath.Dir(data))
	if err != nil {
		return
	}
	for _, e := range entries {
		for _, mark := range []string{sendingMark, stagingMark} {
			rest, ok := strings.CutPrefix(e.Name(), filepath.Base(data)+mark)
			if _, err := time.Parse(folderMark, rest); !ok || err != nil || !e.IsDir() {
				continue
			}
			if err := os.RemoveAll(filepath.Join(filepath.Dir(data), e.Name())); err != nil {
				s.log.Warn("what is left of a backup can't be removed", "folder", e.Name(), "error", err.Error())
			}
		}
	}
}

// asideFolder returns a new folder for a backup that is sent: beside the data folder, on
// the same disk, so that files are shared; that of a database among the temporary ones.
func (s *server) asideFolder() (string, error) {
	data, err := registry.RealFolder(s.data)
	if s.store != "" {
		data = filepath.Join(os.TempDir(), "stele")
	}
	return data + sendingMark + s.now().UTC().Format(folderMark), err
}

// copyAside makes a backup in a folder of its own.
func (s *server) copyAside(ctx context.Context, r *registry.Registry) (fs.FS, uint64, func() error, error) {
	folder, err := s.asideFolder()
	if err != nil {
		return nil, 0, nil, err
	}
	// What is in the copy was there before it began.
	changes, err := r.Store.LastChange(ctx)
	if err != nil {
		return nil, 0, nil, err
	}
	if err := r.Store.Backup(ctx, folder); err != nil {
		return nil, 0, nil, errors.Join(err, os.RemoveAll(folder))
	}
	return os.DirFS(folder), changes, func() error { return os.RemoveAll(folder) }, nil
}

// stageBackup makes a folder for a backup that is to take the place of the registry.
func (s *server) stageBackup(_ context.Context, confirm string) (api.Staging, error) {
	if s.store != "" {
		return nil, refuse("restore", stele.Invalid, "the registry is in a database, which no server replaces while it runs; restore into an empty one with 'stele restore DIR --store URL', and start the servers with that")
	}
	data, err := registry.RealFolder(s.data)
	if err != nil {
		return nil, err
	}
	if confirm != filepath.Base(data) {
		return nil, refuse("restore", stele.Conflict, "the registry here is not called %.100q; give the name of its folder, without the folders it is in", confirm)
	}
	b := &staging{server: s, data: data, folder: data + stagingMark + s.now().UTC().Format(folderMark)}
	if err := os.Mkdir(b.folder, 0o700); err != nil {
		return nil, refuse("restore", stele.Unavailable, "a backup can't be unpacked here: %w", err)
	}
	if b.root, err = os.OpenRoot(b.folder); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.folder))
	}
	return b, nil
}

// staging is a backup on its way into the place of the registry.
type staging struct {
	*server
	data   string
	folder string
	root   *os.Root
	closed bool // what was in the folder is not open any more
}

// Folder is where it is unpacked.
func (b *staging) Folder() *os.Root { return b.root }

// reserve is how much room the backup must leave on the disk: the registry goes on
// beside it, and both are opened.
const reserve = 256 << 20

// Room is how many bytes there are for it.
func (b *staging) Room() uint64 {
	free, _, err := disk.Space(b.folder)
	if err != nil { // nobody knows: the disk will tell
		return 1 << 62
	}
	return free - min(free, reserve)
}

// Remove removes what is left of it.
func (b *staging) Remove() error { return errors.Join(b.root.Close(), os.RemoveAll(b.folder)) }
