package registrar

import (
	"bytes"
	"context"
	"iter"
	"strings"

	"github.com/stele-id/stele"
)

// Overtake makes minters go on behind where those of another store are, such as the
// one that a backup replaces: the later of both dates counts, and the greater of both
// counters, which stays shut if it is. Prefixes that only the other store knows are
// taken over. Only an administrator may, before names are made.
func (r *Registrar) Overtake(ctx context.Context, others iter.Seq2[stele.MinterState, error]) error {
	const op = "restore"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	c := &stele.Commit{}
	for m, err := range others {
		if err != nil {
			return tell(op, err)
		}
		if strings.HasPrefix(m.Name, bookmarkName("")) {
			continue
		}
		other, err := readState(m.Name, m.After)
		if err != nil {
			return err
		}
		before, err := r.store.MinterState(ctx, m.Name)
		if err != nil {
			return tell(op, err)
		}
		own, err := readState(m.Name, before)
		if err != nil {
			return err
		}
		if after := own.overtake(other); after != nil && !bytes.Equal(before, after) {
			c.Minters = append(c.Minters, stele.MinterState{Name: m.Name, Before: before, After: after})
		}
	}
	if len(c.Minters) == 0 {
		return nil
	}
	return r.apply(ctx, op, c)
}

// overtake returns the state behind both; nil if the other one adds nothing.
func (s minterState) overtake(other minterState) []byte {
	if other.date != nil {
		if s.noid != nil {
			return nil // the prefix had another kind of minter since: names differ
		}
		own := dateState{}
		if s.date != nil {
			own = *s.date
		}
		if other.date.issued && (!own.issued || own.last.Compare(other.date.last) < 0) {
			own.last, own.issued = other.date.last, true
		}
		return own.bytes()
	}
	if s.date != nil {
		return nil
	}
	next := append(noidState(nil), s.noid...)
	for _, e := range other.noid {
		i := next.find(e.template, e.seed)
		if i < 0 {
			e.shut = true
			next = append(next, e)
			continue
		}
		next[i].given = max(next[i].given, e.given)
	}
	return next.bytes()
}
