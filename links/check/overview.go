package check

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/registrar"
)

const (
	// maxOverview is how many findings an overview counts.
	maxOverview = 50_000
	// maxVerified is how many of them are compared with their records: those of targets that changed since are removed within a day.
	maxVerified = 2_000
	maxHosts    = 1_000
	maxWaiting  = 10_000
)

// FindingsOf is [Checker.Findings] for the findings that a filter describes. It reads the records of these only.
func (c *Checker) FindingsOf(ctx context.Context, prefix stele.NamespaceKey, only apijson.LinkFilter, after string) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		if err := c.mayRead(ctx, prefix); err != nil {
			yield(Finding{}, err)
			return
		}
		sight, err := c.o.Registrar.Sight(ctx, stele.NamespaceKey{})
		if err != nil {
			yield(Finding{}, err)
			return
		}
		read, last := 0, key("")
		cut := false
		for f, err := range c.told(ctx, prefix, after, func(k key) bool {
			if cut = only.Most > 0 && read == only.Most; !cut {
				read, last = read+1, k
			}
			return !cut
		}) {
			if err == nil && (!c.isMeant(&f, only) || !c.isSeen(ctx, sight, &f)) {
				continue
			}
			c.complete(&f)
			if !yield(f, err) || err != nil {
				return
			}
		}
		if cut {
			id, n, _ := last.parse()
			yield(Finding{ID: id.String(), Scheme: id.Scheme(), Target: n}, apijson.ErrLinksCut)
		}
	}
}

// told yields findings about names of a namespace as they are kept, and calls read for each cell that it reads, until that reports false.
func (c *Checker) told(ctx context.Context, prefix stele.NamespaceKey, after string, read func(key) bool) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		begin, has, err := c.o.Registrar.CheckedNames(asServer(ctx), prefix)
		if err != nil {
			yield(Finding{}, err)
			return
		}
		from := foundCells + prefix.Scheme + "\t"
		if at := slices.IndexFunc(begin, func(b string) bool { return strings.HasPrefix(after, b) }); at > 0 {
			begin = begin[at:]
		}
		for i, text := range begin {
			start := ""
			if i == 0 && after != "" {
				start = from + after
			}
			for cell, err := range c.o.Registrar.CheckList(asServer(ctx), from+text, start) {
				k := key(strings.TrimPrefix(cell.Name, foundCells))
				if err == nil && !read(k) {
					return
				}
				var f Finding
				if err == nil {
					id, _, bad := k.parse()
					if bad != nil || !has(id) || !decode(c, cell.Name, cell.Value, &f) {
						continue
					}
				}
				f.Scheme = prefix.Scheme
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
	}
}

// isMeant reports whether a filter describes a finding.
func (c *Checker) isMeant(f *Finding, only apijson.LinkFilter) bool {
	switch {
	case only.Host != "" && f.Host != only.Host:
		return false
	case only.Kind == apijson.LinkLookYourself:
		return c.isToLook(f)
	}
	return only.Kind == "" || f.Kind() == only.Kind
}

// isToLook reports whether a person should look at a target, since no program can tell whether it is there.
func (c *Checker) isToLook(f *Finding) bool {
	return f.State == links.Blocked.String() && c.now().Sub(f.Since) >= links.LookAfter
}

// Overview counts what is told about the targets of names that begin with a prefix, to a caller who may list them, and returns the
// newest findings of each kind, so many at most. It reads at most so many findings; 0 stands for the usual limit.
func (c *Checker) Overview(ctx context.Context, prefix stele.NamespaceKey, first, most int) (*apijson.LinkOverview, error) {
	if most == 0 {
		most = maxOverview
	}
	o, sight, err := c.numbers(ctx, prefix, first, most)
	if err != nil {
		return nil, err
	}
	if o.Waiting, o.WaitingMore, err = c.waiting(ctx, prefix, sight, min(maxWaiting, most)); err != nil {
		return nil, err
	}
	return o, nil
}

// Numbers is [Checker.Overview] without the first findings, and without counting what waits for its first check, which costs less.
func (c *Checker) Numbers(ctx context.Context, prefix stele.NamespaceKey, most int) (*apijson.LinkOverview, error) {
	o, _, err := c.numbers(ctx, prefix, 0, most)
	return o, err
}

func (c *Checker) numbers(ctx context.Context, prefix stele.NamespaceKey, first, most int) (*apijson.LinkOverview, *registrar.Sight, error) {
	if err := c.mayRead(ctx, prefix); err != nil {
		return nil, nil, err
	}
	sight, err := c.o.Registrar.Sight(ctx, stele.NamespaceKey{})
	if err != nil {
		return nil, nil, err
	}
	o := &overview{c: c, hosts: make(map[string]*apijson.LinkHost), moved: make(map[string]int),
		LinkOverview: apijson.LinkOverview{Counts: make(map[string]int), First: make(map[string][]Finding)}}
	read := 0
	for f, err := range c.told(ctx, prefix, "", func(key) bool {
		read++
		o.Partial = read > most
		return !o.Partial
	}) {
		if err != nil {
			return nil, nil, err
		}
		if read <= maxVerified {
			if !c.isSeen(ctx, sight, &f) {
				continue
			}
		} else if id, err := stele.NewID(f.Scheme, f.ID); err != nil || !sight.Lists(id) {
			continue
		}
		if err := o.add(ctx, &f, first); err != nil {
			return nil, nil, err
		}
	}
	return &o.LinkOverview, sight, nil
}

