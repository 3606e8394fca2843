package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// ZoneTrust is how the zone above vouches for the keys of a zone. Records are the data of
// DS records as text, "31589 13 2 3AA5...", in order.
type ZoneTrust struct {
	DS     []string // that the zone above has
	Wanted []string // that the zone says it should have (CDS, RFC 7344)
	Keys   bool     // the zone has keys
	Fits   bool     // one of the DS records is of one of them
	Err    error    // why that is not known
}

// IsWanted reports whether the zone above vouches for exactly the keys that the zone wants,
// by whichever digests.
func (t *ZoneTrust) IsWanted() bool { return slices.Equal(keysOf(t.DS), keysOf(t.Wanted)) }

// keysOf returns the keys that DS records are of: tag and algorithm.
func keysOf(list []string) (keys []string) {
	for _, text := range list {
		f := strings.Fields(text)
		keys = append(keys, strings.Join(f[:min(len(f), 2)], " "))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// DS returns the zone above a zone, and the DS records that its servers have of the zone.
func (d *Delegations) DS(ctx context.Context, zone string) (parent string, list []string, err error) {
	zone = dns.CanonicalName(zone)
	if parent, err = d.parent(ctx, zone); err != nil {
		return "", nil, err
	}
	reply, err := d.parentSays(ctx, parent, zone, dns.TypeDS)
	if err != nil {
		return parent, nil, err
	}
	return parent, dsOf(reply.Answer, zone), nil
}

// dsOf returns the data of DS and CDS records of a zone, without a CDS record that asks to
// delete them (RFC 8078, section 4).
func dsOf(answer []dns.RR, zone string) (list []string) {
	for _, rr := range answer {
		var ds *dns.DS
		switch rr := rr.(type) {
		case *dns.DS:
			ds = rr
		case *dns.CDS:
			ds = &rr.DS
		}
		if ds != nil && dns.CanonicalName(ds.Hdr.Name) == zone && ds.Algorithm != 0 {
			list = append(list, dsText(ds))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func dsText(ds *dns.DS) string {
	return fmt.Sprintf("%d %d %d %s", ds.KeyTag, ds.Algorithm, ds.DigestType, strings.ToUpper(ds.Digest))
}

// trust compares the DS records of a zone with its keys, which the first of its servers
// that answers is asked for.
func (d *Delegations) trust(ctx context.Context, found *Delegation) (t ZoneTrust) {
	reply, err := d.parentSays(ctx, found.Parent, found.Zone, dns.TypeDS)
	if err != nil {
		t.Err = err
		return t
	}
	t.DS = dsOf(reply.Answer, found.Zone)
	i := slices.IndexFunc(found.Servers, func(s ZoneServer) bool { return s.Err == nil })
	if i < 0 {
		t.Err = stele.Messagef("signature.zone-servers-unreachable", "no server of {zone} can be asked for its keys", found.Zone)
		return t
	}
	at := found.Servers[i].At
	wanted, err := d.exchange(ctx, at, "udp", found.Zone, dns.TypeCDS, false)
	if err != nil {
		t.Err = err
		return t
	}
	t.Wanted = dsOf(wanted.Answer, found.Zone)
	keys, err := d.exchange(ctx, at, "udp", found.Zone, dns.TypeDNSKEY, false)
	if err != nil {
		t.Err = err
		return t
	}
	for _, rr := range keys.Answer {
		key, ok := rr.(*dns.DNSKEY)
		if !ok || dns.CanonicalName(key.Hdr.Name) != found.Zone {
			continue
		}
		t.Keys = true
		for _, digest := range []uint8{dns.SHA1, dns.SHA256, dns.SHA384} {
			if ds := key.ToDS(digest); ds != nil && slices.Contains(t.DS, dsText(ds)) {
				t.Fits = true
			}
		}
	}
	return t
}
