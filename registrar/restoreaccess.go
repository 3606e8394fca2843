package registrar

import (
	"bytes"
	"context"
	"iter"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/auth/password"
	"github.com/stele-id/stele/publish/zonekey"
)

// accessMarks begin the names of the cells of access control and credentials: users,
// tokens and when they were used, what users prefer, their mail addresses, passkeys, passwords, accounts at OpenID providers, the key of the links that end
// digests, the keys of zones and of their transfers, secrets of handles, the key by which clients know the site of the Handle System, and the keys by
// which readers know the log.
var accessMarks = []string{auth.UserCells, auth.TokenCells, auth.UsedCells, auth.PreferenceCells, auth.MailboxCells, auth.PasskeyCells, password.Cells, auth.IdentityCells, auth.DigestKeyCell, zonekey.CellPrefix, zonekey.TSIGCellPrefix, HandleSecretCells, handleSiteCell, logKeysCell, secretCell}

// IsAccess reports whether a cell belongs to access control or is a credential.
func IsAccess(cell stele.Cell) bool {
	for _, mark := range accessMarks {
		if strings.HasPrefix(cell.Name, mark) {
			return true
		}
	}
	return false
}

// RestoreAccess takes over users, tokens and keys from another store, such as the one
// that a backup replaces: where both have a user, a token or a key, the other store's
// is used. So a token that was revoked after the backup was made stays revoked, a zone
// is signed with the keys that the domain above points at, and the restoring operator
// is not locked out. Only an administrator may.
func (r *Registrar) RestoreAccess(ctx context.Context, others iter.Seq2[stele.Cell, error]) error {
	const op = "restore"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	taken := cellWriter{r: r, op: op}
	known := make(map[string]bool)    // tokens that the other store has
	tokens := make(map[string]uint64) // how many each user has there
	for cell, err := range others {
		if err != nil {
			return tell(op, err)
		}
		if !IsAccess(cell) {
			continue
		}
		if t, err := auth.ReadToken(cell); err == nil && strings.HasPrefix(cell.Name, auth.TokenCells) {
			known[cell.Name] = true
			tokens[t.User]++
		}
		have, err := r.store.Cell(ctx, cell.Name)
		if err != nil {
			return tell(op, err)
		}
		if have != nil && bytes.Equal(have, cell.Value) {
			continue
		}
		if err := taken.put(ctx, stele.CellChange{Name: cell.Name, Before: have, After: cell.Value}); err != nil {
			return err
		}
	}
	if err := taken.flush(ctx); err != nil {
		return err
	}
	return r.dropEnded(ctx, op, known, tokens)
}

// dropEnded removes tokens that only this store has, of users that have the maximum
// number of tokens in the other one: such a token may have been revoked there to make
// room.
func (r *Registrar) dropEnded(ctx context.Context, op string, known map[string]bool, tokens map[string]uint64) error {
	var ended []stele.CellChange
	for cell, err := range r.store.Cells(ctx, auth.TokenCells, "") {
		if err != nil {
			return tell(op, err)
		}
		if t, err := auth.ReadToken(cell); err == nil && !known[cell.Name] && tokens[t.User] >= auth.MaxTokens {
			ended = append(ended, stele.CellChange{Name: cell.Name, Before: cell.Value})
		}
	}
	gone := cellWriter{r: r, op: op}
	for _, c := range ended {
		if err := gone.put(ctx, c); err != nil {
			return err
		}
	}
	return gone.flush(ctx)
}

// cellWriter commits changes of cells, many at a time.
type cellWriter struct {
	r       *Registrar
	op      string
	pending []stele.CellChange
}

func (w *cellWriter) put(ctx context.Context, c stele.CellChange) error {
	const together = 500
	if w.pending = append(w.pending, c); len(w.pending) < together {
		return nil
	}
	return w.flush(ctx)
}

func (w *cellWriter) flush(ctx context.Context) error {
	if len(w.pending) == 0 {
		return nil
	}
	c := &stele.Commit{Cells: w.pending}
	w.pending = nil
	return w.r.apply(ctx, w.op, c)
}
