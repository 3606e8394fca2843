package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stele-id/stele"
)

// Migrate makes the tables of a registry in the database that a URL names, or brings those
// of an earlier program up to date. Each step is one statement, which may be repeated, and
// run by several processes at once: an interrupted caller starts again. report, which may
// be nil, is called before each step. Invalid if a later program made the tables.
func Migrate(ctx context.Context, url string, o Options, report func(step string)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o, err := o.complete()
	if err != nil {
		return err
	}
	if report == nil {
		report = func(string) {}
	}
	c, err := parse(url, o)
	if err != nil {
		return err
	}
	c.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	conn, err := pgx.ConnectConfig(ctx, c.ConnConfig)
	if err != nil {
		return ended(ctx, explain("migrate", err))
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := migrate(ctx, conn, schemaOf(c), o, report); err != nil {
		if _, own := asOwn(err); own {
			return err
		}
		return ended(ctx, explain("migrate", err))
	}
	return nil
}

const (
	sqlHasSchema = `SELECT count(*) FROM information_schema.schemata WHERE schema_name = $1`
	sqlHasTable  = `SELECT count(*) FROM information_schema.tables WHERE table_schema = $1 AND table_name = 'registry'`
	sqlFirstRow  = `INSERT INTO registry (id, version, written, last, seal) VALUES (1, $1, $2, 0, '') ON CONFLICT (id) DO NOTHING`
	sqlWritten   = `UPDATE registry SET written = $1 WHERE id = 1 AND (written IS NULL OR written < $1)`
	sqlReadable  = `UPDATE registry SET version = $1 WHERE id = 1 AND version < $1`

	sqlFirstGeneration = `UPDATE registry SET generations = $1 WHERE id = 1 AND generations IS NULL`
)

func migrate(ctx context.Context, conn *pgx.Conn, schema string, o Options, report func(string)) error {
	if err := checkLater(ctx, conn, schema, o); err != nil {
		return err
	}
	// A database user that may not create a schema may still use an existing one.
	var n int
	if err := conn.QueryRow(ctx, sqlHasSchema, schema).Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		report("schema " + schema)
		if err := step(ctx, conn, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{schema}.Sanitize()); err != nil {
			return err
		}
	}
	for _, st := range steps {
		report("table " + st.name)
		if err := step(ctx, conn, st.sql); err != nil {
			return err
		}
	}
	report("version")
	if err := step(ctx, conn, sqlFirstRow, o.schema.readable, o.schema.written); err != nil {
		return err
	}
	report("times of versions")
	if err := fillVersions(ctx, conn, true); err != nil {
		return err
	}
	report("states of zones")
	if err := upgradeZones(ctx, conn); err != nil {
		return err
	}
	if err := upgrade(ctx, conn, o); err != nil {
		return err
	}
	// Last of all: until then a program of this version does not open the tables, and
	// one of an earlier version that may use them does not miss anything.
	if err := step(ctx, conn, sqlReadable, o.schema.readable); err != nil {
		return err
	}
	return step(ctx, conn, sqlWritten, o.schema.written)
}

// upgrade brings what is in the tables up to date. It may be done again, and by several
// at once. A restore does it, too: the backup may be of an earlier version.
func upgrade(ctx context.Context, conn *pgx.Conn, o Options) error {
	first, err := stele.FirstGeneration(o.Now()).MarshalText()
	if err != nil {
		return err
	}
	return step(ctx, conn, sqlFirstGeneration, first)
}

// checkLater refuses tables that a later program made.
func checkLater(ctx context.Context, conn *pgx.Conn, schema string, o Options) error {
	var n, version int64
	if err := conn.QueryRow(ctx, sqlHasTable, schema).Scan(&n); err != nil || n == 0 {
		return err
	}
	err := conn.QueryRow(ctx, `SELECT version FROM registry WHERE id = 1`).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	return o.judgeReadable(version)
}

// step runs one statement. Another process that takes the same step at the same time
// makes it fail in one of several ways, despite IF NOT EXISTS; then it is tried again.
func step(ctx context.Context, conn *pgx.Conn, sql string, args ...any) error {
	for pause := (pause{}); ; {
		_, err := conn.Exec(ctx, sql, args...)
		busy := []string{codeUnique, codeDuplicateTable, codeSerialization, codeDeadlock, "42P06", "42710", "XX000"}
		if err == nil || !slices.Contains(busy, codeOf(err)) || pause.tries > 20 {
			return err
		}
		if !pause.sleep(ctx) {
			return ctx.Err()
		}
	}
}

// sqlIsEmpty asks whether nothing was ever written to a registry.
const sqlIsEmpty = `SELECT (SELECT last FROM registry WHERE id = 1) = 0
	AND NOT EXISTS (SELECT 1 FROM names) AND NOT EXISTS (SELECT 1 FROM namespaces)
	AND NOT EXISTS (SELECT 1 FROM minters) AND NOT EXISTS (SELECT 1 FROM cells) AND NOT EXISTS (SELECT 1 FROM audit)`
