package mem

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/stele-id/stele"
)

// backupFile is the one file of a backup: saved changes in their order, one that
// has minters, cells and seal only, and the SHA-256 of it all.
const backupFile = "registry.mem"

// saved is an entry of a backup.
type saved struct {
	Body        []byte
	IsNamespace bool
	At          time.Time
	Counted     stele.NamespaceKey
	Aliases     []stele.NamespaceKey // for which new aliases count

	IsLast  bool
	Minters map[string][]byte
	Cells   map[string][]byte
	Seal    string
	Trimmed uint64 // how many entries of the audit trail were trimmed
	Audit   []savedAudit
	Zones   []stele.ZoneState
	Runs    map[string]uint64

	Generations []byte // as text; none in a backup from before there were any
}

// savedAudit is an entry of the audit trail in a backup.
type savedAudit struct {
	At   time.Time
	Body []byte
}

// Backup implements [stele.Store]. The folder must not be there yet.
func (s *Store) Backup(ctx context.Context, folder string) error {
	st, err := s.view(ctx, "backup")
	if err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return refuse("backup", stele.ID{}, stele.Invalid, "backup.needs-new-folder", "the backup needs a folder that is not there yet: {cause}", err)
	}
	if err := st.save(ctx, filepath.Join(folder, backupFile)); err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	return nil
}

// save writes the state to a new file.
func (st *state) save(ctx context.Context, name string) (err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return refuse("backup", stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	enc := gob.NewEncoder(io.MultiWriter(f, sum))
	for _, e := range st.journal {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := enc.Encode(saved{Body: e.body, IsNamespace: e.isNamespace(), At: e.At, Counted: e.Counted, Aliases: e.CountedAliases}); err != nil {
			return refuse("backup", stele.ID{}, stele.Unavailable, "", "{cause}", err)
		}
	}
	last := saved{IsLast: true, Minters: make(map[string][]byte), Cells: make(map[string][]byte), Seal: st.seal, Trimmed: st.trail.before}
	for _, e := range st.trail.entries {
		last.Audit = append(last.Audit, savedAudit{e.at, e.body})
	}
	for name, kept := range st.minters.from("") {
		last.Minters[name] = kept
	}
	for name, kept := range st.cells.from("") {
		last.Cells[name] = kept
	}
	for _, z := range st.zones.from("") {
		last.Zones = append(last.Zones, z)
	}
	last.Runs = make(map[string]uint64)
	for key, first := range st.runs.from("") {
		last.Runs[key] = first
	}
	if last.Generations, err = st.generations.MarshalText(); err != nil {
		return err
	}
	if err := enc.Encode(last); err != nil {
		return refuse("backup", stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	if _, err := f.Write(sum.Sum(nil)); err != nil {
		return refuse("backup", stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	return f.Sync()
}

// Open returns a store with what Backup wrote to the folder. NotFound if there is
// no backup, Internal if it is damaged. The folder is not used after that.
func Open(folder string, now func() time.Time) (*Store, error) {
	data, err := os.ReadFile(filepath.Join(folder, backupFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, refuse("open", stele.ID{}, stele.NotFound, "backup.missing", `there is no backup in "{folder}": {cause}`, folder, err)
	} else if err != nil {
		return nil, refuse("open", stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	at := max(0, len(data)-sha256.Size)
	if sum := sha256.Sum256(data[:at]); !bytes.Equal(sum[:], data[at:]) {
		return nil, refuse("open", stele.ID{}, stele.Internal, "backup.damaged", `the backup in "{folder}" is damaged; take another one`, folder)
	}
	st := new(state)
	dec := gob.NewDecoder(bytes.NewReader(data[:at]))
	for {
		var e saved
		if err := dec.Decode(&e); err != nil {
			return nil, refuse("open", stele.ID{}, stele.Internal, "backup.unreadable", `the backup in "{folder}" is damaged: {cause}`, folder, err)
		}
		if e.IsLast {
			for name, kept := range e.Minters {
				st.minters = st.minters.with(name, append([]byte{}, kept...))
			}
			for name, kept := range e.Cells {
				st.cells = st.cells.with(name, append([]byte{}, kept...))
			}
			for _, z := range e.Zones {
				st.zones = st.zones.with(z.Zone, z)
			}
			for key, first := range e.Runs {
				st.runs = st.runs.with(key, first)
			}
			st.seal, st.trail.before = e.Seal, e.Trimmed
			for _, kept := range e.Audit {
				st.trail.entries = append(st.trail.entries, auditEntry{kept.At, kept.Body})
			}
			if e.Generations == nil {
				st.generations = stele.FirstGeneration(now())
			} else if err := st.generations.UnmarshalText(e.Generations); err != nil {
				return nil, err
			}
			return newStore(now, st), nil
		}
		if err := st.replay(e.Body, e.IsNamespace, stele.Change{At: e.At, Counted: e.Counted, CountedAliases: e.Aliases}); err != nil {
			return nil, refuse("open", stele.ID{}, stele.Internal, "backup.unreadable", `the backup in "{folder}" is damaged: {cause}`, folder, err)
		}
	}
}
