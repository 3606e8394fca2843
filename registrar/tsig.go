package registrar

import (
	"context"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
)

// maxTSIG bounds the keys of secondaries, those that were retired too.
const maxTSIG = 10_000

// TSIGKeys returns the cells with the TSIG keys of name servers, including secrets.
// Only an administrator may: a key is valid for every zone that names it.
func (r *Registrar) TSIGKeys(ctx context.Context) (list []stele.Cell, err error) {
	const op = "show TSIG keys"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return nil, err
	}
	for c, err := range r.store.Cells(ctx, zonekey.TSIGCellPrefix, "") {
		if err != nil {
			return nil, tell(op, err)
		}
		list = append(list, c)
	}
	return list, nil
}

// SetTSIGKey changes the cell of a key, whose name is an absolute domain name in lower
// case: change is called with what is there, nil if nothing is, and returns what is to
// be; and again if another writer was faster. Only an administrator may.
func (r *Registrar) SetTSIGKey(ctx context.Context, name string, change func(value []byte) ([]byte, error)) error {
	const op = "set TSIG key"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return err
	}
	if !isKeyName(name) {
		return refuse(op, stele.ID{}, stele.Invalid, "tsig-key.name-invalid", `"{name}" is not a name for a key; write one such as secondary1.example.org.`, name)
	}
	for attempt := 1; ; attempt++ {
		key, err := r.secretKey(ctx, op)
		if err != nil {
			return err
		}
		before, err := r.store.Cell(ctx, zonekey.TSIGCellPrefix+name)
		if err != nil {
			return tell(op, err)
		}
		after, err := change(before)
		if err != nil {
			return tell(op, err)
		}
		if before == nil {
			if err := r.roomForTSIG(ctx, op); err != nil {
				return err
			}
		}
		err = r.apply(ctx, op, underKey(&stele.Commit{Cells: []stele.CellChange{{Name: zonekey.TSIGCellPrefix + name, Before: before, After: after}}}, key))
		if err == nil {
			r.o.OnNamespaces() // the name server has to learn of it
			return nil
		}
		if !r.again(ctx, err, attempt) {
			return err
		}
	}
}

// isKeyName reports whether a text is an absolute domain name as the settings of zones
// can have it.
func isKeyName(name string) bool {
	if len(name) < 2 || len(name) > 254 || name[len(name)-1] != '.' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0 && name[i-1] != '.') {
			return false
		}
	}
	return true
}

// roomForTSIG makes sure that there may be another key.
func (r *Registrar) roomForTSIG(ctx context.Context, op string) error {
	list, err := r.TSIGKeys(ctx)
	if err == nil && len(list) >= maxTSIG {
		err = refuse(op, stele.ID{}, stele.Exhausted, "tsig-key.too-many", "there have been {count} keys, and may be no more", len(list))
	}
	return err
}
