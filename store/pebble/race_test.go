//go:build race

package pebble

// Pebble takes a stack trace for each table that an iterator opens when it is built with the
// race detector, which makes reads many times slower. What the detector can see in the model
// check and in TestEveryWrite, where one goroutine writes, it sees in a few rounds; ordinary
// builds (norace_test.go) run all of them.
const (
	modelChecks = "20" // sequences of the check "model" of the suite
	faultPoints = 8    // places of the workload at which TestEveryWrite lets writes fail
)
