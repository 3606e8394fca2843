package postgres

import (
	"context"
	"errors"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
)

// Scratch makes a new schema of this name in the database that a URL names, with the tables of
// an empty registry, and returns the URL of that registry. Drop removes the schema with all that
// is in it. Conflict if the database has a schema of this name: Scratch never uses one that it
// has not made.
func Scratch(ctx context.Context, text, name string, o Options) (at string, drop func(context.Context) error, err error) {
	o, err = o.complete()
	if err != nil {
		return "", nil, err
	}
	u, err := url.Parse(text)
	if err != nil || CheckURL(text) != nil {
		return "", nil, refuse("open", stele.ID{}, stele.Invalid, "store.database-url-missing", "a database is named by a URL such as postgres://user@host/database")
	}
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	at = u.String()
	c, err := parse(at, o)
	if err != nil {
		return "", nil, err
	}
	schema := pgx.Identifier{name}.Sanitize()
	if err := once(ctx, c, `CREATE SCHEMA `+schema); err != nil {
		if codeOf(err) == codeDuplicateSchema {
			return "", nil, refuse("open", stele.ID{}, stele.Conflict, "store.schema-exists", `the database has a schema "{schema}" already; choose another name`, name)
		}
		return "", nil, ended(ctx, explain("open", err))
	}
	drop = func(ctx context.Context) error {
		if err := once(ctx, c, `DROP SCHEMA `+schema+` CASCADE`); err != nil {
			return ended(ctx, explain("drop", err))
		}
		return nil
	}
	if err := Migrate(ctx, at, o, nil); err != nil {
		return "", nil, errors.Join(err, drop(context.WithoutCancel(ctx)))
	}
	return at, drop, nil
}

// codeDuplicateSchema is PostgreSQL's code for a schema that is there already.
const codeDuplicateSchema = "42P06"

// once runs a statement on a connection of its own.
func once(ctx context.Context, c *pgxpool.Config, sql string) error {
	config := c.ConnConfig.Copy()
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}
