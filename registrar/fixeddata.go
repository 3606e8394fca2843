package registrar

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// fixedDataCells begins the names of cells that say which bytes a record stands for, where a protocol promises that
// these never change. A cell is written once: the registrar has no method that changes or removes one, and an edit of
// the record does not reach it. A backup has them, and those that were written since survive a restore.
const fixedDataCells = "fixed data "

const opFixData = "fix data"

// FixedData are the bytes that a record stands for, for ever: their digest, or that there are none.
type FixedData struct {
	ID     string    `json:"id"` // of the record
	Absent bool      `json:"absent,omitempty"`
	SHA256 string    `json:"sha256,omitempty"` // in hexadecimal
	Size   uint64    `json:"size,omitempty"`
	At     time.Time `json:"at"`
}

// cellOf returns the name of a cell of a record. Identifiers can be longer than names of cells.
func cellOf(mark string, id stele.ID) string {
	sum := sha256.Sum256([]byte(id.Scheme() + "\t" + id.String()))
	return mark + hex.EncodeToString(sum[:])
}

// FixedData returns which bytes a record stands for; nil if that is open. Only a server may ask, which decides who may
// see the record.
func (r *Registrar) FixedData(ctx context.Context, id stele.ID) (*FixedData, error) {
	const op = "show fixed data"
	if err := ofServer(ctx, op, id); err != nil {
		return nil, err
	}
	return r.fixedData(ctx, op, id)
}

func (r *Registrar) fixedData(ctx context.Context, op string, id stele.ID) (*FixedData, error) {
	cell := cellOf(fixedDataCells, id)
	value, err := r.store.Cell(ctx, cell)
	if err != nil || value == nil {
		return nil, tell(op, err)
	}
	d := new(FixedData)
	if err := json.Unmarshal(value, d); err != nil {
		return nil, refuse(op, id, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, cell, err)
	}
	if d.ID != id.String() {
		return nil, refuse(op, id, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, cell, "it is that of "+d.ID)
	}
	return d, nil
}

// FixData says which bytes a record stands for, and returns what holds from now on. If another server was faster, or if
// that was said before, it returns what was said then, and changes nothing. The record is the version by which the server
// found the bytes: Conflict if the store has another one when it commits, since its owner may have meant other bytes, or if the
// record's namespace was handed over by then. Only a server may.
func (r *Registrar) FixData(ctx context.Context, rec *stele.Record, d FixedData) (*FixedData, error) {
	id := rec.ID
	if err := ofServer(ctx, opFixData, id); err != nil {
		return nil, err
	}
	d.ID, d.At = id.String(), r.now()
	value, err := json.Marshal(&d)
	if err != nil {
		return nil, tell(opFixData, err)
	}
	for attempt := 1; ; attempt++ {
		kept, err := r.fixedData(ctx, opFixData, id)
		if err != nil || kept != nil {
			return kept, err
		}
		switch now, err := r.store.Record(ctx, id); {
		case err != nil:
			return nil, tell(opFixData, err)
		case now.ID != id || now.Version != rec.Version:
			return nil, refuse(opFixData, id, stele.Conflict, "record.version-not-expected", "it has version {version}, not {expected}; look at it again", now.Version, rec.Version)
		}
		// A registry to which the namespace was handed over says what its names stand for.
		switch s, err := r.view(ctx); {
		case err != nil:
			return nil, tell(opFixData, err)
		default:
			if err := r.open(ctx, opFixData, s, &stele.Record{ID: id, Version: rec.Version + 1}); err != nil {
				return nil, err
			}
		}
		// The store takes it only if there is nothing yet, and if the record still has this version, whatever this process has read.
		err = r.apply(ctx, opFixData, &stele.Commit{
			Seen:  []stele.SeenRecord{{ID: id, Version: rec.Version}},
			Cells: []stele.CellChange{{Name: cellOf(fixedDataCells, id), After: value}},
		})
		if err == nil {
			return &d, nil
		}
		if !errors.Is(err, stele.Conflict) || !r.again(ctx, err, attempt) {
			return nil, err
		}
	}
}

// ofServer makes sure that the caller is a server, and not a user.
func ofServer(ctx context.Context, op string, id stele.ID) error {
	if who := auth.From(ctx); !who.Admin || who.Token != "" {
		return refuse(op, id, stele.Forbidden, "fixed-data.server-only", "only a server reads and writes which bytes a name stands for")
	}
	return nil
}

// fixedDataEntry returns the entry of the audit trail; nil if the cell is another one.
func fixedDataEntry(ctx context.Context, op string, c *stele.CellChange) *stele.AuditEntry {
	var d FixedData
	if op != opFixData || json.Unmarshal(c.After, &d) != nil {
		return nil
	}
	e := entry(ctx, op, d.ID)
	e.Count, e.Details = 1, d.name()
	return e
}
