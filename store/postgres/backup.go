package postgres

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stele-id/stele"
)

// A backup is a folder with a file for each table, in PostgreSQL's binary COPY format,
// which is documented and which psql reads too, and a manifest that has the number of rows
// and the SHA-256 of each. The manifest is written last, and has its own SHA-256 on a line
// after it. The row of registry is in the manifest; writers are not in a backup.
const manifestFile = "manifest.json"

// manifest says what a backup has.
type manifest struct {
	Format string       `json:"format"`
	Schema int64        `json:"schema"` // the oldest version of the tables whose programs can restore it
	Last   int64        `json:"last"`
	Seal   []byte       `json:"seal"`
	Taken  time.Time    `json:"taken"`
	Tables []tableEntry `json:"tables"`

	Written     int64  `json:"written,omitempty"` // the version of the tables; that of schema if it is missing
	Generations string `json:"generations,omitempty"`
}

// tableEntry is a file of a backup.
type tableEntry struct {
	Name string `json:"name"`
	Rows int64  `json:"rows"`
	Sum  string `json:"sha256"`
}

const backupFormat = "stele postgres backup 1"

// backupTable is a table of a backup.
type backupTable struct {
	name, columns string
	since         int64 // the version of the tables that brought it
}

// backupTables are the tables of a backup, in order, with their columns.
var backupTables = []backupTable{
	{"names", `key, "full", record, version, body`, 1},
	{"history", `key, version, body`, 1},
	{"places", `place, record, "full"`, 1},
	{"namespaces", `key, "full", version, body`, 1},
	{"counts", `key, n`, 1},
	{"minters", `key, "full", state`, 1},
	{"cells", `name, value`, 1},
	{"changes", `seq, at, name, space, version, counted`, 1},
	{"audit", `number, at, body`, 2},
	{"zones", `zone, base, last, since, shut`, 3},
	{"zone_runs", `zone, last, first`, 3},
	{"spacehistory", `key, version, body`, 3},
}

// Backup implements [stele.Store]. The folder must not be there yet.
func (s *Store) Backup(ctx context.Context, folder string) error {
	v, err := s.look(ctx, "backup")
	if err != nil {
		return err
	}
	defer v.end(ctx)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return refuse("backup", stele.ID{}, stele.Invalid, "backup.needs-new-folder", "the backup needs a folder that is not there yet: {cause}", err)
	}
	if err := v.backup(ctx, folder); err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	return nil
}

func (v *view) backup(ctx context.Context, folder string) error {
	m := manifest{Format: backupFormat, Taken: v.s.o.Now().UTC()}
	var generations []byte
	err := v.query(ctx, `SELECT version, written, last, seal, generations FROM registry WHERE id = $1`, []any{1}, func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&m.Schema, &m.Written, &m.Last, &m.Seal, &generations}, func() error { return nil })
		return err
	})
	if err != nil {
		return err
	}
	m.Generations = string(generations)
	// What a later program keeps beside the tables of this one is not in the backup.
	m.Written = min(m.Written, v.s.o.schema.written)
	m.Schema = min(m.Schema, m.Written)
	for _, t := range backupTables {
		e := tableEntry{Name: t.name}
		err := writeFile(filepath.Join(folder, t.name), func(w io.Writer) error {
			sum := sha256.New()
			c := &copyWriter{w: io.MultiWriter(w, sum)}
			err := v.stream(ctx, `SELECT `+t.columns+` FROM `+t.name, c.rows)
			e.Rows, e.Sum = c.n, hex.EncodeToString(sum.Sum(nil))
			return err
		})
		if err != nil {
			return err
		}
		m.Tables = append(m.Tables, e)
	}
	return writeManifest(folder, &m)
}

// stream reads a whole table, for however long that takes.
func (v *view) stream(ctx context.Context, sql string, read func(pgx.Rows) error) error {
	whole, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(v.s.closing, cancel)()
	rows, err := v.conn.Query(whole, sql)
	if err == nil {
		err = read(rows)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case v.s.isClosed():
		return closed(v.op)
	}
	return sick(v.op, stele.ID{}, err)
}

