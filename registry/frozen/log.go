package frozen

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/transparency"
)

// Log is the transparency log of the registry that made the bundle: its last checkpoint, and the tiles that the bundle has. It has no
// entries: what they say of a name, its history says.
type Log struct {
	folder string
	note   string
	at     time.Time
	size   uint64
	eras   []transparency.Era
	keys   []LogKey
}

// LogKey is a public key of the log.
type LogKey struct {
	transparency.PublicKey
	Created, Retired time.Time
}

// Keys returns the keys that the bundle has, the oldest first.
func (l *Log) Keys() []LogKey { return l.keys }

// Shown returns the checkpoint.
func (l *Log) Shown(context.Context) (transparency.Published, error) {
	return transparency.Published{Note: l.note, At: l.at}, nil
}

// Status returns how far the log is.
func (l *Log) Status(context.Context) (transparency.Status, error) {
	return transparency.Status{Size: l.size, Changes: l.size, Eras: l.eras}, nil
}

// Tile returns hashes of the tree. NotFound if the bundle does not have them: one of some names has the tiles that prove these.
func (l *Log) Tile(_ context.Context, level int, n uint64, width int) ([]byte, error) {
	hashes := l.size >> (8 * level)
	if n*transparency.TileWidth >= hashes {
		return nil, errNotBundled
	}
	id := transparency.TileID{Level: level, N: n, Width: int(min(hashes-n*transparency.TileWidth, transparency.TileWidth))}
	data, err := os.ReadFile(filepath.Join(l.folder, filepath.FromSlash(id.Path())))
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(data) < width*sha256.Size:
		return nil, errNotBundled
	case err != nil:
		return nil, disk.FileError(err)
	}
	return data[:width*sha256.Size], nil
}

// Entries returns NotFound.
func (l *Log) Entries(context.Context, uint64, int) ([]byte, error) { return nil, errNotBundled }

var errNotBundled = &stele.Error{Op: "read log", Kind: stele.NotFound, Err: stele.Messagef("archive.log-part-missing", "the archive does not have this part of the log: a bundle has the checkpoint and the tiles that prove its names, and no entries")}
