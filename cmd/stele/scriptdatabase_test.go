package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// databaseSessions are the sessions that run with a database, too: what they try depends on
// how a store commits, reads changes and keeps cells.
var databaseSessions = []string{"drill", "revert", "revertsigned", "replace", "mintfrom", "mintresume", "importcsv"}

// The same sessions with the registry in PostgreSQL.
func TestScriptsDatabase(t *testing.T) {
	server := lazyPostgres(t)
	params := scriptParams(t)
	for _, name := range databaseSessions {
		params.Files = append(params.Files, filepath.Join("testdata", name+".txtar"))
	}
	setup := params.Setup
	params.Setup = func(env *testscript.Env) error {
		url := server().Database(t)
		newDatabaseStore(t, url)
		env.Setenv("STELE_STORE", url)
		return setup(env)
	}
	testscript.Run(t, params)
}
