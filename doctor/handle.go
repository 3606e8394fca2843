package doctor

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/handles"
	"github.com/stele-id/stele/wire/hdl"
)

// handleSite is a site that the record of a prefix names.
type handleSite struct {
	prefix string // 0.NA/20.500.12345
	octets []byte
}

// Limits of the examination of the Handle protocol.
const (
	maxHandleSites = 20 // that are asked
	handlePatience = 5 * time.Second
)

// readHandleSites reads the sites of the prefixes of handles. One prefix without a record is not served by the protocol.
func (f *findings) readHandleSites(ctx context.Context, schemes *stele.Schemes, from interface {
	Get(ctx context.Context, name stele.ID) (*stele.Record, error)
}) error {
	for _, ns := range f.namespaces {
		scheme, ok := schemes.Lookup(ns.Scheme).(stele.ClaimingScheme)
		if !ok || ns.AnsweredAt() != "" || ns.Handles.Off || len(f.handles) >= maxHandleSites {
			continue
		}
		for _, name := range scheme.Claims(ns.Prefix) {
			id, err := scheme.Parse(name)
			if err != nil {
				continue
			}
			rec, err := from.Get(ctx, id)
			switch {
			case stele.KindOf(err) == stele.NotFound:
				continue
			case err != nil:
				return err
			}
			for _, v := range rec.Values {
				if strings.EqualFold(v.Type, "HS_SITE") {
					f.handles = append(f.handles, handleSite{handles.Bare(id), v.Data})
				}
			}
		}
	}
	return nil
}

// examineHandle asks the servers that the records of prefixes name, as clients do, whether they answer for that site.
func examineHandle(ctx context.Context, x *subject) {
	if x.registry == nil {
		return
	}
	asked := make(map[string]bool)
	for _, site := range x.registry.handles {
		parsed, err := hdl.ParseSite(site.octets)
		if err != nil {
			x.problem("set it up again with 'stele handle setup'", "doctor.handle-site-unreadable", "the site of {prefix} can't be read: {cause}", site.prefix, err)
			continue
		}
		for i := range parsed.Servers {
			server := &parsed.Servers[i]
			for _, door := range server.Interfaces {
				network, ok := map[hdl.Transport]string{hdl.UDP: "udp", hdl.TCP: "tcp"}[door.Protocol]
				at := netip.AddrPortFrom(server.Addr(), uint16(door.Port)).String()
				if key := network + " " + at + string(site.octets); !ok || asked[key] {
					continue
				} else {
					asked[key] = true
				}
				x.askHandle(ctx, site, network, at)
			}
		}
	}
}

// askHandle asks one server for its site.
func (x *subject) askHandle(ctx context.Context, site handleSite, network, at string) {
	got, err := siteAt(ctx, network, at, x.Now)
	switch {
	case err != nil:
		x.problem("see that the server runs with the setting hdl, and that the port is open for "+network+" from outside", "doctor.handle-silent",
			"clients of {prefix} are sent to {address} over {network}, which does not answer the Handle protocol: {cause}", site.prefix, at, network, err)
	case !bytes.Equal(got, site.octets):
		x.warn("servers read a new site within seconds; if it stays, set it up again with 'stele handle setup'", "doctor.handle-other-site",
			"{address} answers over {network} for another site than the record {prefix} says", at, network, site.prefix)
	default:
		x.ok("doctor.handle-answers", "{address} answers the Handle protocol over {network} for {prefix}", at, network, site.prefix)
	}
}

// siteAt asks a server for its site (GET_SITE_INFO). Over UDP it asks again, since datagrams get lost.
func siteAt(ctx context.Context, network, at string, now func() time.Time) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, handlePatience)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, network, at)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	const number = 0x53544c45
	request := hdl.Message{Envelope: hdl.Envelope{Version: hdl.Latest(), Suggested: hdl.Latest(), Request: number},
		Header: hdl.Header{Operation: hdl.GetSiteInfo, SiteSerial: hdl.UnknownSerial}, Body: hdl.AppendHandle(nil, "/")}
	octets := request.Append(nil)
	var answer []byte
	if network == "udp" {
		answer, err = overUDP(ctx, c, octets, now)
	} else if _, err = c.Write(octets); err == nil {
		deadline, _ := ctx.Deadline()
		_ = c.SetDeadline(deadline)
		answer, err = io.ReadAll(io.LimitReader(c, hdl.EnvelopeSize+hdl.MaxMessage))
	}
	if err != nil {
		return nil, err
	}
	m, err := hdl.Parse(answer)
	if err != nil {
		return nil, err
	}
	if m.Header.Response != hdl.Success || m.Envelope.Request != number {
		return nil, stele.Messagef("doctor.handle-code", "it answers with the code {code}", strconv.FormatUint(uint64(m.Header.Response), 10))
	}
	return m.Body, nil
}

// overUDP sends a request until the whole answer has come.
func overUDP(ctx context.Context, c net.Conn, request []byte, now func() time.Time) ([]byte, error) {
	parts := hdl.NewCollector(hdl.DefaultLimits())
	from := c.RemoteAddr().(*net.UDPAddr).AddrPort()
	buffer := make([]byte, hdl.MaxDatagram+1)
	deadline, _ := ctx.Deadline()
	for wait := 500 * time.Millisecond; ; wait += 500 * time.Millisecond {
		if _, err := c.Write(request); err != nil {
			return nil, err
		}
		again := now().Add(wait)
		if again.After(deadline) {
			again = deadline
		}
		_ = c.SetReadDeadline(again)
		for {
			n, err := c.Read(buffer)
			if err != nil && ctx.Err() != nil {
				return nil, err
			}
			if err != nil {
				break
			}
			if whole, err := parts.Add(now(), from, bytes.Clone(buffer[:n])); err != nil || whole != nil {
				return whole, err
			}
		}
		if !again.Before(deadline) {
			return nil, stele.Messagef("doctor.handle-timeout", "nothing came back in {seconds} seconds", int(handlePatience.Seconds()))
		}
	}
}
