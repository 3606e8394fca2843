package server

import (
	"net"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/limit"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/lsid"
)

// Times for data of LSIDs: of connecting to the site that has them, and of the head of its answer.
const (
	lsidConnecting = 5 * time.Second
	lsidHeading    = 10 * time.Second
)

// lifeScience returns what answers clients of LSIDs. Owners of records name the locations of data, and readers make the
// server ask there; so it reaches public addresses only, and those that the operator names.
func (s *server) lifeScience(r *registry.Registry) (*lsid.Handler, error) {
	rule, err := outbound.ParseRule(s.LSIDAllow)
	if err != nil {
		return nil, refuse("serve", stele.Invalid, "", "lsid-allow: {cause}", err)
	}
	o := lsid.Options{Resolver: r.Resolver, Schemes: s.schemes, Now: s.now, Log: s.log, Names: r.Registrar, Frozen: s.frozen()}
	if s.LogAddresses {
		o.Address = func(r *http.Request) string { return limit.Client(httpd.ClientAddr(r)) }
	}
	if s.LSIDData > 0 && s.o.Frozen == nil { // the digests of data are kept
		o.Data, o.MaxData = r.Registrar, s.LSIDData
		o.Fetch = outbound.NewFetcher(&outbound.Dialer{Rule: rule, Timeout: lsidConnecting, Own: net.InterfaceAddrs}, lsidHeading)
	}
	if s.LSIDForeign {
		o.Foreign = r.Registrar
	}
	return lsid.New(o), nil
}
