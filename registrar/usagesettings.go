package registrar

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// usageSpaceCells begins the names of the cells that say how the use of a namespace is counted. They are not a part of
// the namespace, so that what is signed and exported of it stays the same.
const usageSpaceCells = UsageCells + "s"

// UsageSettings are how the use of a namespace is counted. Namespaces below it have settings of their own.
type UsageSettings struct {
	Namespace string    `json:"namespace"`
	Scheme    string    `json:"scheme"`
	CountAll  bool      `json:"countAll,omitempty"` // caches do not keep redirects, so that all are counted
	By        string    `json:"by,omitempty"`
	Changed   time.Time `json:"changed,omitzero"`
}

// Key returns the namespace.
func (u *UsageSettings) Key() stele.NamespaceKey {
	return stele.NamespaceKey{Scheme: u.Scheme, Prefix: u.Namespace}
}

func usageSpaceCell(key stele.NamespaceKey) string {
	return usageSpaceCells + key.Scheme + "\x00" + key.Prefix
}

// UsageSettings returns how the use of a namespace is counted, to a caller who has a role there.
func (r *Registrar) UsageSettings(ctx context.Context, key stele.NamespaceKey) (UsageSettings, error) {
	u, _, err := r.usageSettings(ctx, "show usage settings", key, stele.RoleReader)
	return u, err
}

func (r *Registrar) usageSettings(ctx context.Context, op string, key stele.NamespaceKey, least stele.Role) (u UsageSettings, value []byte, err error) {
	if err := identify(ctx, op); err != nil {
		return u, nil, err
	}
	if _, err := r.Namespace(ctx, key); err != nil {
		return u, nil, err
	}
	role, err := r.RoleIn(ctx, key)
	if err != nil {
		return u, nil, err
	}
	if !role.Includes(least) {
		return u, nil, refuse(op, stele.ID{}, stele.Forbidden, "usage.settings-not-allowed", "you may not change how the use of {namespace} is counted; ask one of its owners", key)
	}
	u.Namespace, u.Scheme = key.Prefix, key.Scheme
	if value, err = r.store.Cell(ctx, usageSpaceCell(key)); err != nil || value == nil {
		return u, nil, tell(op, err)
	}
	if err := json.Unmarshal(value, &u); err != nil {
		return u, nil, refuse(op, stele.ID{}, stele.Internal, "usage.settings-damaged", "the settings of the use of {namespace} are damaged: {cause}", key, err)
	}
	return u, value, nil
}

// SetUsageSettings changes how the use of a namespace is counted: change is called with a copy of the settings, and
// again if another request was faster. An owner may.
func (r *Registrar) SetUsageSettings(ctx context.Context, key stele.NamespaceKey, change func(*UsageSettings)) (UsageSettings, error) {
	const op = "set usage settings"
	for attempt := 1; ; attempt++ {
		u, before, err := r.usageSettings(ctx, op, key, stele.RoleOwner)
		if err != nil {
			return u, err
		}
		change(&u)
		u.Namespace, u.Scheme, u.By, u.Changed = key.Prefix, key.Scheme, auth.From(ctx).Name, r.now()
		after, err := json.Marshal(&u)
		if err != nil {
			return u, tell(op, err)
		}
		err = r.apply(ctx, op, &stele.Commit{Cells: []stele.CellChange{{Name: usageSpaceCell(key), Before: before, After: after}}})
		if err == nil || !r.again(ctx, err, attempt) {
			return u, err
		}
	}
}

// UsageSpaces returns the settings of all namespaces that have some. The caller is a server.
func (r *Registrar) UsageSpaces(ctx context.Context) (list []UsageSettings, err error) {
	for c, err := range r.UsageList(ctx, usageSpaceCells, "") {
		if err != nil {
			return nil, err
		}
		var u UsageSettings
		if err := json.Unmarshal(c.Value, &u); err != nil {
			r.o.Log.Error("the settings of the use of a namespace can't be read", "cell", c.Name, "error", err.Error())
			continue
		}
		list = append(list, u)
	}
	return list, nil
}
