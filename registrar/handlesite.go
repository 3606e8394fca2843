package registrar

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/secret"
)

// handleSiteCell has the site by which the Handle System knows this registry's servers. There is one: all
// servers of a registry have the same keys, and HS_SITE lists them.
const handleSiteCell = "handle site"

// HandleSite is what the servers of a registry are to the Handle System.
type HandleSite struct {
	Octets []byte // HS_SITE, as GET_SITE_INFO answers it
	Key    []byte // the private key that certifies answers, as a key file has it; its public half is in Octets

	// Former is the key that Key replaced, and FormerSerial the number of the HS_SITE that has it: clients that still
	// know that one are answered with it. Nil: none.
	Former       []byte
	FormerSerial uint16

	// Keys are the SHA-256 digests, in hexadecimal, of the public keys that the site has or had. By them a site in the
	// record of a prefix is known as this one, also if a restore brought it back.
	Keys []string

	By      string
	Changed time.Time
}

// storedSite is the site as its cell has it.
type storedSite struct {
	Octets       []byte       `json:"site"`
	Key          secret.Value `json:"key,omitzero"`
	Former       secret.Value `json:"former,omitzero"`
	FormerSerial uint16       `json:"formerSerial,omitempty"`
	Keys         []string     `json:"keys,omitempty"`
	By           string       `json:"by,omitempty"`
	Changed      time.Time    `json:"changed,omitzero"`
}

// places of the two keys.
const (
	handleKeyPlace    = handleSiteCell + " key"
	handleFormerPlace = handleSiteCell + " former"
)

// HandleSite returns the site with its keys; the zero one if none was set up. Only an administrator may.
func (r *Registrar) HandleSite(ctx context.Context) (HandleSite, error) {
	const op = "show handle site"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return HandleSite{}, err
	}
	site, _, err := r.handleSite(ctx, op)
	return site, err
}

func (r *Registrar) handleSite(ctx context.Context, op string) (site HandleSite, value []byte, err error) {
	if value, err = r.store.Cell(ctx, handleSiteCell); err != nil || value == nil {
		return HandleSite{}, nil, tell(op, err)
	}
	var s storedSite
	if err := json.Unmarshal(value, &s); err != nil {
		return HandleSite{}, nil, refuse(op, stele.ID{}, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, handleSiteCell, err)
	}
	site = HandleSite{Octets: s.Octets, FormerSerial: s.FormerSerial, Keys: s.Keys, By: s.By, Changed: s.Changed}
	for _, k := range []struct {
		place string
		from  *secret.Value
		to    *[]byte
	}{{handleKeyPlace, &s.Key, &site.Key}, {handleFormerPlace, &s.Former, &site.Former}} {
		if k.from.IsZero() {
			continue
		}
		if err := r.OpenSecret(k.place, k.from); err != nil {
			return HandleSite{}, nil, err
		}
		*k.to = k.from.Clear()
	}
	return site, value, nil
}

// SetHandleSite changes the site: change is called with what is there, and again if another writer was
// faster. Only an administrator may, by a session only with a fresh proof: who has the key of the site signs for it.
func (r *Registrar) SetHandleSite(ctx context.Context, change func(*HandleSite) error) (HandleSite, error) {
	const op = "set handle site"
	if err := administrate(ctx, op, stele.ID{}); err != nil {
		return HandleSite{}, err
	}
	if err := r.needProof(ctx, op); err != nil {
		return HandleSite{}, err
	}
	for attempt := 1; ; attempt++ {
		site, before, err := r.handleSite(ctx, op)
		if err != nil {
			return HandleSite{}, err
		}
		if err := change(&site); err != nil {
			return HandleSite{}, tell(op, err)
		}
		site.By, site.Changed = auth.From(ctx).Name, r.now()
		after, key, err := r.sealSite(ctx, &site)
		if err != nil {
			return HandleSite{}, err
		}
		err = r.apply(ctx, op, underKey(&stele.Commit{Cells: []stele.CellChange{{Name: handleSiteCell, Before: before, After: after}}}, key))
		if err == nil {
			return site, nil
		}
		if !r.again(ctx, err, attempt) {
			return HandleSite{}, err
		}
	}
}

// sealSite returns the site as its cell has it, and under which key its keys are encrypted.
func (r *Registrar) sealSite(ctx context.Context, site *HandleSite) (value []byte, key string, err error) {
	s := storedSite{Octets: site.Octets, FormerSerial: site.FormerSerial, Keys: site.Keys, By: site.By, Changed: site.Changed}
	for _, k := range []struct {
		place string
		from  []byte
		to    *secret.Value
	}{{handleKeyPlace, site.Key, &s.Key}, {handleFormerPlace, site.Former, &s.Former}} {
		if k.from == nil {
			continue
		}
		*k.to = secret.NewValue(k.from)
		if err := r.SealSecret(ctx, k.place, k.to); err != nil {
			return nil, "", err
		}
		key = k.to.Key()
	}
	value, err = json.Marshal(&s)
	return value, key, tell("encrypt secret", err)
}

// sealSiteCell is a [SecretCodec] for the site; ours is false if the cell is another one.
func sealSiteCell(c stele.Cell, seal func(place string, v *secret.Value) (changed bool, err error)) (after []byte, ours bool, err error) {
	if c.Name != handleSiteCell {
		return nil, false, nil
	}
	var s storedSite
	if err := json.Unmarshal(c.Value, &s); err != nil {
		return nil, true, refuse("encrypt secret", stele.ID{}, stele.Internal, "job.cell-damaged", `the cell "{cell}" is damaged: {cause}`, c.Name, err)
	}
	changed := false
	for _, k := range []struct {
		place string
		v     *secret.Value
	}{{handleKeyPlace, &s.Key}, {handleFormerPlace, &s.Former}} {
		if k.v.IsZero() {
			continue
		}
		one, err := seal(k.place, k.v)
		if err != nil {
			return nil, true, err
		}
		changed = changed || one
	}
	if !changed {
		return nil, true, nil
	}
	after, err = json.Marshal(&s)
	return after, true, err
}
