package pebble

import (
	"bytes"
	"encoding/binary"

	"github.com/stele-id/stele"
	stored "github.com/stele-id/stele/store/binary"
)

// historyReader reads superseded versions beside the records, whose order they have.
type historyReader struct {
	c    *checker
	page []keyValue
	next []byte // where the next page begins; nil at the end
	end  []byte // of the part of the history that is read
	err  error
}

// peek returns the version that comes next, nil at the end.
func (h *historyReader) peek() *keyValue {
	for len(h.page) == 0 && h.next != nil && h.err == nil {
		if h.err = h.c.ctx.Err(); h.err != nil { // a page may be empty because of that, and begin where it ended
			break
		}
		h.page, h.next, h.err = h.c.page(h.next, h.end)
	}
	if len(h.page) == 0 {
		return nil
	}
	return &h.page[0]
}

// check checks the history of a record: all its versions before the current one.
func (h *historyReader) check(r *stele.Record) {
	prefix := appendHistoryPrefix(nil, r.ID)
	newer := r
	want := r.Version - 1
	for e := h.peek(); e != nil; e = h.peek() {
		rest, ours := bytes.CutPrefix(e.key, prefix)
		if !ours && bytes.Compare(e.key, prefix) > 0 {
			break
		}
		h.page = h.page[1:]
		if !ours || len(rest) != 8 {
			h.stray(e)
			continue
		}
		version := ^binary.BigEndian.Uint64(rest)
		for ; want > version && want > 0; want-- {
			h.missing(r, want)
		}
		if version > want {
			h.c.problem("verify.history-version-not-older", `the history of "{id}" has version {version}, which is not older than the current one.`, r.ID, version)
			continue
		}
		want--
		if old := h.version(e, r.ID, version); old != nil {
			h.c.must(&h.c.marked, timeKey(r.ID, old.Modified, version))
			h.erased(r, old, e.value)
			h.names(old, newer)
			newer = old
		}
	}
	for ; want > 0 && h.err == nil; want-- {
		h.missing(r, want)
	}
}

func (h *historyReader) missing(r *stele.Record, version uint64) {
	if !h.c.damaged {
		h.c.problem("verify.history-version-missing", `the history of "{id}" has no version {version}.`, r.ID, version)
	}
}

func (h *historyReader) stray(e *keyValue) {
	if !h.c.damaged {
		h.c.problem("verify.history-of-no-record", "{key} belongs to no record.", describeKey(e.key))
	}
}

// version decodes an entry and checks that it is what its key says.
func (h *historyReader) version(e *keyValue, id stele.ID, version uint64) *stele.Record {
	old, err := decodeRecord(e.key, e.value)
	if err != nil {
		h.c.problem("", "{cause}.", err)
		return nil
	}
	if old.ID != id || old.Version != version {
		h.c.problem("verify.history-has-other-version", `{key} has version {version} of "{id}".`, describeKey(e.key), old.Version, old.ID)
	}
	return old
}

// erased checks that nothing but an entry is left of a version that the record says was
// erased.
func (h *historyReader) erased(r, old *stele.Record, body []byte) {
	if old.Version > r.Withheld.Erased {
		return
	}
	if entry, err := stored.MarshalRecord(old.Entry()); err != nil || !bytes.Equal(entry, body) {
		h.c.problem("verify.erased-version-has-content", `version {version} of "{id}" was erased, and has content.`, old.Version, r.ID)
	}
}

// names checks that no name of a version is missing in the next.
func (h *historyReader) names(old, newer *stele.Record) {
	has := make(map[stele.ID]bool, len(newer.Aliases))
	for _, alias := range newer.Aliases {
		has[alias] = true
	}
	for _, alias := range old.Aliases {
		if !has[alias] {
			h.c.problem("verify.version-lost-alias", `version {version} of "{id}" has lost the alias "{alias}".`, newer.Version, newer.ID, alias)
		}
	}
}

// rest reports what is left when there are no more records.
func (h *historyReader) rest() {
	for e := h.peek(); e != nil; e = h.peek() {
		h.page = h.page[1:]
		h.stray(e)
	}
}