// writeFile writes a new file and syncs it.
func writeFile(name string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return unwritable(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<18)
	if err := write(w); err != nil {
		return err
	}
	return unwritable(errors.Join(w.Flush(), f.Sync()))
}

func unwritable(err error) error {
	if err == nil {
		return nil
	}
	return refuse("backup", stele.ID{}, stele.Unavailable, "backup.not-written", "the backup can't be written: {cause}", err)
}

func writeManifest(folder string, m *manifest) error {
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	err = writeFile(filepath.Join(folder, manifestFile), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s%x\n", text, sha256.Sum256(text))
		return err
	})
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // it refuses to sync folders, and keeps a journal of them
		return nil
	}
	for _, dir := range []string{folder, filepath.Dir(folder)} {
		d, err := os.Open(dir)
		if err != nil {
			return unwritable(err)
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return unwritable(err)
		}
	}
	return nil
}

// copyWriter writes rows in the binary COPY format.
type copyWriter struct {
	w   io.Writer
	buf []byte
	n   int64
}

// copyHeader is the signature, no flags, and no extension.
const copyHeader = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

var errFormat = stele.Messagef("store.database-sends-text", "the database sends text where binary values are expected")

func (c *copyWriter) rows(rows pgx.Rows) error {
	defer rows.Close()
	if _, err := io.WriteString(c.w, copyHeader); err != nil {
		return unwritable(err)
	}
	for rows.Next() {
		for _, f := range rows.FieldDescriptions() {
			if f.Format != pgx.BinaryFormatCode {
				return errFormat
			}
		}
		values := rows.RawValues()
		c.buf = binary.BigEndian.AppendUint16(c.buf[:0], uint16(len(values)))
		for _, v := range values {
			if v == nil {
				c.buf = binary.BigEndian.AppendUint32(c.buf, 1<<32-1)
				continue
			}
			c.buf = append(binary.BigEndian.AppendUint32(c.buf, uint32(len(v))), v...)
		}
		if _, err := c.w.Write(c.buf); err != nil {
			return unwritable(err)
		}
		c.n++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	_, err := c.w.Write([]byte{0xff, 0xff})
	return unwritable(err)
}

// readManifest reads and checks what a backup says of itself.
func readManifest(folder string) (*manifest, error) {
	data, err := os.ReadFile(filepath.Join(folder, manifestFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, refuse("restore", stele.ID{}, stele.NotFound, "backup.of-database-missing", `there is no backup of a database in "{folder}": {cause}`, folder, err)
	} else if err != nil {
		return nil, refuse("restore", stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	at := max(0, len(data)-hex.EncodedLen(sha256.Size)-1)
	sum := fmt.Appendf(nil, "%x\n", sha256.Sum256(data[:at]))
	m := new(manifest)
	if !bytes.Equal(sum, data[at:]) || json.Unmarshal(data[:at], m) != nil {
		return nil, broken(folder, manifestFile)
	}
	if m.Written == 0 {
		m.Written = m.Schema
	}
	if m.Format != backupFormat || m.Schema < 1 || m.Schema > schemaVersion {
		return nil, refuse("restore", stele.ID{}, stele.Invalid, "backup.format-unknown", `the backup in "{folder}" is of the format "{format}" and has tables of version {schema}; use the program that made it, or a later one`, folder, m.Format, m.Schema)
	}
	if len(m.Tables) < len(m.tables()) || len(m.Tables) > len(m.tables()) && m.Written <= schemaVersion {
		return nil, broken(folder, manifestFile)
	}
	if m.Generations != "" && new(stele.Generations).UnmarshalText([]byte(m.Generations)) != nil {
		return nil, broken(folder, manifestFile)
	}
	for i, t := range m.tables() {
		if m.Tables[i].Name != t.name {
			return nil, broken(folder, manifestFile)
		}
	}
	return m, nil
}

// tables are the tables of the backup that this program knows. Those of a later one
// follow them.
func (m *manifest) tables() (list []backupTable) {
	for _, t := range backupTables {
		if t.since <= m.Written {
			list = append(list, t)
		}
	}
	return list
}

func broken(folder, file string) error {
	return refuse("restore", stele.ID{}, stele.Internal, "backup.file-damaged", `the backup in "{folder}" is damaged, in the file "{file}"; take another one`, folder, file)
}
