package stele

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// GenerationID names one generation of a registry: random bytes. The zero value names
// none.
type GenerationID [16]byte

// NewGenerationID returns a random identifier.
func NewGenerationID() (id GenerationID) {
	_, _ = rand.Read(id[:]) // it never fails
	return id
}

// ParseGenerationID reads what String writes. Invalid if it is something else.
func ParseGenerationID(text string) (id GenerationID, err error) {
	if len(text) != hex.EncodedLen(len(id)) || strings.ToLower(text) != text {
		return id, errGeneration
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil || id.IsZero() {
		return GenerationID{}, errGeneration
	}
	return id, nil
}

var errGeneration error = &Error{Op: "read generation", Kind: Invalid, Err: Messagef("generation.malformed", "a generation is written as 32 hexadecimal digits in lower case, not all of them 0")}

// String returns the identifier in hexadecimal digits.
func (id GenerationID) String() string { return hex.EncodeToString(id[:]) }

// IsZero reports whether it names no generation.
func (id GenerationID) IsZero() bool { return id == GenerationID{} }

// Position is a state of a registry: the number of its last change, in a generation.
// Change numbers of different generations have nothing to do with each other. A position
// without a generation was noted before registries had generations; it is of the first
// generation.
type Position struct {
	Generation GenerationID
	Change     uint64
}

// String returns the position as version tokens have it: the generation, a dot and the
// number of the change. Without a generation it is the number alone.
func (p Position) String() string {
	n := strconv.FormatUint(p.Change, 10)
	if p.Generation.IsZero() {
		return n
	}
	return p.Generation.String() + "." + n
}

// ParsePosition reads what String writes. Invalid if it is something else.
func ParsePosition(text string) (p Position, err error) {
	generation, number, ok := strings.Cut(text, ".")
	if !ok {
		number = text
	} else if p.Generation, err = ParseGenerationID(generation); err != nil {
		return Position{}, err
	}
	p.Change, err = strconv.ParseUint(number, 10, 64)
	if err != nil || number[0] == '+' || len(number) > 1 && number[0] == '0' {
		return Position{}, &Error{Op: "read position", Kind: Invalid, Err: Messagef("position.malformed", `a position is written as a generation, a dot and the number of a change, not as "{text}"`, text)}
	}
	return p, nil
}

// Generation is what a registry is in from its beginning, or from a restore, until the
// next restore. Change numbers, version tokens, cursors, followers and idempotency keys
// belong to one generation: a restore sets the change number back, and what was noted
// before must not meet other contents under the same number.
type Generation struct {
	ID     GenerationID
	Number uint64    // 1 for the first one, and greater for each that follows
	Began  time.Time // kept to the microsecond

	// Restored is the last change of the backup that the generation began with. It is
	// zero for the first generation.
	Restored Position

	// Replaced is the last change of the registry that the restored one replaced. It is
	// zero if there was none, or if it could not be read.
	Replaced Position
}

// Generations are the generations of a registry, the oldest first. A registry always has
// at least one. Numbers increase, and may leave some out: a restore of a backup from
// before another restore forgets the generation in between.
type Generations []Generation

// MaxGenerations is how many generations a store keeps.
const MaxGenerations = 10_000

// FirstGeneration returns the generations of a new registry.
func FirstGeneration(now time.Time) Generations {
	return Generations{{ID: NewGenerationID(), Number: 1, Began: now.Truncate(time.Microsecond).UTC()}}
}

// Last returns the present generation; the zero value if there is none.
func (g Generations) Last() Generation {
	if len(g) == 0 {
		return Generation{}
	}
	return g[len(g)-1]
}

// Next returns the generations of a registry that is restored now. The receiver is the
// list of the backup, whose last change has this number. Present and last are the
// generations and the last change of the registry that is replaced; nil and 0 if there is
// none.
func (g Generations) Next(now time.Time, change uint64, present Generations, last uint64) Generations {
	next := Generation{
		ID: NewGenerationID(), Number: max(g.Last().Number, present.Last().Number) + 1, Began: now.Truncate(time.Microsecond).UTC(),
		Restored: Position{g.Last().ID, change},
	}
	if len(present) > 0 {
		next.Replaced = Position{present.Last().ID, last}
	}
	return append(g[:len(g):len(g)], next)
}

// Check returns an error of kind Invalid if this can't be the list of a registry.
func (g Generations) Check() error {
	if len(g) == 0 || len(g) > MaxGenerations {
		return unfit(ID{}, "generation.count-out-of-range", "a registry has 1 to {most} generations, not {count}", MaxGenerations, len(g))
	}
	seen := make(map[GenerationID]bool, len(g))
	before := uint64(0)
	for _, one := range g {
		switch {
		case one.ID.IsZero() || seen[one.ID]:
			return unfit(ID{}, "generation.identifier-missing-or-repeated", "generation {number} has no identifier, or that of another one", one.Number)
		case one.Number <= before:
			return unfit(ID{}, "generation.not-increasing", "generation {number} comes after generation {previous}; numbers increase", one.Number, before)
		case one.Began.Year() < 0 || one.Began.Year() > 9999:
			return unfit(ID{}, "generation.year-implausible", "generation {number} began in the year {year}; set the clock", one.Number, one.Began.Year())
		}
		seen[one.ID], before = true, one.Number
	}
	return nil
}

// ErrRestored is in the chain of the error that refuses something from another
// generation: a version token, a cursor, an idempotency key.
var ErrRestored = Messagef("registry.restored-from-backup", "the registry was restored from a backup")

// Judge returns nil if a position is of the present generation. One that names no
// generation is of the first. Otherwise it returns a Conflict that is [ErrRestored]: what
// the position was noted for may not be there any more, and the change with its number
// may be another one. what names what holds the position, for the message.
func (g Generations) Judge(what string, p Position) error {
	last := g.Last()
	switch {
	case p.Generation == last.ID, p == Position{}, p.Generation.IsZero() && last.Number == 1:
		return nil
	}
	m := Messagef("restored", "{what} is from before the registry was restored from a backup ({began}); what was written since that backup is gone, and numbers of changes begin again: drop {what}, and read anew",
		what, last.Began.UTC().Format(time.RFC3339)).With("generation", last.ID).With("number", last.Number)
	return &Error{Kind: Conflict, Err: m.Because(ErrRestored)}
}

// AppendText appends the list as stores keep it, which is text so that a person can read
// a damaged store, one generation a line:
//
//	1 0123456789abcdef0123456789abcdef 2031-05-02T10:00:00Z
//	2 89abcdef... 2031-06-01T08:30:00Z 01234567....1042 01234567....1377
//
// that is its number, its identifier, when it began, and Restored and Replaced if there
// are any; "-" stands for one that is missing.
func (g Generations) AppendText(b []byte) ([]byte, error) {
	if err := g.Check(); err != nil {
		return b, err
	}
	for _, one := range g {
		b = fmt.Appendf(b, "%d %s %s", one.Number, one.ID, one.Began.UTC().Format(time.RFC3339Nano))
		if one.Restored != (Position{}) || one.Replaced != (Position{}) {
			b = fmt.Appendf(b, " %s %s", keptPosition(one.Restored), keptPosition(one.Replaced))
		}
		b = append(b, '\n')
	}
	return b, nil
}

// MarshalText returns the list as stores keep it; see AppendText.
func (g Generations) MarshalText() ([]byte, error) { return g.AppendText(nil) }

func keptPosition(p Position) string {
	if p == (Position{}) {
		return "-"
	}
	return p.String()
}

// UnmarshalText reads what MarshalText writes. Internal if it is damaged.
func (g *Generations) UnmarshalText(text []byte) error {
	var list Generations
	for line := range strings.Lines(string(text)) {
		one, ok := readGeneration(line)
		if !ok || len(list) == MaxGenerations {
			return damagedGenerations(line)
		}
		list = append(list, one)
	}
	if err := list.Check(); err != nil {
		return damagedGenerations(err.Error())
	}
	*g = list
	return nil
}

func damagedGenerations(what string) error {
	return &Error{Op: "read generations", Kind: Internal, Err: Messagef("generation.list-damaged", `the list of generations is damaged: "{reason}"`, what)}
}

// readGeneration reads one line.
func readGeneration(line string) (g Generation, ok bool) {
	rest, ended := strings.CutSuffix(line, "\n")
	fields := strings.Split(rest, " ")
	if !ended || len(fields) != 3 && len(fields) != 5 {
		return g, false
	}
	var errs [5]error
	g.Number, errs[0] = strconv.ParseUint(fields[0], 10, 64)
	g.ID, errs[1] = ParseGenerationID(fields[1])
	g.Began, errs[2] = time.Parse(time.RFC3339Nano, fields[2])
	if len(fields) == 5 {
		g.Restored, errs[3] = readKeptPosition(fields[3])
		g.Replaced, errs[4] = readKeptPosition(fields[4])
	}
	g.Began = g.Began.UTC()
	return g, errors.Join(errs[:]...) == nil
}

func readKeptPosition(text string) (Position, error) {
	if text == "-" {
		return Position{}, nil
	}
	return ParsePosition(text)
}
