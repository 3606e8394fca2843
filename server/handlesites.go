package server

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/netip"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/wire/hdl"
)

// HandleSites makes a registry a site of the Handle System. The API and the command on a folder use it.
type HandleSites struct {
	r   *registry.Registry
	now func() time.Time
}

// NewHandleSites sets up an open registry.
func NewHandleSites(r *registry.Registry, now func() time.Time) *HandleSites {
	return &HandleSites{r, now}
}

func (h *HandleSites) service() *handles.Service {
	return handles.New(handles.Options{Registrar: h.r.Registrar, Resolver: h.r.Resolver, Schemes: h.r.Schemes, Now: h.now})
}

// HandleSite returns the site without its keys.
func (h *HandleSites) HandleSite(ctx context.Context) (*apijson.HandleSite, error) {
	site, err := h.r.Registrar.HandleSite(ctx)
	if err != nil {
		return nil, err
	}
	if site.Octets == nil {
		return nil, handles.NoSite("show handle site")
	}
	parsed, err := hdl.ParseSite(site.Octets)
	if err != nil {
		return nil, stele.AsError("show handle site", err)
	}
	return shownSite(&parsed), nil
}

// RollHandleSite replaces the key of the site.
func (h *HandleSites) RollHandleSite(ctx context.Context) (*apijson.HandleSite, error) {
	site, err := h.service().RollSite(ctx, rand.Reader)
	if err != nil {
		return nil, err
	}
	return shownSite(site), nil
}

// SetUpHandles sets up a prefix.
func (h *HandleSites) SetUpHandles(ctx context.Context, prefix string, want apijson.HandleSetup) (*apijson.HandlePrefix, error) {
	o := handles.Setup{Prefix: handles.BarePrefix(prefix), Port: want.Port, HTTPPort: want.HTTPPort, About: want.About,
		Organisation: want.Organisation, Contact: want.Contact, Mail: want.Mail, Random: rand.Reader}
	if want.AdminKey != "" {
		key, err := base64.StdEncoding.DecodeString(want.AdminKey)
		if err != nil {
			return nil, stele.Errorf("set up handles", stele.ID{}, stele.Invalid, "handle.admin-key-not-base64", "the key of the administrator is not in base64: {cause}", err)
		}
		o.AdminKey = key
	}
	for _, list := range []struct {
		from []string
		to   *[]netip.Addr
	}{{want.Addresses, &o.Addresses}, {want.Mirrors, &o.Mirrors}} {
		for _, text := range list.from {
			addr, err := netip.ParseAddr(text)
			if err != nil || addr.IsUnspecified() || addr.Zone() != "" {
				return nil, stele.Errorf("set up handles", stele.ID{}, stele.Invalid, "handle.address-invalid", `"{text}" is not the IP address of a server; write one such as 192.0.2.7`, text)
			}
			*list.to = append(*list.to, addr)
		}
	}
	made, err := h.service().SetUp(ctx, o)
	if err != nil {
		return nil, err
	}
	return &apijson.HandlePrefix{Prefix: o.Prefix, Record: handles.Bare(made.Record.ID), Serial: made.Site.Serial, Administrator: made.Admin.String(),
		AdminKey: made.Key, Bundle: made.Bundle}, nil
}

// shownSite returns a site as people and programs read it.
func shownSite(site *hdl.Site) *apijson.HandleSite {
	names := []string{"udp", "tcp", "http", "https"}
	out := &apijson.HandleSite{Serial: site.Serial, Servers: []apijson.HandleServer{}}
	for i := range site.Servers {
		s := &site.Servers[i]
		one := apijson.HandleServer{ID: s.ID, Address: s.Addr().String(), Interfaces: []apijson.HandleInterface{}}
		for _, d := range s.Interfaces {
			if int(d.Protocol) < len(names) {
				one.Interfaces = append(one.Interfaces, apijson.HandleInterface{Protocol: names[d.Protocol], Port: d.Port, Admin: d.Type&hdl.InterfaceAdmin != 0})
			}
		}
		out.Servers = append(out.Servers, one)
	}
	return out
}
