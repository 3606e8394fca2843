package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"stele": main})
}

// Whole sessions of the program, as its users have them: testdata/*.txtar.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// Under the race detector each run of the program sleeps a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
	})
}
