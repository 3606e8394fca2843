package httpd

import (
	"net/http"
	"net/netip"
	"testing"
)

// FuzzClientAddr compares the quick way to read the address of a client with that of package netip.
func FuzzClientAddr(f *testing.F) {
	for _, text := range []string{"192.0.2.1:80", "192.0.2.1:65535", "192.0.2.1:65536", "192.0.2.01:80", "0.0.0.0:0", "256.1.1.1:1", "1.2.3:4", "1.2.3.4.5:6", "1.2.3.4", "1.2.3.4:", "1.2.3.4:000080", "[2001:db8::1]:80", "[::ffff:192.0.2.1]:80", "@", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want := netip.Addr{}
		if at, err := netip.ParseAddrPort(text); err == nil {
			want = at.Addr()
		} else if addr, err := netip.ParseAddr(text); err == nil {
			want = addr
		}
		if have := ClientAddr(&http.Request{RemoteAddr: text}); have != want.Unmap().WithZone("") {
			t.Errorf("%q is %v, want %v", text, have, want)
		}
	})
}

func BenchmarkClientAddr(b *testing.B) {
	r := &http.Request{RemoteAddr: "203.0.113.77:43210"}
	for b.Loop() {
		if !ClientAddr(r).IsValid() {
			b.Fatal("it is not read")
		}
	}
}
