package httpd

import (
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/stele-id/stele/internal/destination"
)

// IsOwnHost reports whether the Host of a request names this server, so that it may stand in
// links: a client can send any Host, and a cache could give an answer with a forged one to
// others. It is the server's if names reports so of its name, or if it is the address at
// which the connection came in; localhost is a name of a loopback address. A port must be
// that of the connection. Names may be nil, and gets a name in lower case.
func IsOwnHost(r *http.Request, names func(name string) bool) bool {
	if !destination.IsHost(r.Host) {
		return false
	}
	name, port := strings.ToLower(r.Host), ""
	if strings.IndexByte(name, ':') >= 0 { // the error that there is none would cost an allocation
		if host, p, err := net.SplitHostPort(name); err == nil {
			name, port = host, p
		}
	}
	name = strings.Trim(name, "[]")
	at := localAddr(r)
	if port != "" && (!at.IsValid() || port != strconv.Itoa(int(at.Port()))) {
		return false
	}
	if mayBeAddr(name) {
		if addr, err := netip.ParseAddr(name); err == nil {
			return at.IsValid() && addr.Unmap() == at.Addr()
		}
	}
	if name == "localhost" {
		return at.IsValid() && at.Addr().IsLoopback()
	}
	return names != nil && names(name)
}

// mayBeAddr reports whether a name may be an address: such a one has a colon, or begins with a digit. Of other names [netip.ParseAddr]
// makes an error, which costs more than the rest of what is done here.
func mayBeAddr(name string) bool {
	return name != "" && '0' <= name[0] && name[0] <= '9' || strings.IndexByte(name, ':') >= 0
}

// localAddr returns the address at which a request came in, the zero one if that is not
// known.
func localAddr(r *http.Request) netip.AddrPort {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if local == nil {
		return netip.AddrPort{}
	}
	at := local.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}
