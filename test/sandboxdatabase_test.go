package test

import (
	"net"
	"net/url"
	"strings"

	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// Pages show a database on a machine of its own. Here it is a PostgreSQL that the test
// starts, on this machine and on a free port, and the test translates between the addresses
// that pages show and the real ones.
const (
	shownDatabase = "db.example.org"
	ownDatabase   = "127.0.0.1"
)

// startDatabase starts PostgreSQL, and tells programs how to enter.
func (d *sandbox) startDatabase() (err error) {
	if d.database, err = postgrestest.New(postgrestest.Options{NoSync: true}); err != nil {
		return err
	}
	u, err := url.Parse(d.database.URL("postgres"))
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(d.database.Addr())
	if err != nil {
		return err
	}
	password, _ := u.User.Password()
	d.sh.env = append(d.sh.env, "PGPORT="+port, "PGPASSWORD="+password)
	return nil
}

// endDatabase ends PostgreSQL if it runs.
func (d *sandbox) endDatabase() error {
	if d.database == nil {
		return nil
	}
	return d.database.Close()
}

// needsDatabase reports whether a command uses the database.
func needsDatabase(command string) bool { return strings.Contains(command, shownDatabase) }
