package main

import (
	"errors"
	"hash/maphash"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// rehearsalNames is how many names a rehearsal remembers, to find those that come
// again. It bounds its memory, to about 400 MB.
const rehearsalNames = 10_000_000

// rehearsal remembers what an import that writes nothing would have written.
type rehearsal struct {
	seed maphash.Seed
	seen map[uint64]uint64 // by the hash of a name: that of the record's content
	full bool              // there were more names than it remembers
}

func newRehearsal() *rehearsal {
	return &rehearsal{seed: maphash.MakeSeed(), seen: make(map[uint64]uint64)}
}

var errRepeated = errors.New("an earlier line has this name, and says something else")

// repeated judges rows whose names came before, and returns the others.
func (h *rehearsal) repeated(rows []*importRow, update bool) (others []*importRow) {
	for _, row := range rows {
		content := maphash.Bytes(h.seed, contentOf(row.record))
		before, again := h.seen[h.name(row.record.ID)]
		taken := again
		for _, alias := range row.record.Aliases {
			if other, ok := h.seen[h.name(alias)]; ok && other != content {
				taken = true
			}
		}
		switch {
		case again && before == content:
			row.err = registrar.ErrUnchanged
		case again && update:
			row.record.Version = 2 // as it would have
		case taken:
			row.err = errRepeated
		default:
			others = append(others, row)
		}
		if row.err == nil {
			h.remember(row.record, content)
		}
	}
	return others
}

func (h *rehearsal) name(id stele.ID) uint64 {
	return maphash.String(h.seed, id.Scheme()+" "+id.String())
}

func (h *rehearsal) remember(rec *stele.Record, content uint64) {
	if len(h.seen) >= rehearsalNames {
		h.full = true
		return
	}
	for _, name := range rec.Names() {
		h.seen[h.name(name)] = content
	}
}

// contentOf returns what people set of a record.
func contentOf(rec *stele.Record) []byte {
	c := *rec
	c.Version, c.By, c.Redacted, c.Import, c.Withheld = 0, "", false, 0, stele.Withheld{}
	c.Created, c.Modified = time.Time{}, time.Time{}
	return c.AppendJSON(nil)
}
