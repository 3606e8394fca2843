package registrar

import (
	"context"
	"crypto/sha256"
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
	Public    bool      `json:"public,omitempty"`   // all may see the figures of months, of the namespace and of each of its names
	By        string    `json:"by,omitempty"`
	Changed   time.Time `json:"changed,omitzero"`
}

// Key returns the namespace.
func (u *UsageSettings) Key() stele.NamespaceKey {
	return stele.NamespaceKey{Scheme: u.Scheme, Prefix: u.Namespace}
}

func usageSpaceCell(key stele.NamespaceKey) string {
	return string(AppendUsageText([]byte(usageSpaceCells+key.Scheme+"\x00"), key.Prefix))
}

// MaxUsageText is how many bytes of a name stand in the name of a cell of figures.
const MaxUsageText = 900

// AppendUsageText appends what stands for a text in the name of a cell of figures: the text, or if it has more than MaxUsageText bytes, these,
// 01, and 16 bytes of the SHA-256 of the whole.
func AppendUsageText(b []byte, text string) []byte {
	if len(text) <= MaxUsageText {
		return append(b, text...)
	}
	sum := sha256.Sum256([]byte(text))
	// A zero byte would end the name.
	for i := range sum {
		sum[i] |= 1
	}
	return append(append(append(b, text[:MaxUsageText]...), 1), sum[:16]...)
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
	return r.readUsageSettings(ctx, op, key)
}

// readUsageSettings reads the settings of a namespace, for all callers, and the value of their cell.
func (r *Registrar) readUsageSettings(ctx context.Context, op string, key stele.NamespaceKey) (u UsageSettings, value []byte, err error) {
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
		if code, _ := stele.CodeOf(err); code == "usage.settings-damaged" { // they are set anew
			if before, err = r.store.Cell(ctx, usageSpaceCell(key)); err != nil {
				return u, tell(op, err)
			}
			u = UsageSettings{}
		} else if err != nil {
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
		if u, ok := r.parseUsageSpace(c); ok {
			list = append(list, u)
		}
	}
	return list, nil
}

// parseUsageSpace reads the settings in a cell; false if they are damaged.
func (r *Registrar) parseUsageSpace(c stele.Cell) (u UsageSettings, ok bool) {
	if err := json.Unmarshal(c.Value, &u); err != nil {
		r.o.Log.Error("the settings of the use of a namespace can't be read", "cell", c.Name, "error", err.Error())
		return u, false
	}
	return u, true
}

// PublicNamespace returns a namespace whose figures of use all callers may see; nil if there is none. Those of the root of a scheme never are public: what is
// there belongs to no namespace, and has no owner.
func (r *Registrar) PublicNamespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error) {
	s, err := r.view(ctx)
	if err != nil || key.Prefix == "" || s.Get(key) == nil {
		return nil, err
	}
	if u, _, err := r.readUsageSettings(ctx, opReadUsage, key); err != nil || !u.Public {
		return nil, err
	}
	return cloneNamespace(s.Get(key).Namespace), nil
}

// PublicUsage returns whose figures of use all callers may see, of a namespace that [Registrar.PublicNamespace] returns and those below it: of each that says so
// itself, since the owners of one below may not want it. No name can be listed.
func (r *Registrar) PublicUsage(ctx context.Context, key stele.NamespaceKey) (seen UsageSight, err error) {
	s, err := r.view(ctx)
	if err != nil {
		return seen, err
	}
	public := make(map[stele.NamespaceKey]bool)
	prefix := usageSpaceCells + key.Scheme + "\x00" + key.Prefix[:min(len(key.Prefix), MaxUsageText)]
	for c, err := range r.store.Cells(ctx, prefix, "") {
		if err != nil {
			return seen, tell(opReadUsage, err)
		}
		if u, ok := r.parseUsageSpace(c); ok && u.Public && s.Get(u.Key()) != nil {
			public[u.Key()] = true
		}
	}
	seen.Sees = func(key stele.NamespaceKey) bool { return public[key] }
	seen.Lists = func(stele.ID) bool { return false }
	return seen, nil
}

// PubliclyUsed returns the record that has a name, if the figures of its namespace are public, and the namespace. It never returns one that is reserved,
// restricted to some readers, or without its content by a legal order. NotFound if there is none.
func (r *Registrar) PubliclyUsed(ctx context.Context, name stele.ID) (*stele.Record, stele.NamespaceKey, error) {
	rec, above, err := r.get(auth.With(ctx, auth.Principal{}), opReadUsage, name)
	if err != nil {
		return nil, stele.NamespaceKey{}, err
	}
	key := above[0].Key()
	if rec.State != stele.Reserved && rec.IsPublic() && !rec.Redacted && key.Prefix != "" {
		if u, _, err := r.readUsageSettings(ctx, opReadUsage, key); err != nil || u.Public {
			return rec, key, err
		}
	}
	return nil, key, refuse(opReadUsage, name, stele.NotFound, "usage.not-public", "the figures of the use of {name} are not public", name)
}
