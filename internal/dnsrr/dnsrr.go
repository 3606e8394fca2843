// Package dnsrr has what all packages share that make or read DNS records: the sizes of
// names and texts (RFC 1035), and the header of a record.
package dnsrr

import "github.com/miekg/dns"

// Sizes in bytes.
const (
	MaxName     = 255       // of a name in wire form, with the length of each label (RFC 1035, section 2.3.4)
	MaxNameText = 253       // of a name as it is written, without the dot at its end
	MaxLabel    = 63        // of a label (RFC 1035, section 2.3.4)
	MaxString   = 255       // of a character-string, of which TXT records have some (RFC 1035, section 3.3)
	MaxMessage  = 1<<16 - 1 // of a message over TCP (RFC 1035, section 4.2.2)

	// MaxUDP is the largest answer over UDP: it crosses today's networks in one piece
	// (dnsflagday.net/2020), and an amplifier gains little.
	MaxUDP = 1232
)

// Header returns the header of a record in the class IN.
func Header(owner string, kind uint16, ttl uint32) dns.RR_Header {
	return dns.RR_Header{Name: owner, Rrtype: kind, Class: dns.ClassINET, Ttl: ttl}
}
