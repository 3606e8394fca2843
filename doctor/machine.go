package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/secret"
	"github.com/stele-id/stele/server"
	"github.com/stele-id/stele/store/pebble"
)

// examineConfiguration reports what 'stele config check' would, and files that other users
// can read or change and should not.
func examineConfiguration(_ context.Context, x *subject) {
	if x.Away {
		return
	}
	for _, q := range x.Config.Problems {
		x.problem("put it right; 'stele config list' has all settings", "", "{cause}", q.Err())
	}
	for _, q := range x.Config.Warnings {
		x.warn("", "", "{cause}", q.Err())
	}
	x.examineFile("", 0o022, x.ConfigFile, "others may change it")
	x.examineFile("", 0o007, x.Config.TLSKey, "others may read the private key")
	for _, file := range x.Config.IssuerSecret {
		x.examineFile("", 0o007, file, "others may read the client secret")
	}
	x.examineFile("", 0o007, x.Config.MailPassword, "others may read the password at the mail server")
	x.examineSecretKey()
	before := x.problems
	if x.Config.TLSCert != "" && x.Config.TLSKey != "" {
		if _, err := server.ReadPair(x.Config.TLSCert, x.Config.TLSKey); err != nil {
			x.problem("put a certificate and its key there; until then the server shows the one it has, and does not start again", "", "{cause}", err)
		}
	}
	switch {
	case len(x.Config.Problems) > 0 || x.problems > before:
	case x.ConfigFile == "":
		x.ok("doctor.config-file-not-named", "no file is named, so the defaults and the environment hold; --config names one")
	default:
		x.ok("doctor.config-good", "nothing is wrong in {file}", x.ConfigFile)
	}
}

// examineSecretKey reports whether the keys that encrypt secrets can be read.
func (x *subject) examineSecretKey() {
	_, err := x.Secrets.Keys()
	switch {
	case errors.Is(err, secret.ErrNoKey) && x.Place.IsDatabase():
		x.warn("make one with 'stele secret keygen FILE', and name the file with secret-key-file on each server", "doctor.secret-key-missing", "no secret key is given, so no zone can be signed with new keys")
	case err != nil && !errors.Is(err, secret.ErrNoKey):
		x.problem("docs/secrets.md tells what to do", "", "{cause}", err)
	}
}

// examineFile reports rights on a file that other users should not have.
func (x *subject) examineFile(do string, not fs.FileMode, file, what string) {
	if file == "" {
		return
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&not != 0 {
		if do == "" {
			do = fmt.Sprintf("chmod %04o %s", info.Mode().Perm()&^not, file)
		}
		x.problem(do, "", "{file}: {what} ({mode})", file, what, info.Mode().Perm())
	}
}

// examineFolder shows which user owns the folder of the registry, and which process has it
// open.
func examineFolder(_ context.Context, x *subject) {
	if x.Away {
		return
	}
	if x.Place.IsDatabase() {
		x.ok("doctor.folder-is-database", "there is none; the registry is in the database {database}, whose disk, rights and backups its own tools look after", x.Place)
		return
	}
	info, err := os.Stat(x.Place.Folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x.problem("name it with --data, or in the configuration", "doctor.registry-missing", "there is no registry in {folder}", x.Place.Folder)
		return
	case err != nil:
		x.problem("run this as the user of the server", "", "{cause}", err)
		return
	case !info.IsDir():
		x.problem("name the folder with --data, or in the configuration", "doctor.not-a-folder", "{folder} is not a folder", x.Place.Folder)
		return
	}
	before := x.problems
	x.examineFile("", 0o022, x.Place.Folder, "others may change the registry")
	if info.Mode().Perm()&0o007 != 0 {
		x.warn(fmt.Sprintf("chmod o-rwx %s", x.Place.Folder), "doctor.registry-readable-by-all", "every user of this machine may read the registry, including restricted records")
	}
	pid, since := x.holder()
	switch {
	case x.problems > before:
	case pid != 0:
		x.ok("doctor.folder-in-use", "{folder}, open in process {pid} since {since}", x.Place.Folder, pid, since)
	default:
		x.ok("doctor.folder-not-in-use", "{folder}, not in use", x.Place.Folder)
	}
}

// examineDisk reports how much room there is. The store becomes read-only when the reserve is
// reached; it needs as much as the registry has, for a while, when it compacts all of it.
func examineDisk(_ context.Context, x *subject) {
	if x.Away || x.Place.IsDatabase() {
		return
	}
	free, total, err := disk.Space(x.Place.Folder)
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrNotExist) {
			x.warn("", "doctor.disk-room-unknown", "how much room there is can't be told: {cause}", err)
		}
		return
	}
	x.judgeRoom(free, total, seenSize(x.Place.Folder))
}

