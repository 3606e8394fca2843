package stele

import (
	"slices"
	"strings"
)

// checkRecords judges the owner's own records, as far as the DNS's grammar of their data
// is not needed: that is package publish's.
func (p *Publication) checkRecords(f *Report) {
	const path = "publication.records"
	if !fits(f, path, len(p.Records), MaxZoneRecords) {
		return
	}
	type set struct {
		name string
		kind RecordType
	}
	ttls, kinds, size := make(map[set]uint32), make(map[string][]RecordType), 0
	for i := range p.Records {
		r := &p.Records[i]
		r.check(f, ItemPath(path, i), p)
		size += len(r.Name) + len(r.Data)
		if ttl, ok := ttls[set{r.Name, r.Type}]; ok && ttl != r.TTL {
			f.Addf(ItemPath(path, i)+".ttl", "zone-record.ttl-differs", `{ttl} seconds, and another {type} record at "{name}" has {other-ttl}; all records of a name and type have one TTL (RFC 2181, section 5.2)`, r.TTL, r.Type, r.Name, ttl)
		}
		ttls[set{r.Name, r.Type}] = r.TTL
		if known := kinds[r.Name]; len(known) > 0 && (r.Type == RecordCNAME || slices.Contains(known, RecordCNAME)) {
			f.Addf(ItemPath(path, i)+".type", "zone-record.cname-not-alone", `a CNAME record stands alone at its name (RFC 2181, section 10.1), and "{name}" has another record`, r.Name)
		}
		kinds[r.Name] = append(kinds[r.Name], r.Type)
	}
	if size > maxZoneRecordText {
		f.Addf(path, "zone-record.all-too-large", "names and data have {size} bytes; {most} are the most", size, maxZoneRecordText)
	}
	twice(f, path, "", p.Records, func(r ZoneRecord) ZoneRecord { return r })
}

func (r *ZoneRecord) check(f *Report, path string, p *Publication) {
	reason := domainReason(r.Name)
	switch {
	case strings.HasPrefix(r.Name, "*.") || strings.Contains(r.Name, ".*."):
		f.Addf(path+".name", "zone-record.wildcard", `"{name}" is a wildcard, and a zone has none: a name that is not registered does not exist`, r.Name)
	case reason != nil:
		f.Add(path+".name", reason)
	case domainReason(p.Zone) == nil && r.Name != p.Zone && !strings.HasSuffix(r.Name, "."+p.Zone):
		f.Addf(path+".name", "zone-record.outside-zone", `"{name}" is not in the zone "{zone}"`, r.Name, p.Zone)
	}
	if r.TTL < 1 || r.TTL > MaxTTL {
		f.Addf(path+".ttl", "zone-record.ttl-out-of-range", "{ttl} is not a time to live; give seconds, from 1 to {most} (30 days)", r.TTL, MaxTTL)
	}
	switch {
	case !slices.Contains(RecordTypes(), r.Type):
		f.Addf(path+".type", "zone-record.type-not-allowed", `"{type}" records are not the owner's to write; there are A, AAAA, CAA, CNAME, MX, SRV and TXT`, string(r.Type))
	case r.Type == RecordCNAME && r.Name == p.Zone:
		f.Addf(path+".type", "zone-record.cname-at-apex", "a CNAME record can't stand at the zone's name, which has SOA and NS records (RFC 1912, section 2.4); write A and AAAA records")
	case slices.ContainsFunc(p.Servers, func(s NameServer) bool { return s.Name == r.Name }) &&
		(r.Type == RecordA || r.Type == RecordAAAA || r.Type == RecordCNAME):
		f.Addf(path+".name", "zone-record.name-server-address", `"{name}" is a name server of the zone, whose addresses are given with it (stele zone add --ns)`, r.Name)
	}
	if len(r.Data) > MaxZoneRecordData || strings.IndexFunc(r.Data, func(c rune) bool { return c < ' ' || c > '~' }) >= 0 {
		f.Addf(path+".data", "zone-record.data-malformed", "is one line of ASCII with {most} bytes at most, as in a master file; write other bytes as \\DDD", MaxZoneRecordData)
	}
}
