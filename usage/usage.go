// Package usage counts how often names are used, by the rules of COUNTER's codes of practice (Release 5.1, and Research
// Data 1.0.1), and never knows who uses them. A server hands each answer to a [Counter], which hashes what tells
// readers apart at once, with a key that is in memory only and lasts a day. One goroutine applies the rules and adds
// the figures to cells of the registry.
//
// It never stores, logs or returns an address, a user agent or a hash of them, and it never makes a request wait.
package usage

import "github.com/stele-id/stele"

// Kind is what a reader got.
type Kind uint8

const (
	Redirect    Kind = iota // of a registered name to its target: a resolution
	Description             // a page or metadata about a record
	Failure                 // the name leads nowhere
	byRule                  // a redirect by a rule of the name's namespace: the name has no record
)

// Class is what kind of reader got it.
type Class uint8

const (
	unclassified Class = iota // the user agent was not seen yet
	Regular                   // a person, with a browser
	Machine                   // a program that a person runs: curl, a script
	Robot                     // a crawler, or another program that reads what it finds
	Ignored                   // not counted at all: checks of our own
)

// The figures, by their place in [Counts].
const (
	Regulars      = iota // resolutions by people
	RegularUnique        // the same, one for a name in an hour and visitor
	Machines             // resolutions by programs that people run
	MachineUnique        // the same, one for a name in an hour and visitor
	Descriptions         // pages and metadata, by people and programs
	Robots               // resolutions and descriptions by robots
	Failures             // of a namespace only: names that lead nowhere
	Visitors             // of a namespace only: the sum of the visitors of each day
	figures
)

// Counts are the figures of a name or a namespace in a period.
type Counts [figures]uint64

// Add adds other figures.
func (c *Counts) Add(other *Counts) {
	for i := range c {
		c[i] += other[i]
	}
}

// Resolutions returns the resolutions by people and by programs that they run.
func (c *Counts) Resolutions() uint64 { return c[Regulars] + c[Machines] }

// Unique returns the unique resolutions by people and by programs that they run.
func (c *Counts) Unique() uint64 { return c[RegularUnique] + c[MachineUnique] }

// IsZero reports whether nothing was counted.
func (c *Counts) IsZero() bool { return *c == Counts{} }

// delta is what is to be added to Counts. A click that replaces an earlier one may subtract.
type delta [figures]int64

// addTo adds the delta to figures, which do not get below 0.
func (d *delta) addTo(c *Counts) {
	for i, n := range d {
		if n < 0 && uint64(-n) > c[i] {
			c[i] = 0
			continue
		}
		c[i] += uint64(n)
	}
}

func refuse(kind stele.Kind, code, text string, args ...any) error {
	return stele.Errorf("usage", stele.ID{}, kind, code, text, args...)
}
