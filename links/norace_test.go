//go:build !race

package links

// See race_test.go.
const worlds = 3
