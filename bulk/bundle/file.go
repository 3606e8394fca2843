package bundle

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/transparency"
)

// A bundle is written to FILE.part, and FILE.part.mark says how far it is: a line of JSON about the bundle, and one for each file in it
// that is complete and on the disk. Both are gone when the bundle is complete.
const (
	partSuffix = ".part"
	markSuffix = ".part.mark"
)

// begun is the first line of a bookmark.
type begun struct {
	Form     int    `json:"form"`
	Head     Head   `json:"head"`
	Note     string `json:"note"`
	Cosigned string `json:"cosigned,omitempty"`
	Gzip     bool   `json:"gzip,omitempty"`
}

// marked is another line of a bookmark: a file in the bundle.
type marked struct {
	Name   string `json:"name"`
	Sum    string `json:"sum"`
	Size   int64  `json:"size"`
	End    int64  `json:"end"` // of the archive with it
	Next   place  `json:"next"`
	Counts Counts `json:"counts"`
}

// WriteFile writes a bundle to a file, which appears when it is complete. If an earlier run was interrupted, it goes on where that
// one was, with the state of the registry that that one began with; resumed reports so. With again it begins anew.
func (j *Job) WriteFile(ctx context.Context, path string, again bool) (done *Written, resumed bool, err error) {
	w := &writer{job: j}
	var from *place
	if !again {
		from = w.resume(ctx, path)
	}
	flags := os.O_RDWR | os.O_CREATE
	if from == nil {
		*w = writer{job: j}
		if err := w.fix(ctx); err != nil {
			return nil, false, err
		}
		w.out = &outCounter{}
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(path+partSuffix, flags, 0o600)
	if err != nil {
		return nil, false, disk.FileError(err)
	}
	done, err = w.toFile(ctx, f, path, from)
	err = errors.Join(err, f.Close())
	if err != nil {
		return nil, from != nil, err
	}
	if err := os.Rename(path+partSuffix, path); err != nil {
		return nil, from != nil, disk.FileError(err)
	}
	if err := disk.Sync(filepath.Dir(path)); err != nil { // a crash must not take the name away
		return nil, from != nil, disk.FileError(err)
	}
	_ = os.Remove(path + markSuffix) // without its .part it is not read again
	return done, from != nil, nil
}

// toFile writes the bundle, or the rest of it.
func (w *writer) toFile(ctx context.Context, f *os.File, path string, from *place) (*Written, error) {
	if err := f.Truncate(w.out.n); err != nil {
		return nil, disk.FileError(err)
	}
	if _, err := f.Seek(w.out.n, io.SeekStart); err != nil {
		return nil, disk.FileError(err)
	}
	buf := bufio.NewWriterSize(f, 256<<10)
	w.out.w = buf
	flags := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if from == nil {
		flags |= os.O_TRUNC
	}
	mark, err := os.OpenFile(path+markSuffix, flags, 0o600)
	if err != nil {
		return nil, disk.FileError(err)
	}
	defer func() { _ = mark.Close() }()
	if from == nil {
		if err := writeLine(mark, &begun{Form, w.head, w.note, w.cosigned, w.job.Gzip}); err != nil {
			return nil, err
		}
	}
	b := &bookmark{mark: mark, data: f, buf: buf}
	w.mark = b.note
	done, err := w.all(ctx, from)
	if err != nil {
		_ = b.keep() // what is not noted is written once more
		return nil, err
	}
	if err := errors.Join(buf.Flush(), f.Sync()); err != nil {
		return nil, disk.FileError(err)
	}
	return done, nil
}

// bookmark notes which files of the bundle are complete. A file is noted when it is on the disk; several are brought there at once,
// since a disk needs as long for a small one as for a large one.
type bookmark struct {
	mark, data *os.File
	buf        *bufio.Writer // to data
	held       []*marked     // not noted yet
	bytes      int64         // of them
}

func (b *bookmark) note(m *marked) error {
	b.held = append(b.held, m)
	if b.bytes += m.Size; b.bytes < maxFileBytes {
		return nil
	}
	return b.keep()
}

// keep notes the files that are held.
func (b *bookmark) keep() error {
	if err := errors.Join(b.buf.Flush(), b.data.Sync()); err != nil {
		return disk.FileError(err)
	}
	for _, m := range b.held {
		if err := writeLine(b.mark, m); err != nil {
			return err
		}
	}
	b.held, b.bytes = nil, 0
	return nil
}

func writeLine(f *os.File, v any) error {
	text, err := appendJSON(nil, v)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return disk.FileError(err)
	}
	return nil
}

