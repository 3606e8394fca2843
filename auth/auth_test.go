package auth

import (
	"context"
	"net/netip"
	"testing"
)

func TestContext(t *testing.T) {
	ctx := context.Background()
	if p := From(ctx); p.IsKnown() || p.Admin {
		t.Errorf("an empty context has %+v, want nobody", p)
	}
	if p := From(With(ctx, Local())); !p.IsKnown() || !p.Admin {
		t.Errorf("got %+v, want the local administrator", p)
	}
	// The later principal replaces the earlier one.
	if p := From(With(With(ctx, Local()), Principal{})); p.IsKnown() || p.Admin {
		t.Errorf("got %+v, want nobody", p)
	}
}

// TestIsInClear: a proxy on this machine is not a program on it, whether or not it says that it encrypts.
func TestIsInClear(t *testing.T) {
	here, away := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.1")
	proxied := map[string][]string{"X-Forwarded-Proto": {"https"}}
	for _, tt := range []struct {
		encrypted bool
		base      string
		client    netip.Addr
		head      map[string][]string
		want      bool
	}{
		{client: here},
		{client: netip.IPv6Loopback()},
		{client: away, want: true},
		{client: here, head: proxied, want: true},
		{client: here, head: proxied, base: "https://id.example.org"},
		{client: away, encrypted: true},
		{want: true},
	} {
		if got := IsInClear(tt.encrypted, tt.base, tt.client, tt.head); got != tt.want {
			t.Errorf("%+v", tt)
		}
	}
}
