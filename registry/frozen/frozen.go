// Package frozen makes a registry of a bundle, to be served as a frozen archive: with the records, the namespaces and the log that the
// bundle has, sealed, so that nothing in it ever changes. It checks all of the bundle before.
//
// The registry is one of this program's own, in a folder that is named after the digest of the bundle's file. A program that is killed
// while it makes one leaves a folder that the next run makes anew. Nothing is ever read from a registry that was not made to its end.
package frozen

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/transparency"
)

const opOpen = "serve bundle"

// Archive is the registry of a bundle.
type Archive struct {
	Place    registry.Place
	Head     bundle.Head
	Counts   bundle.Counts
	Manifest string // SHA-256 of the manifest, in hexadecimal digits
	Trusted  bool   // it was checked with a key that the caller trusts, and not only with the one that it has itself
	Log      *Log   // as the bundle has it
	Fresh    bool   // the registry was made by this call
}

// Options are how a bundle is opened.
type Options struct {
	Registry registry.OpenOptions // how the registry is opened to be filled
	Bundle   bundle.Options       // how the bundle is read; Visit is not called

	// Loading is called when all is checked, with how many versions there are, and returns what is called with how many were loaded
	// since; nil: nothing is called.
	Loading func(versions int64) (loaded func(versions int))
}

// What stands in the folder of an archive.
const (
	registryFolder = "registry"
	logFolder      = "log"
	madeFile       = "archive.json" // says that the registry was made to its end
	lockFile       = "lock"         // is locked while the registry is made
)

// made is what madeFile says.
type made struct {
	Form     int           `json:"form"`
	File     string        `json:"file"`    // SHA-256 of the bundle's file, in hexadecimal digits
	Checked  []string      `json:"checked"` // keys that the caller trusted when it was checked
	Trusted  bool          `json:"trusted"`
	Manifest string        `json:"manifest"`
	Head     bundle.Head   `json:"head"`
	Counts   bundle.Counts `json:"counts"`
	Note     string        `json:"note"`
	Eras     []bundle.Era  `json:"eras"`
	Keys     []bundle.Key  `json:"keys"` // of the log
}

// form is the number of what this program makes of a bundle: another one is made anew.
const form = 1

// Open makes sure that a folder has the registry of a bundle, and returns it. A bundle that was checked before, with the same keys, is
// known by the digest of its file. The caller opens the registry at its place.
func Open(ctx context.Context, file, folder string, o Options) (*Archive, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, disk.FileError(err)
	}
	defer func() { _ = in.Close() }()
	sum, err := digest(ctx, in)
	if err != nil {
		return nil, err
	}
	m := &maker{in: in, sum: sum, folder: filepath.Join(folder, "bundle-"+sum[:32]), o: o}
	if err := os.MkdirAll(m.folder, 0o700); err != nil {
		return nil, disk.FileError(err)
	}
	unlock, err := m.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	fresh, err := m.ready(ctx)
	if err != nil {
		return nil, err
	}
	return m.archive(fresh)
}

// digest returns the SHA-256 of a file, in hexadecimal digits.
func digest(ctx context.Context, in io.Reader) (string, error) {
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		n, err := in.Read(buf)
		_, _ = h.Write(buf[:n]) // it never fails
		switch {
		case errors.Is(err, io.EOF):
			return hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return "", disk.FileError(err)
		case ctx.Err() != nil:
			return "", ctx.Err()
		}
	}
}

// maker makes the registry of a bundle.
type maker struct {
	in     io.ReadSeeker
	sum    string // of the file
	folder string
	o      Options

	made   made
	spaces []*bundle.NamespaceVersion
	fixed  []bundle.Fixed
}

// lock makes sure that one process at a time makes the registry.
func (m *maker) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(m.folder, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, disk.FileError(err)
	}
	if err := disk.Lock(f); err != nil {
		_ = f.Close()
		return nil, failf(stele.Unavailable, "archive.being-made", `another process makes the registry of this bundle in "{folder}" now; wait until it is done, or name another folder with --data`, m.folder)
	}
	return func() { _ = f.Close() }, nil
}

// ready makes the registry, unless an earlier run did so.
func (m *maker) ready(ctx context.Context) (fresh bool, err error) {
	before, complete := m.before()
	if complete && slices.Equal(before.Checked, m.trusted()) {
		m.made = *before
		return false, nil
	}
	if !complete {
		for _, name := range []string{madeFile, registryFolder, logFolder} {
			if err := os.RemoveAll(filepath.Join(m.folder, name)); err != nil {
				return false, disk.FileError(err)
			}
		}
	}
	report, err := m.check(ctx, !complete)
	if err != nil {
		return false, err
	}
	if !complete {
		if err := m.load(ctx, report); err != nil {
			return false, err
		}
	}
	return !complete, m.finish()
}

