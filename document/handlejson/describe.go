package handlejson

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"unicode/utf8"

	"github.com/stele-id/stele/wire/hdl"
)

// Data is the data of a handle value: a format, and a value whose shape the format decides.
type Data struct {
	Format string `json:"format"`
	Value  any    `json:"value"`
}

// The formats.
const (
	formatString = "string"
	formatBase64 = "base64"
	formatHex    = "hex"
	formatAdmin  = "admin"
	formatList   = "vlist"
	formatSite   = "site"
	formatKey    = "key"
)

// admin names the handle that may change a handle, and what it may do: digits from "list
// handles" to "add handle" (RFC 3651, 3.2.1).
type admin struct {
	Handle      string `json:"handle"`
	Index       uint32 `json:"index"`
	Permissions string `json:"permissions"`
	Legacy      bool   `json:"legacyByteLength,omitempty"`
}

// site describes the servers that answer for a prefix (RFC 3651, 3.2.2).
type site struct {
	Version    uint16      `json:"version"`
	Protocol   string      `json:"protocolVersion"`
	Serial     uint16      `json:"serialNumber"`
	Primary    bool        `json:"primarySite"`
	Multi      bool        `json:"multiPrimary"`
	HashOption *int        `json:"hashOption,omitempty"`
	HashFilter string      `json:"hashFilter,omitempty"`
	Attributes []attribute `json:"attributes"`
	Servers    []server    `json:"servers"`
}

type attribute struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type server struct {
	ID         uint32 `json:"serverId"`
	Address    string `json:"address"`
	Key        Data   `json:"publicKey"`
	Interfaces []door `json:"interfaces"`
}

// door is an interface of a server.
type door struct {
	Query    bool   `json:"query"`
	Admin    bool   `json:"admin"`
	Protocol any    `json:"protocol"` // a name, or a number that has none
	Port     uint32 `json:"port"`
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

// siteFormat is the only version of the layout of HS_SITE.
const siteFormat = 1

// transports are the names of protocols, by their numbers.
var transports = [...]string{hdl.UDP: "UDP", hdl.TCP: "TCP", hdl.HTTP: "HTTP", hdl.HTTPS: "HTTPS"}

// Describe returns the data of a value of a type in the way of the reference implementation: the
// types that its software defines are taken apart, other data is a string if it can be read, and
// base64 otherwise. Data that does not hold to its type's layout is shown in the last two ways.
func Describe(kind string, data []byte) Data {
	if format, value := parts(kind, data); value != nil {
		return Data{format, value}
	}
	return plain(data)
}

// exactly returns the data so that the reader gives the same octets back.
func exactly(kind string, data []byte) Data {
	format, value := parts(kind, data)
	if value == nil {
		return plain(data)
	}
	d := Data{format, value}
	text, err := json.Marshal(d)
	if err != nil {
		return plain(data)
	}
	if again, err := decodeData(text); err != nil || !bytes.Equal(again, data) {
		return plain(data)
	}
	return d
}

// plain returns data as a string or as base64.
func plain(data []byte) Data {
	if isReadable(data) {
		return Data{formatString, string(data)}
	}
	return Data{formatBase64, base64.StdEncoding.EncodeToString(data)}
}

// isReadable reports whether data is text: UTF-8, without control characters except 0x09 to
// 0x13, which the reference implementation takes for white space.
func isReadable(data []byte) bool {
	for _, c := range data {
		if c < 0x09 || c > 0x13 && c < 0x20 || c == 0x7f {
			return false
		}
	}
	return utf8.Valid(data)
}

// parts takes data apart that has parts; the value is nil for other data.
func parts(kind string, data []byte) (format string, value any) {
	is := func(want string) bool { return hdl.HasType([]byte(kind), []byte(want)) }
	switch {
	case is("HS_ADMIN."):
		if a, err := hdl.ParseAdmin(data); err == nil && utf8.ValidString(a.Identity.Handle) {
			return formatAdmin, admin{a.Identity.Handle, a.Identity.Index, a.Permissions.String(), a.Legacy}
		}
	case is("HS_VLIST."):
		return formatList, describeReferences(data)
	case is("HS_SITE."), is("HS_NA_DELEGATE."):
		return formatSite, describeSite(data)
	case is("HS_PUBKEY."):
		return formatKey, describeKey(data)
	}
	return "", nil
}

func describeReferences(data []byte) any {
	refs, err := hdl.ParseReferences(data)
	if err != nil {
		return nil
	}
	list := make([]Reference, len(refs))
	for i, ref := range refs {
		if !utf8.ValidString(ref.Handle) {
			return nil
		}
		list[i] = Reference(ref)
	}
	return list
}

func describeSite(data []byte) any {
	s, err := hdl.ParseSite(data)
	if err != nil || !utf8.Valid(s.HashFilter) {
		return nil
	}
	shown := site{
		Version: siteFormat, Protocol: fmt.Sprintf("%d.%d", s.Version.Major, s.Version.Minor), Serial: s.Serial,
		Primary: s.Flags&hdl.SitePrimary != 0, Multi: s.Flags&hdl.SiteMultiPrimary != 0,
		HashFilter: string(s.HashFilter), Attributes: make([]attribute, len(s.Attributes)), Servers: make([]server, len(s.Servers)),
	}
	if s.HashOption != hdl.HashAll { // the usual way, and not shown
		option := int(s.HashOption)
		shown.HashOption = &option
	}
	for i, a := range s.Attributes {
		if !utf8.ValidString(a.Name) || !utf8.ValidString(a.Value) {
			return nil
		}
		shown.Attributes[i] = attribute(a)
	}
	for i := range s.Servers {
		shown.Servers[i] = describeServer(&s.Servers[i])
	}
	return shown
}

func describeServer(s *hdl.Server) server {
	shown := server{ID: s.ID, Address: address(s), Key: Describe("HS_PUBKEY", s.Key), Interfaces: make([]door, len(s.Interfaces))}
	for i, in := range s.Interfaces {
		d := door{Query: in.Type&hdl.InterfaceQuery != 0, Admin: in.Type&hdl.InterfaceAdmin != 0, Protocol: int(in.Protocol), Port: in.Port}
		if int(in.Protocol) < len(transports) {
			d.Protocol = transports[in.Protocol]
		}
		shown.Interfaces[i] = d
	}
	return shown
}

// address shows an address of 16 octets. In those of IPv4 the first 12 are zero.
func address(s *hdl.Server) string {
	if [12]byte(s.Address[:12]) == ([12]byte{}) {
		return netip.AddrFrom4([4]byte(s.Address[12:])).String()
	}
	return netip.AddrFrom16(s.Address).String()
}

func describeKey(data []byte) any {
	k, err := hdl.ParsePublicKey(data)
	switch {
	case err != nil:
	case k.RSA != nil:
		return rsaKey{"RSA", number(k.RSA.N), number(big.NewInt(int64(k.RSA.E)))}
	case k.DSA != nil:
		return dsaKey{"DSA", number(k.DSA.Y), number(k.DSA.P), number(k.DSA.Q), number(k.DSA.G)}
	}
	return nil
}

// number returns a number in the alphabet of base64 for URLs, without leading zeros (RFC 7518,
// section 2).
func number(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
