package bulk

import (
	"hash/maphash"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
)

// RehearsalNames is how many names a dry run remembers, to find those that come
// again. It bounds its memory, to about 400 MB.
const RehearsalNames = 10_000_000

// rehearsal remembers what an import that writes nothing would have written.
type rehearsal struct {
	seed maphash.Seed
	seen map[uint64]uint64 // by the hash of a name: that of the record's content
	full bool              // there were more names than it remembers
}

func newRehearsal() *rehearsal {
	return &rehearsal{seed: maphash.MakeSeed(), seen: make(map[uint64]uint64)}
}

var errRepeated = stele.Messagef("import.earlier-line-differs", "an earlier line has this name, and says something else")

// repeated judges rows whose names came before, and returns the others.
func (h *rehearsal) repeated(rows []*Row, update bool) (others []*Row) {
	for _, row := range rows {
		content := maphash.Bytes(h.seed, contentOf(row.Record))
		before, again := h.seen[h.name(row.Record.ID)]
		again = again && !row.Nameless // each row gets a name of its own
		taken := again
		for _, alias := range row.Record.Aliases {
			if other, ok := h.seen[h.name(alias)]; ok && (row.Nameless || other != content) {
				taken = true
			}
		}
		switch {
		case again && before == content:
			row.Err = registrar.ErrUnchanged
		case again && update:
			row.Record.Version = 2 // as it would have
		case taken:
			row.Err = errRepeated
		default:
			others = append(others, row)
		}
		if row.Err == nil {
			h.remember(row, content)
		}
	}
	return others
}

func (h *rehearsal) name(id stele.ID) uint64 {
	return maphash.String(h.seed, id.Scheme()+" "+id.String())
}

func (h *rehearsal) remember(row *Row, content uint64) {
	if len(h.seen) >= RehearsalNames {
		h.full = true
		return
	}
	names := row.Record.Names()
	if row.Nameless {
		names = row.Record.Aliases
	}
	for _, name := range names {
		h.seen[h.name(name)] = content
	}
}

// contentOf returns what people set of a record.
func contentOf(rec *stele.Record) []byte {
	c := *rec
	c.Version, c.By, c.Redacted, c.Import, c.Withheld = 0, "", false, 0, stele.Withheld{}
	c.Created, c.Modified = time.Time{}, time.Time{}
	return document.AppendRecord(nil, &c)
}
