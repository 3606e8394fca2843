package dnsrr

import (
	"io"
	"strings"

	"github.com/miekg/dns"
)

// Entry is a record of a master file, of the types by which identifiers are published, for packages that do not know the DNS
// library. Texts are as they are on the wire, except those of NAPTR records, which have the escapes of master files.
type Entry struct {
	Owner string // absolute
	Type  string // NAPTR, URI, TXT, CNAME, ...
	TTL   uint32

	Order, Preference          uint16 // of NAPTR; Order is the priority of URI
	Flags, Service             string
	Regexp, Replacement, Value string // Value is the target of URI and CNAME
	Texts                      []string

	rr dns.RR
}

// Data returns all that the record says, as master files write it.
func (e *Entry) Data() string { return strings.TrimPrefix(e.rr.String(), e.rr.Header().String()) }

// ParseEntry reads one record as master files have it (RFC 1035, section 5). It opens no other file. Names that are not absolute
// are below the origin.
func ParseEntry(text, origin string, ttl uint32) (e Entry, err error) {
	if e, ok := plainRule(text, ttl); ok {
		return e, nil
	}
	return parseEntry(text, origin, ttl)
}

// parseEntry is ParseEntry for all records.
func parseEntry(text, origin string, ttl uint32) (e Entry, err error) {
	p := dns.NewZoneParser(strings.NewReader(text+"\n"), origin, "")
	p.SetDefaultTTL(ttl)
	p.SetIncludeAllowed(false)
	rr, ok := p.Next()
	if !ok || rr == nil {
		if err := p.Err(); err != nil {
			return e, err
		}
		return e, io.ErrUnexpectedEOF // there is no record
	}
	return newEntry(rr), nil
}

func newEntry(rr dns.RR) Entry {
	head := rr.Header()
	e := Entry{Owner: head.Name, Type: dns.Type(head.Rrtype).String(), TTL: head.Ttl, rr: rr}
	switch rr := rr.(type) {
	case *dns.NAPTR:
		e.Order, e.Preference, e.Flags, e.Service, e.Regexp, e.Replacement = rr.Order, rr.Preference, rr.Flags, rr.Service, rr.Regexp, rr.Replacement
	case *dns.URI:
		e.Order, e.Preference, e.Value = rr.Priority, rr.Weight, rr.Target
	case *dns.CNAME:
		e.Value = rr.Target
	case *dns.TXT:
		e.Texts = rr.Txt
	}
	return e
}
