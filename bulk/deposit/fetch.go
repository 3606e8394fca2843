package deposit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/internal/disk"
)

// A bundle is fetched to FILE.part, and FILE.part.mark says how far it is. Both are gone when the bundle is complete.
const (
	partSuffix = ".part"
	markSuffix = ".part.mark"
	syncBytes  = 16 << 20 // after so many bytes it is noted how far it is
)

// fetchMark is what FILE.part.mark has.
type fetchMark struct {
	List    string `json:"list"`
	Gzip    bool   `json:"gzip"`
	Objects int    `json:"objects"` // that are in the file
	End     int64  `json:"end"`     // of the file with them
}

// Fetch writes the bundle of the deposit to a file, which appears when it is complete and [bundle.Read] has found it whole. If an
// earlier run was interrupted it goes on where that one was; resumed reports so.
func (b *Rebuild) Fetch(ctx context.Context, path string, packed bool, o bundle.Options) (report *bundle.Report, resumed bool, err error) {
	f, err := os.OpenFile(path+partSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, disk.FileError(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	mark := readMark(path+markSuffix, b.List, packed)
	if info, err := f.Stat(); err != nil || info.Size() < mark.End {
		mark.Objects, mark.End = 0, 0
	}
	if err := b.toFile(ctx, f, path, mark); err != nil {
		return nil, mark.Objects > 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, mark.Objects > 0, disk.FileError(err)
	}
	report, err = bundle.Read(ctx, bufio.NewReaderSize(f, 256<<10), o)
	if err == nil {
		err = b.compare(report)
	}
	if err != nil {
		if ctx.Err() == nil {
			_ = os.Remove(path + markSuffix) // what is there is not what it should be: it is fetched anew
		}
		return nil, mark.Objects > 0, err
	}
	if err := os.Rename(path+partSuffix, path); err != nil {
		return nil, mark.Objects > 0, disk.FileError(err)
	}
	if err := disk.Sync(filepath.Dir(path)); err != nil { // a crash must not take the name away
		return nil, mark.Objects > 0, disk.FileError(err)
	}
	_ = os.Remove(path + markSuffix) // without its .part it is not read again
	return report, mark.Objects > 0, nil
}

// readMark reads how far an earlier run was; the beginning if it was one of another deposit, or there was none.
func readMark(path string, l *List, packed bool) fetchMark {
	none := fetchMark{List: l.Name, Gzip: packed}
	text, err := disk.ReadSome(path, 4096)
	var m fetchMark
	if err != nil || json.Unmarshal(bytes.TrimSpace(text), &m) != nil {
		return none
	}
	if m.List != none.List || m.Gzip != none.Gzip || m.Objects < 0 || m.Objects > len(l.Objects) || m.End < 0 {
		return none
	}
	return m
}

// toFile writes the bundle, or the rest of it.
func (b *Rebuild) toFile(ctx context.Context, f *os.File, path string, mark fetchMark) error {
	if err := f.Truncate(mark.End); err != nil {
		return disk.FileError(err)
	}
	if _, err := f.Seek(mark.End, io.SeekStart); err != nil {
		return disk.FileError(err)
	}
	buf := bufio.NewWriterSize(f, 256<<10)
	archive := bundle.NewArchive(buf, &b.List.Bundle, mark.Gzip, mark.End)
	kept := mark
	keep := func() error {
		if err := errors.Join(buf.Flush(), f.Sync()); err != nil {
			return disk.FileError(err)
		}
		kept = mark
		return writeMark(path+markSuffix, &mark)
	}
	again := *b
	again.After = func(objects int) error {
		mark.Objects, mark.End = objects, archive.Size()
		if mark.End-kept.End < syncBytes {
			return nil
		}
		return keep()
	}
	err := again.write(ctx, mark.Objects, archive)
	if err != nil {
		if mark != kept {
			_ = keep() // what is not noted is fetched once more
		}
		return err
	}
	return keepAll(buf, f)
}

func keepAll(buf *bufio.Writer, f *os.File) error {
	if err := errors.Join(buf.Flush(), f.Sync()); err != nil {
		return disk.FileError(err)
	}
	return nil
}

func writeMark(path string, m *fetchMark) error {
	text, err := appendLine(nil, m)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return disk.FileError(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return disk.FileError(err)
	}
	return nil
}
