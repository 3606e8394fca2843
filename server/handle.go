package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	hdlclient "github.com/stele-id/stele/client/hdl"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/handles/elsewhere"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/hdld"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/handle"
	"github.com/stele-id/stele/wire/hdl"
)

// siteEvery is how often the server looks whether another process has changed the site's key.
const siteEvery = 10 * time.Second

// handleIssuer stands for the Handle System where accounts elsewhere are linked to users.
const handleIssuer = "hdl:"

// handleServer is the server of the Handle protocol, and what it knows of its site.
type handleServer struct {
	*hdld.Server
	site atomic.Pointer[hdld.Site]
	stop context.CancelFunc
}

// startHandle begins to answer the Handle protocol, if it should: at the addresses of the settings, or at those
// of the server before, if there was one.
func (s *server) startHandle(r *registry.Registry) error {
	if len(s.Handle) == 0 {
		return nil
	}
	service, err := s.handleService(r)
	if err != nil {
		return err
	}
	h := &handleServer{}
	h.site.Store(&hdld.Site{Primary: true})
	ctx, stop := context.WithCancel(auth.With(context.Background(), auth.Local()))
	h.stop = stop
	s.readSite(ctx, &h.site, r)
	h.Server = hdld.New(hdld.Options{Handles: service, Now: s.now, Rand: rand.Reader, Log: s.log, Tracer: s.tracer, Site: h.site.Load, Frozen: s.frozen(), AdminUDP: s.HandleAdminUDP, Addresses: s.LogAddresses, CacheBytes: int(cmp.Or(s.HandleCache, -1))})
	at := s.Handle
	if s.hdl != nil {
		at = texts(s.hdl.Addrs())
	}
	for _, address := range at {
		err := h.Listen(context.Background(), address)
		if errors.Is(err, syscall.EADDRINUSE) && slices.Contains(s.o.AnyPort, "hdl") {
			err = h.Listen(context.Background(), anyPort)
		}
		if err != nil {
			stop()
			ended, cancel := context.WithCancel(context.Background())
			cancel() // no request has come yet
			_ = h.Shutdown(ended)
			if errors.Is(err, syscall.EADDRINUSE) {
				return refuse("serve", stele.Unavailable, "server.hdl-address-in-use", "another program answers the Handle protocol on {address}; end it, or choose another address", address)
			}
			return refuse("serve", stele.Unavailable, "server.not-listening", "listening on {address}: {cause}", address, err)
		}
	}
	s.hdl = h
	go s.followSite(ctx, &h.site, r)
	return nil
}

// handleService returns what the registry is to the Handle System.
func (s *server) handleService(r *registry.Registry) (*handles.Service, error) {
	o := handles.Options{Registrar: r.Registrar, Resolver: r.Resolver, Schemes: s.schemes, Now: s.now, Log: s.log, UUID: newUUID}
	plain := handles.New(o)
	for _, text := range s.HandleAdmins {
		who, err := plain.ParseIdentity(text)
		if err != nil {
			return nil, refuse("serve", stele.Invalid, "", "hdl-administrators: {cause}", err)
		}
		o.Administrators = append(o.Administrators, who)
	}
	var err error
	if o.Elsewhere, err = s.elsewhere(); err != nil {
		return nil, err
	}
	o.User = func(ctx context.Context, who handles.Identity) (auth.Principal, bool, error) {
		linked, err := r.Directory.Identity(ctx, handleIssuer, who.String())
		if err != nil || linked.User == "" || !linked.Ended.IsZero() {
			return auth.Principal{}, false, err
		}
		p, err := r.Directory.Principal(ctx, linked.User)
		return p, err == nil, err
	}
	return handles.New(o), nil
}

