package handlejson

import (
	"crypto/dsa" //lint:ignore SA1019 administrators of handles have DSA keys; here they prove nothing
	"crypto/rsa"
	"encoding/base64"
	"math"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"github.com/stele-id/stele/wire/hdl"
)

// The members of the objects that data can be.
const (
	adminFields     = "handle index permissions legacyByteLength"
	siteFields      = "version protocolVersion serialNumber primarySite multiPrimary hashOption hashFilter attributes servers"
	attributeFields = "name value"
	serverFields    = "serverId address publicKey interfaces"
	interfaceFields = "query admin protocol port"
	keyFields       = "kty n e y p q g"
)

// Bounds of lists within data. The data that they make has a bound of its own, which is smaller.
const (
	maxListed  = 4096
	maxServers = 1024
)

func (r reader) admin() []byte {
	var a hdl.Admin
	r.Object(adminFields, func(name string) bool {
		switch name {
		case "handle":
			a.Identity.Handle = r.handle()
		case "index":
			a.Identity.Index = r.index()
		case "permissions":
			text := r.String()
			p, err := hdl.ParsePermissions(text)
			if err != nil {
				r.faultf("handle-json.not-admin-permissions", `"{permissions}" are not permissions of an administrator; write 12 digits 0 or 1, that for adding handles last`, text)
			}
			a.Permissions = p
		case "legacyByteLength":
			a.Legacy = r.Bool()
		default:
			return false
		}
		return true
	})
	return a.Append(nil)
}

func (r reader) list() []byte {
	var refs []hdl.Reference
	r.Array(maxListed, func(int) { refs = append(refs, hdl.Reference(r.reference())) })
	return hdl.AppendReferences(nil, refs)
}

func (r reader) site() []byte {
	s := hdl.Site{HashOption: hdl.HashAll}
	flag := func(bit uint8) {
		if r.Bool() {
			s.Flags |= bit
		}
	}
	r.Object(siteFields, func(name string) bool {
		switch name {
		case "version":
			if version := r.Uint(math.MaxUint16); version != siteFormat {
				r.faultf("handle-json.site-version", "is {version}; only version {known} of the description of a site is known", version, siteFormat)
			}
		case "protocolVersion":
			s.Version = r.version()
		case "serialNumber":
			s.Serial = uint16(r.Uint(math.MaxUint16))
		case "primarySite":
			flag(hdl.SitePrimary)
		case "multiPrimary":
			flag(hdl.SiteMultiPrimary)
		case "hashOption":
			s.HashOption = hdl.HashOption(r.Uint(math.MaxUint8))
		case "hashFilter":
			s.HashFilter = []byte(r.String())
		case "attributes":
			r.Array(maxListed, func(int) { s.Attributes = append(s.Attributes, r.attribute()) })
		case "servers":
			r.Array(maxServers, func(int) { s.Servers = append(s.Servers, r.server()) })
		default:
			return false
		}
		return true
	})
	return s.Append(nil)
}

// version reads two numbers with a dot between them.
func (r reader) version() hdl.Version {
	text := r.String()
	major, minor, ok := strings.Cut(text, ".")
	a, err := strconv.ParseUint(major, 10, 8)
	b, err2 := strconv.ParseUint(minor, 10, 8)
	if !ok || err != nil || err2 != nil {
		r.faultf("handle-json.not-a-version", `"{version}" is not a version of the protocol; write one as in 2.11`, text)
		return hdl.Version{}
	}
	return hdl.Version{Major: uint8(a), Minor: uint8(b)}
}

func (r reader) attribute() (a hdl.Attribute) {
	r.Object(attributeFields, func(name string) bool {
		switch name {
		case "name":
			a.Name = r.String()
		case "value":
			a.Value = r.String()
		default:
			return false
		}
		return true
	})
	return a
}

