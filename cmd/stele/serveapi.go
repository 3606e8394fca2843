package main

import (
	"net/http"

	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/web"
)

// api makes the handler of the interface for programs.
func (s *server) api(f *shift, pages *web.Pages) http.Handler {
	r := f.registry
	return api.New(api.Options{
		Registrar: r.Registrar, Store: r.Store, Resolver: r.Resolver, Schemes: s.schemes, Directory: r.Directory, Pages: pages,
		Now: s.now, Log: s.log, Base: s.Base, OwnHost: func(r *http.Request) bool { return httpd.IsOwnHost(r, s.isOwnName) }, ClientAddr: httpd.ClientAddr, Rate: s.APIRate, Burst: s.APIBurst, Held: s.held, Turns: s.turns,
		Patience: s.WriteTimeout, Reading: s.ReadTimeout, Version: r.Version, Await: r.Await, Generations: r.KnownGenerations, Upkeep: s.upkeep(f), Addresses: s.LogAddresses,
	})
}
