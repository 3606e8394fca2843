package usage

import (
	"context"
	"slices"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/namespaces"
)

// What is counted for namespaces only, never for a name: one reader would be visible.
const (
	byReferrer = "referrer"
	byCountry  = "country"
	byFailure  = "failure"
	byDNS      = "dns"
)

// Breakdown returns what is counted for a namespace, as q.By says: [Book.Referrers], [Book.Countries], [Book.Failures] or [Book.DNSHours].
func (b *Book) Breakdown(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error) {
	switch q.By {
	case byReferrer:
		return b.Referrers(ctx, q)
	case byCountry:
		return b.Countries(ctx, q)
	case byFailure:
		return b.Failures(ctx, q)
	case byDNS:
		return b.DNSHours(ctx, q)
	}
	return nil, refuse(stele.Invalid, "usage.breakdown-unknown", `"{by}" is not counted for namespaces; there are referrer, country, failure and dns`, q.By)
}

// Referrers returns how often pages of other sites referred readers to names of a namespace, by registrable domain. Of a month that
// the period touches, all days count. The errors are those of [registrar.Registrar.SightOfUsage]; Invalid if the query can't be
// right, or the prefix is not that of a namespace.
func (b *Book) Referrers(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error) {
	q.By = byReferrer
	return b.texts(ctx, q, hostCells)
}

// Countries returns how often names of a namespace were used from countries, as [Book.Referrers] does. Other has the uses
// whose country is not known.
func (b *Book) Countries(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error) {
	q.By = byCountry
	return b.texts(ctx, q, landCells)
}

// maxListed is how many texts a breakdown has if the query does not say.
const maxListed = 100

// Failures returns the names of a namespace that readers asked for most in the last week, and that lead nowhere, as
// [Book.Referrers] does. It leaves out those that were asked for once: they may be personal.
func (b *Book) Failures(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error) {
	q.By = byFailure
	today := dayOf(b.Registrar.Now().Unix())
	q.From, q.Until = dateText(today-(keepFailed-1)), dateText(today)
	return b.texts(ctx, q, failedCells)
}

// breakdown begins the answer to a query.
func (b *Book) breakdown(ctx context.Context, q apijson.UsageQuery, s span) (*apijson.UsageBreakdown, stele.NamespaceKey, error) {
	if q.Limit < 0 || q.Limit > maxRows {
		return nil, stele.NamespaceKey{}, limitOutOfRange(q.Limit)
	}
	began, err := b.began(ctx)
	if err != nil {
		return nil, stele.NamespaceKey{}, err
	}
	key, err := b.Registrar.ParsePrefix(q.Name)
	if err != nil {
		return nil, key, err
	}
	return &apijson.UsageBreakdown{Name: key.Prefix, By: q.By, From: dateText(s.from), Until: dateText(s.until), Began: began, Rows: []apijson.UsageCount{}}, key, nil
}

// namespace makes sure that a key is that of a namespace.
func (b *Book) namespace(ctx context.Context, key stele.NamespaceKey) (*stele.Namespace, error) {
	ns, err := b.Registrar.Namespace(asServer(ctx), key)
	if stele.KindOf(err) == stele.NotFound {
		return nil, refuse(stele.Invalid, "usage.not-a-namespace", "{prefix} is not the prefix of a namespace; referrers, countries, failures and answers of the DNS are counted for namespaces only, see 'stele ns ls'", key.Prefix)
	}
	return ns, err
}