func (r reader) server() (s hdl.Server) {
	r.Object(serverFields, func(name string) bool {
		switch name {
		case "serverId":
			s.ID = uint32(r.Uint(math.MaxUint32))
		case "address":
			text := r.String()
			a, err := netip.ParseAddr(text)
			if err != nil || a.Zone() != "" {
				r.faultf("handle-json.not-an-address", `"{address}" is not an address of a server; write an IP address`, text)
			}
			s.SetAddr(a)
		case "publicKey":
			s.Key = r.data()
		case "interfaces":
			r.Array(maxListed, func(int) { s.Interfaces = append(s.Interfaces, r.door()) })
		default:
			return false
		}
		return true
	})
	return s
}

func (r reader) door() (in hdl.Interface) {
	bit := func(bit hdl.InterfaceType) {
		if r.Bool() {
			in.Type |= bit
		}
	}
	r.Object(interfaceFields, func(name string) bool {
		switch name {
		case "query":
			bit(hdl.InterfaceQuery)
		case "admin":
			bit(hdl.InterfaceAdmin)
		case "protocol":
			in.Protocol = r.transport()
		case "port":
			in.Port = uint32(r.Uint(math.MaxUint32))
		default:
			return false
		}
		return true
	})
	return in
}

// transport reads a protocol: a name, or a number that has none.
func (r reader) transport() hdl.Transport {
	if r.Next() != '"' {
		return hdl.Transport(r.Uint(math.MaxUint8))
	}
	text := r.String()
	for i, name := range transports {
		if strings.EqualFold(text, name) {
			return hdl.Transport(i)
		}
	}
	r.faultf("handle-json.protocol-unknown", `"{protocol}" is not a protocol of an interface; there are {protocols}`, text, strings.Join(transports[:], ", "))
	return 0
}

// key reads a public key in the manner of a JSON Web Key.
func (r reader) key() []byte {
	kind, bad := "", false
	numbers := make(map[string]*big.Int)
	r.Object(keyFields, func(name string) bool {
		switch name {
		case "kty":
			kind = r.String()
		case "n", "e", "y", "p", "q", "g":
			numbers[name] = r.number()
			bad = bad || numbers[name] == nil
		default:
			return false
		}
		return true
	})
	if bad {
		return nil
	}
	take := func(names ...string) (list []*big.Int, ok bool) {
		for _, name := range names {
			n := numbers[name]
			if n == nil {
				r.faultf("handle-json.key-number-missing", `a key of type {type} has the numbers {numbers}, and "{missing}" is not there`, kind, strings.Join(names, ", "), name)
				return nil, false
			}
			list = append(list, n)
		}
		if len(numbers) != len(names) {
			r.faultf("handle-json.key-number-too-many", "a key of type {type} has the numbers {numbers} alone", kind, strings.Join(names, ", "))
			return nil, false
		}
		return list, true
	}
	var k hdl.PublicKey
	switch kind {
	case "RSA":
		list, ok := take("n", "e")
		if !ok {
			return nil
		}
		if list[1].BitLen() > 31 {
			r.faultf("handle-json.key-exponent", "the exponent of the key has {bits} bits; {most} are the most", list[1].BitLen(), 31)
			return nil
		}
		k = hdl.PublicKey{RSA: &rsa.PublicKey{N: list[0], E: int(list[1].Int64())}}
	case "DSA":
		list, ok := take("y", "p", "q", "g")
		if !ok {
			return nil
		}
		k = hdl.PublicKey{DSA: &dsa.PublicKey{Parameters: dsa.Parameters{P: list[1], Q: list[2], G: list[3]}, Y: list[0]}}
	default:
		r.faultf("handle-json.key-type-unknown", `a key of the type "{type}" is not known; there are RSA and DSA`, kind)
		return nil
	}
	data := k.Append(nil)
	if _, err := hdl.ParsePublicKey(data); err != nil { // it has the bounds of keys
		r.faultf("handle-json.key-refused", "the key can't be used: {cause}", err)
		return nil
	}
	return data
}

// number reads a number in the alphabet of base64 for URLs.
func (r reader) number() *big.Int {
	text := r.String()
	const most = (hdl.MaxRSABits/8 + 2) / 3 * 4
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) == 0 || len(text) > most || strings.ContainsAny(text, "\r\n") {
		r.faultf("handle-json.not-a-key-number", "is not a number of a key; write its bytes in base64url without =")
		return nil
	}
	return new(big.Int).SetBytes(b)
}
