package main

import (
	"errors"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
)

// namedWay is a way to resolve names.
type namedWay struct {
	via   client.Via
	way   client.Way
	close func()
}

type ways []namedWay

func (w ways) close() {
	for _, one := range w {
		one.close()
	}
}

// ways makes the ways to try.
func (p *program) ways(f *resolveFlags, schemes *stele.Schemes, id stele.ID) (list ways, err error) {
	chosen, err := p.chosenVia(f, id)
	if err != nil {
		return nil, err
	}
	if f.compare && len(chosen) < 2 {
		return nil, misuse(f.cmd, "to compare takes two ways; name them with --via, a resolver with --server, a registry with --data")
	}
	timeout := f.timeout
	if len(chosen) > 1 {
		timeout /= 2 // for a way that nobody answers, so that another is tried
	}
	for _, via := range chosen {
		w := namedWay{via: via, close: func() {}}
		switch via {
		case client.ViaDNS:
			var way *client.DNS
			if way, err = p.dnsWay(f.cmd, &f.dns, schemes, timeout); err == nil {
				w.way, w.close = way, way.Close
			}
		case client.ViaHTTP:
			w.way, w.close, err = p.httpWay(f, schemes)
		case client.ViaLocal:
			w.way = &localWay{program: p, schemes: schemes}
		}
		if err != nil {
			list.close()
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// httpWay makes the way over HTTP.
func (p *program) httpWay(f *resolveFlags, schemes *stele.Schemes) (client.Way, func(), error) {
	if f.server == "" {
		return nil, nil, misuse(f.cmd, "which resolver? Name it with --server URL")
	}
	roots, err := p.remote.roots()
	if err != nil {
		return nil, nil, err
	}
	way, err := client.NewHTTP(client.HTTPOptions{Schemes: schemes, Server: f.server, Timeout: f.timeout, RootCAs: roots})
	if err != nil {
		return nil, nil, misuse(f.cmd, "--server: %w", errors.Unwrap(err))
	}
	return way, way.Close, nil
}

// inDNS reports whether an identifier can be found over the DNS.
func inDNS(id stele.ID) bool { return client.Knows(id.Scheme()) }
