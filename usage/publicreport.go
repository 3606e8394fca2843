package usage

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// Limits on what the public may have the server do: a request needs no token.
const (
	maxPublicCells = 50_000 // months of namespaces that a report reads
	keptReports    = 256
	reportsKeptFor = 30 * time.Second // figures are written as often
)

func tooManySpaces() error {
	return refuse(stele.Exhausted, "usage.too-many-namespaces", "there are too many namespaces with this prefix for figures without a token; ask for one of those below it")
}

// publicReports remembers what was told to the public, so that a report of many namespaces is made once in half a minute however often it is
// asked for.
type publicReports struct {
	sync.Mutex
	list map[publicQuery]publicReport
}

type publicQuery struct {
	key    stele.NamespaceKey
	period span
}

type publicReport struct {
	report *apijson.Usage // is not changed; nil: there are too many namespaces
	until  time.Time
}

// get returns a report that is not too old.
func (p *publicReports) get(q publicQuery, now time.Time) (publicReport, bool) {
	p.Lock()
	defer p.Unlock()
	r, ok := p.list[q]
	// After a clock was set back, a report may be kept for hours.
	return r, ok && now.Before(r.until) && !now.Before(r.until.Add(-reportsKeptFor))
}

// put remembers a report.
func (p *publicReports) put(q publicQuery, report *apijson.Usage, now time.Time) {
	p.Lock()
	defer p.Unlock()
	if p.list == nil || len(p.list) >= keptReports {
		p.list = make(map[publicQuery]publicReport)
	}
	p.list[q] = publicReport{report, now.Add(reportsKeptFor)}
}

// publicSums fills a report with the sums of a namespace, and of those below it, whose figures are public: not of its names, since whether some prefix has
// figures would tell the names with it. False if its figures are not public. Whether they are is looked up each time; which of those below
// it are is known from the last half minute.
func (b *Book) publicSums(ctx context.Context, r *apijson.Usage, s span, key stele.NamespaceKey) (found bool, err error) {
	ns, err := b.Registrar.PublicNamespace(ctx, key)
	if ns == nil || err != nil {
		return false, err
	}
	s = b.wholeMonths(r, s)
	r.Name, r.Title = key.Prefix, ns.Title
	q, now := publicQuery{key, s}, b.Registrar.Now()
	if had, ok := b.public.get(q, now); ok {
		if had.report == nil {
			return true, tooManySpaces()
		}
		r.Rows, r.Total, r.Damaged = slices.Clone(had.report.Rows), had.report.Total, had.report.Damaged
		return true, nil
	}
	sight, err := b.Registrar.PublicUsage(ctx, key)
	if err != nil {
		return true, err
	}
	sums := newSums(r.By, 0)
	if err := b.addUp(ctx, r, s, key, spaceCells, sight, sums); err != nil {
		if stele.KindOf(err) == stele.Exhausted {
			b.public.put(q, nil, now)
		}
		return true, err
	}
	sums.fill(r)
	for i := range r.Rows { // how many names lead nowhere is for those who can mend it
		r.Rows[i].Failures = 0
	}
	r.Total.Failures = 0
	b.public.put(q, &apijson.Usage{Rows: slices.Clone(r.Rows), Total: r.Total, Damaged: r.Damaged}, now)
	return true, nil
}