// judgeRoom judges how much of a disk is free, beside a registry of some size.
func (x *subject) judgeRoom(free, total, size uint64) {
	room := stele.Messagef("doctor.disk-room", "{free} of {total} are free, the registry has {size}", shortBytes(free), shortBytes(total), shortBytes(size))
	const more = "remove what does not belong there, or enlarge the disk; docs/bad-day.md has the steps"
	switch {
	case free < pebble.DefaultReserve:
		x.problem(more, "doctor.disk-nearly-full", "{cause}; nothing is written any more below {reserve}", room, shortBytes(pebble.DefaultReserve))
	case free < 4*pebble.DefaultReserve || free < total/20:
		x.warn(more, "doctor.disk-nearly-full", "{cause}; nothing is written any more below {reserve}", room, shortBytes(pebble.DefaultReserve))
	case free < size:
		x.warn(more, "doctor.disk-may-fill", "{cause}, which may need as much again for a while, and for a backup on this disk", room)
	default:
		x.ok("", "{cause}", room)
	}
}

// seenSize adds up the files in a folder, as far as they can be seen: a server adds and
// removes some meanwhile.
func seenSize(folder string) (size uint64) {
	_ = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error { // files that can't be seen are not counted
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			size += uint64(info.Size())
		}
		return nil
	})
	return size
}

// shortBytes writes a number of bytes for people.
func shortBytes(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// spareDescriptors is how many files the registry may have open beside connections.
const spareDescriptors = 2048

// examineDescriptors reports whether the server may have as many connections open as the
// configuration lets in.
func examineDescriptors(_ context.Context, x *subject) {
	pid, _ := x.holder()
	if x.Away || pid == 0 {
		return
	}
	limit, err := descriptorLimit(pid)
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) {
			x.warn("run this as the user of the server", "doctor.open-files-unknown", "how many files process {pid} may open can't be told: {cause}", pid, err)
		}
		return
	}
	if need := uint64(x.Config.MaxConnections) + spareDescriptors; limit < need {
		x.warn(fmt.Sprintf("set LimitNOFILE=%d in the unit, or a smaller max-connections", need), "doctor.open-files-too-few", "process {pid} may have {limit} files open, and max-connections is {connections}", pid, limit, x.Config.MaxConnections)
		return
	}
	x.ok("doctor.open-files-enough", "process {pid} may have {limit} files open", pid, limit)
}

// How old a backup may be.
const (
	backupLate = 2 * 24 * time.Hour
	backupLost = 8 * 24 * time.Hour
)

// examineBackup reports how old the newest backup is.
func examineBackup(_ context.Context, x *subject) {
	const do = "stele backup FOLDER makes one; docs/running.md has a timer for it"
	if x.Backup == "" {
		x.warn("name it with --backup", "doctor.backups-not-examined", "backups were not examined: it is not known where they are")
		return
	}
	entries, err := os.ReadDir(x.Backup)
	if err != nil {
		x.problem(do, "", "{cause}", err)
		return
	}
	var newest time.Time
	name := ""
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
			newest, name = info.ModTime(), e.Name()
		}
	}
	age := x.Now().Sub(newest)
	switch {
	case name == "":
		x.problem(do, "doctor.backup-missing", "there is no backup in {folder}", x.Backup)
	case age > backupLost:
		x.problem(do, "doctor.backup-old", "the newest backup, {backup}, is {days} days old", name, fmt.Sprintf("%d", age/(24*time.Hour)))
	case age > backupLate:
		x.warn(do, "doctor.backup-old", "the newest backup, {backup}, is {days} days old", name, fmt.Sprintf("%d", age/(24*time.Hour)))
	default:
		x.ok("doctor.backup-recent", "the newest, {backup}, is {hours} hours old", name, fmt.Sprintf("%d", age/time.Hour))
	}
}
