package harvest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// countedDays is for how many days withdrawals count: without it a repository that loses its records slowly, or is harvested in
// parts, would have all names of a namespace withdrawn, each time less than the limit.
const countedDays = 30

// withdrawals is how many names of a namespace harvests withdrew without being told to, by day. All harvests into the namespace share
// one bookmark for it.
type withdrawals struct {
	Days map[string]int `json:"days"`

	name string
	held []byte
}

// readWithdrawals reads the withdrawals of the last days.
func (h *Harvest) readWithdrawals(ctx context.Context) (*withdrawals, error) {
	sum := sha256.Sum256([]byte(h.Into.Scheme + "\n" + h.Into.Prefix))
	w := &withdrawals{name: "harvest withdrawals " + hex.EncodeToString(sum[:16])}
	var err error
	if w.held, err = h.To.Bookmark(ctx, w.name); err != nil {
		return nil, err
	}
	if w.held != nil {
		if err := json.Unmarshal(w.held, w); err != nil {
			return nil, refuse(stele.Internal, "harvest.withdrawals-damaged", "the bookmark with the withdrawals of harvests is damaged ({cause}); restore the registry from a backup", err)
		}
	}
	if w.Days == nil {
		w.Days = make(map[string]int)
	}
	oldest := h.Client.Now().UTC().AddDate(0, 0, -countedDays)
	for day := range w.Days {
		if at, err := time.Parse(dayForm, day); err != nil || at.Before(oldest) {
			delete(w.Days, day)
		}
	}
	return w, nil
}

// sum returns how many names were withdrawn.
func (w *withdrawals) sum() (n int) {
	for _, one := range w.Days {
		n += one
	}
	return n
}

// add counts names before they are withdrawn, so that a harvest that is killed never withdraws more than it counts. A user who says
// yes has looked at them, and the count begins anew.
func (w *withdrawals) add(ctx context.Context, h *Harvest, n int) error {
	switch {
	case h.Yes && w.held == nil:
		return nil
	case h.Yes:
		clear(w.Days)
	default:
		w.Days[h.Client.Now().UTC().Format(dayForm)] += n
	}
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if _, err := h.To.Ingest(ctx, nil, registrar.ImportOptions{Update: true, Name: w.name, Bookmark: text, OnlyAfter: true, Held: w.held}); err != nil {
		return err
	}
	w.held = text
	return nil
}
