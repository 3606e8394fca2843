package harvest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// oaiField is the field of metadata that has the identifier which the repository uses for the record: a record that is deleted there
// has no other.
const oaiField = "oai.identifier"

// reasonDeleted begins the reason of a withdrawal by a harvest.
const reasonDeleted = "deleted at its source, "

// reason returns the reason of a withdrawal by a harvest of the source. A record that is there again is reinstated only if it was
// withdrawn so: another repository that has it does not decide that.
func (s *Source) reason() string { return reasonDeleted + s.place() }

// judgePage decides what is to be written of a page.
func (h *Harvest) judgePage(ctx context.Context, p *Page, source Source) (*work, error) {
	w := new(work)
	seen := make(map[stele.ID]bool)
	for i := range p.Items {
		item := &p.Items[i]
		if !isWithin(item.Date, source) {
			if h.mark.Outside++; h.Outside != nil {
				h.Outside(item)
			}
		}
		if item.Deleted {
			if err := h.delete(ctx, item); err != nil {
				return nil, err
			}
			continue
		}
		rec, version, err := h.judge(ctx, item)
		if err == nil && seen[rec.ID] {
			err = stele.Errorf(op, rec.ID, stele.Conflict, "harvest.name-twice", "another record of the same page has this name")
		}
		switch kind := stele.KindOf(err); {
		case err == nil:
			seen[rec.ID] = true
			h.pending.revive(rec.ID)
			w.items, w.records, w.versions = append(w.items, item), append(w.records, rec), append(w.versions, version)
		case ctx.Err() != nil, kind == stele.Unavailable, kind == stele.Internal, kind == stele.Unauthenticated:
			return nil, err
		default:
			h.reject(item, err)
		}
	}
	return w, nil
}

// isWithin reports whether a datestamp is one that was asked for.
func isWithin(date string, s Source) bool {
	at, ok := parseDate(date)
	if !ok {
		return false
	}
	if from, ok := parseDate(s.From); ok && at.Before(from) {
		// A date without a time is the whole day.
		if len(date) != len(dayForm) || at.AddDate(0, 0, 1).Compare(from) <= 0 {
			return false
		}
	}
	if until, ok := parseDate(s.Until); ok {
		if len(s.Until) == len(dayForm) {
			until = until.AddDate(0, 0, 1).Add(-1)
		}
		return !at.After(until)
	}
	return true
}

// judge returns the record that an item becomes, and the version that is registered; registrar.MustBeNew if none is.
func (h *Harvest) judge(ctx context.Context, item *Item) (*stele.Record, uint64, error) {
	if item.Err != nil {
		return nil, 0, item.Err
	}
	id, ok := h.nameOf(item.Names)
	if !ok {
		return nil, 0, refuse(stele.Invalid, "harvest.no-name", `no identifier of the record is a name in {namespace}; it has {names}`, h.Into, brief(strings.Join(item.Names, ", ")))
	}
	links := h.linksOf(item)
	before, err := h.To.Get(ctx, id)
	switch {
	case errors.Is(err, stele.NotFound):
		before = nil
	case err != nil:
		return nil, 0, err
	case before.ID != id: // the registrar says whose alias it is
		before = nil
	}
	rec := &stele.Record{ID: id, State: stele.Active}
	version := uint64(registrar.MustBeNew)
	if before != nil {
		copied := *before
		rec, version = &copied, before.Version
		rec.Metadata, rec.Targets = maps.Clone(before.Metadata), slices.Clone(before.Targets)
		switch {
		case before.State == stele.Withdrawn && before.Tombstone != nil && (before.Tombstone.Reason == h.Source.reason() || before.Tombstone.Reason == reasonDeleted+h.Source.URL): // earlier versions wrote the query too
			rec.Tombstone = nil
		case before.State == stele.Withdrawn:
			return nil, 0, stele.Errorf(op, id, stele.Conflict, "harvest.withdrawn-here", "it was withdrawn here, and the repository still has it; reinstate it first if that is right")
		}
		if before.State == stele.Reserved && !h.Yes {
			return nil, 0, stele.Errorf(op, id, stele.Conflict, "harvest.reserved-here", "it is reserved here, and the repository has it; make it active if that is right, or give the same command with --again --yes")
		}
		rec.State = stele.Active
	}
	switch {
	case before == nil && item.Update == Remove:
		return nil, 0, stele.Errorf(op, id, stele.Invalid, "harvest.removes-from-unknown", "the record removes URLs of a name that is not registered")
	case len(links) == 0 && len(rec.Targets) == 0:
		return nil, 0, stele.Errorf(op, id, stele.Invalid, "harvest.no-url", "the record has no URL, and the name is not registered yet; harvest another format, such as oai_dc")
	}
	if rec.Targets = item.targets(rec.Targets, links, h.Source.Format == Epicur); len(rec.Targets) == 0 {
		return nil, 0, stele.Errorf(op, id, stele.Invalid, "harvest.removes-last-url", "the record removes the last URL of the name, which would lead nowhere; withdraw the name if that is right")
	}
	if rec.Metadata == nil {
		rec.Metadata = make(stele.Metadata)
	}
	for name := range item.Metadata { // what it continued in before
		for n := 2; rec.Metadata[piece(name, n)] != ""; n++ {
			delete(rec.Metadata, piece(name, n))
		}
	}
	maps.Copy(rec.Metadata, item.Metadata)
	if one := cleaned(item.Identifier); one != "" && len(one) <= stele.MaxProse {
		rec.Metadata[oaiField] = one
	}
	return rec, version, nil
}

