// Tally reads the events that one or several runs of `go test -json` wrote, each to a file, and
// prints one line, the totals of all runs:
//
//	120 passed, 0 failed, 0 skipped
//
// Each test and each subtest counts. A package that fails outside its tests (it
// does not build, or its process dies) counts as one that failed. Tally itself
// fails if one failed, if one was skipped (a test that does not run proves
// nothing), or if none ran in one of the runs. It never runs a test.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }

// run prints the totals of the named file and returns the exit code. Everything
// goes to one stream, the totals last.
func run(args []string, out io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(out, "usage: tally FILE...")
		return 2
	}
	var all totals
	code := 0
	for _, name := range args {
		t, err := countFile(name)
		all.passed, all.failed, all.skips = all.passed+t.passed, all.failed+t.failed, append(all.skips, t.skips...)
		if err == nil {
			err = t.verdict()
		}
		if err != nil {
			fmt.Fprintln(out, err)
			code = 1
		}
	}
	fmt.Fprintln(out, all)
	return code
}

// countFile counts the events in a file.
func countFile(name string) (totals, error) {
	f, err := os.Open(name)
	if err != nil {
		return totals{}, fmt.Errorf("no totals: %w", err)
	}
	defer f.Close()
	return count(f)
}

// totals of a run; skips are the names of what was skipped.
type totals struct {
	passed, failed int
	skips          []string
}

func (t totals) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, len(t.skips))
}

// verdict says why the run fails, or nil.
func (t totals) verdict() error {
	switch {
	case t.failed > 0:
		return errors.New("there are failed tests")
	case len(t.skips) > 0:
		return fmt.Errorf("a test must not be skipped: %q", t.skips)
	case t.passed == 0:
		return errors.New("no test ran")
	}
	return nil
}

// event is the part of the events of `go doc test2json` that is used here.
type event struct {
	Action, Package, Test string
}

func count(r io.Reader) (totals, error) {
	var t totals
	failedIn := make(map[string]bool) // packages with a failed test
	var failedPackages []string
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20) // an event holds a line of a test's output
	for n := 1; lines.Scan(); n++ {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return t, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case e.Test == "" && e.Action == "fail":
			failedPackages = append(failedPackages, e.Package)
		case e.Test == "": // also "skip", which says that a package has no tests
		case e.Action == "pass":
			t.passed++
		case e.Action == "fail":
			t.failed++
			failedIn[e.Package] = true
		case e.Action == "skip":
			t.skips = append(t.skips, e.Package+"."+e.Test)
		}
	}
	for _, p := range failedPackages {
		if !failedIn[p] {
			t.failed++
		}
	}
	return t, lines.Err()
}
