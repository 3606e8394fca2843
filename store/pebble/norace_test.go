//go:build !race

package pebble

// See race_test.go.
const (
	modelChecks = "100"
	faultPoints = 25
)
