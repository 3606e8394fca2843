package mem

import (
	"bytes"
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/store/binary"
)

// Verify implements [stele.Store]. It makes the whole state again from the
// journal, by the same rules, and reports every difference from what is kept.
func (s *Store) Verify(ctx context.Context, report func(problem *stele.Message)) error {
	st, err := s.view(ctx, "verify")
	if err != nil {
		return err
	}
	var again state
	for i, e := range st.journal {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.Seq != uint64(i)+1 {
			report(stele.Messagef("verify.change-number-differs", "the change at place {place} has the number {number}", i+1, e.Seq))
		}
		if err := again.replay(e.body, e.isNamespace(), e.Change); err != nil {
			report(stele.Messagef("verify.change-impossible", "change {number} can't have been made: {cause}", e.Seq, err))
			continue
		}
		if made := again.journal[len(again.journal)-1]; made.ID != e.ID || made.Namespace != e.Namespace || made.Version != e.Version {
			report(stele.Messagef("verify.change-names-other", `change {number} names {kind} "{name}", version {version}, and holds {held-kind} "{held-name}", version {held-version}`,
				e.Seq, e.ID, e.Namespace.Prefix, e.Version, made.ID, made.Namespace.Prefix, made.Version))
		}
	}
	same := func(a, b stele.ID) bool { return a == b }
	differ("name", st.names, again.names, same, report)
	differ("record", st.records, again.records, (*version).equal, report)
	differ("reverse look-up", st.pointing, again.pointing, same, report)
	differ("namespace", st.namespaces, again.namespaces, (*version).equal, report)
	differ("count", st.counts, again.counts, func(a, b uint64) bool { return a == b }, report)
	for name, kept := range st.minters.from("") {
		if kept == nil {
			report(stele.Messagef("verify.minter-without-state", `minter "{minter}" has no state`, name))
		}
	}
	for name, kept := range st.cells.from("") {
		if name == "" || len(name) > stele.MaxCellName || kept == nil || len(kept) > stele.MaxCell {
			report(stele.Messagef("verify.cell-impossible", `cell "{cell}", with a value of {size} bytes, is not what a cell can be`, name, len(kept)))
		}
	}
	st.verifyAudit(report)
	if st.namespaceVersions != again.namespaceVersions {
		report(stele.Messagef("verify.namespace-versions-miscounted", "the versions of namespaces are {count}, and were counted as {counted}", again.namespaceVersions, st.namespaceVersions))
	}
	st.verifyZones(report)
	if err := st.generations.Check(); err != nil {
		report(stele.Messagef("verify.generations-impossible", "the list of generations is not one that can be: {cause}", err))
	}
	return ctx.Err()
}

// replay makes a change of the journal, or of a backup, again.
func (st *state) replay(body []byte, isNamespace bool, made stele.Change) error {
	if isNamespace {
		n := new(stele.Namespace)
		if err := binary.UnmarshalNamespace(body, n); err != nil {
			return err
		}
		return st.putNamespace(n, made.At)
	}
	r := new(stele.Record)
	if err := binary.UnmarshalRecord(body, r); err != nil {
		return err
	}
	return st.putRecord(r, made.At, countAs(made))
}

func (e entry) isNamespace() bool { return !e.ID.IsValid() }

// equal compares versions, and all before them.
func (v *version) equal(other *version) bool {
	for ; v != nil && other != nil; v, other = v.before, other.before {
		if v.number != other.number || !bytes.Equal(v.body, other.body) {
			return false
		}
	}
	return v == other
}

// differ reports what one of two trees has and the other has not, or not so.
func differ[V any](what string, have, want tree[V], equal func(a, b V) bool, report func(*stele.Message)) {
	for key, v := range have.from("") {
		if w, ok := want.get(key); !ok || !equal(v, w) {
			report(stele.Messagef("verify.differs-from-journal", `the {kind} "{name}" is not what the journal says`, what, key))
		}
	}
	for key := range want.from("") {
		if _, ok := have.get(key); !ok {
			report(stele.Messagef("verify.missing-in-memory", `the {kind} "{name}" of the journal is missing`, what, key))
		}
	}
}
