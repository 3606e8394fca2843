package mint

import (
	"bytes"
	"math/bits"
	"strconv"

	"github.com/stele-id/stele"
)

// The order in which the original program issues the names of a quasi-random template
// (John Kunze: Noid, 2002-2006, in Perl; the subroutines init_counters and genid of Noid.pm),
// and its successor for expandable masks (EggNog::Nog; CDLUC3/ezid has it in Python as
// impl/nog_sql/ezid_minter.py):
//
//   - The numbers of the mask are cut into at most 293 ranges of the same size, except for the
//     last. A subcounter says how far each range is used up.
//   - For each name the program seeds Perl's generator with the count of names so far, draws one
//     number, and takes the next of that subcounter. One that is used up leaves the list.
//   - A subcounter is incremented before its value is used. So the numbers of a mask with total
//     names are 1 to total, and the last is written as 0, since the mask has no place for it.
//
// Names in use depend on every constant here. None may ever change.
const (
	maxSubcounters = 293 // a prime, a little more than 29 times 10

	// maxOriginal is the greatest count of names for which Perl, whose numbers are floating point,
	// computes exactly. Up to it the quotient of a count and 293 is never rounded up to the next
	// integer either, which is 1/293 away at least: the distance of two numbers there is 1/256 at
	// most, and what is rounded moves by half of it.
	maxOriginal = 1 << 53

	// germRange bounds the seeds that a germ makes.
	germRange = 1 << 16

	// maxGrowth bounds how often a mask grows: 12 times makes it longer than maxOriginal allows.
	maxGrowth = 16
)

// Step is a name of the original order: how often the mask has grown, and the number that the
// name writes with it.
type Step struct {
	Growth int
	Number uint64
}

// Subcounters is how far the original order of a template is. It is a value of its caller, for
// one goroutine: [Subcounters.Next] changes it. It is made by [Template.Subcounters].
type Subcounters struct {
	masks  []Template // by growth
	seed   uint64
	growth int
	base   uint64 // names of shorter masks
	count  uint64 // names of this mask
	size   uint64 // of a range
	values [maxSubcounters]uint64
	active [maxSubcounters]uint16 // in ascending order; the first n
	n      int
}

// Subcounters returns the beginning of the template's original order. The seed, up to 65536, is the
// germ of Nog, 0 for Noid. If expand is not 0, the mask grows when its names are used up: its
// first expand digits are written again before it (Nog: atlast "add3"). Invalid if the template is
// not quasi-random, or has too many names.
func (t Template) Subcounters(seed uint64, expand int) (*Subcounters, error) {
	switch {
	case t.order == 0:
		return nil, &stele.Error{Op: "mint", Kind: stele.Invalid, Err: errZeroTemplate}
	case t.order != 'r':
		return nil, stele.Errorf("mint", stele.ID{}, stele.Invalid, "template.order-not-random", "the names of {template} come in order; a mask that begins with r has the original order", t)
	case t.total > maxOriginal:
		return nil, stele.Errorf("mint", stele.ID{}, stele.Invalid, "template.original-too-many", "the original program can't count the names of {template}; use fewer digits", t)
	case seed > germRange:
		return nil, stele.Errorf("mint", stele.ID{}, stele.Invalid, "template.germ-too-large", "the seed of the original order is at most {most}; give 0, as the original program does", germRange)
	}
	s := &Subcounters{seed: seed, masks: []Template{t}}
	for expand > 0 && len(s.masks) < maxGrowth {
		next := s.masks[len(s.masks)-1].grown(expand)
		if next.total > maxOriginal {
			break
		}
		s.masks = append(s.masks, next)
	}
	s.begin(0)
	return s, nil
}

// grown returns the template with a mask whose first n digits are doubled; of a shorter mask the
// first one is.
func (t Template) grown(n int) Template {
	if n > len(t.digits) {
		n = 1
	}
	t.digits = t.digits[:n] + t.digits
	for i := range n { // far below the end of 64 bits: the total was less than 2^53
		if t.total *= base(t.digits[i]); t.total > maxOriginal {
			break
		}
	}
	return t
}

// begin begins the names of a mask.
func (s *Subcounters) begin(growth int) {
	total := s.masks[growth].total
	s.growth, s.count = growth, 0
	s.size = total/maxSubcounters + 1
	s.values = [maxSubcounters]uint64{}
	s.n = s.ranges()
	for i := range s.n {
		s.active[i] = uint16(i)
	}
}

// ranges returns how many ranges the present mask has.
func (s *Subcounters) ranges() int {
	total := s.masks[s.growth].total
	return int((total + s.size - 1) / s.size)
}

// top returns how many numbers a range has.
func (s *Subcounters) top(i int) uint64 {
	return min(s.size, s.masks[s.growth].total-uint64(i)*s.size)
}

// Given returns how many names were issued.
func (s *Subcounters) Given() uint64 { return s.base + s.count }

// Clone returns a copy that changes on its own.
func (s *Subcounters) Clone() *Subcounters {
	c := *s
	return &c
}

