package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strconv"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// Move gives a target of a record the address to which it has moved.
type Move struct {
	ID     string `json:"id"`
	Target int    `json:"target"` // its number in the record
	Old    string `json:"old"`    // the address that was asked
	New    string `json:"new"`
}

// Mover gives targets of many records the addresses to which they have moved, in the registry that this process has open. It changes
// a target only if it still has the address that was asked, and refuses a record that another user changes meanwhile. So
// a move that is done again changes nothing.
type Mover struct {
	Registrar *registrar.Registrar
	Schemes   *stele.Schemes

	// Pace is called before so many records are judged or written, and returns the context for it. It may be nil.
	Pace func(records int) (context.Context, error)

	// Resumed says that an earlier attempt may have written some of the records: what it wrote, and a user took back since, is
	// not written again.
	Resumed bool
}

// MaxMoves is how many targets are moved at once; the others follow when these are done.
const MaxMoves = 10_000

// MovedAt describes the findings of which [Moves] are made. It bounds how many findings are read.
func MovedAt(host string) apijson.LinkFilter {
	return apijson.LinkFilter{Kind: "moved", Host: host, Most: maxMovesRead}
}

// maxMovesRead is how many findings of a namespace are read at once for moves of a host. If none of them is one, those that follow are read, so many times in all.
const (
	maxMovesRead  = 200_000
	maxMovesTimes = 10
)

// Moves returns what findings of the link checker about a host propose, at most [MaxMoves], and whether there may be more. Findings returns those that come after
// one, which is written as its name, a tab and the number of its target, as far as [MovedAt] says.
func Moves(host string, findings func(after string) iter.Seq2[apijson.LinkFinding, error]) (moves []Move, more bool, err error) {
	return movesWithin(maxMovesTimes, host, findings)
}

// FirstMoves is [Moves] for a page, which can't wait for long: it reads as many findings as [MovedAt] says once, and no more if none of them is a move.
func FirstMoves(host string, findings func(after string) iter.Seq2[apijson.LinkFinding, error]) (moves []Move, more bool, err error) {
	return movesWithin(1, host, findings)
}

func movesWithin(times int, host string, findings func(after string) iter.Seq2[apijson.LinkFinding, error]) (moves []Move, more bool, err error) {
	if host == "" {
		return nil, false, &stele.Error{Op: "accept addresses", Kind: stele.Invalid, Err: stele.Problems{{Path: "host", Err: stele.Messagef("links.host-missing", "give the host from which the targets have moved")}}}
	}
	after := ""
	for range times {
		if moves, after, err = movesOf(findings(after)); err != nil || len(moves) > 0 || after == "" {
			break
		}
	}
	return moves, after != "", err
}

// movesOf returns what some findings propose, and the last one of them if there may be more.
func movesOf(findings iter.Seq2[apijson.LinkFinding, error]) (moves []Move, last string, err error) {
	for f, err := range findings {
		switch {
		case errors.Is(err, apijson.ErrLinksCut):
			return moves, f.ID + "\t" + strconv.Itoa(f.Target), nil
		case err != nil:
			return nil, "", err
		case f.State != "moved" || f.Final == "" || f.Final == f.URL:
			continue
		case len(moves) == MaxMoves:
			m := &moves[MaxMoves-1]
			return moves, m.ID + "\t" + strconv.Itoa(m.Target), nil
		}
		moves = append(moves, Move{ID: f.ID, Target: f.Target, Old: f.URL, New: f.Final})
	}
	return moves, "", nil
}

// Digest returns what stands for moves: those are written that a user has seen, and no others.
func Digest(moves []Move) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode(moves) // texts and numbers are always JSON
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Cut returns moves in parts of about so many. Those of a record, which are one after the other, stay together.
func Cut(moves []Move, size int) (parts [][]Move) {
	for len(moves) > 0 {
		n := min(size, len(moves))
		for n < len(moves) && moves[n].ID == moves[n-1].ID {
			n++
		}
		parts, moves = append(parts, moves[:n:n]), moves[n:]
	}
	return parts
}

// Judge finds out what becomes of each record, and tells that.
func (m *Mover) Judge(ctx context.Context, moves []Move, told func(Replaced) error) (ReplaceCounts, error) {
	counts, err := m.each(ctx, moves, 0, told)
	counts.Digest = Digest(moves)
	return counts, err
}

// Run changes the records as an import, and tells what became of each. The digest is that of the moves to which the caller agreed: if there are
// others by now, nothing is written, and the error is a Conflict.
func (m *Mover) Run(ctx context.Context, label string, moves []Move, digest string, told func(Replaced) error) (ReplaceCounts, error) {
	if digest != Digest(moves) {
		return ReplaceCounts{}, stele.Errorf("accept addresses", stele.ID{}, stele.Conflict, "links.moves-differ",
			"other targets have moved by now than you have seen; nothing was written; look at them again")
	}
	if counts, err := m.each(ctx, moves, 0, func(Replaced) error { return nil }); err != nil {
		return ReplaceCounts{}, err
	} else if counts.Changed == 0 {
		return m.each(ctx, moves, 0, told)
	}
	number, err := m.Registrar.BeginImport(ctx, label)
	if err != nil {
		return ReplaceCounts{}, err
	}
	counts, err := m.each(ctx, moves, number, told)
	counts.Import = number
	noted := m.Registrar.NoteImport(context.WithoutCancel(ctx), number, registrar.ImportCounts{Updated: counts.Changed, Refused: counts.Refused})
	return counts, errors.Join(err, noted)
}