// waiting counts the targets of names of a namespace that were never asked and that the caller may list. It counts at most so many, reports whether there
// are more, and reads at most twice as many cells.
func (c *Checker) waiting(ctx context.Context, prefix stele.NamespaceKey, sight *registrar.Sight, most int) (n int, more bool, err error) {
	begin, has, err := c.o.Registrar.CheckedNames(asServer(ctx), prefix)
	if err != nil {
		return 0, false, err
	}
	read, seen := 0, make(map[key]bool)
	for _, text := range begin {
		from := key(prefix.Scheme + "\t" + text)
		for _, cells := range []string{from.waits(), from.due(neverChecked)} { // an earlier version kept the second ones only
			for cell, err := range c.o.Registrar.CheckList(asServer(ctx), cells, "") {
				if err != nil {
					return 0, false, err
				}
				if read++; read > 2*most {
					return n, true, nil
				}
				k := key(strings.TrimPrefix(cell.Name, waitCells))
				if string(k) == cell.Name {
					_, k, err = parseDue(cell.Name)
				}
				if err != nil || seen[k] {
					continue
				}
				seen[k] = true
				id, _, bad := k.parse()
				if bad != nil || !has(id) || !sight.Lists(id) {
					continue
				}
				if read <= maxVerified {
					rec, err := c.o.Registrar.Get(ctx, id)
					if err != nil || !slices.ContainsFunc(targets(rec), func(t target) bool { return t.key == k }) {
						continue
					}
				}
				if n == most {
					return n, true, nil
				}
				n++
			}
		}
	}
	return n, false, nil
}

// overview counts findings.
type overview struct {
	apijson.LinkOverview
	c     *Checker
	hosts map[string]*apijson.LinkHost // nil: it is not told
	moved map[string]int               // where the host is in Moved
}

func (o *overview) add(ctx context.Context, f *Finding, first int) error {
	host, err := o.host(ctx, f.Host)
	if err != nil {
		return err
	}
	kind := f.Kind()
	if host != nil {
		host.Count++
		if kind == links.Failing.String() && !host.Down.IsZero() {
			return nil // the host is the finding
		}
	}
	o.Counts[kind]++
	if kind == links.Moved.String() {
		i, ok := o.moved[f.Host]
		if !ok && len(o.Moved) < maxHosts {
			i, ok = len(o.Moved), true
			o.moved[f.Host] = i
			o.Moved = append(o.Moved, apijson.LinkMoved{Host: f.Host})
		}
		if ok {
			m := &o.Moved[i]
			if m.Count++; f.Since.After(m.Last) {
				m.Last = f.Since
			}
		}
	}
	if o.c.isToLook(f) {
		o.Counts[apijson.LinkLookYourself]++
	}
	o.keep(kind, f, first)
	return nil
}

// keep keeps a finding if it is one of the newest of its kind. Of those of the same time the first ones by name are kept.
func (o *overview) keep(kind string, f *Finding, most int) {
	list := o.First[kind]
	at, _ := slices.BinarySearchFunc(list, f, func(a Finding, f *Finding) int {
		if a.Told().Before(f.Told()) {
			return 1
		}
		return -1
	})
	if at >= most {
		return
	}
	o.c.complete(f)
	list = slices.Insert(list, at, *f)
	o.First[kind] = list[:min(len(list), most)]
}

// host returns what is told about a host; nil if nothing is.
func (o *overview) host(ctx context.Context, name string) (*apijson.LinkHost, error) {
	h, known := o.hosts[name]
	if known || len(o.hosts) >= maxHosts {
		return h, nil
	}
	value, err := o.c.o.Registrar.CheckCell(asServer(ctx), hostCells+name)
	if err != nil {
		return nil, err
	}
	var kept keptHost
	if decode(o.c, hostCells+name, value, &kept) && (!kept.Known.Down.IsZero() || kept.Names > 0) {
		told := kept.told()
		h = &told
		o.Hosts = append(o.Hosts, h)
	}
	o.hosts[name] = h
	return h, nil
}

// told returns what is told about a host.
func (kept *keptHost) told() apijson.LinkHost {
	h := apijson.LinkHost{Host: kept.Host, Down: kept.Known.Down, First: kept.Known.Row.First, Names: kept.Names, Share: kept.Share}
	if !h.Down.IsZero() {
		h.Cause = kept.Known.Cause.String()
	}
	return h
}
