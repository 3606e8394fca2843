//go:build race

package pebble

// Pebble takes a stack trace for each table that an iterator opens when it is built with the
// race detector, which makes reads many times slower. In the model check and in TestEveryWrite
// only one goroutine of the test writes, beside those of the store and of Pebble; the checks
// under load and TestFailingDisk, which have many writers, run all their rounds here too. Ordinary builds
// (norace_test.go) have more rounds: they find wrong answers, for which the detector is not needed.
const (
	modelChecks = "20" // sequences of the check "model" of the suite
	faultPoints = 8    // places of the workload at which TestEveryWrite lets writes fail
)