// texts adds up the texts of the cells of a namespace, and of those below it that the caller may see.
func (b *Book) texts(ctx context.Context, q apijson.UsageQuery, kind string) (*apijson.UsageBreakdown, error) {
	s, err := b.period(&q)
	if err != nil {
		return nil, err
	}
	r, key, err := b.breakdown(ctx, q, s)
	if err != nil {
		return nil, err
	}
	sight, err := b.Registrar.SightOfUsage(ctx, key)
	if err != nil {
		return nil, err
	}
	if kind == failedCells { // what people typed is for those who may list names
		if _, err := b.Registrar.Sight(ctx, key); err != nil {
			return nil, err
		}
	}
	if _, err := b.namespace(ctx, key); err != nil {
		return nil, err
	}
	follows, within := 2, func(rest string) bool { return s.touches(monthOf(rest)) }
	if kind == failedCells {
		follows, within = 4, func(rest string) bool { return dayIn(rest) >= s.from && dayIn(rest) <= s.until }
	}
	var sum []Tally
	for c, err := range b.Registrar.UsageList(asServer(ctx), kind+key.Scheme+"\x00"+clip(key.Prefix, maxCellText), "") {
		if err != nil {
			return nil, err
		}
		scheme, text, rest, ok := cutCell(c.Name[len(kind):], follows)
		if !ok || !within(rest) {
			continue
		}
		text, value, err := cutText(text, c.Value)
		if err != nil {
			b.damaged(&r.Damaged, c.Name, err)
			continue
		}
		if !namespaces.IsBelow(b.Schemes, text, key.Prefix) || !sight.Sees(stele.NamespaceKey{Scheme: scheme, Prefix: text}) {
			continue // it may only begin with the same letters
		}
		list, err := parseTexts(value)
		if err != nil {
			b.damaged(&r.Damaged, c.Name, err)
			continue
		}
		// However many namespaces there are, memory is bounded.
		if sum = append(sum, list...); len(sum) > 4*maxRows {
			sum = top(merged(sum), 2*maxRows, kind != failedCells)
		}
	}
	fillTexts(r, sum, q.Limit)
	return r, nil
}

// fillTexts puts the most frequent texts into a breakdown.
func fillTexts(r *apijson.UsageBreakdown, sum []Tally, limit int) {
	sum = merged(sum)
	if r.By == byFailure {
		sum = slices.DeleteFunc(sum, func(t Tally) bool { return t.Count < 2 })
	}
	if limit == 0 {
		limit = maxListed
		if r.By == byCountry {
			limit = maxRows
		}
	}
	for _, t := range top(sum, limit, true) {
		r.Total += t.Count
		if t.Text == otherText {
			r.Other = t.Count
			continue
		}
		r.Rows = append(r.Rows, apijson.UsageCount{Text: t.Text, Count: t.Count})
	}
}

// dnsDays is how many days answers of the DNS are shown for, if the query does not say.
const dnsDays = 7

// DNSHours returns how many answers the name servers sent for the zone of a namespace, by hour. The hour of an answer is that in
// which it was written, half a minute later. The errors are those of [Book.Referrers]; NotFound if the namespace has no zone.
func (b *Book) DNSHours(ctx context.Context, q apijson.UsageQuery) (*apijson.UsageBreakdown, error) {
	q.By = byDNS
	s, err := b.period(&q)
	if err != nil {
		return nil, err
	}
	if q.From == "" {
		s.from = max(s.from, s.until-(dnsDays-1))
	}
	r, key, err := b.breakdown(ctx, q, s)
	if err != nil {
		return nil, err
	}
	if _, err := b.Registrar.SightOfUsage(ctx, key); err != nil {
		return nil, err
	}
	ns, err := b.namespace(ctx, key)
	switch {
	case err != nil:
		return nil, err
	case ns.Publication.Zone == "":
		return nil, refuse(stele.NotFound, "usage.no-zone", "the namespace {namespace} is not published in a zone of the DNS; see 'stele zone add'", key.Prefix)
	}
	r.Zone = ns.Publication.Zone
	prefix := zoneCell(r.Zone, 0)
	prefix = prefix[:len(prefix)-2]
	for c, err := range b.Registrar.UsageList(asServer(ctx), prefix, "") {
		if err != nil {
			return nil, err
		}
		if len(c.Name) != len(prefix)+2 || !s.touches(monthOf(c.Name[len(prefix):])) {
			continue
		}
		hours, err := parseHours(c.Value)
		if err != nil {
			b.damaged(&r.Damaged, c.Name, err)
			continue
		}
		first := dateAt(monthOf(c.Name[len(prefix):])).begin()
		for _, h := range hours {
			at := first.Add(time.Duration(h.Hour) * time.Hour)
			if day := dayOf(at.Unix()); day < s.from || day > s.until {
				continue
			}
			if len(r.Rows) >= maxRows {
				return nil, tooManyRows()
			}
			r.Rows = append(r.Rows, apijson.UsageCount{Text: at.Format(time.RFC3339), Count: h.Count})
			r.Total += h.Count
		}
	}
	return r, nil
}