// Template returns the template with its mask as it is after some growth.
func (s *Subcounters) Template(growth int) Template { return s.masks[growth] }

// RangeSize returns how many numbers a subcounter of the present mask has, except for the last one, and how
// many subcounters there are.
func (s *Subcounters) RangeSize() (size uint64, ranges int) { return s.size, s.ranges() }

// Total returns how many names there are in all, with all that the mask grows to.
func (s *Subcounters) Total() (n uint64) {
	for _, t := range s.masks {
		n += t.total
	}
	return n
}

// Next issues a name. Past the last one the error's Kind is [stele.Exhausted].
func (s *Subcounters) Next() (Step, error) {
	if s.n == 0 {
		if s.growth+1 == len(s.masks) {
			return Step{}, s.exhausted()
		}
		s.base += s.count
		s.begin(s.growth + 1)
	}
	at := pick(s.germ(), s.n)
	i := s.active[at]
	s.values[i]++
	s.count++
	value := s.values[i]
	if value >= s.top(int(i)) {
		copy(s.active[at:s.n-1], s.active[at+1:s.n])
		s.n--
	}
	number := uint64(i)*s.size + value
	if number == s.masks[s.growth].total {
		number = 0
	}
	return Step{s.growth, number}, nil
}

func (s *Subcounters) exhausted() error {
	return &stele.Error{Op: "mint", Kind: stele.Exhausted, Err: stele.Messagef(
		"template.exhausted", "all {total} names of the template {template} are given; make a longer one", s.Total(), s.masks[0])}
}

// germ returns with what the generator is seeded for the next name. Perl takes 32 bits of it.
func (s *Subcounters) germ() uint32 {
	if s.seed == 0 {
		return uint32(s.count)
	}
	return uint32(s.seed * (s.count + 1) % germRange)
}

// pick returns what Perl's int(rand(n)) is right after srand(seed). The generator is POSIX's drand48
// after srand48, which is linear congruential with 48 bits; Perl has its own since 5.20, and used the C
// library's before (perlfunc, rand). The number that it draws is a fraction of 2^48. Perl multiplies it
// by n in floating point, so the product is rounded to 53 bits, to an even one if it is in the middle.
func pick(seed uint32, n int) int {
	x := ((uint64(seed)<<16|0x330E)*0x5DEECE66D + 0xB) & (1<<48 - 1)
	p := x * uint64(n) // less than 2^57
	if more := bits.Len64(p) - 53; more > 0 {
		half := uint64(1) << (more - 1)
		p += half - 1 + p>>more&1
		p = p >> more << more
	}
	return int(p >> 48)
}

// Issued reports whether the name was issued.
func (s *Subcounters) Issued(step Step) bool {
	if step.Growth != s.growth {
		return step.Growth >= 0 && step.Growth < s.growth
	}
	number, total := step.Number, s.masks[s.growth].total
	if number >= total {
		return false
	}
	if number == 0 {
		number = total
	}
	i := (number - 1) / s.size
	return number-i*s.size <= s.values[i]
}

// Find returns which step a name is; ok is false if the template never makes it.
func (s *Subcounters) Find(authority, name string) (step Step, ok bool) {
	for growth, t := range s.masks {
		if number, ok := t.Read(authority, name); ok {
			return Step{growth, number}, true
		}
	}
	return Step{}, false
}

// AppendText appends the values of the present mask's subcounters: decimal, with commas. With
// [Subcounters.Given] they are the whole state.
func (s *Subcounters) AppendText(b []byte) []byte {
	for i := range s.ranges() {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, s.values[i], 10)
	}
	return b
}

// Resume continues where another process, or the original program, stopped: after so many names, with
// these values of subcounters, as [Subcounters.AppendText] writes them. Invalid if they do not fit the
// template, or each other.
func (s *Subcounters) Resume(given uint64, text []byte) error {
	c := *s
	c.base = 0
	growth := 0
	for growth+1 < len(c.masks) && given-c.base > c.masks[growth].total { // it grows when the next name is asked for
		c.base += c.masks[growth].total
		growth++
	}
	c.begin(growth)
	c.n = 0
	for i := range c.ranges() {
		field, rest, more := bytes.Cut(text, []byte{','})
		value, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil || more != (i+1 < c.ranges()) || value > c.top(i) {
			return s.misfit(i)
		}
		if text = rest; value < c.top(i) {
			c.active[c.n] = uint16(i)
			c.n++
		}
		c.values[i] = value
		c.count += value
	}
	if c.Given() != given {
		return stele.Errorf("mint", stele.ID{}, stele.Invalid, "template.subcounters-wrong-sum", "the counters of {template} are at {sum} together, and {given} names are given", s.masks[0], c.Given(), given)
	}
	*s = c
	return nil
}

func (s *Subcounters) misfit(i int) error {
	return stele.Errorf("mint", stele.ID{}, stele.Invalid, "template.subcounters-wrong", "the counter {number} of {template} is missing, or not a number that it can have", i, s.masks[0])
}
