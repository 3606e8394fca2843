// Package storetest is the suite that every store must pass: the obligations in
// the comments of [stele.Store], each as a check that fails if it is not kept. A
// store's own tests call Run; what a store does when its disk fails or its
// process dies is for those tests too, since this package can't cause that.
//
// The suite asks for no more than the contract says. Where that leaves a choice,
// such as which of two faults of one commit is named, each answer is accepted.
// The tests of store/mem prove it on stores that are broken on purpose.
package storetest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stele-id/stele"
)

// Harness says how the suite opens a store.
type Harness struct {
	// Open opens the store that is kept in the folder, or makes a new one there.
	// The folder may not be there yet, may be one that a store had which is closed
	// now, or may be one that Backup wrote. Open fails the test if it can't.
	Open func(t testing.TB, folder string) stele.Store

	// Durable says that a folder whose store was closed still has everything when
	// it is opened again.
	Durable bool
}

// Check is a part of the suite.
type Check struct {
	Name string
	run  func(s *session)
}

// Checks returns the parts of the suite that apply to the harness.
func Checks(h Harness) []Check {
	checks := []Check{
		{"get", checkGet},
		{"own values", checkOwnValues},
		{"first", checkFirst},
		{"longest", checkLongest},
		{"scan", checkScan},
		{"pointing", checkPointing},
		{"pointing follows updates", checkPointingUpdates},
		{"history", checkHistory},
		{"one version", checkVersion},
		{"new records with their history", checkImported},
		{"snapshots", checkSnapshots},

		{"versions", checkVersions},
		{"names stay", checkNames},
		{"all or nothing", checkAtomic},
		{"invalid commits", checkInvalid},
		{"changes", checkChanges},
		{"order of changes", checkChangeOrder},
		{"replay", checkReplay},
		{"withheld versions", checkWithheld},
		{"erased versions", checkErase},
		{"namespaces", checkNamespaces},
		{"history of namespaces", checkNamespaceHistory},
		{"minters", checkMinters},
		{"cells", checkCells},
		{"lists of cells", checkCellList},
		{"limits of cells", checkCellLimits},
		{"audit", checkAudit},
		{"audit trimmed", checkAuditTrim},
		{"audit copied", checkAuditCopy},
		{"audit of ingests", checkAuditIngest},
		{"audit under load", checkAuditLoad},
		{"audit in backups", checkAuditBackup},
		{"zones", checkZones},
		{"zones that are raised", checkZoneRaises},
		{"zones and namespaces", checkZoneNamespaces},
		{"zones of ingests", checkZoneIngest},
		{"zones under load", checkZonesLoad},
		{"records of sealed namespaces", checkFence},
		{"records that were seen", checkSeen},
		{"records of sealed namespaces under load", checkFenceLoad},
		{"quota", checkQuota},
		{"quota of ingests", checkIngestQuota},
		{"quota of aliases", checkAliasQuota},
		{"ingest", checkIngest},
		{"ingest with a minter", checkIngestMinter},
		{"ingest of many", checkIngestMany},

		{"measure", checkMeasure},
		{"sizes", checkSizes},
		{"names are bytes", checkBytes},

		{"one writer wins", checkWriters},
		{"one writer of a cell wins", checkCellWriters},
		{"quota under load", checkQuotaLoad},
		{"changes under load", checkChangesLoad},
		{"reads see what is acknowledged", checkFresh},
		{"linearizable", checkLinearizable},

		{"seal", checkSeal},
		{"seal under load", checkSealLoad},
		{"generations", checkGenerations},

		{"ended contexts", checkEnded},
		{"contexts that end", checkEnding},
		{"close", checkClose},
		{"close under load", checkCloseLoad},
		{"backup", checkBackup},
		{"backup under load", checkBackupLoad},
		{"model", checkModel},
	}
	if h.Durable {
		checks = append(checks, Check{"durable", checkDurable})
	}
	return checks
}

// Run runs all checks on a store, and checks that it leaks no goroutines.
func Run(t *testing.T, h Harness) {
	before := goleak.IgnoreCurrent()
	for _, c := range Checks(h) {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, h) })
	}
	if !t.Failed() {
		goleak.VerifyNone(t, before)
	}
}

// limit is how long a check may take: a store that hangs fails.
const limit = 10 * time.Minute

// Run makes the check on a store of its own, which must be without faults in the
// end and close without an error.
func (c Check) Run(t testing.TB, h Harness) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	folder := filepath.Join(t.TempDir(), "store")
	s := &session{TB: t, test: t, ctx: ctx, h: h, folder: folder}
	s.Store = h.Open(t, folder)
	defer s.end()
	c.run(s)
}

// TB is what the suite needs to report failures: a test implements it, and rapid's T
// too.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// session is a check on its way.
type session struct {
	TB
	stele.Store
	test   testing.TB
	ctx    context.Context
	h      Harness
	folder string
}

// end verifies and closes the store.
func (s *session) end() {
	s.Helper()
	if s.Store == nil {
		return
	}
	s.verify()
	s.close()
}

// verify fails if the store finds anything wrong with itself.
func (s *session) verify() {
	s.Helper()
	if err := s.Verify(s.ctx, func(problem *stele.Message) { s.Errorf("Verify reports: %s", problem) }); err != nil {
		s.Errorf("Verify: %v", err)
	}
}

// close closes the store. An iterator that was left early and not released shows
// here in many stores.
func (s *session) close() {
	s.Helper()
	if err := s.Close(); err != nil {
		s.Errorf("Close: %v", err)
	}
	s.Store = nil
}

// reopen closes the store and opens it again.
func (s *session) reopen() {
	s.Helper()
	s.close()
	s.Store = s.h.Open(s.test, s.folder)
}

// other opens the store in another folder, as a session of its own. The caller
// ends it.
func (s *session) other(folder string) *session {
	o := *s
	o.folder = folder
	o.Store = s.h.Open(s.test, folder)
	return &o
}