// elsewhere returns what asks other servers of the Handle System about identities; nil if the settings name no root.
func (s *server) elsewhere() (handles.Elsewhere, error) {
	if s.HandleRoot == "" {
		return nil, nil
	}
	rule, err := outbound.ParseRule(s.HandleAllow)
	if err != nil {
		return nil, refuse("serve", stele.Invalid, "", "hdl-allow: {cause}", err)
	}
	data, err := disk.ReadSome(s.HandleRoot, hdlclient.MaxSiteFile)
	if err != nil {
		return nil, refuse("serve", stele.Invalid, "", "hdl-root: {cause}", err)
	}
	root, err := hdlclient.ParseSites(data)
	if err != nil {
		return nil, refuse("serve", stele.Invalid, "hdl-site-file.invalid", `the sites in "{file}": {cause}`, s.HandleRoot, stele.Reason(err))
	}
	c, err := hdlclient.New(hdlclient.Options{Root: root, Now: s.now, Rand: rand.Reader, Timeout: 2 * time.Second, Permit: func(at netip.AddrPort) error {
		if rule.May(at.Addr()) {
			return nil
		}
		return stele.Messagef("server.hdl-address-refused", "it is not in the public Internet; the setting hdl-allow permits other addresses")
	}})
	if err != nil {
		return nil, err
	}
	return elsewhere.New(elsewhere.Options{Client: c, Now: s.now, Rand: rand.Reader, Log: s.log}), nil
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	x := hex.EncodeToString(b[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s", x[:8], x[8:12], x[12:16], x[16:20], x[20:]), nil
}

// followSite reads the site now and then, until the server of the protocol ends.
func (s *server) followSite(ctx context.Context, to *atomic.Pointer[hdld.Site], r *registry.Registry) {
	every := time.NewTicker(siteEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			s.readSite(ctx, to, r)
		}
	}
}

// readSite reads the site. What can't be read is logged, and the server goes on with what it has.
func (s *server) readSite(ctx context.Context, to *atomic.Pointer[hdld.Site], r *registry.Registry) {
	site, err := r.Registrar.HandleSite(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Error("the site of the Handle protocol can't be read; answers are not certified with a new key until it can", "err", err)
		}
		return
	}
	if site.Octets == nil {
		return
	}
	next := &hdld.Site{Octets: site.Octets}
	parsed, err := hdl.ParseSite(site.Octets)
	if err == nil {
		next.Serial, next.Primary = parsed.Serial, parsed.Flags&hdl.SitePrimary != 0
		if site.Key != nil {
			var key hdl.PrivateKey
			if key, err = hdl.ParseKeyFile(site.Key, nil); err == nil {
				next.Key = &key
			}
		}
		if site.Former != nil && err == nil {
			var key hdl.PrivateKey
			if key, err = hdl.ParseKeyFile(site.Former, nil); err == nil {
				next.Former, next.FormerSerial = &key, site.FormerSerial
			}
		}
	}
	if err != nil {
		s.log.Error("the site of the Handle protocol is damaged; set it up again with 'stele handle setup'", "err", err)
		return
	}
	to.Store(next)
}

// handleREST returns what answers administrators of handles over the web. It is there whether or not the server
// speaks the Handle protocol itself: it answers for the namespaces of handles, and for no prefix if there are none.
func (s *server) handleREST(ctx context.Context, f *generation) (*handle.Handler, error) {
	service, err := s.handleService(f.registry)
	if err != nil {
		return nil, err
	}
	site := new(atomic.Pointer[hdld.Site])
	if f.hdl != nil {
		site = &f.hdl.site
	} else {
		s.readSite(ctx, site, f.registry)
		f.work.Go(func() { s.followSite(ctx, site, f.registry) })
	}
	return handle.New(handle.Options{Handles: service, Now: s.now, Rand: rand.Reader, Log: s.log, Client: httpd.ClientAddr, Proxied: httpd.IsFromProxy, Addresses: s.LogAddresses,
		Costs: s.costs, Turns: s.turns, Site: func() handle.Site {
			if at := site.Load(); at != nil {
				return handle.Site{Octets: at.Octets, Key: at.Key}
			}
			return handle.Site{}
		}})
}

// endHandle ends the server of the protocol.
func (s *server) endHandle(ctx context.Context) error {
	s.hdl.stop()
	if err := s.hdl.Shutdown(ctx); err != nil {
		return refuse("serve", stele.Unavailable, "server.hdl-ended-early", "ended before all requests of the Handle protocol were answered: {cause}", err)
	}
	return nil
}

// tunnel answers the Handle protocol in HTTP; false if the request is not one of it.
func (s *server) tunnel(w http.ResponseWriter, r *http.Request) bool {
	f := s.generation.Load()
	if f == nil || f.hdl == nil || !hdld.IsTunnel(r) {
		return false
	}
	f.hdl.ServeTunnel(w, r, httpd.ClientAddr(r))
	return true
}