// resume reads the bookmark of an earlier run. It returns nil if there is none, or if it is of another bundle.
func (w *writer) resume(ctx context.Context, path string) *place {
	mark, err := os.Open(path + markSuffix)
	if err != nil {
		return nil
	}
	defer func() { _ = mark.Close() }()
	in := bufio.NewReader(mark)
	var b begun
	if !readLine(in, &b) || b.Form != Form || b.Gzip != w.job.Gzip || !w.fits(ctx, &b) {
		return nil
	}
	w.head, w.note, w.cosigned = b.Head, b.Note, b.Cosigned
	var from *place
	var files []file
	for {
		var m marked
		if !readLine(in, &m) {
			break
		}
		f := file{name: m.Name}
		if n, err := hex.Decode(f.sum[:], []byte(m.Sum)); err != nil || n != len(f.sum) {
			break
		}
		files = append(files, f)
		if strings.HasPrefix(m.Name, "data/") {
			w.bytes += m.Size
		}
		if !strings.HasPrefix(m.Name, "data/records-") {
			if m.Name == fileUsage || m.Name == fileCounts {
				break
			}
			continue
		}
		w.number++
		from, w.counts, w.out = &m.Next, m.Counts, &outCounter{n: m.End}
		w.payload, w.tags = split(files)
	}
	if info, err := os.Stat(path + partSuffix); from == nil || err != nil || info.Size() < w.out.n {
		return nil
	}
	return from
}

// split divides files into those of the payload and others.
func split(files []file) (payload, tags []file) {
	for _, f := range files {
		if strings.HasPrefix(f.name, "data/") {
			payload = append(payload, f)
		} else {
			tags = append(tags, f)
		}
	}
	return payload, tags
}

// readLine reads a line that is complete.
func readLine(in *bufio.Reader, v any) bool {
	text, err := in.ReadBytes('\n')
	return err == nil && json.Unmarshal(text, v) == nil
}

// fits reports whether the bundle that was begun is the one that is asked for, and the registry still has what it is of.
func (w *writer) fits(ctx context.Context, b *begun) bool {
	status, err := w.job.Log.Status(ctx)
	if (b.Head.UsageUntil != "") != (w.job.Usage != nil) {
		return false
	}
	if err != nil || len(status.Eras) == 0 || status.Size < b.Head.Changes || status.Eras[len(status.Eras)-1].Generation.String() != b.Head.Generation {
		return false
	}
	var keys []stele.NamespaceKey
	for _, p := range b.Head.Prefixes {
		keys = append(keys, p.Key())
	}
	if _, _, err := transparency.OpenCheckpoint([]byte(b.Note), w.job.Keys.Public()); err != nil {
		return false
	}
	if w.job.From.All() && keys != nil || !w.job.From.All() && !slices.Equal(keys, w.job.From.Prefixes()) {
		return false
	}
	redacted, err := w.job.From.IsRedactedSince(ctx, b.Head.Changes) // files that are written may have the content
	return err == nil && !redacted
}

// TempFile makes a file for [Options.Temp], which has no name from the beginning.
func TempFile() (Temp, error) {
	f, err := os.CreateTemp("", "stele-bundle-*")
	if err != nil {
		return nil, disk.FileError(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(disk.FileError(err), f.Close())
	}
	return f, nil
}
