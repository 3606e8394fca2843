package httpd

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/netip"
	"unicode/utf8"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/destination"
)

// handleData is the data of a handle value as JSON: a format and a value; the format decides
// the value's shape.
type handleData struct {
	Format string `json:"format"`
	Value  any    `json:"value"`
}

// readHandleData shows the data of a value in the way of the reference server: the
// types that its software defines are taken apart, other data is a string if it
// can be read, and base64 otherwise. Data that does not hold to its type's layout
// is shown in the last two ways.
func readHandleData(kind string, data []byte) handleData {
	var format string
	var read func(*fields) any
	switch {
	case destination.HasType(kind, "HS_ADMIN"):
		format, read = "admin", readAdmin
	case destination.HasType(kind, "HS_VLIST"):
		format, read = "vlist", readReferences
	case destination.HasType(kind, "HS_SITE"), destination.HasType(kind, "HS_NA_DELEGATE"):
		format, read = "site", readSite
	case destination.HasType(kind, "HS_PUBKEY"):
		format, read = "key", readKey
	}
	if read != nil {
		f := fields{rest: data}
		if value := read(&f); f.err == nil && len(f.rest) == 0 {
			return handleData{format, value}
		}
	}
	if isReadable(data) {
		return handleData{"string", string(data)}
	}
	return handleData{"base64", base64.StdEncoding.EncodeToString(data)}
}

