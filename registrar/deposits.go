package registrar

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// ScheduledDeposit is what is known of the deposits that servers make at a place. The settings of the servers say where and how often;
// what became of it is kept in the registry.
type ScheduledDeposit struct {
	Name     string        `json:"name"`
	Place    string        `json:"place"` // URL, without secrets
	Prefixes []string      `json:"prefixes,omitempty"`
	Every    time.Duration `json:"every"`

	Deposit    string    `json:"deposit,omitempty"`    // the last one, as it is called at the place
	Deposited  time.Time `json:"deposited,omitzero"`   // when it was made
	Generation string    `json:"generation,omitempty"` // of the registry, in it
	Change     uint64    `json:"change,omitempty"`     // the last one in it
	Beside     string    `json:"beside,omitempty"`     // digest of what it has that is not in the change feed, such as the states of minters
	Records    uint64    `json:"records,omitempty"`
	Objects    int       `json:"objects,omitempty"` // that it has
	Sent       int       `json:"sent,omitempty"`    // of them, that were new
	Bytes      int64     `json:"bytes,omitempty"`   // of those
	Checked    time.Time `json:"checked,omitzero"`  // when a check last found all of the last deposit whole

	Ended    time.Time `json:"ended,omitzero"` // the last time that a server looked whether a deposit is needed, and made it
	Next     time.Time `json:"next,omitzero"`
	Failures int       `json:"failures,omitempty"` // one after the other
	Said     string    `json:"said,omitempty"`     // the last error; "" if there was none the last time

	Server string    `json:"server,omitempty"` // that works on it
	Until  time.Time `json:"until,omitzero"`   // the end of its lease
}

const (
	depositCells    = "deposit "
	opDeposit       = "escrow"
	maxDepositsSaid = 1000
	maxDepositName  = 20
)

// Deposits returns what is known of the deposits that servers make, by name. Only an administrator may.
func (r *Registrar) Deposits(ctx context.Context) (list []ScheduledDeposit, err error) {
	if err := administrate(ctx, opDeposit, stele.ID{}); err != nil {
		return nil, err
	}
	for c, err := range r.store.Cells(ctx, depositCells, "") {
		if err != nil {
			return nil, tell(opDeposit, err)
		}
		var d ScheduledDeposit
		if err := json.Unmarshal(c.Value, &d); err != nil {
			r.o.Log.ErrorContext(ctx, "what is known of deposits can't be read", "cell", c.Name, "error", err.Error())
			continue
		}
		d.Name = strings.TrimPrefix(c.Name, depositCells)
		list = append(list, d)
	}
	return list, nil
}

// DepositsOf returns what is known of the deposits that have all names of a namespace, by name: those of a namespace are in a deposit if its own
// prefix or one above it is deposited. A prefix that can't be read has no names. Callers who do not own the namespace get none.
func (r *Registrar) DepositsOf(ctx context.Context, key stele.NamespaceKey) (list []ScheduledDeposit, err error) {
	s, err := r.view(ctx)
	if err != nil {
		return nil, err
	}
	if !auth.RoleIn(auth.From(ctx), s.ancestorsAt(key)...).Includes(stele.RoleOwner) {
		return nil, nil
	}
	all, err := r.Deposits(auth.With(ctx, auth.Local()))
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		b := &Bundling{r: r, tree: s, all: len(d.Prefixes) == 0}
		for _, text := range d.Prefixes {
			if k, err := r.ParsePrefix(text); err == nil {
				b.keys, b.in = append(b.keys, k), append(b.in, s.ancestorsAt(k)[0].Key())
			}
		}
		if b.has(key) {
			list = append(list, d)
		}
	}
	return list, nil
}

// ChangeDeposit changes what is known of the deposits at a place: change is called with what there is, nil if there is nothing, and
// returns what is to be kept. It is called again if another server was faster. Only an administrator may.
func (r *Registrar) ChangeDeposit(ctx context.Context, name string, change func(before *ScheduledDeposit) (*ScheduledDeposit, error)) error {
	if err := administrate(ctx, opDeposit, stele.ID{}); err != nil {
		return err
	}
	if name == "" || len(name) > maxDepositName || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return refuse(opDeposit, stele.ID{}, stele.Invalid, "deposit.name-invalid", `"{name}" is not a name for deposits; use up to {most} of a-z, 0-9 and hyphen`, name, maxDepositName)
	}
	for attempt := 1; ; attempt++ {
		value, err := r.store.Cell(ctx, depositCells+name)
		if err != nil {
			return tell(opDeposit, err)
		}
		var before *ScheduledDeposit
		if value != nil {
			before = new(ScheduledDeposit)
			if json.Unmarshal(value, before) != nil {
				before = nil // it is written anew
			}
		}
		next, err := change(before)
		if err != nil || next == before {
			return err
		}
		next.Name, next.Said = name, strings.ToValidUTF8(next.Said[:min(len(next.Said), maxDepositsSaid)], "")
		cell := stele.CellChange{Name: depositCells + name, Before: value}
		if cell.After, err = json.Marshal(next); err != nil {
			return tell(opDeposit, err)
		}
		err = r.apply(ctx, opDeposit, &stele.Commit{Cells: []stele.CellChange{cell}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// depositEntry returns the entry about a deposit that was made or checked, or that failed; nil if a server only noted how far it is.
func depositEntry(ctx context.Context, op string, c *stele.CellChange) *stele.AuditEntry {
	var before, after ScheduledDeposit
	_ = json.Unmarshal(c.Before, &before) // what can't be read is not told
	_ = json.Unmarshal(c.After, &after)
	var what []string
	if after.Deposit != before.Deposit && after.Deposit != "" {
		what = append(what, fmt.Sprintf("made %s up to change %d, with %d records; %d of %d objects were new", after.Deposit, after.Change, after.Records, after.Sent, after.Objects))
	}
	if !after.Checked.Equal(before.Checked) && !after.Checked.IsZero() {
		what = append(what, "checked "+after.Deposit)
	}
	if after.Failures == 1 && before.Failures != 1 {
		what = append(what, "failed: "+after.Said)
	}
	if what == nil {
		return nil
	}
	e := entry(ctx, op, "deposits:"+strings.TrimPrefix(c.Name, depositCells))
	e.Details = strings.Join(what, "; ") + "; at " + after.Place
	return e
}
