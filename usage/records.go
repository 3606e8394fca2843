package usage

import (
	"hash/maphash"
	"math/bits"

	"github.com/axiomhq/hyperloglog"

	"github.com/stele-id/stele"
)

// records are the names that were used since figures were written last, with what is to be added to their figures of a day. Nothing in it has
// a pointer for each name.
type records struct {
	index   index
	list    []recordDelta
	texts   []byte      // of all names, one after the other
	spaces  []usedSpace // to which the names belong; the first has none
	places  map[stele.NamespaceKey]uint32
	schemes []string
}

// recordDelta is what is to be added to the figures of a name on a day: 64 bytes, a line of the processor's cache. A figure grows by
// less than 2^31 between two times that figures are written.
type recordDelta struct {
	hash   uint64 // of the name and the day
	delta  [figures]int32
	text   uint32 // where its text begins
	size   uint32 // of the text
	space  uint32
	day    int32 // in days since 1970
	scheme uint8
	rule   bool // of a namespace, by its rules: no record gets it
}

// usedSpace is a namespace whose names were used.
type usedSpace struct {
	key   stele.NamespaceKey
	crowd *crowd // nil: look it up
}

// maxTexts is how many bytes the names have in memory that wait to be written.
const maxTexts = 1 << 28

// minTexts is how many bytes of names stay in memory in any case.
const minTexts = 1 << 16

// hashOfDay returns the hash of a name on a day.
func hashOfDay(name uint64, day int32) uint64 { return name + uint64(day)*0x9e3779b97f4a7c15 }

// find returns the place of a name on a day; -1 if it has none. Names with the same hash are one: with a million names in memory the chance
// that there are two is one to 10^7.
func (r *records) find(hash uint64) int {
	x := &r.index
	if len(x.slots) == 0 {
		return -1
	}
	for at := x.first(hash); x.slots[at] != 0; at = x.next(at) {
		if to, ok := place(x.slots[at], hash); ok && r.list[to].hash == hash {
			return int(to)
		}
	}
	return -1
}

// add adds a name on a day, and returns its place; -1 if there is no room.
func (r *records) add(hash uint64, id stele.ID, day int32, space stele.NamespaceKey) int {
	text := id.String()
	scheme := r.scheme(id.Scheme())
	if len(r.list) >= maxDeltas || len(r.texts)+len(text) > maxTexts || scheme < 0 {
		return -1
	}
	r.texts = append(r.texts, text...)
	return r.insert(recordDelta{hash: hash, size: uint32(len(text)), space: r.space(space), day: day, scheme: uint8(scheme)})
}

// scheme returns the number of a scheme; -1 if there are too many.
func (r *records) scheme(name string) int {
	for i, s := range r.schemes {
		if s == name {
			return i
		}
	}
	if len(r.schemes) > 255 {
		return -1
	}
	r.schemes = append(r.schemes, name)
	return len(r.schemes) - 1
}

// space returns the number of a namespace.
func (r *records) space(key stele.NamespaceKey) uint32 {
	if key.Scheme == "" {
		return 0
	}
	at, ok := r.places[key]
	if !ok {
		at = uint32(len(r.spaces))
		r.spaces = append(r.spaces, usedSpace{key: key})
		r.places[key] = at
	}
	return at
}

// text returns the name of a record. It is valid until the records are forgotten.
func (r *records) text(d *recordDelta) []byte { return r.texts[d.text : d.text+d.size] }

// forget begins with none. Memory of which most was not used is given back.
func (r *records) forget() {
	if cap(r.list) > max(minSlots, 8*len(r.list)) {
		r.list = nil
	}
	if cap(r.texts) > max(minTexts, 8*len(r.texts)) { // a few names may be long
		r.texts = nil
	}
	r.list, r.texts = r.list[:0], r.texts[:0]
	r.index.forget()
	r.spaces = append(r.spaces[:0], usedSpace{})
	r.places = make(map[stele.NamespaceKey]uint32)
}

// crowd are the visitors of a namespace on a day.
type crowd struct {
	sketch *hyperloglog.Sketch
	secret [2]uint64 // of this namespace: what the sketch gets tells nothing about visits of other namespaces
	told   uint64    // how many were added to the figures
}

// visit counts a visitor of the namespace of a name.
func (t *tally) visit(space uint32, visitor uint64) {
	s := &t.records.spaces[space]
	if s.crowd == nil {
		if s.crowd = t.crowd(s.key); s.crowd == nil {
			return
		}
	}
	high, low := bits.Mul64(visitor^s.crowd.secret[0], s.crowd.secret[1])
	hash := high ^ low
	if recent := &t.recent[hash%uint64(len(t.recent))]; *recent != hash { // to add one again changes nothing, and costs more
		*recent = hash
		s.crowd.sketch.InsertHash(hash)
	}
}

// crowd returns the visitors of a namespace on this day; nil if they are not counted.
func (t *tally) crowd(space stele.NamespaceKey) *crowd {
	c := t.crowds[space]
	if c != nil || space.Scheme == "" || len(t.crowds) >= maxSketches {
		return c
	}
	sketch, err := hyperloglog.NewSketch(12, true) // 4 KB at most, an error of 1.6%
	if err != nil {
		return nil
	}
	c = &crowd{sketch: sketch, secret: [2]uint64{maphash.String(t.seed, "a"+space.Prefix), maphash.String(t.seed, "b"+space.Prefix) | 1}}
	t.crowds[space] = c
	return c
}

// forgetCrowds begins a day without visitors.
func (t *tally) forgetCrowds() {
	clear(t.crowds)
	clear(t.recent[:])
	for i := range t.records.spaces {
		t.records.spaces[i].crowd = nil
	}
}

// tellVisitors adds the visitors that came since it was called last to the figures of namespaces.
func (t *tally) tellVisitors() {
	for space, c := range t.crowds {
		if n := c.sketch.Estimate(); n > c.told {
			t.spaceDelta(space, int32(t.day))[Visitors] += int64(n - c.told)
			c.told = n
		}
	}
}
