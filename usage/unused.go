package usage

import (
	"cmp"
	"context"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// Limits on a page of names that were not used.
const (
	maxLooked  = 100_000 // records that are looked at
	lookAtOnce = 1000    // of these, for which figures are read at once
	maxUnused  = 1000    // names
)

// unusedMonths is how many months before this one a use counts, if the query does not say.
const unusedMonths = 24

// Unused returns active records of a prefix that were not used since a month, a page of them. Uses are resolutions and descriptions,
// not those by robots. The errors are those of [registrar.Registrar.Scan]; Invalid if the query can't be right.
func (b *Book) Unused(ctx context.Context, q apijson.UnusedQuery) (*apijson.Unused, error) {
	since := DateOf(b.Registrar.Now()).Next(-unusedMonths)
	if q.Since != "" {
		day, err := readDay("since", q.Since, false)
		if err != nil {
			return nil, err
		}
		since = DateOf(dateOf(day))
	}
	if q.Limit < 0 || q.Limit > maxUnused {
		return nil, pageTooLong(q.Limit, maxUnused)
	}
	key, err := b.Registrar.ParsePrefix(q.Name)
	if err != nil {
		return nil, err
	}
	began, err := b.began(ctx)
	if err != nil {
		return nil, err
	}
	u := &apijson.Unused{Name: key.Prefix, Since: since.String(), Began: began, Names: []apijson.UnusedName{}, Next: q.After}
	limit := cmp.Or(q.Limit, maxListed)
	for looked := 0; looked < maxLooked; looked += lookAtOnce {
		page, last, err := b.records(ctx, key, u.Next)
		if err != nil {
			return nil, err
		}
		used, err := b.usedSince(ctx, key, page, since, &u.Damaged)
		if err != nil {
			return nil, err
		}
		for _, rec := range page {
			u.Next = rec.ID.String()
			if used[rec.ID.String()] {
				continue
			}
			u.Names = append(u.Names, apijson.UnusedName{Name: u.Next, Created: rec.Created.UTC().Format(time.RFC3339)})
			if len(u.Names) == limit {
				return u, nil
			}
		}
		if u.Next = last; last == "" {
			break
		}
	}
	return u, nil
}

// records returns the active records among the next lookAtOnce of a prefix after a text, and the text of the last one that it looked at: "" if
// there are no more.
func (b *Book) records(ctx context.Context, key stele.NamespaceKey, after string) (page []*stele.Record, last string, err error) {
	looked := 0
	for rec, err := range b.Registrar.Scan(ctx, key, after) {
		if err != nil {
			return nil, "", err
		}
		if rec.State == stele.Active && b.Schemes.IsWithin(rec.ID, key.Prefix) {
			page = append(page, &stele.Record{ID: rec.ID, Created: rec.Created})
		}
		if looked++; looked == lookAtOnce {
			return page, rec.ID.String(), nil
		}
	}
	return page, "", nil
}

// usedSince returns which of the records, which are in order, were used since a month. A name whose figures can't be read may have been used.
func (b *Book) usedSince(ctx context.Context, key stele.NamespaceKey, page []*stele.Record, since Date, damaged *int) (map[string]bool, error) {
	used := make(map[string]bool)
	if len(page) == 0 {
		return used, nil
	}
	scheme := recordCells + key.Scheme + "\x00"
	// Cells are in the order of names, except for names that are too long for the names of their cells: these are among
	// those with the same beginning.
	until := scheme + clip(page[len(page)-1].ID.String(), maxCellText) + "\x02"
	for c, err := range b.names(ctx, scheme+clip(key.Prefix, maxCellText), scheme+clip(page[0].ID.String(), maxCellText)) {
		if err != nil {
			return nil, err
		}
		if c.Name > until {
			break
		}
		_, text, rest, ok := cutCell(c.Name[len(recordCells):], 2)
		if !ok || monthOf(rest) < since.number() {
			continue
		}
		full, value, err := cutText(text, c.Value)
		if err != nil {
			b.damaged(damaged, c.Name, err)
			continue
		}
		m, err := parseMonth(value)
		if err != nil {
			b.damaged(damaged, c.Name, err)
			used[full] = true
			continue
		}
		if sum := m.Sum(); sum.Resolutions() > 0 || sum[Descriptions] > 0 {
			used[full] = true
		}
	}
	return used, nil
}

func pageTooLong(limit, most int) error {
	return refuse(stele.Invalid, "usage.unused-limit-out-of-range", "the limit is {limit}; write a number up to {most}, and ask again with what next says for more", limit, most)
}
