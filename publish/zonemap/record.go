package zonemap

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
)

// maxRecordWire is the size of the longest data that an owner's record has on the wire.
const maxRecordWire = stele.MaxZoneRecordData

// ParseRecord reads the data of an owner's record as a master file has it (RFC 1035,
// section 5.1). Names in the data are absolute. No directive of master files is read, and
// neither is a comment or a second line.
func ParseRecord(r stele.ZoneRecord) (dns.RR, error) {
	if len(r.Data) > stele.MaxZoneRecordData || strings.ContainsFunc(r.Data, func(c rune) bool { return c < ' ' || c > '~' }) {
		return nil, stele.Messagef("zone-record.data-not-one-ascii-line", "is one line of ASCII with {limit} bytes at most", stele.MaxZoneRecordData)
	}
	if strings.TrimSpace(r.Data) == "" {
		return nil, stele.Messagef("zone-record.data-missing", "is missing; write it as in a master file, such as {example}", example(r.Type))
	}
	// Without an origin, a name that does not end in a dot is an error: "mail.example.org"
	// would be mail.example.org inside the zone, which is seldom meant.
	p := dns.NewZoneParser(strings.NewReader(fmt.Sprintf("%s %d IN %s %s\n", r.Name, r.TTL, r.Type, r.Data)), "", "")
	rr, ok := p.Next()
	if _, more := p.Next(); !ok || more || p.Err() != nil {
		return nil, stele.Messagef("zone-record.data-invalid", `"{data}" is not data of {type} records; write it as in a master file, such as {example}, with a dot at the end of each domain name`, r.Data, r.Type, example(r.Type))
	}
	if RecordData(rr) == "" || isBlank(rr) {
		return nil, stele.Messagef("zone-record.comment-only", `"{data}" has a comment only; write the data, such as {example}`, r.Data, example(r.Type))
	}
	if err := normalize(rr); err != nil {
		return nil, err
	}
	if dns.TypeToString[rr.Header().Rrtype] != string(r.Type) || rr.Header().Name != r.Name {
		return nil, stele.Messagef("zone-record.data-invalid-at", `"{data}" is not data of a {type} record at "{name}"`, r.Data, r.Type, r.Name)
	}
	buf := make([]byte, 512+maxRecordWire)
	n, err := dns.PackRR(rr, buf, 0, nil, false)
	if err != nil {
		return nil, stele.Messagef("zone-record.too-large", `"{data}" does not fit a record: {cause}`, r.Data, err)
	}
	// Other programs must read from the wire what the owner wrote.
	again := make([]byte, len(buf))
	back, _, err := dns.UnpackRR(buf[:n], 0)
	if err == nil {
		var m int
		if m, err = dns.PackRR(back, again, 0, nil, false); err == nil && !bytes.Equal(buf[:n], again[:m]) {
			err = stele.Messagef("zone-record.ambiguous", "others read it otherwise")
		}
	}
	if err != nil {
		return nil, stele.Messagef("zone-record.data-unreadable", `"{data}" is not data of {type} records: {cause}`, r.Data, r.Type, err)
	}
	return rr, nil
}

// isBlank reports whether a record has no data at all, which the library takes for one of
// a dynamic update (RFC 2136).
func isBlank(rr dns.RR) bool {
	switch rr := rr.(type) {
	case *dns.A:
		return rr.A == nil
	case *dns.AAAA:
		return rr.AAAA == nil
	case *dns.CNAME:
		return rr.Target == ""
	case *dns.MX:
		return rr.Mx == ""
	case *dns.SRV:
		return rr.Target == ""
	case *dns.CAA:
		return rr.Tag == ""
	case *dns.TXT:
		return len(rr.Txt) == 0
	}
	return false
}

// normalize writes names in lower case, and judges what the grammar of the library lets
// pass.
func normalize(rr dns.RR) error {
	switch rr := rr.(type) {
	case *dns.A, *dns.AAAA, *dns.TXT:
	case *dns.CNAME:
		rr.Target = dns.CanonicalName(rr.Target)
	case *dns.MX:
		rr.Mx = dns.CanonicalName(rr.Mx)
	case *dns.SRV:
		rr.Target = dns.CanonicalName(rr.Target)
	case *dns.CAA:
		rr.Tag = strings.ToLower(rr.Tag)
		if rr.Tag == "" || strings.ContainsFunc(rr.Tag, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }) {
			return stele.Messagef("zone-record.caa-tag-invalid", `the tag of a CAA record has letters and digits (RFC 8659, section 4.1), and "{tag}" has not`, rr.Tag)
		}
	default:
		return stele.Messagef("zone-record.type-reserved", "the type is not the owner's to write")
	}
	return nil
}

// example is data of a type.
func example(kind stele.RecordType) string {
	switch kind {
	case stele.RecordA:
		return "192.0.2.1"
	case stele.RecordAAAA:
		return "2001:db8::1"
	case stele.RecordCAA:
		return `0 issue "ca.example.net"`
	case stele.RecordMX:
		return "10 mx.example.org."
	case stele.RecordSRV:
		return "10 5 443 www.example.org."
	case stele.RecordTXT:
		return `"v=spf1 -all"`
	}
	return "www.example.org."
}

// RecordData is the data of a record as it is stored: as the library writes it.
func RecordData(rr dns.RR) string { return strings.TrimPrefix(rr.String(), rr.Header().String()) }

// CheckRecords calls add with what is wrong with the data of the owner's records of a
// publication, and where. [stele.Namespace.Validate] checks the rest.
func CheckRecords(p *stele.Publication, add func(path string, err error)) {
	aliases := make(map[string]bool)
	for _, r := range p.Records {
		if r.Type == stele.RecordCNAME {
			aliases[r.Name] = true
		}
	}
	for i, r := range p.Records {
		path := fmt.Sprintf("publication.records[%d].data", i)
		rr, err := ParseRecord(r)
		if err != nil {
			add(path, err)
			continue
		}
		if text := RecordData(rr); text != r.Data {
			add(path, stele.Messagef("zone-record.not-canonical", `"{data}" is not written as usual; write {expected}`, r.Data, text))
		}
		target := ""
		switch rr := rr.(type) {
		case *dns.MX:
			target = rr.Mx
		case *dns.SRV:
			target = rr.Target
		}
		if aliases[target] {
			add(path, stele.Messagef("zone-record.host-is-alias", "{host} is an alias (CNAME), and a {type} record names a host itself (RFC 2181, section 10.3)", target, r.Type))
		}
	}
}
