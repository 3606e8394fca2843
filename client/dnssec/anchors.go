package dnssec

import (
	"bytes"
	"io"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// Anchors are the keys that are trusted without proof, of one zone or several. For a
// name those of the zone that is closest above it count.
type Anchors struct{ zones map[string]*anchor }

// anchor is the keys of a zone, or their digests.
type anchor struct {
	keys []*dns.DNSKEY
	ds   []*dns.DS
}

// rootKeys are the anchors of the root of the public DNS, the keys of 2017 and of
// 2024, as IANA publishes them (data.iana.org/root-anchors/root-anchors.xml).
const rootKeys = `
. IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D
. IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16
`

// RootAnchors returns the anchors of the public DNS.
func RootAnchors() (*Anchors, error) { return ParseAnchors(strings.NewReader(rootKeys)) }

// Bounds on a file of anchors.
const (
	maxAnchorBytes = 1 << 20
	maxAnchors     = 1000
)

// ParseAnchors reads DNSKEY and DS records as zone files have them, which is how other
// programs keep their anchors, too. A record that could never be trusted is an error:
// otherwise a typing error would go unnoticed.
func ParseAnchors(r io.Reader) (*Anchors, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxAnchorBytes+1))
	if err != nil {
		return nil, wrongAnchors("", "{cause}", err)
	}
	if len(text) > maxAnchorBytes {
		return nil, wrongAnchors("trust-anchor.too-large", "there are more than {limit} bytes; anchors are a few lines", maxAnchorBytes)
	}
	a := &Anchors{zones: make(map[string]*anchor)}
	p := dns.NewZoneParser(bytes.NewReader(text), ".", "")
	p.SetDefaultTTL(3600) // it has no meaning here, and may be left out
	for n := 1; ; n++ {
		record, ok := p.Next()
		if !ok {
			break
		}
		if n > maxAnchors {
			return nil, wrongAnchors("trust-anchor.too-many", "there are more than {limit} records; keep those that you need", maxAnchors)
		}
		if err := a.add(record); err != nil {
			return nil, wrongAnchors("", `"{replace-all}": {cause}`, strings.ReplaceAll(record.String(), "\t", " "), err)
		}
	}
	if err := p.Err(); err != nil {
		return nil, wrongAnchors("trust-anchor.line-unreadable", `"{cause}"; write DNSKEY or DS records, one a line`, err.Error())
	}
	if len(a.zones) == 0 {
		return nil, wrongAnchors("trust-anchor.missing", "there is no DNSKEY or DS record")
	}
	return a, nil
}

func wrongAnchors(code, text string, args ...any) error {
	return &stele.Error{Op: "read trust anchors", Kind: stele.Invalid, Err: stele.Messagef(code, text, args...)}
}

func (a *Anchors) add(record dns.RR) error {
	h := record.Header()
	if h.Class != dns.ClassINET {
		return stele.Messagef("trust-anchor.class-not-in", "its class is not IN")
	}
	zone := dns.CanonicalName(h.Name)
	one := a.zones[zone]
	if one == nil {
		one = new(anchor)
	}
	switch r := record.(type) {
	case *dns.DNSKEY:
		switch {
		case r.Flags&dns.REVOKE != 0:
			return stele.Messagef("trust-anchor.key-revoked", "this key was revoked (RFC 5011); remove it")
		case !isZoneKey(r):
			return stele.Messagef("trust-anchor.not-a-zone-key", "this is not a key of a zone")
		case !isSupported(r.Algorithm):
			return stele.Messagef("trust-anchor.algorithm-unsupported", "keys of algorithm {algorithm} can't be checked", r.Algorithm)
		}
		r.Hdr.Name = zone
		one.keys = append(one.keys, r)
	case *dns.DS:
		if !isUsable(r) {
			return stele.Messagef("trust-anchor.digest-unsupported", "digests of type {digest-type} of keys of algorithm {algorithm} can't be checked", r.DigestType, r.Algorithm)
		}
		one.ds = append(one.ds, r)
	default:
		return stele.Messagef("trust-anchor.not-an-anchor", "this is not an anchor; write DNSKEY or DS records")
	}
	a.zones[zone] = one
	return nil
}

// above returns the zone with anchors that is closest above a name, or at it.
func (a *Anchors) above(name string) (zone string, ok bool) {
	for n := dns.CountLabel(name); n >= 0; n-- {
		zone = ancestor(name, n)
		if _, ok := a.zones[zone]; ok {
			return zone, true
		}
	}
	return "", false
}

// isSupported reports whether signatures of an algorithm can be checked here, and are
// secure enough (RFC 8624, section 3.1).
func isSupported(algorithm uint8) bool {
	switch algorithm {
	case dns.RSASHA256, dns.RSASHA512, dns.ECDSAP256SHA256, dns.ECDSAP384SHA384, dns.ED25519:
		return true
	}
	return false
}

// isUsable reports whether a DS record can be checked here, and the signatures that
// its key makes (RFC 4035, section 5.2; RFC 8624, section 3.3).
func isUsable(r *dns.DS) bool {
	return isSupported(r.Algorithm) && (r.DigestType == dns.SHA256 || r.DigestType == dns.SHA384)
}

// isZoneKey reports whether a key may sign a zone's records (RFC 4034, section 2.1;
// RFC 5011, section 2.1).
func isZoneKey(k *dns.DNSKEY) bool {
	return k.Hdr.Class == dns.ClassINET && k.Flags&dns.ZONE != 0 && k.Flags&dns.REVOKE == 0 && k.Protocol == 3
}
