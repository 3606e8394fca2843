package postgres

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// BackupContents is what a backup says of itself.
type BackupContents struct {
	Taken   time.Time
	Changes uint64
	Rows    int64 // of all tables
	Seal    string
}

// IsBackup reports whether a folder is a backup of a database. It reads the beginning of
// one file.
func IsBackup(folder string) bool {
	f, err := os.Open(filepath.Join(folder, manifestFile))
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head) // a short file is not a manifest
	return strings.Contains(string(head[:n]), `"stele postgres backup `)
}

// VerifyBackup checks what Backup wrote to a folder, without a database: that all files
// are there, have the sums that the manifest says, and are in PostgreSQL's binary format
// with as many rows as the manifest says. It calls report for everything that is wrong.
// Whether the rows fit together it can't tell: for that they are restored into a
// database, which then is checked like any other. NotFound if there is no backup in the
// folder.
func VerifyBackup(ctx context.Context, folder string, report func(problem *stele.Message), progress func(done float64)) (BackupContents, error) {
	m, err := readManifest(folder)
	if errors.Is(err, stele.Internal) {
		report(stele.Messagef("verify.backup-manifest-damaged", `the file "{file}" is damaged.`, filepath.Join(folder, manifestFile)))
		return BackupContents{}, nil
	}
	if err != nil {
		return BackupContents{}, err
	}
	c := BackupContents{Taken: m.Taken, Changes: uint64(m.Last), Seal: string(m.Seal)}
	for i, t := range m.Tables {
		progress(float64(i) / float64(len(m.Tables)))
		c.Rows += t.Rows
		name := filepath.Join(folder, t.Name)
		err := checkTable(ctx, name, t)
		switch {
		case ctx.Err() != nil:
			return c, ctx.Err()
		case errors.Is(err, os.ErrNotExist):
			report(stele.Messagef("verify.backup-file-missing", `the file "{file}" is missing.`, name))
		case err != nil:
			report(stele.Messagef("verify.file-damaged", `the file "{file}" is damaged: {cause}.`, name, err))
		}
	}
	return c, nil
}

// checkTable checks a file of a backup.
func checkTable(ctx context.Context, name string, t tableEntry) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	in := io.TeeReader(&contextReader{ctx, f}, sum)
	rows, format := countRows(bufio.NewReaderSize(in, 1<<18))
	if _, err := io.Copy(io.Discard, in); err != nil { // for the sum, if the format is wrong
		return err
	}
	switch {
	case hex.EncodeToString(sum.Sum(nil)) != t.Sum:
		return stele.Messagef("backup.file-digest-wrong", "it is not the file that was written, by its SHA-256")
	case format != nil:
		return format
	case rows != t.Rows:
		return stele.Messagef("backup.file-rows-differ", "it has {rows} rows, and should have {expected}", rows, t.Rows)
	}
	return nil
}

// countRows reads a file in the binary COPY format to its end.
func countRows(r *bufio.Reader) (rows int64, err error) {
	head := make([]byte, len(copyHeader))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != copyHeader {
		return 0, stele.Messagef("backup.file-not-of-copy", "it does not begin as a file of PostgreSQL's COPY")
	}
	for {
		var fields int16
		if err := binary.Read(r, binary.BigEndian, &fields); err != nil {
			return rows, stele.Messagef("backup.file-cut-off", "it is cut off")
		}
		if fields < 0 {
			if _, err := r.ReadByte(); err != io.EOF {
				return rows, stele.Messagef("backup.file-followed", "something comes after its end")
			}
			return rows, nil
		}
		for range fields {
			var size int32
			if err := binary.Read(r, binary.BigEndian, &size); err != nil {
				return rows, stele.Messagef("backup.file-cut-off", "it is cut off")
			}
			if _, err := r.Discard(int(max(0, size))); err != nil {
				return rows, stele.Messagef("backup.file-cut-off", "it is cut off")
			}
		}
		rows++
	}
}