// before returns what an earlier run has made, and whether it came to its end.
func (m *maker) before() (*made, bool) {
	text, err := os.ReadFile(filepath.Join(m.folder, madeFile))
	var before made
	if err != nil || json.Unmarshal(text, &before) != nil || before.Form != form || before.File != m.sum {
		return nil, false
	}
	return &before, registry.Place{Folder: filepath.Join(m.folder, registryFolder)}.Exists() == nil
}

// trusted returns the keys that the caller trusts.
func (m *maker) trusted() []string {
	list := []string{}
	for _, k := range m.o.Bundle.Keys {
		list = append(list, k.String())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// check checks all of the bundle. With keep it keeps what the registry is made of besides the records.
func (m *maker) check(ctx context.Context, keep bool) (*bundle.Report, error) {
	if _, err := m.in.Seek(0, io.SeekStart); err != nil {
		return nil, disk.FileError(err)
	}
	o := m.o.Bundle
	var keys []bundle.Key
	o.Visit = bundle.Visitor{Key: func(k *bundle.Key) error {
		if k.Log != "" {
			keys = append(keys, *k)
		}
		return nil
	}}
	if keep {
		o.Visit.Namespace = func(v *bundle.NamespaceVersion) error {
			m.spaces = append(m.spaces, v)
			return nil
		}
		o.Visit.Fixed = func(f *bundle.Fixed) error {
			m.fixed = append(m.fixed, *f)
			return nil
		}
		o.Visit.Tile = m.keepTile
	}
	again := sha256.New()
	report, err := bundle.Read(ctx, io.TeeReader(m.in, again), o)
	if err != nil {
		return nil, err
	}
	if hex.EncodeToString(again.Sum(nil)) != m.sum {
		return nil, failf(stele.Conflict, "archive.file-replaced", "the bundle was changed while it was read; give the command again")
	}
	m.made = made{
		Form: form, File: m.sum, Checked: m.trusted(), Trusted: report.Trusted, Manifest: hex.EncodeToString(report.Manifest[:]),
		Head: report.Head, Counts: report.Counts, Note: report.Note + report.Cosigned, Eras: report.Eras, Keys: keys,
	}
	return report, nil
}

// keepTile keeps a tile of the log as a file of its own.
func (m *maker) keepTile(id transparency.TileID, hashes []byte) error {
	name := filepath.Join(m.folder, logFolder, filepath.FromSlash(id.Path()))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return disk.FileError(err)
	}
	if err := os.WriteFile(name, hashes, 0o600); err != nil {
		return disk.FileError(err)
	}
	return nil
}

// finish notes that the registry was made to its end.
func (m *maker) finish() error {
	text, err := json.Marshal(&m.made)
	if err != nil {
		return failf(stele.Internal, "", "{cause}", err)
	}
	name := filepath.Join(m.folder, madeFile)
	part := name + ".part"
	if err := os.RemoveAll(part); err != nil {
		return disk.FileError(err)
	}
	if err := disk.CreatePrivate(part, text); err != nil {
		return err
	}
	if err := os.Rename(part, name); err != nil {
		return disk.FileError(err)
	}
	return disk.Sync(m.folder)
}

// archive returns what was made.
func (m *maker) archive(fresh bool) (*Archive, error) {
	log := &Log{folder: filepath.Join(m.folder, logFolder), note: m.made.Note, at: m.made.Head.At, size: m.made.Head.Changes}
	for _, e := range m.made.Eras {
		id, err := stele.ParseGenerationID(e.Generation)
		if err != nil {
			return nil, err
		}
		log.eras = append(log.eras, transparency.Era{Generation: id, Number: e.Number, Size: e.Size, Began: e.Began})
	}
	for _, k := range m.made.Keys {
		public, err := transparency.ParsePublicKey(k.Log)
		if err != nil {
			return nil, err
		}
		log.keys = append(log.keys, LogKey{PublicKey: public, Created: k.Created, Retired: k.Retired})
	}
	return &Archive{
		Place: registry.Place{Folder: filepath.Join(m.folder, registryFolder)}, Head: m.made.Head, Counts: m.made.Counts,
		Manifest: m.made.Manifest, Trusted: m.made.Trusted, Log: log, Fresh: fresh,
	}, nil
}

func failf(kind stele.Kind, code, text string, args ...any) error {
	return &stele.Error{Op: opOpen, Kind: kind, Err: stele.Messagef(code, text, args...)}
}
