package registry

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/registrar"
	storecopy "github.com/stele-id/stele/store/copy"
	"github.com/stele-id/stele/store/pebble"
	"github.com/stele-id/stele/store/postgres"
)

// Restore replaces a registry by a backup.
type Restore struct {
	Schemes *stele.Schemes
	Open    OpenOptions // of the restored registry and of the one that it replaces; without Create

	AcceptTokens bool    // leave tokens valid where no replaced registry knows which were revoked
	SerialFloor  *uint32 // that serials of restored zones exceed; nil if it is not known

	// Ask asks the secondaries of all zones of some stores for their serials.
	Ask func(ctx context.Context, stores ...stele.Store) ([]stele.SecondaryAnswer, error)

	// OnDamaged is called if the registry that is replaced can't be read, which may be why a
	// backup is restored.
	OnDamaged func(err error)

	// Look, if it is not nil, is called with the restored registry before it is closed.
	Look func(ctx context.Context, r *Registry) error
}

// RestoreReport is what a restore did.
type RestoreReport struct {
	Kept    string   // where the registry is that was replaced; "" if none was
	Changes uint64   // that the restored registry has
	Shut    []string // namespaces whose templates are shut

	// Unknown says that there was no registry to replace, or that it could not be read: then
	// decisions made since the backup, whose last change was made at Since, are not known.
	Unknown    bool
	Since      time.Time
	TokensShut bool

	Zones []RestoredZone
}

// RestoredZone is what a restore made of a zone that has secondaries or is shut.
type RestoredZone struct {
	Zone        string
	Serial      uint32
	Shut        bool
	Secondaries []stele.SecondaryAnswer // compared with Serial
}

// Folder replaces the registry in the folder data, which is kept under another name, by a
// backup. The backup is not changed.
func (o *Restore) Folder(ctx context.Context, backup, data string) (report RestoreReport, err error) {
	if err := IsFolderBackup(backup); err != nil {
		return report, err
	}
	if data, err = RealFolder(data); err != nil {
		return report, err
	}
	if same, err := sameFolder(backup, data); err != nil || same {
		return report, errors.Join(err, failf("restore", stele.Invalid, "restore.from-registry-itself", "{folder} is the registry itself, not a backup of it", backup))
	}
	mark := o.Open.Now().UTC().Format(restoreMark)
	staged := disk.FreeName(data + ".restored-" + mark)
	report, release, err := o.stage(ctx, backup, staged, data)
	if err != nil {
		return report, errors.Join(err, os.RemoveAll(staged))
	}
	defer func() { err = errors.Join(err, release()) }()
	report.Kept, err = ReplaceFolder(staged, data, mark)
	return report, err
}

// restoreMark is the time in the name of a folder that a restore made.
const restoreMark = "20060102T150405Z"

// IsFolderBackup returns an error if a folder can't be the backup of a registry in a
// folder.
func IsFolderBackup(folder string) error {
	found, err := filepath.Glob(filepath.Join(folder, "MANIFEST-*"))
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return nil
	}
	if _, err := os.Stat(folder); err != nil {
		return disk.FileError(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "manifest.json")); err == nil {
		return failf("restore", stele.Invalid, "restore.backup-of-database-into-folder", "{folder} is a backup of a database; restore it into an empty one with --store, and 'stele store copy' moves it to a folder", folder)
	}
	return failf("restore", stele.Invalid, "restore.folder-not-a-backup", "{folder} is not a backup of a registry: it has no manifest", folder)
}

// RealFolder returns the absolute name of a folder, without symbolic links.
func RealFolder(folder string) (string, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	return folder, nil
}

// openOld opens the registry that is replaced, so that no other process uses it
// meanwhile. It returns nil if there is none, or if it can't be read.
func (o *Restore) openOld(ctx context.Context, data string) (stele.Store, error) {
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) || IsFolderBackup(data) != nil {
		return nil, nil
	}
	old, err := Place{Folder: data}.OpenStore(ctx, o.brief())
	if err != nil && stele.KindOf(err) == stele.Internal {
		o.OnDamaged(err)
		return nil, nil
	}
	return old, err
}

