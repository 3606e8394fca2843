package bulk

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/stele-id/stele/internal/disk"
)

// Output is a file that appears when it is complete, or standard output.
type Output struct {
	io.Writer
	path    string // "" for standard output
	file    *os.File
	direct  bool           // the file has its name already
	closers []func() error // what must be flushed, the innermost last
}

// CreateOutput opens a temporary file beside the one with the path; [Output.End] renames it
// when it is complete. One that is named .gz or .zst is compressed. An empty path is standard
// output.
func CreateOutput(path string, stdout io.Writer) (*Output, error) {
	f := &Output{path: path}
	w := stdout
	if path != "" {
		file, err := f.open()
		if err != nil {
			return nil, disk.FileError(err)
		}
		f.file, w = file, file
	}
	buffered := bufio.NewWriterSize(w, 256<<10)
	f.Writer, f.closers = buffered, []func() error{buffered.Flush}
	switch filepath.Ext(path) {
	case ".gz":
		z := gzip.NewWriter(buffered)
		f.Writer, f.closers = z, []func() error{z.Close, buffered.Flush}
	case ".zst":
		z, err := zstd.NewWriter(buffered, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, f.End(err)
		}
		f.Writer, f.closers = z, []func() error{z.Close, buffered.Flush}
	}
	return f, nil
}

// open opens the file that is written. A device or a pipe is written to directly.
func (f *Output) open() (*os.File, error) {
	if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
		f.direct = true
		return os.OpenFile(f.path, os.O_WRONLY, 0)
	}
	return os.OpenFile(f.path+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

// End gives the file its final name, or removes it if the writer had an error, which End
// returns then.
func (f *Output) End(err error) error {
	for _, end := range f.closers {
		if err == nil {
			err = end()
		}
	}
	if f.file == nil {
		return err
	}
	if f.direct {
		return errors.Join(err, f.file.Close())
	}
	if err == nil {
		err = f.file.Sync()
	}
	err = errors.Join(err, f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.file.Name()))
	}
	return nil
}
