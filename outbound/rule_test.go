package outbound

import (
	"net/netip"
	"testing"
)

func TestRule(t *testing.T) {
	some, err := ParseRule([]string{"127.0.0.1", "10.1.0.0/16", "fd00::/8"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][2]bool{ // by default, and with some allowed
		"192.0.2.1": {true, true}, "2001:db8::1": {true, true}, "8.8.8.8": {true, true},
		"127.0.0.1": {false, true}, "127.0.0.2": {false, false}, "::1": {false, false}, "::ffff:127.0.0.1": {false, true},
		"10.1.2.3": {false, true}, "10.2.0.1": {false, false}, "192.168.1.1": {false, false}, "172.31.0.1": {false, false},
		"169.254.169.254": {false, false}, "fe80::1%eth0": {false, false}, "fd00::1": {false, true}, "224.0.0.1": {false, false},
		"ff02::1": {false, false}, "0.0.0.0": {false, false}, "::": {false, false}, "255.255.255.255": {false, false}, "100.64.0.1": {false, false},
		"64:ff9b::7f00:1": {false, true}, "64:ff9b::c0a8:101": {false, false}, "64:ff9b::808:808": {true, true}, "64:ff9b:1::808:808": {false, false},
		"2002:7f00:1::1": {false, false}, "2001:0:7f00:1::1": {false, false}, "::127.0.0.1": {false, false}, "::ffff:0:7f00:1": {false, false},
		"168.63.129.16": {false, false}, "fd00:ec2::254": {false, true}, "100.100.100.200": {false, false}, "198.18.0.1": {false, false}, "192.0.0.192": {false, false},
	} {
		addr := netip.MustParseAddr(text)
		if got := [2]bool{Rule{}.May(addr), some.May(addr)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if (Rule{}).May(netip.Addr{}) {
		t.Error("no address is allowed")
	}
	for text, want := range map[string][2]bool{
		"0.0.0.0/0": {true, true}, "::/0": {true, true}, "192.0.2.0/24": {true, true},
		"127.0.0.0/8": {false, true}, "10.0.0.0/8": {false, true}, "10.2.0.0/16": {false, false}, "192.168.0.0/24": {false, false}, "fe80::/64": {false, false},
	} {
		network := netip.MustParsePrefix(text)
		if got := [2]bool{Rule{}.MayNetwork(network), some.MayNetwork(network)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if _, err := ParseRule([]string{"example.org"}); err == nil {
		t.Error("a host name is taken for an address")
	}
}
