package fetch

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
)

// dial connects to an address if it may be reached, and to a proxy in any case.
func (f *Fetcher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	if _, ok := f.proxies.Load(address); !ok && f.o.May != nil {
		d.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return f.judge(at.Addr())
		}
	}
	return d.DialContext(ctx, network, address)
}

// judge refuses an address that may not be reached.
func (f *Fetcher) judge(at netip.Addr) error {
	if f.o.May == nil || f.o.May(at.Unmap().WithZone("")) {
		return nil
	}
	return addressError{at}
}

// addressError is the [ErrAddress] of an address. Whatever wraps it on its way, about finds
// it.
type addressError struct{ at netip.Addr }

func (e addressError) Error() string { return e.at.String() + ": " + ErrAddress.Error() }
func (e addressError) Unwrap() error { return ErrAddress }

// proxy returns the proxy that the environment names for a request. Where there is one it
// connects to the server, so a location with an address is judged here; the Fetcher does
// not learn the address of a host name.
func (f *Fetcher) proxy(req *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(req)
	if err != nil || proxy == nil {
		return nil, err
	}
	if at, err := netip.ParseAddr(req.URL.Hostname()); err == nil {
		if err := f.judge(at); err != nil {
			return nil, err
		}
	}
	usual := map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}
	f.proxies.Store(net.JoinHostPort(proxy.Hostname(), cmp.Or(proxy.Port(), usual[proxy.Scheme])), true)
	return proxy, nil
}
