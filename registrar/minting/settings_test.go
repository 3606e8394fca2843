package minting

import (
	"slices"
	"testing"

	"github.com/stele-id/stele"
)

func TestConfigure(t *testing.T) {
	noid := stele.Minter{Kind: stele.MinterNOID, Template: ".zd", Seed: 7}
	for _, tt := range []struct {
		name       string
		have, from stele.Minter
		given      []string
		want       stele.Minter
	}{
		{"nothing", noid, stele.Minter{Template: ".sd"}, nil, noid},
		{"one setting", noid, stele.Minter{Template: ".sd"}, []string{"template"}, stele.Minter{Kind: stele.MinterNOID, Template: ".sd", Seed: 7}},
		{"the same kind", noid, stele.Minter{Kind: stele.MinterNOID}, []string{"minter"}, noid},
		{"another kind", noid, stele.Minter{Kind: stele.MinterIBI, Host: "a.example"}, []string{"minter", "host"},
			stele.Minter{Kind: stele.MinterIBI, Host: "a.example", Port: DefaultHostPort}},
		{"an address", stele.Minter{Kind: stele.MinterIBI}, stele.Minter{IP: "192.0.2.1", IPPort: 80}, []string{"ip", "ip-port"},
			stele.Minter{Kind: stele.MinterIBI, IP: "192.0.2.1", IPPort: 80}},
		{"no kind any more", noid, stele.Minter{}, []string{"minter"}, stele.Minter{}},
	} {
		got := tt.have
		Configure(&got, &tt.from, func(name string) bool { return slices.Contains(tt.given, name) })
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func TestConflicting(t *testing.T) {
	have := stele.Minter{Kind: stele.MinterIBI, Host: "a.example", Port: 80, Granularity: "1s"}
	for _, tt := range []struct {
		want  stele.Minter
		given []string
		says  string
	}{
		{have, []string{"host", "port"}, ""},
		{stele.Minter{Kind: stele.MinterIBI, Host: "b.example"}, []string{"host"}, "host"},
		{stele.Minter{Kind: stele.MinterIBI, Host: "b.example"}, nil, ""},
		{stele.Minter{Kind: stele.MinterIBI, Granularity: "1ms"}, []string{"granularity"}, ""},
		{stele.Minter{Kind: stele.MinterNOID}, nil, "minter noid"},
	} {
		if got := Conflicting(&have, &tt.want, func(name string) bool { return slices.Contains(tt.given, name) }); got != tt.says {
			t.Errorf("%+v, given %q: %q, want %q", tt.want, tt.given, got, tt.says)
		}
	}
}

func TestDescribe(t *testing.T) {
	for want, m := range map[string]stele.Minter{
		"":                           {},
		"uuid":                       {Kind: stele.MinterUUID},
		"noid, template .zd, seed 7": {Kind: stele.MinterNOID, Template: ".zd", Seed: 7},
		"ibi, host a.example, port 80, ip 10.0.0.1, ip-port 800, allow-private, granularity 1ms": {Kind: stele.MinterIBI, Host: "a.example", Port: 80, IP: "10.0.0.1",
			IPPort: 800, AllowPrivate: true, Granularity: "1ms"},
	} {
		if got := Describe(&m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSameGranularity(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{{"", "1s", true}, {"1s", "1s", true}, {"", "1ms", false}, {"1000ms", "1s", false}, {"x", "x", false}, {"1us", "1us", true}} {
		if got := SameGranularity(tt.a, tt.b); got != tt.same {
			t.Errorf("%q and %q: %t", tt.a, tt.b, got)
		}
	}
}

// A command reserves as many names as it makes, in few blocks, and never more than it needs
// and one block's rest.
func TestBlockFor(t *testing.T) {
	for n, want := range map[int]int{1: 1, 7: 7, 1000: 1000, 1001: 501, 2000: 1000, 2001: 667, 1_000_000: 1000} {
		got := BlockFor(n)
		if got != want {
			t.Errorf("%d: blocks of %d, want %d", n, got, want)
		}
		if blocks := (n + got - 1) / got; blocks*got-n >= blocks {
			t.Errorf("%d: %d blocks of %d lose %d names", n, blocks, got, blocks*got-n)
		}
	}
}
