package hdl

import (
	"crypto/md5"
	"encoding/binary"
	"net/netip"
)

// Site is the data of an HS_SITE, HS_SITE.PREFIX or HS_NA_DELEGATE value, and the answer of GET_SITE_INFO.
type Site struct {
	Version    Version // of the protocol that its servers speak
	Serial     uint16
	Flags      uint8 // SitePrimary, SiteMultiPrimary; others are kept
	HashOption HashOption
	HashFilter []byte
	Attributes []Attribute
	Servers    []Server
}

// The flags of a site.
const (
	SitePrimary      = 0x80
	SiteMultiPrimary = 0x40
)

// Attribute is a named text of a site: "desc", "domain".
type Attribute struct{ Name, Value string }

// Server is a server of a site.
type Server struct {
	ID         uint32
	Address    [16]byte // IPv6, or IPv4 in the last 4 octets
	Key        []byte   // HS_PUBKEY, with which the server signs; ParsePublicKey reads it. May be empty
	Interfaces []Interface
}

// Interface is a way to reach a server.
type Interface struct {
	Type     InterfaceType
	Protocol Transport
	Port     uint32
}

// InterfaceType says for which operations an interface is.
type InterfaceType uint8

// The types of interfaces. InterfaceAdmin and InterfaceQuery are bits.
const (
	InterfaceAdmin InterfaceType = 1
	InterfaceQuery InterfaceType = 2
	InterfaceBoth  InterfaceType = 3
)

// Transport is the protocol below that of an interface.
type Transport uint8

// The transports.
const (
	UDP   Transport = 0
	TCP   Transport = 1
	HTTP  Transport = 2
	HTTPS Transport = 3
)

const siteFormat = 1

// The least octets of the parts of a site.
const (
	minAttribute = 4 + 4
	minServer    = 4 + 16 + 4 + 4
	minInterface = 1 + 1 + 4
)

// ParseSite reads a site.
func ParseSite(b []byte) (Site, error) {
	r := newReader("HS_SITE", InvalidValue, b)
	if format := r.u16("format"); r.err == nil && format != siteFormat {
		r.fail(InvalidValue, "hdl.site-format", "HS_SITE has format {format}, and only 1 is known", format)
	}
	s := Site{
		Version: Version{r.u8("major version"), r.u8("minor version")},
		Serial:  r.u16("serial number"), Flags: r.u8("flags"),
		HashOption: HashOption(r.u8("hash option")), HashFilter: r.str("hash filter"),
	}
	if n := r.count("attributes", minAttribute, maxCount, r.code); n > 0 {
		s.Attributes = make([]Attribute, n)
	}
	for i := range s.Attributes {
		s.Attributes[i] = Attribute{string(r.str("name of an attribute")), string(r.str("value of an attribute"))}
	}
	if n := r.count("servers", minServer, maxCount, r.code); n > 0 {
		s.Servers = make([]Server, n)
	}
	for i := range s.Servers {
		r.server(&s.Servers[i])
	}
	if err := r.end(); err != nil {
		return Site{}, err
	}
	return s, nil
}

func (r *reader) server(s *Server) {
	s.ID = r.u32("number of a server")
	copy(s.Address[:], r.take(16, "address of a server"))
	s.Key = r.str("key of a server")
	if n := r.count("interfaces of a server", minInterface, maxCount, r.code); n > 0 {
		s.Interfaces = make([]Interface, n)
	}
	for i := range s.Interfaces {
		s.Interfaces[i] = Interface{InterfaceType(r.u8("type of an interface")), Transport(r.u8("protocol of an interface")), r.u32("port of an interface")}
	}
}

// Append appends the site.
func (s *Site) Append(dst []byte) []byte {
	dst = append(appendU16(dst, siteFormat), s.Version.Major, s.Version.Minor)
	dst = append(appendU16(dst, s.Serial), s.Flags, byte(s.HashOption))
	dst = appendStr(dst, s.HashFilter)
	dst = appendU32(dst, uint32(len(s.Attributes)))
	for _, a := range s.Attributes {
		dst = appendStr(appendStr(dst, a.Name), a.Value)
	}
	dst = appendU32(dst, uint32(len(s.Servers)))
	for i := range s.Servers {
		srv := &s.Servers[i]
		dst = append(appendU32(dst, srv.ID), srv.Address[:]...)
		dst = appendStr(dst, srv.Key)
		dst = appendU32(dst, uint32(len(srv.Interfaces)))
		for _, i := range srv.Interfaces {
			dst = appendU32(append(dst, byte(i.Type), byte(i.Protocol)), i.Port)
		}
	}
	return dst
}

// Addr returns the address. 12 zero octets before the last four mean IPv4.
func (s *Server) Addr() netip.Addr {
	if zeros(s.Address[:12]) && !zeros(s.Address[12:15]) {
		return netip.AddrFrom4([4]byte(s.Address[12:]))
	}
	return netip.AddrFrom16(s.Address).Unmap()
}

// SetAddr sets the address.
func (s *Server) SetAddr(a netip.Addr) {
	s.Address = [16]byte{}
	if a = a.Unmap(); a.Is4() {
		four := a.As4()
		copy(s.Address[12:], four[:])
	} else if a.IsValid() {
		s.Address = a.As16()
	}
}

// HashOption says which part of a handle decides which server of a site has it.
type HashOption uint8

// The hash options.
const (
	HashPrefix HashOption = 0
	HashSuffix HashOption = 1
	HashAll    HashOption = 2
)

// Hash returns the number by which a client chooses the server: the last 4 octets of the MD5 digest of
// the part of the handle, upper case, as an absolute value.
func (o HashOption) Hash(handle []byte) uint32 {
	sum := md5.Sum(o.part(handle))
	n := int64(int32(binary.BigEndian.Uint32(sum[12:])))
	return uint32(max(n, -n))
}

// part returns a copy of the part that is hashed, upper case in ASCII. A handle without a slash is
// a suffix of 0.NA.
func (o HashOption) part(handle []byte) []byte {
	prefix, suffix := []byte("0.NA"), handle
	for i, c := range handle {
		if c == '/' {
			prefix, suffix = handle[:i], handle[i+1:]
			break
		}
	}
	part := handle
	switch o {
	case HashPrefix:
		part = prefix
	case HashSuffix:
		part = suffix
	}
	folded := make([]byte, len(part))
	for i, c := range part {
		folded[i] = upper(c)
	}
	return folded
}

// ServerFor returns the server that has a handle; nil if the site has none. An unknown hash option means
// HashAll.
func (s *Site) ServerFor(handle []byte) *Server {
	if len(s.Servers) == 0 {
		return nil
	}
	return &s.Servers[s.HashOption.Hash(handle)%uint32(len(s.Servers))]
}