// isReadable reports whether data is text: UTF-8, without control characters except 0x09 to
// 0x13, which the reference server takes for white space.
func isReadable(data []byte) bool {
	for _, c := range data {
		if c < 0x09 || c > 0x13 && c < 0x20 || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(data)
}

var errShort = stele.Messagef("hdl.data-too-short", "the data ends too early")

// fields reads the parts of a value's data one by one. After the first missing part all are
// zero, and err says so.
type fields struct {
	rest []byte
	err  error
}

func (f *fields) take(n uint32) []byte {
	if f.err != nil || uint64(n) > uint64(len(f.rest)) {
		f.err, f.rest = errShort, nil
		return nil
	}
	part := f.rest[:n]
	f.rest = f.rest[n:]
	return part
}

func (f *fields) byte() byte {
	if b := f.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) short() uint16 {
	if b := f.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (f *fields) int() uint32 {
	if b := f.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// bytes reads a size and so many bytes.
func (f *fields) bytes() []byte { return f.take(f.int()) }

// text reads bytes that must be UTF-8.
func (f *fields) text() string {
	b := f.bytes()
	if !utf8.Valid(b) {
		f.err = stele.Messagef("hdl.text-not-utf-8", "a text is not UTF-8")
	}
	return string(b)
}

// count reads how many items follow, each of at least size bytes: there can't be
// more than the data has room for.
func (f *fields) count(size int) int {
	n := f.int()
	if uint64(n)*uint64(size) > uint64(len(f.rest)) {
		f.err = errShort
		return 0
	}
	return int(n)
}

// adminData names the handle that may change a handle, and what it may do: bits from "list
// handles" to "add handle" (RFC 3651, 3.2.1).
type adminData struct {
	Handle      string `json:"handle"`
	Index       uint32 `json:"index"`
	Permissions string `json:"permissions"`
	Legacy      bool   `json:"legacyByteLength,omitempty"`
}

func readAdmin(f *fields) any {
	const all = 1<<12 - 1
	a := adminData{Permissions: fmt.Sprintf("%012b", f.short()&all), Handle: f.text(), Index: f.int()}
	if len(f.rest) == 2 { // old software wrote two bytes more
		f.take(2)
		a.Legacy = true
	}
	return a
}

// referenceData points at a value of a handle.
type referenceData struct {
	Handle string `json:"handle"`
	Index  uint32 `json:"index"`
}

func readReferences(f *fields) any {
	list := make([]referenceData, f.count(8))
	for i := range list {
		list[i] = referenceData{f.text(), f.int()}
	}
	return list
}

// siteData describes the servers that answer for a prefix (RFC 3651, 3.2.2).
type siteData struct {
	Version    uint16          `json:"version"`
	Protocol   string          `json:"protocolVersion"`
	Serial     uint16          `json:"serialNumber"`
	Primary    bool            `json:"primarySite"`
	Multi      bool            `json:"multiPrimary"`
	HashOption *int            `json:"hashOption,omitempty"`
	HashFilter string          `json:"hashFilter,omitempty"`
	Attributes []attributeData `json:"attributes"`
	Servers    []serverData    `json:"servers"`
}

type attributeData struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type serverData struct {
	ID         uint32          `json:"serverId"`
	Address    string          `json:"address"`
	Key        handleData      `json:"publicKey"`
	Interfaces []interfaceData `json:"interfaces"`
}

type interfaceData struct {
	Query    bool   `json:"query"`
	Admin    bool   `json:"admin"`
	Protocol any    `json:"protocol"`
	Port     uint32 `json:"port"`
}

func readSite(f *fields) any {
	const (
		primary = 0x80
		multi   = 0x40
		hashAll = 2 // hash by the whole handle: the usual way, and not shown
	)
	s := siteData{Version: f.short()}
	s.Protocol = fmt.Sprintf("%d.%d", f.byte(), f.byte())
	s.Serial = f.short()
	flags := f.byte()
	s.Primary, s.Multi = flags&primary != 0, flags&multi != 0
	if option := int(f.byte()); option != hashAll {
		s.HashOption = &option
	}
	s.HashFilter = f.text()
	s.Attributes = make([]attributeData, f.count(8))
	for i := range s.Attributes {
		s.Attributes[i] = attributeData{f.text(), f.text()}
	}
	s.Servers = make([]serverData, f.count(28))
	for i := range s.Servers {
		s.Servers[i] = readServer(f)
	}
	return s
}

func readServer(f *fields) serverData {
	s := serverData{ID: f.int()}
	if address, ok := netip.AddrFromSlice(f.take(16)); ok {
		s.Address = plainAddress(address)
	}
	s.Key = readHandleData("HS_PUBKEY", f.bytes())
	s.Interfaces = make([]interfaceData, f.count(6))
	for i := range s.Interfaces {
		s.Interfaces[i] = readInterface(f)
	}
	return s
}

// plainAddress shows an address of 16 bytes. In those of IPv4 the first 12 are
// zero.
func plainAddress(a netip.Addr) string {
	b := a.As16()
	if [12]byte(b[:12]) == ([12]byte{}) {
		return netip.AddrFrom4([4]byte(b[12:])).String()
	}
	return a.String()
}

func readInterface(f *fields) interfaceData {
	const (
		admin = 1
		query = 2
	)
	kind, protocol := f.byte(), f.byte()
	i := interfaceData{Query: kind&query != 0, Admin: kind&admin != 0, Protocol: int(protocol), Port: f.int()}
	if names := [...]string{"UDP", "TCP", "HTTP", "HTTPS"}; int(protocol) < len(names) {
		i.Protocol = names[protocol]
	}
	return i
}

// rsaKey and dsaKey are public keys in the manner of JSON Web Keys.
type rsaKey struct {
	Type string `json:"kty"`
	N    string `json:"n"`
	E    string `json:"e"`
}

type dsaKey struct {
	Type string `json:"kty"`
	Y    string `json:"y"`
	P    string `json:"p"`
	Q    string `json:"q"`
	G    string `json:"g"`
}

func readKey(f *fields) any {
	kind := f.text()
	f.short() // flags
	switch kind {
	case "RSA_PUB_KEY":
		k := rsaKey{Type: "RSA"}
		k.E, k.N = f.number(), f.number()
		if len(f.rest) == 4 { // reserved for more
			f.int()
		}
		return k
	case "DSA_PUB_KEY":
		k := dsaKey{Type: "DSA"}
		k.Q, k.P, k.G, k.Y = f.number(), f.number(), f.number(), f.number()
		return k
	}
	f.err = stele.Messagef("handle.key-kind-unknown", `no known kind of key: "{kind}"`, kind[:min(len(kind), 32)])
	return nil
}

// number reads an unsigned number, and returns it without leading zeros in the
// alphabet of base64 for URLs.
func (f *fields) number() string {
	b := f.bytes()
	for len(b) > 1 && b[0] == 0 {
		b = b[1:]
	}
	return base64.RawURLEncoding.EncodeToString(b)
}
