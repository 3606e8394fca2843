package check

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/stele-id/stele/links"
)

// serversEvery is how often the name servers of a domain are asked for.
const serversEvery = 7 * day

// keptDomain is what is known of the name servers of a domain.
type keptDomain struct {
	Servers string    `json:"servers"`
	Seen    time.Time `json:"seen"`
	Changed time.Time `json:"changed,omitzero"` // when others were seen than before
}

// askServers returns the domain of a host if its name servers are to be asked for; "" if not.
func (w *worker) askServers(ctx context.Context, host string) (string, error) {
	domain := links.Domain(host)
	if _, err := netip.ParseAddr(domain); err == nil || w.o.Servers == nil || !strings.Contains(domain, ".") {
		return "", nil
	}
	var kept keptDomain
	value, err := w.o.Registrar.CheckCell(asServer(ctx), domainCells+domain)
	if err != nil {
		return "", err
	}
	if decode(w.Checker, domainCells+domain, value, &kept) && w.now().Sub(kept.Seen) < serversEvery {
		return "", nil
	}
	return domain, nil
}

// note keeps the name servers that came with an answer, and says in the answer when they changed last.
func (w *worker) note(ctx context.Context, a *answered) error {
	if w.o.Servers == nil {
		return nil
	}
	name := domainCells + links.Domain(a.task.Host)
	return w.keep(ctx, w.lease, func(b *batch) error {
		var kept keptDomain
		value, err := w.o.Registrar.CheckCell(asServer(ctx), name)
		if err != nil {
			return err
		}
		known := decode(w.Checker, name, value, &kept)
		if len(a.servers) > 0 {
			servers := strings.Join(a.servers, " ")
			if known && kept.Servers != servers {
				kept.Changed = w.now()
			}
			kept.Servers, kept.Seen = servers, w.now()
			err = b.setJSON(ctx, name, &kept)
		}
		a.moved = kept.Changed
		return err
	})
}