// brief returns the options for a registry that the restore opens and closes.
func (o *Restore) brief() OpenOptions {
	open := o.Open
	open.Brief, open.Create = true, false
	return open
}

// holdOld closes the registry that is replaced, if it is open, and keeps other processes
// out of its folder.
func (o *Restore) holdOld(old stele.Store, data string) (release func() error, err error) {
	if old != nil {
		if err := old.Close(); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		return func() error { return nil }, nil
	}
	return pebble.Hold(data, pebble.Options{Now: o.Open.Now, Log: o.Open.Log})
}

// stage makes a verified copy of the backup that is safe to use in the place of the
// registry in the folder data, which no other process uses until release.
func (o *Restore) stage(ctx context.Context, backup, staged, data string) (report RestoreReport, release func() error, err error) {
	old, err := o.openOld(ctx, data)
	if err != nil {
		return report, nil, err
	}
	defer func() {
		if old != nil && err != nil {
			err = errors.Join(err, old.Close())
		}
	}()
	if err := copyFolder(ctx, backup, staged); err != nil {
		return report, nil, failf("restore", stele.Unavailable, "restore.backup-not-copied", "the backup can't be copied: {cause}", err)
	}
	report, err = o.adopt(ctx, Place{Folder: staged}, o.brief(), backup, old)
	if err != nil {
		return report, nil, err
	}
	if release, err = o.holdOld(old, data); err != nil {
		old = nil // it is closed
	}
	return report, release, err
}

// adopt opens a copy of a backup, verifies it, and makes it safe to use in the place of
// the registry old, which may be nil.
func (o *Restore) adopt(ctx context.Context, at Place, open OpenOptions, backup string, old stele.Store) (report RestoreReport, err error) {
	r, err := Open(ctx, at, o.Schemes, open)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	reason, err := r.Store.Sealed(ctx)
	if err == nil {
		err = refuseSealed(backup, reason)
	}
	if err != nil {
		return report, err
	}
	consequence := ", and was not restored"
	if at.IsDatabase() {
		consequence = ", and so is what was restored; drop the database, and restore another backup"
	}
	if err := r.verifyWhole(ctx, stele.Internal, consequence); err != nil {
		return report, err
	}
	answers, err := o.Ask(ctx, r.Store, old)
	if err != nil {
		return report, err
	}
	if report, err = o.Inherit(ctx, r, old, answers); err != nil {
		return report, err
	}
	if o.Look != nil {
		if err := o.Look(ctx, r); err != nil {
			return report, err
		}
	}
	if !open.Unfinished {
		return report, nil
	}
	return report, storecopy.RemoveMark(ctx, r.Store)
}

// verifyWhole returns an error of a kind if the copy of a backup is damaged.
func (r *Registry) verifyWhole(ctx context.Context, kind stele.Kind, consequence string) error {
	var first *stele.Message
	problems := 0
	err := r.Inspect(ctx, Inspection{Problem: func(problem *stele.Message) {
		if problems++; problems == 1 {
			first = problem
		}
	}})
	if err == nil && problems > 0 {
		err = failf("restore", kind, "restore.backup-damaged", "the backup is damaged{consequence}; {count} problems, the first: {cause}", consequence, problems, first)
	}
	return err
}

// CheckBackup returns an error if an open copy of a backup is of a sealed registry, or
// damaged.
func (r *Registry) CheckBackup(ctx context.Context) error {
	reason, err := r.Store.Sealed(ctx)
	if err == nil {
		err = refuseSealed("the backup", reason)
	}
	if err != nil {
		return err
	}
	return r.verifyWhole(ctx, stele.Invalid, ", and was not restored")
}

