package postgres

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stele-id/stele"
)

// Restore loads what Backup wrote to a folder into the database that a URL names, which
// must have the tables of a registry and nothing in them: all of it or nothing. Conflict
// if there is something, NotFound if there is no backup, Internal if it is damaged. The
// cells are added, so that the caller can note for other programs that the restore is
// not finished.
func Restore(ctx context.Context, url string, folder string, o Options, cells ...stele.Cell) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := o.complete()
	if err != nil {
		return err
	}
	m, err := readManifest(folder)
	if err != nil {
		return err
	}
	for _, t := range m.Tables {
		if err := checkSum(ctx, folder, t); err != nil {
			return err
		}
	}
	c, err := parse(url, o)
	if err != nil {
		return err
	}
	c.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	conn, err := pgx.ConnectConfig(ctx, c.ConnConfig)
	if err != nil {
		return ended(ctx, explain("restore", err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return restore(ctx, tx, folder, o, m, cells) })
	if _, own := asOwn(err); err == nil || own {
		return err
	}
	return ended(ctx, explain("restore", err))
}

// BackupSeal returns why the store was sealed that Backup wrote to a folder; "" if it was
// not.
func BackupSeal(folder string) (string, error) {
	m, err := readManifest(folder)
	if err != nil {
		return "", err
	}
	return string(m.Seal), nil
}

// checkSum reads a file of a backup for its sum.
func checkSum(ctx context.Context, folder string, t tableEntry) error {
	f, err := os.Open(filepath.Join(folder, t.Name))
	if errors.Is(err, os.ErrNotExist) {
		return broken(folder, t.Name)
	} else if err != nil {
		return refuse("restore", stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	sum := sha256.New()
	_, err = io.Copy(sum, &contextReader{ctx, f})
	if err := errors.Join(err, f.Close()); err != nil {
		return ended(ctx, refuse("restore", stele.ID{}, stele.Unavailable, "", "{cause}", err))
	}
	if hex.EncodeToString(sum.Sum(nil)) != t.Sum {
		return broken(folder, t.Name)
	}
	return nil
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// restore loads the tables. It holds the row that every writer needs from the beginning.
func restore(ctx context.Context, tx pgx.Tx, folder string, o Options, m *manifest, cells []stele.Cell) error {
	var seal []byte
	if err := checkVersion(ctx, o, tx); err != nil {
		return err
	}
	err := tx.QueryRow(ctx, `SELECT seal FROM registry WHERE id = 1 FOR UPDATE`).Scan(&seal)
	if errors.Is(err, pgx.ErrNoRows) {
		return refuse("restore", stele.ID{}, stele.NotFound, "store.tables-incomplete", `the tables of the registry are not complete; run "stele store migrate"`)
	} else if err != nil {
		return err
	}
	if err := sealedError("restore", seal); err != nil {
		return err
	}
	var empty bool
	if err := tx.QueryRow(ctx, sqlIsEmpty).Scan(&empty); err != nil {
		return err
	}
	if !empty {
		return refuse("restore", stele.ID{}, stele.Conflict, "restore.database-not-empty", "the database has a registry already; restore into an empty one")
	}
	for i, t := range m.tables() {
		if err := restoreTable(ctx, tx, folder, t.name, t.columns, m.Tables[i].Rows); err != nil {
			return err
		}
	}
	for _, c := range cells {
		if _, err := tx.Exec(ctx, `INSERT INTO cells (name, value) VALUES ($1, $2)`, []byte(c.Name), c.Value); err != nil {
			return err
		}
	}
	if err := fillVersions(ctx, tx.Conn(), m.Written < laterVersion); err != nil {
		return err
	}
	var generations []byte // NULL if the backup is from before there were any; see upgrade
	if m.Generations != "" {
		generations = []byte(m.Generations)
	}
	_, err = tx.Exec(ctx, `UPDATE registry SET last = $1, seal = $2, generations = $3, spaces = (SELECT coalesce(sum(version), 0)::bigint FROM namespaces),
		audit = (SELECT coalesce(max(number), 0) FROM audit), auditat = (SELECT max(at) FROM audit) WHERE id = 1`,
		m.Last, append([]byte{}, m.Seal...), generations)
	if err != nil {
		return err
	}
	if m.Written < laterVersion {
		if err := addZones(ctx, tx); err != nil {
			return err
		}
	}
	return upgrade(ctx, tx.Conn(), o)
}

func restoreTable(ctx context.Context, tx pgx.Tx, folder, name, columns string, rows int64) error {
	f, err := os.Open(filepath.Join(folder, name))
	if err != nil {
		return refuse("restore", stele.ID{}, stele.Unavailable, "", "{cause}", err)
	}
	defer f.Close()
	tag, err := tx.Conn().PgConn().CopyFrom(ctx, bufio.NewReaderSize(f, 1<<18), `COPY `+name+` (`+columns+`) FROM STDIN BINARY`)
	if err != nil {
		return err
	}
	if tag.RowsAffected() != rows {
		return broken(folder, name)
	}
	return nil
}
