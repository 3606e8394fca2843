package server

import (
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/store/pebble"

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

// Folders that stand beside the data folder for a while. The server removes them when it
// begins: a server that was killed left them. Folders of replaced registries, which stay,
// have other names.
const (
	sendingMark = ".sending-" // a backup that is sent
	stagingMark = ".staging-" // a backup that is unpacked
)

// folderMark is the time in the name of a folder.
const folderMark = "20060102T150405.000000000Z"

// upkeep is what only the server can do and knows for the API.
func (s *server) upkeep(f *generation) api.Upkeep {
	r := f.registry
	up := api.Upkeep{
		Version: s.o.Version,
		Ending:  f.ending,
		Backup:  func(ctx context.Context) (fs.FS, uint64, func() error, error) { return s.copyAside(ctx, r) },
		Stage:   s.stageBackup,
		Keys:    NewKeys(r, s.now),
		Handles: NewHandleSites(r, s.now),
		Secondaries: func(ctx context.Context, zone string) ([]stele.SecondaryAnswer, error) {
			return registry.AskZoneSecondaries(ctx, s.notify, r.Store, zone)
		},
	}
	up.Bundle = s.bundles(r)
	if !s.o.Place.IsDatabase() { // the disk of a database is elsewhere
		up.Disk = func() (free, total uint64, err error) { return disk.Space(s.o.Place.Folder) }
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
	if zones := Zones(r); zones != nil {
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
	data, err := registry.RealFolder(s.o.Place.Folder)
	if err != nil || s.o.Place.IsDatabase() {
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
	data, err := registry.RealFolder(s.o.Place.Folder)
	if s.o.Place.IsDatabase() {
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
	if s.o.Place.IsDatabase() {
		return nil, refuse("restore", stele.Invalid, "restore.database-while-serving", "the registry is in a database, which no server replaces while it runs; restore into an empty one with 'stele restore DIR --store URL', and start the servers with that")
	}
	data, err := registry.RealFolder(s.o.Place.Folder)
	if err != nil {
		return nil, err
	}
	if confirm != filepath.Base(data) {
		return nil, refuse("restore", stele.Conflict, "restore.registry-name-wrong", `the registry here is not called "{name}"; give the name of its folder, without the folders it is in`, confirm)
	}
	b := &staging{server: s, data: data, folder: data + stagingMark + s.now().UTC().Format(folderMark)}
	if err := os.Mkdir(b.folder, 0o700); err != nil {
		return nil, refuse("restore", stele.Unavailable, "restore.backup-not-unpacked", "a backup can't be unpacked here: {cause}", err)
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
	closed bool // the unpacked registry is not open any more
}

// Folder is where it is unpacked.
func (b *staging) Folder() *os.Root { return b.root }

// reserve is how much room the backup must leave on the disk: the registry stays in use
// beside it, and both are opened.
const reserve = 256 << 20

// Room is how many bytes there are for it.
func (b *staging) Room() uint64 {
	free, _, err := disk.Space(b.folder)
	if err != nil { // writing will tell
		return 1 << 62
	}
	return free - min(free, reserve)
}

// Remove removes what is left of it.
func (b *staging) Remove() error { return errors.Join(b.root.Close(), os.RemoveAll(b.folder)) }

// swapPatience is how long requests under way have to end before the registry is replaced,
// and for how long the server tries to open it.
const swapPatience = 30 * time.Second

// Restore checks what was unpacked and puts it in the place of the registry. Until the
// pause begins the server goes on as before; from then on the restore does not depend on
// the client that asked for it.
func (b *staging) Restore(ctx context.Context, step func(string)) (done api.Restored, err error) {
	step("checking the backup")
	if registry.IsFolderBackup(b.folder) != nil {
		return done, refuse("restore", stele.Invalid, "restore.upload-not-a-backup", "this is not a backup of a registry: it has no manifest")
	}
	if err := disk.Sync(b.folder); err != nil {
		return done, refuse("restore", stele.Unavailable, "backup.not-writable", "the backup can't be written here: {cause}", err)
	}
	staged, err := b.open(ctx)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, b.close(staged)) }()
	step("asking the secondaries of zones for their serials")
	answers, err := registry.AskSecondaries(ctx, b.notify, staged.Store, b.generation.Load().registry.Store)
	if err != nil {
		return done, err
	}
	step("waiting for requests under way")
	old, open, err := b.pauseServer(ctx)
	if err != nil {
		return done, err
	}
	defer open()
	step("replacing the registry")
	ctx = auth.With(context.WithoutCancel(ctx), auth.Local())
	restore := &registry.Restore{OnDamaged: func(err error) {
		b.log.Error("the registry that is replaced is damaged, and nothing is known of it", "error", err.Error())
	}}
	report, err := restore.Inherit(ctx, staged, old.registry.Store, answers)
	if err != nil {
		return done, errors.Join(err, b.beginGeneration(old.registry))
	}
	done.Changes, done.Shut = report.Changes, report.Shut
	for _, z := range report.Zones {
		done.Zones = append(done.Zones, api.RestoredZone(z))
	}
	if err := b.close(staged); err != nil {
		return done, errors.Join(err, b.beginGeneration(old.registry))
	}
	done.Kept, err = b.replace(ctx, old)
	return done, err
}

// open opens the unpacked registry, and makes sure that it is whole.
func (b *staging) open(ctx context.Context) (*registry.Registry, error) {
	o := b.o.Open
	o.Log, o.Notify, o.Transfer, o.Brief, o.Create = b.log, &b.notify, &b.transfer, true, false
	r, err := registry.Open(ctx, registry.Place{Folder: b.folder}, b.schemes, o)
	if err != nil {
		return nil, refuse("restore", stele.Invalid, "restore.backup-not-opened", "this backup can't be opened: {cause}", stele.Reason(err))
	}
	err = r.CheckBackup(auth.With(ctx, auth.Local()))
	if err != nil {
		return nil, errors.Join(err, r.Store.Close())
	}
	return r, nil
}

// close closes the unpacked registry, if it is open.
func (b *staging) close(r *registry.Registry) error {
	if b.closed {
		return nil
	}
	b.closed = true
	return r.Store.Close()
}

// pauseServer waits until all requests except this one end, holds new ones back, and ends the
// background work of the registry. Open lets them in again; a generation must have begun by
// then.
func (b *staging) pauseServer(ctx context.Context) (old *generation, open func(), err error) {
	b.life.Lock() // the server does not end meanwhile
	if b.ending.Load() {
		b.life.Unlock()
		return nil, nil, refuse("restore", stele.Unavailable, "restore.server-ending", "the server is about to end; restore when it runs again")
	}
	old = b.generation.Load()
	close(old.ending)
	opened, err := b.pause.begin(ctx, swapPatience)
	b.endGeneration(context.WithoutCancel(ctx), old)
	if err != nil {
		err = errors.Join(err, b.beginGeneration(old.registry))
		b.life.Unlock()
		return nil, nil, err
	}
	return old, func() {
		opened()
		b.life.Unlock()
	}, nil
}

// replace puts the staged folder in the place of the registry, which it closes, and begins a
// generation. If it can't, the old registry stays in use; if not even that is possible the
// server ends.
func (b *staging) replace(ctx context.Context, old *generation) (kept string, err error) {
	if err := b.leaveDNS(ctx); err != nil {
		b.log.Error("the name server did not end well", "error", err.Error())
	}
	if err := old.registry.Close(); err != nil {
		b.log.Error("the registry that is replaced was not closed well", "error", err.Error())
	}
	mark := b.now().UTC().Format("20060102T150405Z")
	restored := disk.FreeName(b.data + ".restored-" + mark)
	release, err := pebble.Hold(b.data, pebble.Options{Now: b.now, Log: b.log})
	if err == nil {
		// From here on this may be the old registry, which is never removed.
		if err = os.Rename(b.folder, restored); err == nil {
			kept, err = registry.ReplaceFolder(restored, b.data, mark)
		}
		err = errors.Join(err, release())
	}
	r, oerr := b.reopen(ctx)
	if oerr == nil {
		oerr = b.takeUp(r)
	}
	if oerr != nil {
		b.failed <- oerr
	}
	return kept, errors.Join(err, oerr)
}

// reopen opens the registry in the data folder. It waits for another process that looks at
// the folder at that moment.
func (s *server) reopen(ctx context.Context) (*registry.Registry, error) {
	ctx, cancel := context.WithTimeout(ctx, swapPatience)
	defer cancel()
	for {
		r, err := s.openRegistry(ctx)
		if err == nil {
			s.readySecrets(ctx, r)
		}
		if err == nil || stele.KindOf(err) != stele.Unavailable || ctx.Err() != nil {
			return r, err
		}
		sleep(ctx, 100*time.Millisecond)
	}
}
