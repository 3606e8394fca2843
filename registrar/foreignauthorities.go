package registrar

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// foreignCells begins the names of cells that have which other authorities know of a record.
const foreignCells = "foreign authorities "

// The operations that change them.
const (
	opAddForeign    = "add foreign authority"
	opRemoveForeign = "remove foreign authority"
)

// MaxForeign is how many other authorities may be stored of a record.
const MaxForeign = 32

// ForeignAuthority is another authority that has something to say of a record.
type ForeignAuthority struct {
	Name string    `json:"name"` // in the DNS, in lower case
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
}

// foreignAuthorities is what a cell has.
type foreignAuthorities struct {
	ID   string             `json:"id"`
	List []ForeignAuthority `json:"list"`
}

// ForeignAuthorities returns the other authorities that are stored of a record, in the order in which they were added.
// Only a server may ask, which decides who may see the record.
func (r *Registrar) ForeignAuthorities(ctx context.Context, id stele.ID) ([]ForeignAuthority, error) {
	const op = "show foreign authorities"
	if err := ofServer(ctx, op, id); err != nil {
		return nil, err
	}
	known, _, err := r.foreignAuthorities(ctx, op, id)
	return known.List, err
}

func (r *Registrar) foreignAuthorities(ctx context.Context, op string, id stele.ID) (f foreignAuthorities, value []byte, err error) {
	cell := cellOf(foreignCells, id)
	if value, err = r.store.Cell(ctx, cell); err != nil || value == nil {
		return f, nil, tell(op, err)
	}
	if err := json.Unmarshal(value, &f); err != nil {
		return f, nil, refuse(op, id, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, cell, err)
	}
	return f, value, nil
}

// AddForeignAuthority stores that another authority knows of the record with a name, for a caller who may change the
// record. What is there already changes nothing.
func (r *Registrar) AddForeignAuthority(ctx context.Context, name stele.ID, authority string) error {
	authority, err := checkAuthorityName(name, authority)
	if err != nil {
		return err
	}
	return r.changeForeign(ctx, opAddForeign, name, func(id stele.ID, list []ForeignAuthority) ([]ForeignAuthority, error) {
		switch {
		case slices.ContainsFunc(list, func(f ForeignAuthority) bool { return f.Name == authority }):
			return list, nil
		case len(list) >= MaxForeign:
			return nil, refuse(opAddForeign, id, stele.Exhausted, "foreign-authority.too-many", "there are {most} other authorities of it already; revoke one first", MaxForeign)
		}
		return append(list, ForeignAuthority{Name: authority, By: auth.From(ctx).Name, At: r.now()}), nil
	})
}

// RemoveForeignAuthority is the reverse of AddForeignAuthority. NotFound if the authority is not stored.
func (r *Registrar) RemoveForeignAuthority(ctx context.Context, name stele.ID, authority string) error {
	authority, err := checkAuthorityName(name, authority)
	if err != nil {
		return err
	}
	return r.changeForeign(ctx, opRemoveForeign, name, func(id stele.ID, list []ForeignAuthority) ([]ForeignAuthority, error) {
		left := slices.DeleteFunc(slices.Clone(list), func(f ForeignAuthority) bool { return f.Name == authority })
		if len(left) == len(list) {
			return nil, refuse(opRemoveForeign, id, stele.NotFound, "foreign-authority.missing", "{authority} is not an authority that gave notice of it", authority)
		}
		return left, nil
	})
}

// checkAuthorityName returns the name of an authority as it is stored: a host name, in lower case.
func checkAuthorityName(id stele.ID, authority string) (string, error) {
	authority = strings.ToLower(strings.TrimSpace(authority))
	if err := stele.CheckURL("http://" + authority + "/"); err != nil || strings.ContainsAny(authority, ":/?#[") {
		return "", refuse(opAddForeign, id, stele.Invalid, "foreign-authority.not-a-host", `"{authority}" is not the name of an authority; it is a domain name, such as ubio.org`, authority)
	}
	return authority, nil
}

// changeForeign commits what change makes of the list of a record.
func (r *Registrar) changeForeign(ctx context.Context, op string, name stele.ID, change func(stele.ID, []ForeignAuthority) ([]ForeignAuthority, error)) error {
	s, err := r.view(ctx)
	if err != nil {
		return err
	}
	rec, ancestors, err := r.find(ctx, op, s.lookup(), name)
	if err != nil {
		return err
	}
	if err := authorise(ctx, op, rec.ID, ancestors); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		f, before, err := r.foreignAuthorities(ctx, op, rec.ID)
		if err != nil {
			return err
		}
		list, err := change(rec.ID, f.List)
		if err != nil {
			return err
		}
		if len(list) == len(f.List) {
			return nil
		}
		c := stele.CellChange{Name: cellOf(foreignCells, rec.ID), Before: before}
		if len(list) > 0 {
			if c.After, err = json.Marshal(&foreignAuthorities{rec.ID.String(), list}); err != nil {
				return tell(op, err)
			}
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{c}})
		if err == nil || !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// foreignEntry returns the entry of the audit trail; nil if the cell is another one.
func foreignEntry(ctx context.Context, op string, c *stele.CellChange) *stele.AuditEntry {
	if !strings.HasPrefix(c.Name, foreignCells) {
		return nil
	}
	var before, after foreignAuthorities
	_ = json.Unmarshal(c.Before, &before) // what can't be read is not told
	_ = json.Unmarshal(c.After, &after)
	if after.ID == "" {
		after.ID = before.ID
	}
	e := entry(ctx, op, after.ID)
	var names []string
	for _, f := range after.List {
		names = append(names, f.Name)
	}
	e.Count, e.Details = 1, "authorities: "+strings.Join(names, " ")
	return e
}