// refuseSealed refuses the backup of a registry that had moved: two registries would make
// the same names.
func refuseSealed(backup, reason string) error {
	if reason == "" {
		return nil
	}
	return failf("restore", stele.Conflict, "restore.backup-of-sealed-registry", "{backup} is of a registry that was sealed ({reason}); restore a backup of that one, or one from before", backup, reason)
}

// Database puts the backup of a database into the empty database at a URL. Present is the
// registry that it replaces, or the zero Place; it is sealed.
func (o *Restore) Database(ctx context.Context, url, backup string, present Place) (report RestoreReport, err error) {
	reason, err := postgres.BackupSeal(backup)
	if err == nil {
		err = refuseSealed(backup, reason)
	}
	if err != nil {
		return report, err
	}
	mark, err := (&storecopy.Mark{From: backup, Backup: true, Began: o.Open.Now()}).Cell()
	if err != nil {
		return report, err
	}
	at := Place{URL: url}
	old, end, err := o.sealPresent(ctx, present, at)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, end(err)) }()
	// Until the restore is done the mark makes all other processes refuse the registry.
	if err := postgres.Restore(ctx, url, backup, postgres.Options{Now: o.Open.Now, Log: o.Open.Log, Brief: true}, mark); err != nil {
		return report, err
	}
	open := o.brief()
	open.Unfinished = true
	return o.adopt(ctx, at, open, backup, old)
}

// sealPresent opens the registry that a database replaces, and seals it: later changes in
// it would be lost, and names that it still minted would be minted again. It returns nil
// if present is the zero Place. End closes it; after an error it removes the seal.
func (o *Restore) sealPresent(ctx context.Context, present, next Place) (old stele.Store, end func(error) error, err error) {
	if present == (Place{}) {
		return nil, func(error) error { return nil }, nil
	}
	if !present.IsDatabase() {
		if err := IsFolderBackup(present.Folder); err != nil {
			return nil, nil, err
		}
	}
	if old, err = present.OpenStore(ctx, o.brief()); err != nil {
		return nil, nil, err
	}
	had, err := old.Sealed(ctx)
	if err == nil && had == "" {
		err = old.Seal(ctx, "a backup took its place, in "+next.String())
	}
	if err != nil {
		return nil, nil, errors.Join(err, old.Close())
	}
	return old, func(failed error) (err error) {
		if failed != nil && had == "" {
			err = old.Seal(context.WithoutCancel(ctx), "")
		}
		return errors.Join(err, old.Close())
	}, nil
}

// Inherit makes a restored registry safe to use in the place of the present one, which is
// nil if there is none or it can't be read. Answers are those of the secondaries of both.
// Every kind of restore calls it.
func (o *Restore) Inherit(ctx context.Context, r *Registry, present stele.Store, answers []stele.SecondaryAnswer) (report RestoreReport, err error) {
	var left registrar.Legacy
	if present != nil {
		left, err = registrar.ReadLegacy(ctx, present, r.Store)
		if stele.KindOf(err) == stele.Internal && err != nil {
			o.OnDamaged(err)
			left = registrar.Legacy{}
		} else if err != nil {
			return report, err
		}
	}
	left.AcceptTokens, left.SerialFloor, left.Answers = o.AcceptTokens, o.SerialFloor, answers
	at, err := r.lastTime(ctx)
	if err != nil {
		return report, err
	}
	if err := r.Registrar.Inherit(ctx, left); err != nil {
		return report, err
	}
	if !left.IsKnown() {
		report.Unknown, report.Since, report.TokensShut = true, at, !o.AcceptTokens
	}
	if report.Shut, err = r.shutNamespaces(ctx); err != nil {
		return report, err
	}
	if report.Zones, err = r.restoredZones(ctx, answers); err != nil {
		return report, err
	}
	report.Changes, err = r.Store.LastChange(ctx)
	return report, err
}