// nameOf returns the first text that is a name in the namespace.
func (h *Harvest) nameOf(texts []string) (stele.ID, bool) {
	for _, text := range texts {
		if id, err := h.Schemes.Parse(text); err == nil && h.isInside(id) {
			return id, true
		}
	}
	return stele.ID{}, false
}

// isInside reports whether a name is in the namespace.
func (h *Harvest) isInside(id stele.ID) bool {
	return id.Scheme() == h.Into.Scheme && (h.Into.Prefix == "" || h.Schemes.IsWithin(id, h.Into.Prefix))
}

// linksOf returns the URLs that the name is to lead to. Where a format has names and URLs in one list, a URL that is a name in the
// namespace, at some resolver, is not one of them, and one that is another name only if there is nothing else.
func (h *Harvest) linksOf(item *Item) []Link {
	if h.Source.Format == Epicur {
		return item.Links
	}
	var names []Link
	for _, l := range item.Links {
		id, err := h.Schemes.Parse(l.URL)
		switch {
		case err != nil:
			return []Link{l}
		case !h.isInside(id):
			names = append(names, l)
		}
	}
	return names[:min(1, len(names))]
}

// targets returns the targets that a record has with some URLs. Whole says that they are all locations of the thing; otherwise the
// first location is replaced.
func (i *Item) targets(have []stele.Target, links []Link, whole bool) []stele.Target {
	if len(links) == 0 {
		return have
	}
	at := func(l Link) int {
		return slices.IndexFunc(have, func(t stele.Target) bool { return t.Service == stele.N2L && t.URL == l.URL })
	}
	switch {
	case i.Update == Remove:
		return slices.DeleteFunc(have, func(t stele.Target) bool {
			return t.Service == stele.N2L && slices.ContainsFunc(links, func(l Link) bool { return l.URL == t.URL })
		})
	case i.Update == Insert:
		for _, l := range links {
			if at(l) < 0 {
				have = append(have, newTarget(l, false))
			}
		}
		return have
	case !whole:
		if at(links[0]) >= 0 {
			return have
		}
		if first := slices.IndexFunc(have, func(t stele.Target) bool { return t.Service == stele.N2L }); first >= 0 {
			have[first].URL, have[first].Type = links[0].URL, links[0].Type
			return have
		}
		return append(have, newTarget(links[0], true))
	}
	primary := slices.ContainsFunc(links, func(l Link) bool { return l.Primary })
	var list []stele.Target
	for k, l := range links {
		switch {
		case slices.ContainsFunc(list, func(t stele.Target) bool { return t.URL == l.URL }): // the record has it twice
		case at(l) >= 0: // with what was set here, such as one for each language
			for _, t := range have {
				if t.Service == stele.N2L && t.URL == l.URL {
					list = append(list, t)
				}
			}
		default:
			list = append(list, newTarget(l, l.Primary || !primary && k == 0))
		}
	}
	for _, t := range have {
		if t.Service != stele.N2L {
			list = append(list, t)
		}
	}
	return list
}

// newTarget returns a location. The first ones come before others.
func newTarget(l Link, first bool) stele.Target {
	t := stele.Target{Service: stele.N2L, URL: l.URL, Type: l.Type, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}
	if !first {
		t.Preference = 2 * stele.DefaultPreference
	}
	return t
}
