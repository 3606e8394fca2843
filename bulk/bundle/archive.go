package bundle

import (
	"compress/gzip"
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
)

// MaxRecordsFile is how many bytes a file of records has at most.
const MaxRecordsFile = maxFileBytes + maxLine

// Files makes a bundle and calls each with its files, in their order, instead of writing an archive. The content can be read until
// each returns. [Archive] makes the archive of them.
func (j *Job) Files(ctx context.Context, each func(name string, size int64, in io.Reader) error) (*Written, error) {
	w := &writer{job: j, out: &outCounter{w: io.Discard}, each: each}
	if err := w.fix(ctx); err != nil {
		return nil, err
	}
	return w.all(ctx, nil)
}

// Archive writes the files of a bundle, which were kept one by one, as the one file that [Job.Write] would have written.
type Archive struct {
	out    *outCounter
	to     io.Writer // out, or z
	z      *gzip.Writer
	folder string
	mtime  int64
	size   int64 // of the file under way
	left   int64
}

// NewArchive begins the archive of a bundle. If it goes on with one that was interrupted after a file, begun is how many bytes that
// one has.
func NewArchive(out io.Writer, head *Head, packed bool, begun int64) *Archive {
	a := &Archive{out: &outCounter{w: out, n: begun}, folder: folderName(head.Origin), mtime: tarTime(head.At)}
	a.to = a.out
	if packed {
		a.z, _ = gzip.NewWriterLevel(a.out, gzip.DefaultCompression) // the level is one
		a.to = a.z
	}
	return a
}

// Begin begins a file. Invalid if bundles have no such file.
func (a *Archive) Begin(name string, size int64) error {
	p := rank(name)
	if p < 0 || len(a.folder)+1+len(name) > maxTarName || strings.ContainsAny(name, "\\\x00") {
		return (&fault{printable(name), 0, stele.Messagef("bundle.file-unknown", "bundles have no such file")}).told()
	}
	if size < 0 || size > parts[p].most {
		return (&fault{name, 0, stele.Messagef("bundle.file-too-long", "it has {size} bytes, which is more than such a file may have", size)}).told()
	}
	if a.z != nil {
		a.z.Reset(a.out)
	}
	a.size, a.left = size, size
	h := tarHeader(a.folder+"/"+name, size, a.mtime)
	if _, err := a.to.Write(h[:]); err != nil {
		return err
	}
	return a.endFile()
}

// Write writes a part of the file that was begun; [io.ErrShortWrite] if it has more than its size.
func (a *Archive) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if int64(len(p)) > a.left {
		return 0, io.ErrShortWrite
	}
	n, err := a.to.Write(p)
	if a.left -= int64(n); err == nil {
		err = a.endFile()
	}
	return n, err
}

// endFile ends the file under way, if it is complete.
func (a *Archive) endFile() error {
	if a.left > 0 {
		return nil
	}
	var zero [blockSize]byte
	if _, err := a.to.Write(zero[:padding(a.size)]); err != nil {
		return err
	}
	return a.endPiece()
}

func (a *Archive) endPiece() error {
	if a.z == nil {
		return nil
	}
	return a.z.Close()
}

// Size returns how many bytes were written; with those before it, if it went on.
func (a *Archive) Size() int64 { return a.out.n }

// End writes the end of the archive.
func (a *Archive) End() error {
	if a.z != nil {
		a.z.Reset(a.out)
	}
	var zero [2 * blockSize]byte
	if _, err := a.to.Write(zero[:]); err != nil {
		return err
	}
	return a.endPiece()
}

// TileOf returns the level and the number of a tile of the log that is full, and so never changes; false if a file is not one.
func TileOf(name string) (level string, n uint64, ok bool) {
	path, ok := strings.CutPrefix(name, fileLog+"tile/")
	level, number, ok2 := strings.Cut(path, "/")
	n, err := strconv.ParseUint(strings.NewReplacer("x", "", "/", "").Replace(number), 10, 64)
	return level, n, ok && ok2 && err == nil
}
