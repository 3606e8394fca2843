package publishtest

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// Lines returns all records of a zone, signed if it is for others, as a set of
// lines, without the SOA record.
func (p *Registry) Lines(zone string) map[string]bool {
	p.T.Helper()
	return Lines(p.T, p.Records(zone))
}

// Records returns all records of a zone, signed if it is for others, as a name server reads
// them from the zone's file.
func (p *Registry) Records(zone string) (list []dns.RR) {
	p.T.Helper()
	export := p.Zones.Export
	if p.Zone(zone).Signer() != nil {
		export = p.Zones.ExportSigned
	}
	var b bytes.Buffer
	if err := export(p.Ctx, &b, zone, nil); err != nil {
		p.T.Fatal(err)
	}
	var rest strings.Builder
	for line := range strings.Lines(b.String()) {
		if rr := longURI(line, zone); rr != nil {
			list = append(list, rr)
			continue
		}
		rest.WriteString(line)
	}
	parser := dns.NewZoneParser(strings.NewReader(rest.String()), "", "")
	for rr, ok := parser.Next(); ok; rr, ok = parser.Next() {
		list = append(list, rr)
	}
	if err := parser.Err(); err != nil {
		p.T.Fatal(err)
	}
	return list
}

var uriLine = regexp.MustCompile(`^(\S+) (\d+) IN URI (\d+) (\d+) "(.*)"\n$`)

// longURI reads a URI record of a zone's file. The parser of the DNS library reads targets
// of up to 255 bytes only; it is nil for other lines.
func longURI(line, zone string) dns.RR {
	m := uriLine.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	var numbers [3]uint32
	for i := range numbers {
		n, err := strconv.ParseUint(m[2+i], 10, 32)
		if err != nil {
			return nil
		}
		numbers[i] = uint32(n)
	}
	owner := m[1] + "." + zone
	if m[1] == "@" {
		owner = zone
	}
	return &dns.URI{
		Hdr:      dns.RR_Header{Name: owner, Rrtype: dns.TypeURI, Class: dns.ClassINET, Ttl: numbers[0]},
		Priority: uint16(numbers[1]), Weight: uint16(numbers[2]), Target: m[5],
	}
}

// Lines are records as a set of lines, without SOA records and their signatures.
func Lines(t testing.TB, list []dns.RR) map[string]bool {
	t.Helper()
	set := make(map[string]bool)
	for _, rr := range list {
		if sig, ok := rr.(*dns.RRSIG); rr.Header().Rrtype == dns.TypeSOA || ok && sig.TypeCovered == dns.TypeSOA {
			continue
		}
		if set[rr.String()] {
			t.Errorf("%s came twice", rr)
		}
		set[rr.String()] = true
	}
	return set
}

// Ends makes sure that a transfer begins and ends with the same SOA record, and returns
// its serial.
func Ends(t testing.TB, list []dns.RR) uint32 {
	t.Helper()
	if len(list) < 2 {
		t.Fatalf("%d records", len(list))
	}
	first, ok := list[0].(*dns.SOA)
	if last := list[len(list)-1]; !ok || last.String() != first.String() {
		t.Fatalf("it begins with %v and ends with %v", list[0], last)
	}
	return first.Serial
}

// Apply applies a delta to a copy of a zone, and returns its serial then.
func Apply(t *testing.T, copied map[string]bool, list []dns.RR, serial uint32) uint32 {
	t.Helper()
	if len(list) == 1 {
		soa, ok := list[0].(*dns.SOA)
		if !ok || soa.Serial != serial {
			t.Fatalf("got %v for serial %d", list, serial)
		}
		return serial
	}
	now := Ends(t, list)
	part := 0 // of the SOA records after the first: 1 is removed, 2 is added
	for _, rr := range list[1 : len(list)-1] {
		if soa, ok := rr.(*dns.SOA); ok {
			if part++; part == 1 && soa.Serial != serial || part == 2 && soa.Serial != now {
				t.Fatalf("part %d is of serial %d", part, soa.Serial)
			}
			continue
		}
		if sig, ok := rr.(*dns.RRSIG); ok && sig.TypeCovered == dns.TypeSOA {
			continue
		}
		line := rr.String()
		if copied[line] == (part == 2) {
			t.Fatalf("part %d has %s", part, line)
		}
		if part == 1 {
			delete(copied, line)
		} else {
			copied[line] = true
		}
	}
	if part != 2 {
		t.Fatalf("%d parts", part)
	}
	return now
}
