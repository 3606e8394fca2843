package ddds

import (
	"context"
	"fmt"

	"github.com/stele-id/stele"
)

// Errors that stand inside a [stele.Error]. The first two come from a [Database],
// in one of Kind NotFound; the others from a walk, which can't go on: the rules
// are at fault, not the name.
var (
	ErrNoSuchName = stele.Messagef("ddds.no-such-name", "no such name") // NXDOMAIN
	ErrNoData     = stele.Messagef("ddds.no-rules", "no rules")         // NODATA: the name exists

	ErrNoRule       = stele.Messagef("ddds.no-rule-fits", "no rule fits")                   // Kind NotFound
	ErrLoop         = stele.Messagef("ddds.loop", "the rules lead back to themselves")      // Kind Exhausted
	ErrTooManyHops  = stele.Messagef("ddds.too-many-rewrites", "too many rewrites")         // Kind Exhausted
	ErrTooManyRules = stele.Messagef("ddds.too-many-rules", "too many rules")               // Kind Exhausted
	ErrTooLarge     = stele.Messagef("expression.too-large", "the expression is too large") // Kind Exhausted
	ErrTooMuchWork  = stele.Messagef("ddds.too-much-work", "the rules take too much work")  // Kind Exhausted
)

// RuleSet is the rules at a key.
type RuleSet struct {
	Rules []Rule
	TTL   uint32 // seconds; the records of a set share it (RFC 2181, section 5.2)
	Note  string // what the database wants told in the trace; may be empty
}

// Database holds the rules. The name is in canonical form, see [CanonicalName].
//
// An implementation must tell apart: that there is no such name, or a name
// without rules ([NoSuchName], [NoData]; of Kind NotFound), and that it does not
// know right now ([TryAgain]; of Kind Unavailable). An error of any other Kind
// ends the walk. It must honour the context, and give no rules of another name
// than the one asked for, or of the one that name is an alias of. It may be asked
// by many goroutines at once, and what it returns is not changed.
type Database interface {
	NAPTR(ctx context.Context, name string) (RuleSet, error)
}

// NoSuchName is a database's answer that the name does not exist.
func NoSuchName(name string) error { return notThere(name, ErrNoSuchName) }

// NoData is a database's answer that the name has no rules. An empty RuleSet says
// the same.
func NoData(name string) error { return notThere(name, ErrNoData) }

func notThere(name string, why error) error {
	return &stele.Error{Op: "look up", Kind: stele.NotFound, Err: fmt.Errorf("%s: %w", name, why)}
}

// TryAgain is a database's answer that it does not know now, and why: a time-out,
// a server that fails.
func TryAgain(name string, why error) error {
	return &stele.Error{Op: "look up", Kind: stele.Unavailable, Err: stele.Messagef("ddds.lookup-unavailable", "{name}: {cause}; try again", name, why)}
}

// Map is a database in memory, by canonical names: for tests, and to check rules
// before they are published.
type Map map[string]RuleSet

// NAPTR returns the rules at a name.
func (m Map) NAPTR(ctx context.Context, name string) (RuleSet, error) {
	if err := ctx.Err(); err != nil {
		return RuleSet{}, TryAgain(name, err)
	}
	set, ok := m[name]
	switch {
	case !ok:
		return RuleSet{}, NoSuchName(name)
	case len(set.Rules) == 0:
		return RuleSet{}, NoData(name)
	}
	return set, nil
}