func (m *Mover) each(ctx context.Context, moves []Move, number uint64, told func(Replaced) error) (counts ReplaceCounts, err error) {
	for _, part := range Cut(moves, replacePart) {
		if m.Pace != nil {
			if ctx, err = m.Pace(len(part)); err != nil {
				return counts, err
			}
		}
		done, err := m.Write(ctx, part, number)
		if err != nil {
			return counts, err
		}
		for i := range done { // all are counted, even if the caller is gone
			if done[i].IsRefused() {
				counts.Refused++
			} else {
				counts.Changed++
			}
		}
		for i := range done {
			if err := told(done[i]); err != nil {
				return counts, err
			}
		}
	}
	return counts, nil
}

// Write changes records as a part of the import of that number, or only judges them if it is 0. It returns what became of each record.
func (m *Mover) Write(ctx context.Context, moves []Move, number uint64) (done []Replaced, err error) {
	o := registrar.ImportOptions{Update: true, Import: number, DryRun: number == 0}
	var rows []*Row
	var at []int // of the rows in done
	for len(moves) > 0 {
		n := 1
		for n < len(moves) && moves[n].ID == moves[0].ID {
			n++
		}
		one, row, version, err := m.prepare(ctx, moves[:n], number)
		if err != nil {
			return nil, err
		}
		if row != nil {
			rows, at, o.Versions = append(rows, row), append(at, len(done)), append(o.Versions, version)
		}
		done, moves = append(done, one), moves[n:]
	}
	if len(rows) == 0 {
		return done, nil
	}
	if err := Ingest(ctx, m.Registrar, rows, o); err != nil {
		return nil, err
	}
	for i, row := range rows {
		done[at[i]].Err = row.Err
	}
	return done, nil
}

// prepare makes the row that moves targets of a record; nil if the record stays as it is.
func (m *Mover) prepare(ctx context.Context, moves []Move, number uint64) (one Replaced, row *Row, version uint64, err error) {
	one.Old, one.New = moves[0].Old, moves[0].New
	if one.ID, err = m.Schemes.Parse(moves[0].ID); err != nil {
		return one, nil, 0, err
	}
	rec, err := m.Registrar.Get(ctx, one.ID)
	switch kind := stele.KindOf(err); {
	case err == nil:
	case kind == stele.NotFound || kind == stele.Forbidden || kind == stele.Gone:
		one.Err = err
		return one, nil, 0, nil
	default:
		return one, nil, 0, err
	}
	one.Title = rec.Metadata[stele.What]
	if number != 0 && rec.Import == number { // an earlier attempt has changed it
		return one, nil, 0, nil
	}
	if m.Resumed && number != 0 {
		if earlier, err := m.changed(ctx, rec.ID, number); err != nil || earlier {
			return one, nil, 0, err
		}
	}
	next := stele.Record{ID: rec.ID, Targets: slices.Clone(rec.Targets)}
	for _, move := range moves {
		if move.Target < 0 || move.Target >= len(next.Targets) || next.Targets[move.Target].URL != move.Old {
			one.Err = stele.Errorf("accept addresses", rec.ID, stele.Conflict, "links.target-differs", "the target was changed since it was checked, and stays as it is")
			if number != 0 {
				earlier, err := m.changed(ctx, rec.ID, number)
				if err != nil {
					return one, nil, 0, err
				}
				if earlier {
					one.Err = nil
				}
			}
			return one, nil, 0, nil
		}
		if next.Targets[move.Target].Partial {
			one.Err = stele.Errorf("accept addresses", rec.ID, stele.Invalid, "links.target-partial", "what follows the name is appended to the target, and the checker has asked for the target alone; look whether the new address goes on in the same way, and change the record")
			return one, nil, 0, nil
		}
		next.Targets[move.Target].URL = move.New
	}
	var said map[string]json.RawMessage
	if err := json.Unmarshal(document.AppendRecord(nil, &next), &said); err != nil {
		return one, nil, 0, err
	}
	row = &Row{}
	if row.Patch, err = json.Marshal(map[string]any{"id": rec.ID.String(), "targets": said["targets"]}); err != nil {
		return one, nil, 0, err
	}
	row.Record, err = registrar.Patch(m.Schemes, nil, row.Patch)
	return one, row, rec.Version, err
}

// changed reports whether an import has changed a record, even if it was changed again since.
func (m *Mover) changed(ctx context.Context, id stele.ID, number uint64) (bool, error) {
	return (&Replacer{Registrar: m.Registrar}).Changed(ctx, id, number)
}
