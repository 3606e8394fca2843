package harvest

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// Limits on names that are to be withdrawn.
const (
	maxPending  = 1_000_000
	maxByOAI    = 5_000_000
	chunkBytes  = 3000 // of names in one bookmark, encoded
	withdrawing = 100  // at once
)

// pending are the names that are to be withdrawn at the end of a harvest, when it is known how many there are. They are kept beside the
// bookmark, since a harvest may be interrupted before its end.
type pending struct {
	list  []stele.ID
	has   map[stele.ID]bool
	lines []string // that are not kept yet: + or -, and a name
}

func newPending() pending { return pending{has: make(map[stele.ID]bool)} }

// add notes a name. It returns false if it is noted already.
func (p *pending) add(id stele.ID) bool {
	if p.has[id] {
		return false
	}
	p.has[id] = true
	p.list = append(p.list, id)
	p.lines = append(p.lines, "+"+id.String())
	return true
}

// revive takes a name out that is there again.
func (p *pending) revive(id stele.ID) {
	if p.has[id] {
		p.has[id] = false
		p.lines = append(p.lines, "-"+id.String())
	}
}

// names returns the names that are noted, in their order.
func (p *pending) names() (list []stele.ID) {
	done := make(map[stele.ID]bool)
	for _, id := range p.list {
		if p.has[id] && !done[id] {
			done[id] = true
			list = append(list, id)
		}
	}
	return list
}

// delete notes a record that is deleted at its source. One that is not known here is left alone.
func (h *Harvest) delete(ctx context.Context, item *Item) error {
	id, ok, err := h.deletedName(ctx, item.Identifier)
	if err != nil {
		return err
	}
	if !ok {
		h.mark.Unknown++
		return nil
	}
	rec, err := h.To.Get(ctx, id)
	switch {
	case errors.Is(err, stele.NotFound), err == nil && rec.ID != id:
		h.mark.Unknown++
		return nil
	case err != nil:
		return err
	case rec.State == stele.Withdrawn:
		h.mark.Unchanged++
		return nil
	case rec.Metadata[oaiField] != cleaned(item.Identifier) && !h.Yes:
		h.reject(item, stele.Errorf(op, id, stele.Conflict, "harvest.deleted-not-harvested", "the repository says that it is deleted, and its record here did not come from there; if that is right, withdraw it with stele withdraw, or give the same command with --again --yes"))
		return nil
	case len(id.String()) > chunkBytes:
		h.reject(item, stele.Errorf(op, id, stele.Invalid, "harvest.deleted-name-too-long", "it is deleted at its source, and the name is too long to be withdrawn by a harvest; withdraw it with stele withdraw"))
		return nil
	}
	if !h.pending.add(id) {
		return nil
	}
	if h.mark.Waiting++; len(h.pending.list) > maxPending {
		return refuse(stele.Invalid, "harvest.too-many-deleted", "the repository says of more than {most} names that they are deleted; harvest its sets, or parts of the time, one by one", maxPending)
	}
	if h.DryRun && h.Deleted != nil {
		h.Deleted(id)
	}
	return nil
}

// deletedName returns the name of a record of which only the identifier in the repository is known: that is a name itself, or ends
// with one, or is kept with the record.
func (h *Harvest) deletedName(ctx context.Context, identifier string) (stele.ID, bool, error) {
	candidates := []string{identifier}
	if parts := strings.SplitN(identifier, ":", 3); len(parts) == 3 && parts[0] == "oai" { // oai:host:what
		candidates = append(candidates, parts[2])
	}
	if id, ok := h.nameOf(candidates); ok {
		return id, true, nil
	}
	if h.byOAI == nil {
		h.byOAI = make(map[string]stele.ID)
		for rec, err := range h.To.Export(ctx, h.Into, false) {
			if err != nil {
				return stele.ID{}, false, err
			}
			if one := rec.Metadata[oaiField]; one != "" && h.isInside(rec.ID) {
				if h.byOAI[one] = rec.ID; len(h.byOAI) > maxByOAI {
					return stele.ID{}, false, refuse(stele.Invalid, "harvest.namespace-too-large", "the namespace has more than {most} names of repositories; harvest into namespaces below it", maxByOAI)
				}
			}
		}
	}
	id, ok := h.byOAI[cleaned(identifier)]
	return id, ok, nil
}

// writePending keeps what is new of the names that are to be withdrawn, before the bookmark says that their page is done.
func (h *Harvest) writePending(ctx context.Context) error {
	for len(h.pending.lines) > 0 && !h.DryRun {
		n, size := 0, 0
		for n < len(h.pending.lines) && (n == 0 || size+len(h.pending.lines[n])+1 <= chunkBytes) {
			size += len(h.pending.lines[n]) + 1
			n++
		}
		text, name := strings.Join(h.pending.lines[:n], "\n"), h.chunkName(h.mark.Chunks)
		if err := h.claim(ctx); err != nil {
			return err
		}
		held, err := h.To.Bookmark(ctx, name) // of an earlier harvest
		if err != nil {
			return err
		}
		if now, err := h.To.Bookmark(ctx, h.key); err != nil {
			return err
		} else if !bytes.Equal(now, h.held) {
			return errTwice
		}
		if _, err := h.To.Ingest(ctx, nil, registrar.ImportOptions{Update: true, Name: name, Bookmark: []byte(text), OnlyAfter: true, Held: held}); err != nil {
			return err
		}
		h.mark.Chunks++
		h.pending.lines = h.pending.lines[n:]
	}
	h.pending.lines = nil
	return nil
}

