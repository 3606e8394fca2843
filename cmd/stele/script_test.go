package main

import (
	"maps"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stele-id/stele/internal/certtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"stele": scripted})
}

// Whole sessions of the program, as its users have them: testdata/*.txtar.
func TestScripts(t *testing.T) {
	params := scriptParams(t)
	params.Dir = "testdata"
	testscript.Run(t, params)
}

func scriptParams(t *testing.T) testscript.Params {
	ca := certtest.New(t, time.Now)
	return testscript.Params{
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                scriptCommands(t),
		Setup: func(env *testscript.Env) error {
			// Under the race detector each run of the program sleeps a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return setUpServers(t, ca, env)
		},
	}
}

// scriptCommands are the commands of sessions beside those of testscript.
func scriptCommands(t *testing.T) map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	commands := maps.Clone(serverCommands)
	commands["database"] = databaseCommand(t)
	return commands
}
