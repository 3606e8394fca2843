package oai

import (
	"errors"
	"strconv"
	"time"

	"github.com/stele-id/stele"
)

// Limits on the work for one page.
const (
	maxPageBytes = 4 << 20 // of an answer; it has one record at least
	maxPageRead  = 200_000 // records, or changes, that are read for it
)

// clockSlack is by how much the times of changes may go back: servers of a registry have clocks of their own, and clocks are set.
const clockSlack = time.Hour

// errFull ends a page. No client reads it.
var errFull error = new(fault)

// lister makes one page of a list.
type lister struct {
	*call
	w           *writer
	f           format
	t           token
	first, last time.Time // the dates that count; zero: no limit
	spaces      []*stele.Namespace
	inSet       map[stele.NamespaceKey]bool
	more        bool   // there is another page
	next        token  // where it begins
	count       uint64 // of records on this page
}

// list answers ListRecords and ListIdentifiers (4.3, 4.5).
func (c *call) list(w *writer) error {
	l := &lister{call: c, w: w}
	resumed := c.args.has("resumptionToken")
	if err := l.prepare(resumed); err != nil {
		return err
	}
	w.begin(c.args.verb)
	var err error
	if l.t.Feed {
		err = l.byChange()
	} else {
		err = l.byName()
	}
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	if l.count == 0 && !l.more && !resumed {
		return faultf(noRecordsMatch, "no record matches")
	}
	// The last page of a list that has several ends with an empty token (3.5).
	switch cursor := strconv.FormatUint(l.t.Count, 10); {
	case l.more:
		w.text("resumptionToken", l.next.String(), "cursor", cursor)
	case resumed:
		w.text("resumptionToken", "", "cursor", cursor)
	}
	w.end(c.args.verb)
	return nil
}

// prepare reads what the list is of.
func (l *lister) prepare(resumed bool) error {
	generation := l.generations.Last().ID
	if resumed {
		t, bad := parseToken(l.args.get("resumptionToken"), generation)
		if bad != nil {
			return bad
		}
		l.t = *t
	} else {
		l.t = token{Generation: generation.String(), Format: l.args.get("metadataPrefix"), Set: l.args.get("set"), From: l.args.get("from"), Until: l.args.get("until")}
		if l.args.has("from") && l.t.From == "" || l.args.has("until") && l.t.Until == "" {
			return faultf(badArgument, "a date is empty; leave it out")
		}
		if l.args.has("set") && !isSetSpec(l.t.Set) {
			return faultf(badArgument, "this can't be the name of a set; ask ListSets for those that there are")
		}
	}
	var bad *fault
	if l.first, l.last, bad = parseDates(l.t.From, l.t.Until); bad != nil {
		return bad
	}
	var ok bool
	if l.f, ok = formatOf(l.t.Format); !ok {
		return faultf(cannotDisseminateFormat, "there is no such format; formats are oai_dc and oai_datacite")
	}
	l.inSet = make(map[stele.NamespaceKey]bool)
	for _, ns := range l.public.Namespaces() {
		if l.t.Set == "" || setSpec(ns.Key()) == l.t.Set {
			l.spaces = append(l.spaces, ns)
			l.inSet[ns.Key()] = true
		}
	}
	if resumed || len(l.spaces) == 0 {
		return nil
	}
	return l.choose()
}

// choose decides how the list is made. The change feed has what changed lately at its end, and a list by name reads all records
// of the namespaces. The feed is read if the list begins after all of these were listed, and if less has changed than there is.
func (l *lister) choose() error {
	if l.first.IsZero() {
		return nil
	}
	var records uint64
	for _, ns := range l.spaces {
		floor, err := l.floor(ns)
		if err != nil || !l.first.After(floor) {
			return err
		}
		n, err := l.h.o.Store.Count(l.ctx, ns.Key())
		if err != nil {
			return err
		}
		records += n
	}
	now, err := l.h.o.Store.Position(l.ctx)
	if err != nil {
		return err
	}
	begin, err := l.seek(now.Change)
	if err == nil && now.Change-begin <= records {
		l.t.Feed, l.t.Change = true, begin
	}
	return err
}

// seek returns the number of the last change before the list begins.
func (l *lister) seek(last uint64) (uint64, error) {
	begin := l.first.Add(-clockSlack)
	low, high := uint64(0), last // the changes up to low are earlier
	for low < high {
		middle := low + (high-low)/2
		earlier := false
		for change, err := range l.h.o.Store.Changes(l.ctx, middle) {
			if err != nil {
				return 0, err
			}
			earlier = change.At.Before(begin)
			break
		}
		if earlier {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, nil
}

// byName lists records in the order of their names.
func (l *lister) byName() error {
	l.next = l.t
	for _, key := range l.public.Prefixes(l.spaces) {
		from := ""
		switch {
		case key.Scheme < l.t.Scheme:
			continue
		case key.Scheme == l.t.Scheme:
			from = l.t.After
		}
		for rec, err := range l.h.o.Store.Scan(l.ctx, key.Scheme, key.Prefix, from) {
			if err != nil {
				return err
			}
			if err := l.take(rec); err != nil {
				return err
			}
			l.next.Scheme, l.next.After = rec.ID.Scheme(), rec.ID.String()
			l.next.Count = l.t.Count + l.count
		}
	}
	return nil
}

// byChange lists records in the order of their last changes.
func (l *lister) byChange() error {
	l.next = l.t
	for change, err := range l.h.o.Store.Changes(l.ctx, l.t.Change) {
		if err != nil {
			return err
		}
		if err := l.change(&change); err != nil {
			return err
		}
		l.next.Change, l.next.Count = change.Seq, l.t.Count+l.count
	}
	return nil
}

// change lists the record that a change is the last of.
func (l *lister) change(change *stele.Change) error {
	if ns := l.public.Of(change.ID); !change.ID.IsValid() || ns == nil || !l.inSet[ns.Key()] {
		return l.note()
	}
	rec, err := l.h.o.Store.Record(l.ctx, change.ID)
	switch {
	case err != nil:
		return err
	case rec.Version != change.Version: // it comes later
		return l.note()
	}
	return l.take(rec)
}

// note counts what was read. It ends a page for which too much was read.
func (l *lister) note() error {
	if l.read++; l.read > maxPageRead {
		l.more = true
		return errFull
	}
	return nil
}

// take lists a record, if it is one that the list is of. It ends the page if there is no room for it: the next page begins with it.
func (l *lister) take(rec *stele.Record) error {
	if err := l.note(); err != nil || !l.public.Shows(rec) {
		return err
	}
	ns := l.public.Of(rec.ID)
	if !l.inSet[ns.Key()] {
		return nil
	}
	at, err := l.datestamp(rec, ns)
	switch {
	case err != nil:
		return err
	case !l.first.IsZero() && at.Before(l.first), !l.last.IsZero() && at.After(l.last):
		return nil
	case l.count >= uint64(l.h.o.Page), l.count > 0 && l.w.b.Len() >= maxPageBytes:
		l.more = true
		return errFull
	}
	if l.count++; l.args.verb == "ListIdentifiers" {
		l.header(l.w, rec, ns, at)
		l.written++
		return nil
	}
	return l.record(l.w, rec, ns, at, l.f)
}
