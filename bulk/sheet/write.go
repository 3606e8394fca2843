package sheet

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/internal/disk"
)

// mayWrite makes sure that no file is lost when the sheet is written to another one.
func (s *Sheet) mayWrite(j *journal) error {
	if s.output == s.path || s.o.DryRun {
		return nil
	}
	if _, err := os.Lstat(s.output); errors.Is(err, os.ErrNotExist) || j.began() && j.head.Output == s.output {
		return nil // if there is one, an earlier run has written it
	} else if err != nil {
		return disk.FileError(err)
	}
	return refuse(stele.Conflict, "mint.output-exists", "{output} exists already; name another file with --output, or move that one away", s.o.Output)
}

// otherRow is the error of a row that is not the one that got a name.
func (s *Sheet) otherRow(line int, id, journal string) error {
	return refuse(stele.Conflict, "mint.file-row-changed", "line {line} of {file} is not the row that got the name {id}, by {journal}: the file was changed since. Put it back as it was, and give the command again to go on; or put the names into it yourself, and move {journal} away",
		line, s.o.From, id, journal)
}

// write writes the sheet with the names of the journal: beside its place at first, and
// then into its place in one step. If that fails, what is there stays as it is.
func (s *Sheet) write(j *journal) error {
	part := s.output + ".part"
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return s.unwritten(err, j)
	}
	err = errors.Join(s.copyTo(out, j), out.Chmod(s.info.Mode().Perm()))
	disk.SameOwner(out, s.info)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = s.stillSame(j)
	}
	if err != nil {
		return errors.Join(s.unwritten(err, j), os.Remove(part))
	}
	if err := errors.Join(os.Rename(part, s.output), disk.Sync(filepath.Dir(s.output))); err != nil {
		return s.unwritten(err, j)
	}
	return nil
}

// stillSame makes sure that no other program wrote into the file meanwhile.
func (s *Sheet) stillSame(j *journal) error {
	changed, err := s.changed()
	if err == nil && changed {
		err = refuse(stele.Conflict, "mint.file-changed-meanwhile", "{file} was changed while its rows got names, so it is left as it is; the names are in {journal}. Give the command again to go on", s.o.From, j.path)
	}
	return err
}

func (s *Sheet) unwritten(err error, j *journal) error {
	if _, ok := errors.AsType[*stele.Error](err); ok {
		return err
	}
	return refuse(stele.Unavailable, "mint.output-not-written", "the names can't be written into {file}: {cause}. They are kept in {journal}; give the command again to go on", s.output, err, j.path)
}

// copyTo writes the sheet with the names of the journal.
func (s *Sheet) copyTo(file io.Writer, j *journal) error {
	r, err := s.read(nil)
	if err != nil {
		return err
	}
	defer r.close()
	out := bufio.NewWriterSize(file, 256<<10)
	head, err := r.head()
	if err != nil {
		return err
	}
	mark := r.rows.Decoder().Mark()
	if mark == nil && r.rows.Marked() {
		mark = []byte("\xef\xbb\xbf")
	}
	_, _ = out.Write(mark) // an error comes again
	_, _ = out.Write(r.rows.Before())
	if err := s.encode(out, r.rows.Decoder().Encoder(), head); err != nil {
		return err
	}
	for {
		row, err := r.next()
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		name := ""
		if entry, ok := j.entries[row.line]; ok && row.name == "" {
			if row.digest() != entry.Row {
				return s.otherRow(row.line, entry.ID, j.path)
			}
			name = bulk.Neutralise(entry.ID)
		}
		text, err := r.named(&row, name)
		if err == nil {
			err = s.encode(out, r.rows.Decoder().Encoder(), text)
		}
		if err != nil {
			return err
		}
	}
}

// encode writes a text in the encoding of the sheet.
func (s *Sheet) encode(out io.Writer, e bulk.Encoder, text []byte) error {
	coded, err := e.Append(nil, text)
	if err == nil {
		_, err = out.Write(coded)
	}
	return err
}
