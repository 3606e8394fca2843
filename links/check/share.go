package check

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/links"
)

const (
	maxCounted  = 100_000 // hosts whose names are counted; the names of further ones of a domain are not added to those of the others
	hostsAtOnce = 20      // cells of hosts that are looked at, before the next answer is taken
	maxLooked   = 500     // names that lead to a host, of which one must be checked if the host is to be remembered
)

// counted is how many names lead to a host. Those whose targets are not checked do not count; those of records that are withdrawn or reserved do.
type counted struct {
	names int
	at    time.Time // zero: an earlier process counted
	kept  bool      // in the cell of the host
}

// share returns which part of the names of a host is asked, in thousandths. All hosts of its domain have the same, since they are asked one after the other:
// of those that are known by now. It counts the names of the host once a day, and keeps the share for the report.
func (w *worker) share(ctx context.Context, host string) (int, error) {
	hosts := w.names[links.Domain(host)]
	n, ok := hosts[host]
	isNew := !ok || w.now().Sub(n.at) >= day
	if isNew {
		n = counted{at: w.now(), kept: n.kept}
		var err error
		if n.names, err = w.countNames(ctx, host); err != nil {
			return 0, err
		}
		w.setNames(host, n)
		hosts = w.names[links.Domain(host)]
	}
	sum := 0
	for _, h := range hosts {
		sum += h.names
	}
	gap, trusted := w.pace(host)
	switch {
	case gap == 0:
		gap = links.Gap
	case !trusted:
		gap = max(gap, links.OwnGap)
	}
	share := links.Share(max(sum, n.names), gap)
	if share < 1000 {
		if n.kept && !isNew {
			return share, nil
		}
		n.kept = true
		w.setNames(host, n)
		return share, w.keepShare(ctx, host, n.names, share)
	}
	if !isNew {
		return share, nil
	}
	for name, h := range hosts { // the domain is not too large any more
		if !h.kept {
			continue
		}
		if err := w.keepShare(ctx, name, 0, 0); err != nil {
			return 0, err
		}
		h.kept = false
		hosts[name] = h
	}
	return share, nil
}

// setNames remembers how many names lead to a host.
func (w *worker) setNames(host string, n counted) {
	domain := links.Domain(host)
	_, ok := w.names[domain][host]
	switch {
	case ok:
	case w.counted >= maxCounted:
		return
	case w.names[domain] == nil:
		w.names[domain] = make(map[string]counted)
		fallthrough
	default:
		w.counted++
	}
	w.names[domain][host] = n
}

// forgetNames forgets how many names lead to a host.
func (w *worker) forgetNames(host string) {
	domain := links.Domain(host)
	if _, ok := w.names[domain][host]; !ok {
		return
	}
	w.counted--
	if delete(w.names[domain], host); len(w.names[domain]) == 0 {
		delete(w.names, domain)
	}
}

// countNames counts the names that lead to a host and whose targets are checked.
func (w *worker) countNames(ctx context.Context, host string) (n int, err error) {
	for id, err := range w.o.Store.Pointing(ctx, stele.Location{Host: host}, stele.ID{}) {
		if err != nil {
			return 0, err
		}
		space, err := w.space(ctx, id)
		if err != nil {
			return 0, err
		}
		if space != nil {
			n++
		}
	}
	return n, nil
}

// keepShare keeps for the report of how many names of a host which part is asked; none if all are.
func (w *worker) keepShare(ctx context.Context, host string, names, share int) error {
	return w.keep(ctx, w.lease, func(b *batch) error {
		value, err := b.read(ctx, hostCells+host)
		if err != nil {
			return err
		}
		kept := keptHost{Host: host, Known: *w.line.Host(host)}
		decode(w.Checker, hostCells+host, value, &kept)
		if kept.Names, kept.Share = names, share; names == 0 && kept.Known.Streak == 0 && kept.Known.Down.IsZero() {
			return b.set(ctx, hostCells+host, nil)
		}
		return b.setJSON(ctx, hostCells+host, &kept)
	})
}

// sweepHosts looks at some hosts that are kept, all of them in about a day. It forgets those to which no name leads any more, and counts again the names of
// those of which a sample is asked.
func (w *worker) sweepHosts(ctx context.Context) error {
	if w.now().Before(w.hostsAt) {
		return nil
	}
	var list []stele.Cell
	for cell, err := range w.o.Registrar.CheckList(asServer(ctx), hostCells, w.host) {
		if err != nil {
			return err
		}
		if list = append(list, cell); len(list) == hostsAtOnce {
			break
		}
	}
	for i := range list {
		host := strings.TrimPrefix(list[i].Name, hostCells)
		var kept keptHost
		used, err := w.isUsed(ctx, host)
		switch {
		case err != nil:
			if endsWork(ctx, err) {
				return err
			}
		case !used:
			if err := w.keep(ctx, w.lease, func(b *batch) error { return b.set(ctx, list[i].Name, nil) }); err != nil {
				return err
			}
			w.forgetNames(host)
			w.line.Forget(host)
		case decode(w.Checker, list[i].Name, list[i].Value, &kept) && kept.Names > 0:
			if _, err := w.share(ctx, host); err != nil && endsWork(ctx, err) {
				return err
			}
		}
		w.host = list[i].Name
	}
	if len(list) < hostsAtOnce {
		w.host, w.hostsAt = "", w.now().Add(day)
		for _, hosts := range w.names {
			for host, n := range hosts {
				if !n.kept && w.now().Sub(n.at) > links.Turn {
					w.forgetNames(host)
				}
			}
		}
	}
	return nil
}

// isUsed reports whether a name whose targets are checked leads to a host. It does, if that would take long to find out.
func (w *worker) isUsed(ctx context.Context, host string) (bool, error) {
	looked := 0
	for id, err := range w.o.Store.Pointing(ctx, stele.Location{Host: host}, stele.ID{}) {
		if err != nil {
			return false, err
		}
		if looked++; looked > maxLooked {
			return true, nil
		}
		space, err := w.space(ctx, id)
		if err != nil {
			return false, err
		}
		if space == nil {
			continue
		}
		rec, err := w.o.Store.Record(ctx, id)
		if stele.KindOf(err) == stele.NotFound {
			continue
		} else if err != nil {
			return false, err
		}
		for _, t := range targets(rec) {
			if (stele.Target{URL: t.url}).Host() == host {
				return true, nil
			}
		}
	}
	return false, nil
}

// pace returns the gap that an owner wants for a host of their own, and whether the administrator says that it is.
func (w *worker) pace(host string) (gap time.Duration, trusted bool) {
	for i := range w.spaces {
		if !w.spaces[i].On {
			continue
		}
		gap = max(gap, w.spaces[i].OwnGap(host))
	}
	return gap, w.isOwn(host)
}

// isOwn reports whether the administrator names a host, or one above it, as one that may be asked as often as an owner wants.
func (w *worker) isOwn(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return slices.ContainsFunc(w.o.Own, func(own string) bool {
		own = strings.TrimSuffix(strings.ToLower(own), ".")
		return own != "" && (host == own || strings.HasSuffix(host, "."+own))
	})
}
