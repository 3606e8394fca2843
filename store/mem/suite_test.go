package mem

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/storetest"
)

// recorder is a test that keeps what a check complains of, and does not fail.
type recorder struct {
	testing.TB
	mu         sync.Mutex
	complaints []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complaints = append(r.complaints, fmt.Sprintf(format, args...))
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.complaints) > 0
}

func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }
func (r *recorder) Fail()             { r.Errorf("failed") }
func (r *recorder) FailNow()          { r.Fail(); runtime.Goexit() }
func (r *recorder) Fatal(args ...any) { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
func (r *recorder) Log(...any)          {}
func (r *recorder) Logf(string, ...any) {}

// complaintsOf runs a check and returns its complaints.
func complaintsOf(t *testing.T, c storetest.Check, h storetest.Harness) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(r, h)
	}()
	<-done
	return strings.Join(r.complaints, "\n")
}

// forget opens an empty store, whatever the folder had.
func forget(testing.TB, string) stele.Store { return New(time.Now) }

// The suite must find each of these faults, by each of the checks that are named
// for it; and each check must find one of them.
func TestSuiteFindsFaults(t *testing.T) {
	// A failing random test keeps its input in a file, and looks for a shorter one.
	t.Chdir(t.TempDir())
	shrink := flag.Lookup("rapid.shrinktime")
	old := shrink.Value.String()
	t.Cleanup(func() { _ = shrink.Value.Set(old) })
	if err := shrink.Value.Set("100ms"); err != nil {
		t.Fatal(err)
	}

	by := func(spoil func(stele.Store) stele.Store) func(testing.TB, string) stele.Store {
		return func(t testing.TB, folder string) stele.Store { return spoil(open(t, folder)) }
	}
	checks := storetest.Checks(storetest.Harness{Durable: true})
	found := make(map[string]bool)
	for _, f := range []struct {
		name  string
		open  func(testing.TB, string) stele.Store
		finds map[string]string // checks, and a part of what each must say
	}{
		{"aliases are lost", by(func(s stele.Store) stele.Store { return noAliases{s} }), map[string]string{
			"get": "lost", "durable": "lost"}},
		{"records are shared", by(func(s stele.Store) stele.Store { return &sharing{Store: s} }), map[string]string{
			"own values": "changes the store"}},
		{"stale reads", by(func(s stele.Store) stele.Store { return &stale{Store: s} }), map[string]string{
			"linearizable": "not linearizable", "reads see what is acknowledged": "up to"}},
		{"the wrong version of a time", by(func(s stele.Store) stele.Store { return imprecise{s} }), map[string]string{
			"one version": "VersionAt"}},
		{"what is withheld is forgotten", by(func(s stele.Store) stele.Store { return oblivious{s} }), map[string]string{
			"withheld versions": "is forgotten"}},
		{"erased versions are kept", by(func(s stele.Store) stele.Store { return keeping{s, make(map[uint64]*stele.Record)} }), map[string]string{
			"erased versions": "Version(2)"}},
		{"namespaces have no history", by(func(s stele.Store) stele.Store { return fleeting{s} }), map[string]string{
			"history of namespaces": "has 1 versions"}},
		{"names are cut anywhere", by(func(s stele.Store) stele.Store { return cutting{s} }), map[string]string{
			"longest": "Longest of"}},
		{"candidates are drawn too early", by(func(s stele.Store) stele.Store { return greedy{s} }), map[string]string{
			"first": "were drawn"}},
		{"the cursor is among the scanned", by(func(s stele.Store) stele.Store { return inclusive{s} }), map[string]string{
			"scan": "Scan in pages", "names are bytes": "Scan(", "model": "Scan("}},
		{"scans see later commits", by(func(s stele.Store) stele.Store { return live{s} }), map[string]string{
			"snapshots": "Scan sees what is committed after it began"}},
		{"pointing twice", by(func(s stele.Store) stele.Store { return double{s} }), map[string]string{
			"pointing": "Pointing("}},
		{"pointing for ever", by(func(s stele.Store) stele.Store { return clinging{s, make(map[stele.Location][]stele.ID)} }), map[string]string{
			"pointing follows updates": "Pointing(", "model": "Pointing("}},
		{"history upside down", by(func(s stele.Store) stele.Store { return upright{s} }), map[string]string{
			"history": "entry 0"}},
		{"conflicts pass", by(func(s stele.Store) stele.Store { return forgiving{s, stele.Conflict} }), map[string]string{
			"versions": "no error", "names stay": "no error", "one writer wins": "was committed 64 times",
			"namespaces": "no error", "minters": "no error", "cells": "no error", "one writer of a cell wins": "64 writers", "linearizable": "not linearizable",
			"ingest": "no error", "ingest of many": "no error"}},
		{"invalid commits pass", by(func(s stele.Store) stele.Store { return forgiving{s, stele.Invalid} }), map[string]string{
			"names stay": "an update without one alias: no error", "invalid commits": "no error", "limits of cells": "no error"}},
		{"commits in pieces", by(func(s stele.Store) stele.Store { return piecemeal{s} }), map[string]string{
			"all or nothing": "left something behind", "new records with their history": "left something behind"}},
		{"gaps in the feed", by(func(s stele.Store) stele.Store { return gaps{s} }), map[string]string{
			"changes": "Changes(0)", "changes under load": "comes", "model": "stands where"}},
		{"no empty states", by(func(s stele.Store) stele.Store { return careless{s} }), map[string]string{
			"minters": "MinterState("}},
		{"one beyond the quota", by(func(s stele.Store) stele.Store { return generous{s} }), map[string]string{
			"quota": "no error", "quota of ingests": "Count(", "quota under load": "the quota is 50"}},
		{"aliases do not count", by(func(s stele.Store) stele.Store { return partial{s} }), map[string]string{
			"quota": "Count(", "quota of aliases": "no error", "ingest": "Count("}},
		{"cells are replaced by whoever comes", by(func(s stele.Store) stele.Store { return &reckless{Store: s} }), map[string]string{
			"cells": "no error", "one writer of a cell wins": "64 writers replaced", "model": "no error", "all or nothing": "no error"}},
		{"empty and missing cells are one", by(func(s stele.Store) stele.Store { return vague{s} }), map[string]string{
			"cells": "Cell("}},
		{"cells are never removed", by(func(s stele.Store) stele.Store { return hoarding{s} }), map[string]string{
			"cells": "Cell(", "limits of cells": "Cell(", "all or nothing": "Cell(", "one writer of a cell wins": "Cell(", "model": "Cell"}},
		{"cells are committed before the rest", by(func(s stele.Store) stele.Store { return eager{s} }), map[string]string{
			"all or nothing": "left something behind"}},
		{"cells are forgotten", by(func(s stele.Store) stele.Store { return cellless{s} }), map[string]string{
			"cells": "Cell(", "reads see what is acknowledged": "Cell(", "all or nothing": "Cell("}},
		{"the cursor is among the cells", by(func(s stele.Store) stele.Store { return repeating{s} }), map[string]string{
			"lists of cells": "Cells in pages", "model": "Cells("}},
		{"lists of cells see later commits", by(func(s stele.Store) stele.Store { return restless{s} }), map[string]string{
			"snapshots": "Cells sees what is committed after it began"}},
		{"cells are in the feed", by(func(s stele.Store) stele.Store { return &chatty{Store: s} }), map[string]string{
			"cells": "changes in the feed", "changes": "LastChange is 6"}},
		{"cells do not last", func(t testing.TB, folder string) stele.Store { return withoutCells(t, open(t, folder)) }, map[string]string{
			"durable": "lost something", "backup": "not what the store was"}},
		{"refused commits leave audit entries", by(func(s stele.Store) stele.Store { return talkative{s} }), map[string]string{
			"audit": "the audit trail is not as it should be"}},
		{"records are written without audit entries", by(func(s stele.Store) stele.Store { return silent{s} }), map[string]string{
			"audit": "the audit trail is not as it should be", "audit under load": "the trail has 0 entries", "audit of ingests": "an ingest left 0 entries"}},
		{"the audit trail is not trimmed", by(func(s stele.Store) stele.Store { return untrimmed{s} }), map[string]string{
			"audit trimmed": "the audit trail is not as it should be"}},
		{"copied audit entries are numbered anew", by(func(s stele.Store) stele.Store { return renumbering{s} }), map[string]string{
			"audit copied": "has the number 1, want 41"}},
		{"backups of the audit trail are old", by(func(s stele.Store) stele.Store { return late{s} }), map[string]string{
			"audit in backups": "the audit trail is not as it should be"}},
		{"changes are sorted", by(func(s stele.Store) stele.Store { return sorting{s} }), map[string]string{
			"order of changes": "from 1 on", "model": "stands where", "replay": "not the one that the commit makes"}},
		{"replays are commits like others", by(func(s stele.Store) stele.Store { return present{s} }), map[string]string{
			"replay": "want [invalid conflict]"}},
		{"replays have the wrong time", by(func(s stele.Store) stele.Store { return punctual{s} }), map[string]string{
			"replay": "was replayed with the time"}},
		{"the seal is for records only", by(func(s stele.Store) stele.Store { return &leaky{Store: s} }), map[string]string{
			"seal": "a minter when the store is sealed: no error", "seal under load": "began after Seal had returned"}},
		{"the seal waits for nobody", by(func(s stele.Store) stele.Store { return newHasty(s) }), map[string]string{
			"seal under load": "something was written after Seal had returned"}},
		{"generations are replaced by every caller", by(func(s stele.Store) stele.Store { return usurping{s} }), map[string]string{
			"generations": "by who knows another one: no error"}},
		{"a backup begins a generation", by(newborn), map[string]string{
			"generations": "Generations ="}},
		{"positions without a generation", by(func(s stele.Store) stele.Store { return absent{s} }), map[string]string{
			"generations": "Position ="}},
		{"ingest without state", by(func(s stele.Store) stele.Store { return stateless{s} }), map[string]string{
			"ingest with a minter": "MinterState("}},
		{"every change touches every zone", by(func(s stele.Store) stele.Store { return coarse{s} }), map[string]string{
			"zones": "ZoneChanges(", "zones of ingests": "touched a zone, want", "zones under load": "the changes of"}},
		{"all callers are believed", by(func(s stele.Store) stele.Store { return trusting{s} }), map[string]string{
			"zones and namespaces": "no error", "records of sealed namespaces": "judged before the seal: <nil>",
			"records of sealed namespaces under load": "a write after the seal is accepted"}},
		{"what was seen is not compared", by(func(s stele.Store) stele.Store { return unseeing{s} }), map[string]string{
			"records that were seen": ": <nil>"}},
		{"zones are never raised", by(func(s stele.Store) stele.Store { return rewinding{s} }), map[string]string{
			"zones that are raised": "want base"}},
		{"zones have no index", by(func(s stele.Store) stele.Store { return unindexed{s} }), map[string]string{
			"zones": "ZoneChanges(", "zones under load": "the changes of"}},
		{"short names only", by(func(s stele.Store) stele.Store { return short{s} }), map[string]string{
			"names are bytes": "too long"}},
		{"small records only", by(func(s stele.Store) stele.Store { return small{s} }), map[string]string{
			"sizes": "not what was committed"}},
		{"contexts are ignored", by(func(s stele.Store) stele.Store { return stubborn{s} }), map[string]string{
			"ended contexts": "Apply with a context that has ended: <nil>", "contexts that end": "Scan: its context ended"}},
		{"Close does nothing", by(func(s stele.Store) stele.Store { return immortal{s} }), map[string]string{
			"close": "Record after Close: no error"}},
		{"backups are old", by(func(s stele.Store) stele.Store { return late{s} }), map[string]string{
			"backup": "not what the store was", "backup under load": "the backup lacks"}},
		{"nothing lasts", forget, map[string]string{
			"durable": "lost something", "close under load": "nothing is registered", "backup": "not what the store was"}},
		{"Verify complains", by(func(s stele.Store) stele.Store { return suspicious{s} }), map[string]string{
			"get": "Verify reports: a fault"}},
		{"nothing is counted", by(func(s stele.Store) stele.Store { return miscounting{s} }), map[string]string{
			"measure": "kept 0, refused 0, failed 0, want 2, 1 and 0"}},
	} {
		for name, complaint := range f.finds {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				i := slices.IndexFunc(checks, func(c storetest.Check) bool { return c.Name == name })
				if i < 0 {
					t.Fatalf("there is no check %q", name)
				}
				got := complaintsOf(t, checks[i], storetest.Harness{Open: f.open, Durable: true})
				if !strings.Contains(got, complaint) {
					t.Errorf("the complaints are %.1000q, want %q", got, complaint)
				}
				found[name] = true
			})
		}
	}
	for _, c := range checks {
		if !found[c.Name] {
			t.Errorf("no fault shows that the check %q can fail", c.Name)
		}
	}
}
