//go:build race

package links

// worlds is how many years TestYear plays: one goroutine plays a year, so that the race detector finds nothing in it, and makes it ten times
// slower. Ordinary builds (norace_test.go) play more.
const worlds = 1
