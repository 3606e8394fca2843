package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stele-id/stele/internal/certtest"
)

func TestMain(m *testing.M) {
	testscript.Main(&plain{m}, map[string]func(){"stele": scripted})
}

// raceVariable has any value if the programs that tests start should have the race detector, too.
const raceVariable = "STELE_RACE"

// plain runs the tests with programs that are built without the race detector, even if the tests have
// it: they are started thousands of times, which takes ten times as long with it. The packages of which
// the program consists have tests under the detector, and 'make soak' starts programs that have it.
type plain struct{ *testing.M }

// Run implements [testscript.TestingM].
func (p *plain) Run() int {
	if info, ok := debug.ReadBuildInfo(); ok && os.Getenv(raceVariable) == "" && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		program, err := exec.LookPath("stele")
		if err == nil {
			var out []byte
			if out, err = exec.Command("go", "test", "-c", "-vet=off", "-o", program, ".").CombinedOutput(); err != nil {
				err = fmt.Errorf("%w\n%s", err, out)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "the program of the tests is not built:", err)
			return 1
		}
	}
	return p.M.Run()
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