// lastTime returns when the last change was made; the zero time if there is none.
func (r *Registry) lastTime(ctx context.Context) (at time.Time, err error) {
	last, err := r.Store.LastChange(ctx)
	if err != nil || last == 0 {
		return at, err
	}
	for change, err := range r.Store.Changes(ctx, last-1) {
		return change.At.UTC(), err
	}
	return at, nil
}

// shutNamespaces returns the namespaces whose templates are shut, in order.
func (r *Registry) shutNamespaces(ctx context.Context) (list []string, err error) {
	for ns, err := range r.Registrar.Namespaces(ctx) {
		if err != nil {
			return nil, err
		}
		if ns.Minter.Kind != stele.MinterNOID {
			continue
		}
		status, err := r.Registrar.MinterStatus(ctx, ns.Key())
		if err != nil {
			return nil, err
		}
		if status.Shut {
			list = append(list, ns.Key().String())
		}
	}
	slices.Sort(list)
	return list, nil
}

// restoredZones returns the zones of a restored registry that have secondaries, and those
// that are shut.
func (r *Registry) restoredZones(ctx context.Context, answers []stele.SecondaryAnswer) (list []RestoredZone, err error) {
	byZone := make(map[string][]stele.SecondaryAnswer)
	for _, a := range answers {
		byZone[a.Zone] = append(byZone[a.Zone], a)
	}
	for state, err := range r.Registrar.ZoneStates(ctx) {
		if err != nil {
			return nil, err
		}
		if !state.Shut && len(byZone[state.Zone]) == 0 {
			continue
		}
		z := RestoredZone{Zone: state.Zone, Serial: state.Serial(), Shut: state.Shut}
		for _, a := range byZone[state.Zone] {
			z.Secondaries = append(z.Secondaries, a.Against(z.Serial))
		}
		list = append(list, z)
	}
	return list, nil
}

// ReplaceFolder replaces data, which is kept under the name that it returns, by the
// folder staged: data with ".before-" and the mark, which is a time. At every moment
// there is a registry in data, as far as the system can do that.
func ReplaceFolder(staged, data, mark string) (kept string, err error) {
	parent := filepath.Dir(data)
	// Two restores in a second keep two registries.
	kept = disk.FreeName(data + ".before-" + mark)
	if _, err := os.Stat(data); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(staged, data); err != nil {
			return "", err
		}
		return "", disk.Sync(parent)
	}
	err = disk.Exchange(staged, data)
	if errors.Is(err, errors.ErrUnsupported) {
		if err = os.Rename(data, kept); err == nil {
			if err = os.Rename(staged, data); err == nil {
				return kept, disk.Sync(parent)
			}
			err = errors.Join(err, os.Rename(kept, data))
		}
	}
	if err != nil {
		return "", errors.Join(failf("restore", stele.Unavailable, "restore.folder-not-replaced", "{folder} can't be replaced: {cause}; restore to another folder with --data", data, err), os.RemoveAll(staged))
	}
	// What was staged is data now, and the other way round.
	if err := disk.Sync(parent); err != nil {
		return staged, err
	}
	if err := os.Rename(staged, kept); err != nil {
		return staged, err
	}
	return kept, disk.Sync(parent)
}

// copyFolder copies the files of a folder to a new one, durably.
func copyFolder(ctx context.Context, from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case e.IsDir():
			err = copyFolder(ctx, source, target)
		case e.Type().IsRegular():
			err = copyFile(ctx, source, target)
		default:
			err = failf("restore", stele.Invalid, "restore.source-neither-file-nor-folder", "{source} is neither a file nor a folder, so this is not a backup", source)
		}
		if err != nil {
			return err
		}
	}
	return disk.Sync(to)
}

// copyFile copies a file to a new one, durably.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(out, in, 64<<20); err == io.EOF {
			return out.Sync()
		} else if err != nil {
			return err
		}
	}
}
