package zonekey

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
)

// Parent checks what a user says of the DS records that the parent of a zone has. A nil
// Parent believes everything.
type Parent struct {
	// Find returns the name of the zone above a zone, and the data of the DS records that it
	// has for the zone, in capitals.
	Find func(ctx context.Context, zone string) (parent string, list []string, err error)
}

// Said is what a user says of the parent of a zone.
type Said struct {
	Published bool // it has the DS record of the new key
	Removed   bool // it has no DS records of the keys of the old algorithm any more
}

// CheckNext makes sure that what is said of the parent is what the next step of a roll asks for, and
// that it is so: a user who says that the parent has the new records does not say that it has
// no old ones. It does not ask the parent before the step can be done.
func (p *Parent) CheckNext(ctx context.Context, status *Status, said Said, now time.Time) error {
	if !said.Published && !said.Removed {
		return nil
	}
	leave := slices.ContainsFunc(status.Steps, func(s Step) bool { return s.To == Leaving })
	switch {
	case leave && said.Published:
		return stele.Errorf("zone roll", stele.ID{}, stele.Conflict, "zone.roll-awaits-ds-removal", "the next step is about the DS records of the old keys; when the parent of {zone} has none of them any more, give --ds-removed instead of --ds-published", status.Zone)
	case !leave && said.Removed:
		return stele.Errorf("zone roll", stele.ID{}, stele.Conflict, "zone.roll-has-no-leaving-keys", "no keys of {zone} are about to leave; --ds-removed is for that step of a change of algorithm, and 'stele zone keys {zone}' says what comes next", status.Zone)
	}
	i := slices.IndexFunc(status.Steps, func(s Step) bool { return s.Parent && !now.Before(s.From) })
	switch {
	case i < 0:
		return nil // the change is refused anyway
	case leave:
		return p.HasNoOthers(ctx, status)
	}
	return p.has(ctx, status, status.Steps[i].Key)
}

// has makes sure that the parent has the DS record of a key.
func (p *Parent) has(ctx context.Context, status *Status, tag string) error {
	if p == nil {
		return nil
	}
	parent, list, err := p.find(ctx, status.Zone)
	if err != nil {
		return err
	}
	tag = strings.TrimLeft(tag, "0")
	var wanted []string // of several digests one is enough
	for _, want := range wantedDS(status) {
		if strings.HasPrefix(want, tag+" ") {
			wanted = append(wanted, want)
		}
	}
	if len(wanted) == 0 || slices.ContainsFunc(wanted, func(want string) bool { return slices.Contains(list, want) }) {
		return nil
	}
	return stele.Errorf("zone keys", stele.ID{}, stele.Conflict, "zone.parent-without-ds", `{parent} does not have the DS record of the key {key} of {zone}, "{record}"; have it published there, and try again. If another way to the parent's servers is right, name it with --dns`, parent, tag, status.Zone, wanted[0])
}

// HasNoOthers makes sure that the parent has only DS records that the zone wants.
func (p *Parent) HasNoOthers(ctx context.Context, status *Status) error {
	if p == nil {
		return nil
	}
	parent, list, err := p.find(ctx, status.Zone)
	if err != nil {
		return err
	}
	for _, have := range list {
		if !slices.Contains(wantedDS(status), have) {
			return stele.Errorf("zone keys", stele.ID{}, stele.Conflict, "zone.parent-with-old-ds", `{parent} still has the DS record "{record}" of {zone}; have it removed there, and try again`, parent, have, status.Zone)
		}
	}
	return nil
}

func (p *Parent) find(ctx context.Context, zone string) (parent string, list []string, err error) {
	parent, list, err = p.Find(ctx, zone)
	if err != nil {
		return "", nil, stele.Errorf("zone keys", stele.ID{}, stele.Unavailable, "zone.parent-unanswered", "the parent of {zone} can't be asked for its DS records: {cause}; name a name server that knows it with --dns, or add --unchecked", zone, err)
	}
	return parent, list, nil
}

// wantedDS is the data of the DS records that the parent should have.
func wantedDS(status *Status) (list []string) {
	for _, e := range status.DS {
		if _, data, ok := strings.Cut(e.Record, " IN DS "); ok {
			list = append(list, strings.ToUpper(data))
		}
	}
	return list
}
