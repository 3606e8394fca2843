package ibi

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/internal/lex"
)

// Prefix is what one server (the report's identification subsystem) puts before
// the labels that it makes, in one of the two forms. Together with a date it
// makes a label. The zero Prefix is invalid.
type Prefix struct {
	form string
	text string
}

// String returns the prefix as it stands in labels.
func (p Prefix) String() string { return p.text }

// Form returns FormRep or FormIBIp.
func (p Prefix) Form() string { return p.form }

// RepPrefix is algorithm 1: the prefix of repository names given by the server
// at that host name and port. The host name is split at its first dot; the
// report's pseudo-code also drops all further dots, against every one of its
// examples, and we keep them.
func RepPrefix(host string, port uint16) (Prefix, error) {
	if err := stele.CheckText(Name, host); err != nil {
		return Prefix{}, err
	}
	if port == 0 {
		return Prefix{}, stele.Invalidf(Name, 0, "ibi.port-zero", "0 is not a port: use 1 to 65535")
	}
	host = lex.Lower(strings.TrimSuffix(host, "."))
	if f := checkDomain(host); f.reason != nil {
		return Prefix{}, stele.Invalidf(Name, f.pos, "", "{reason}", f.reason)
	}
	word, domain, ok := lex.Cut(host, '.')
	if !ok {
		return Prefix{}, stele.Invalidf(Name, len(host), "ibi.host-not-qualified", `an IBI needs a fully qualified domain name, with a dot in it; "{host}" has none`, host)
	}
	if f := notProxy(domain); f.reason != nil {
		return Prefix{}, stele.Invalidf(Name, len(word)+1, "", "{reason}", f.reason)
	}
	text := domain + "/" + word
	if port != defaultRepPort {
		text += "." + strconv.Itoa(int(port))
	}
	return Prefix{FormRep, text}, nil
}

// Reach says which addresses an IBIp may be made from.
type Reach bool

const (
	// PublicOnly refuses addresses that other hosts have too, such as 127.0.0.1
	// or 10.0.0.1: a label made from one is unique by luck only.
	PublicOnly Reach = false
	// AnyAddress allows them, for callers that have a reason.
	AnyAddress Reach = true
)

// IBIpPrefix is algorithm 5: the prefix of IBIps given by the server at that
// address and port. An IPv4-mapped IPv6 address counts as its IPv4 address.
func IBIpPrefix(addr netip.Addr, port uint16, reach Reach) (Prefix, error) {
	switch {
	case !addr.IsValid():
		return Prefix{}, stele.Invalidf(Name, 0, "ibi.address-missing", "there is no IP address")
	case addr.Zone() != "":
		return Prefix{}, stele.Invalidf(Name, 0, "ibi.address-with-zone", "{address} has a zone, which means something on one host only; give the address without it", addr)
	case port == 0:
		return Prefix{}, stele.Invalidf(Name, 0, "ibi.port-zero", "0 is not a port: use 1 to 65535")
	}
	addr = addr.Unmap()
	if why := NotPublic(addr); why != "" && reach == PublicOnly {
		return Prefix{}, stele.Invalidf(Name, 0, "ibi.address-not-public", "{address} is {kind} address, which others have too: labels made from it would not be unique", addr, why)
	}
	b := appendAddr(make([]byte, 0, maxV6+5), addr)
	if addr.Is4() {
		b = append(b, 'W')
	} else {
		b = append(b, 'X')
	}
	if port != defaultIBIpPort {
		b = append27(b, uint64(port))
	}
	return Prefix{FormIBIp, string(b)}, nil
}

// AppendLabel appends the label that p and the date make (algorithms 2 and 3, or
// 6 and 7). A repository name can be made of every date, an IBIp of none before
// August 1995.
func (p Prefix) AppendLabel(b []byte, d mint.Date) ([]byte, error) {
	switch p.form {
	case FormRep:
		b = append(append(b, p.text...), '/')
		return appendRepSuffix(b, d), nil
	case FormIBIp:
		if d.Unix() < epoch {
			return b, stele.Invalidf(Name, 0, "ibi.date-too-early", "{date} is before 1995-08-01, where the dates of IBIps begin", d)
		}
		b = append(append(b, p.text...), '/')
		return appendIBIpSuffix(b, d), nil
	}
	return b, stele.Invalidf(Name, 0, "ibi.prefix-zero", "the zero Prefix makes no labels")
}

// ID returns the label that p and the date make as an identifier.
func (p Prefix) ID(d mint.Date) (stele.ID, error) {
	b, err := p.AppendLabel(make([]byte, 0, len(p.text)+32), d)
	if err != nil {
		return stele.ID{}, err
	}
	return stele.NewID(Name, string(b))
}

// NotPublic says in a few words which kind of address addr is, with its article,
// if that kind is not unique in the Internet; "" if it is.
func NotPublic(addr netip.Addr) string {
	addr = addr.Unmap()
	switch {
	case addr.IsUnspecified():
		return "an unspecified"
	case addr.IsLoopback():
		return "a loopback"
	case addr.IsPrivate():
		return "a private"
	case addr.IsLinkLocalUnicast():
		return "a link-local"
	case addr.IsMulticast():
		return "a multicast"
	}
	for _, block := range special {
		if block.prefix.Contains(addr) {
			return block.kind
		}
	}
	return ""
}

type block struct {
	prefix netip.Prefix
	kind   string // "" where addresses are unique after all
}

// special are blocks that IANA's registries (RFC 6890) call not globally
// reachable, and that package netip has no method for. The first that holds an
// address counts.
var special = func() (list []block) {
	for _, b := range [...]struct{ prefix, kind string }{
		{"192.0.2.0/24", "a documentation"},
		{"198.51.100.0/24", "a documentation"},
		{"203.0.113.0/24", "a documentation"},
		{"2001:db8::/32", "a documentation"},
		{"3fff::/20", "a documentation"},
		{"0.0.0.0/8", "a \"this network\""},
		{"100.64.0.0/10", "a shared"},
		{"192.0.0.9/32", ""}, // Port Control Protocol, and TURN after it
		{"192.0.0.10/32", ""},
		{"192.0.0.0/24", "a protocol's own"},
		{"198.18.0.0/15", "a benchmarking"},
		{"240.0.0.0/4", "a reserved"},
		{"64:ff9b:1::/48", "a translator's own"},
		{"100::/64", "a discard-only"},
		{"100:0:0:1::/64", "a dummy"},
		{"2001:3::/32", ""}, // AMT, AS112, ORCHIDv2, DRIP
		{"2001:4:112::/48", ""},
		{"2001:20::/28", ""},
		{"2001:30::/28", ""},
		{"2001::/23", "a protocol's own"},
		{"5f00::/16", "a segment routing"},
		{"fec0::/10", "a site-local"},
	} {
		list = append(list, block{netip.MustParsePrefix(b.prefix), b.kind})
	}
	return list
}()
