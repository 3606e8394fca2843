package postgres

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stele-id/stele"
)

// connectTimeout is how long a host may take to answer, unless the URL says otherwise.
const connectTimeout = 3 * time.Second

// parse reads the URL of a database. Its errors never have the password.
func parse(url string, o Options) (*pgxpool.Config, error) {
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return nil, refuse("open", stele.ID{}, stele.Invalid, "store.database-url-missing", "a database is named by a URL such as postgres://user@host/database")
	}
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, refuse("open", stele.ID{}, stele.Invalid, "store.database-url-unreadable", "the URL of the database can't be read ({cause}); it is like postgres://user@host1,host2/database", plain(err))
	}
	set := c.ConnConfig.RuntimeParams
	if set["search_path"] == "" {
		set["search_path"] = defaultSchema
	}
	if !isSchema(set["search_path"]) {
		return nil, refuse("open", stele.ID{}, stele.Invalid, "store.search-path-wrong", `search_path "{schema}" is not the name of one schema, in lower-case letters, digits and _; give one`, set["search_path"])
	}
	if set["application_name"] == "" {
		set["application_name"] = "stele"
	}
	maps.Copy(set, plans)
	if c.ConnConfig.ConnectTimeout == 0 || c.ConnConfig.ConnectTimeout > o.Wait {
		c.ConnConfig.ConnectTimeout = min(connectTimeout, o.Wait)
	}
	// A connection is never idle for long: its server may be gone.
	c.MaxConnIdleTime = 5 * time.Minute
	c.ConnConfig.OnNotice = noteDoubt
	return c, nil
}

// plans keep the database from reading whole tables. All frequent queries find rows by a
// key. A plan that was made while a table was empty, and is kept with its prepared
// statement, would read the table from one end to the other when it is large. Where there is
// no other way the plan has a high cost, which must not trigger JIT compilation.
var plans = map[string]string{"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off"}

func isSchema(name string) bool {
	return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`).MatchString(name)
}

// schemaOf is the schema that a configuration names.
func schemaOf(c *pgxpool.Config) string { return c.ConnConfig.RuntimeParams["search_path"] }

// primary makes a pool of connections to the server that can be written to.
func primary(ctx context.Context, c *pgxpool.Config, size int, set map[string]string) (*pgxpool.Pool, error) {
	p := c.Copy()
	p.MaxConns = int32(size)
	p.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	maps.Copy(p.ConnConfig.RuntimeParams, set)
	return pgxpool.NewWithConfig(ctx, p)
}

// anyHost makes a pool of connections to whichever server answers. What is asked there is
// read only.
func anyHost(ctx context.Context, c *pgxpool.Config, size int) (*pgxpool.Pool, error) {
	p := c.Copy()
	p.MaxConns = int32(size)
	p.ConnConfig.ValidateConnect = nil
	p.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	return pgxpool.NewWithConfig(ctx, p)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// doubtful is where a connection keeps that a commit may not be on the standby.
const doubtful = "doubtful"

// noteDoubt notices that an operator cancelled a commit's wait for the synchronous
// standby. PostgreSQL reports it as committed then, with a warning and no error, although
// a fail-over may lose it; PostgreSQL's documentation, 27.2.8.
func noteDoubt(conn *pgconn.PgConn, n *pgconn.Notice) {
	// The text is in the server's language. This is the function that waits.
	if n.Routine == "SyncRepWaitForLSN" {
		conn.CustomData()[doubtful] = true
	}
}

// takeDoubt reports whether a commit was in doubt since it was asked last.
func takeDoubt(conn *pgx.Conn) bool {
	data := conn.PgConn().CustomData()
	_, doubt := data[doubtful]
	delete(data, doubtful)
	return doubt
}

// explain makes the error of Open, Migrate or Restore when the database fails.
func explain(op string, err error) error {
	err = plain(err)
	code := codeOf(err)
	switch {
	case code == codeWrongPassword || code == codeWrongUser:
		return refuse(op, stele.ID{}, stele.Invalid, "store.database-login-refused", "the database does not let this user in ({cause}); correct user and password in the URL, or the server's pg_hba.conf", err)
	case code == codeNoDatabase:
		return refuse(op, stele.ID{}, stele.NotFound, "store.database-missing", "there is no such database on the server ({cause}); create it, or correct the URL", err)
	case code == codeTooMany:
		return refuse(op, stele.ID{}, stele.Unavailable, "store.database-connections-exhausted", "the server has no connection left ({cause}); raise its max_connections, or use fewer", err)
	case code == codeNoTable || code == codeNoSchema:
		return refuse(op, stele.ID{}, stele.NotFound, "store.tables-missing", `the database has no tables of a registry; run "stele store migrate"`)
	case code != "":
		return sick(op, stele.ID{}, err)
	default:
		return refuse(op, stele.ID{}, stele.Unavailable, "store.database-unreachable", "no PostgreSQL server answers ({cause}); start it, or correct host and port in the URL", err)
	}
}

// checkVersion reads the version of the tables through a connection.
func checkVersion(ctx context.Context, o Options, q interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) error {
	var version int64
	err := q.QueryRow(ctx, `SELECT version FROM registry WHERE id = 1`).Scan(&version)
	if errors.Is(err, pgx.ErrNoRows) {
		return refuse("open", stele.ID{}, stele.NotFound, "store.tables-incomplete", `the tables of the registry are not complete; run "stele store migrate"`)
	} else if err != nil {
		return err
	}
	if err := o.judgeReadable(version); err != nil {
		return err
	}
	var written *int64
	err = q.QueryRow(ctx, `SELECT written FROM registry WHERE id = 1`).Scan(&written)
	if codeOf(err) == codeNoColumn || err == nil && written == nil {
		written, err = &version, nil // as programs of version 1 made it
	} else if err != nil {
		return err
	}
	return o.judgeWritten(*written)
}

// judgeReadable refuses tables that only later programs may use.
func (o Options) judgeReadable(readable int64) error {
	if readable > o.schema.written {
		return refuse("open", stele.ID{}, stele.Invalid, "store.tables-too-new", "a later program made the tables of the registry, for programs of version {readable-from} and later, and this one has version {version}; use a later program", readable, o.schema.written)
	}
	return nil
}

// judgeWritten refuses tables that an earlier program made.
func (o Options) judgeWritten(written int64) error {
	if written < o.schema.written {
		return refuse("open", stele.ID{}, stele.Invalid, "store.tables-too-old", `the tables of the registry are of version {version}, and this program needs {needed}; run "stele store migrate"`, written, o.schema.written)
	}
	return nil
}

// busy makes the error of a caller that got no connection in time.
func busy(op string, n int, wait time.Duration) error {
	return refuse(op, stele.ID{}, stele.Unavailable, "store.connections-in-use", "all {count} connections to the database were in use for {wait}; try again, or open the store with more", n, wait)
}

// errBusy says that no connection of a pool was free.
var errBusy = stele.Messagef("store.no-free-connection", "no connection was free")