// errTwice says that another run of the same harvest has gone on.
var errTwice = refuse(stele.Conflict, "harvest.runs-twice", "the same harvest was begun at another place meanwhile; wait until that has ended, and give the command again")

// claim makes the harvest that of this run, before it writes beside the bookmark: another run that goes on from the same bookmark can't
// write it any more.
func (h *Harvest) claim(ctx context.Context) error {
	if h.claimed {
		return nil
	}
	h.kept.Claim++
	text, err := h.kept.encode()
	if err != nil {
		return err
	}
	if _, err := h.To.Ingest(ctx, nil, registrar.ImportOptions{Update: true, Name: h.key, Bookmark: text, OnlyAfter: true, Held: h.held}); err != nil {
		return err
	}
	h.held, h.claimed, h.mark.Claim = text, true, h.kept.Claim
	return nil
}

// readPending reads what an interrupted run has noted.
func (h *Harvest) readPending(ctx context.Context) error {
	for n := range h.mark.Chunks {
		text, err := h.To.Bookmark(ctx, h.chunkName(n))
		if err != nil {
			return err
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if len(line) < 2 {
				continue
			}
			id, err := stele.NewID(h.Into.Scheme, line[1:])
			if err != nil || !h.isInside(id) {
				return refuse(stele.Internal, "harvest.bookmark-damaged", "the bookmark of the harvest is damaged ({cause}); start over with --again", brief(line))
			}
			if line[0] == '+' {
				h.pending.add(id)
			} else {
				h.pending.revive(id)
			}
		}
	}
	h.pending.lines = nil
	return nil
}

// withdraw withdraws what is deleted at its source, unless that is more than the limit.
func (h *Harvest) withdraw(ctx context.Context) error {
	list := h.pending.names()
	h.mark.Waiting = len(list)
	if len(list) == 0 {
		return nil
	}
	if h.resumed { // what the earlier run has withdrawn is counted
		var err error
		if list, err = h.active(ctx, list); err != nil {
			return err
		}
		h.mark.Waiting = len(list)
	}
	all, err := h.To.Count(ctx, h.Into)
	if err != nil {
		return err
	}
	before, err := h.readWithdrawals(ctx)
	if err != nil {
		return err
	}
	if earlier := before.sum(); !h.Yes && float64(len(list)+earlier) > h.Limit*float64(all) {
		if err := h.write(ctx, new(work)); err != nil {
			return err
		}
		return &TooManyError{Deleted: len(list), Earlier: earlier, All: all, Limit: h.Limit}
	}
	if h.DryRun {
		return nil
	}
	for len(list) > 0 {
		some := list[:min(withdrawing, len(list))]
		list = list[len(some):]
		w := new(work)
		for _, id := range some {
			rec, err := h.To.Get(ctx, id)
			switch {
			case errors.Is(err, stele.NotFound):
				continue
			case err != nil:
				return err
			case rec.State == stele.Withdrawn, rec.ID != id:
				continue
			}
			w.items, w.records, w.versions = append(w.items, &Item{Identifier: id.String(), Deleted: true}), append(w.records, h.withdrawn(rec)), append(w.versions, rec.Version)
		}
		if err := before.add(ctx, h, len(w.records)); err != nil {
			return err
		}
		if err := h.write(ctx, w); err != nil {
			return err
		}
		if h.mark.Waiting -= len(some); h.Told != nil {
			h.Told(h.mark.Counts)
		}
	}
	return nil
}

// withdrawn returns a record as the harvest withdraws it.
func (h *Harvest) withdrawn(rec *stele.Record) *stele.Record {
	copied := *rec
	copied.State, copied.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: h.Source.reason()}
	return &copied
}

// active returns the names that are not withdrawn.
func (h *Harvest) active(ctx context.Context, list []stele.ID) (left []stele.ID, err error) {
	for _, id := range list {
		rec, err := h.To.Get(ctx, id)
		switch {
		case errors.Is(err, stele.NotFound):
		case err != nil:
			return nil, err
		case rec.State != stele.Withdrawn:
			left = append(left, id)
		}
	}
	return left, nil
}

// TooManyError says that a harvest has stopped before it withdrew more names than it may.
type TooManyError struct {
	Deleted int
	Earlier int // that harvests withdrew in the last 30 days, without being told to
	All     uint64
	Limit   float64
}

// Error says what to do.
func (e *TooManyError) Error() string { return e.Unwrap().Error() }

// Unwrap returns the error with its kind.
func (e *TooManyError) Unwrap() error {
	return refuse(stele.Conflict, "harvest.many-deleted",
		"{deleted} of {all} names of the namespace are deleted in the repository, and harvests of the last 30 days withdrew {earlier}, which is more than {limit} %; none of them is withdrawn. Look whether that is right, and give the same command with --yes to withdraw them, or with --again to read the repository again", e.Deleted, e.All, e.Earlier, e.Limit*100)
}
