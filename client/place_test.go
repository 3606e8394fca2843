package client

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

func srv(priority, weight uint16, target string) dns.RR {
	return &dns.SRV{Hdr: dns.RR_Header{Rrtype: dns.TypeSRV}, Priority: priority, Weight: weight, Port: 80, Target: target}
}

func targets(list []*dns.SRV) string {
	var names []string
	for _, r := range list {
		names = append(names, r.Target)
	}
	return strings.Join(names, " ")
}

func TestOrderSRV(t *testing.T) {
	records := []dns.RR{srv(20, 0, "late"), srv(10, 0, "zero"), srv(10, 10, "ten"), srv(10, 30, "thirty")}
	for _, tt := range []struct {
		picks []int
		want  string
	}{
		{nil, "zero ten thirty late"},
		{[]int{0, 0, 0, 0}, "zero ten thirty late"},
		{[]int{1, 0, 0, 0}, "ten zero thirty late"},
		{[]int{10, 0, 0, 0}, "ten zero thirty late"},
		{[]int{11, 0, 0, 0}, "thirty zero ten late"},
		{[]int{40, 10, 0, 0}, "thirty ten zero late"},
	} {
		var random func(n int) int
		if i := 0; tt.picks != nil {
			random = func(int) int { i++; return tt.picks[i-1] }
		}
		if got := targets(orderSRV(records, random)); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.picks, got, tt.want)
		}
	}
}

// TestOrderSRVShares: chance is in proportion to weight, within a priority.
func TestOrderSRVShares(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)).IntN
	first := make(map[string]int)
	for range 10_000 {
		first[orderSRV([]dns.RR{srv(1, 1, "one"), srv(1, 3, "three"), srv(2, 60000, "late")}, random)[0].Target]++
	}
	// Of 0 to 4, the numbers 0 and 1 are the first's.
	if n := first["one"]; n < 3700 || n > 4300 || first["late"] != 0 {
		t.Errorf("%v", first)
	}
}

// TestOrderSRVProperty: whatever chance says, all records are there, by priority.
func TestOrderSRVProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "n")
		var records []dns.RR
		for i := range n {
			records = append(records, srv(uint16(rapid.IntRange(0, 3).Draw(t, "priority")), rapid.Uint16().Draw(t, "weight"), string(rune('a'+i))))
		}
		list := orderSRV(records, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") })
		seen := make(map[string]bool)
		for i, r := range list {
			seen[r.Target] = true
			if i > 0 && list[i-1].Priority > r.Priority {
				t.Fatalf("priority %d comes before %d", list[i-1].Priority, r.Priority)
			}
		}
		if len(seen) != n {
			t.Fatalf("%d of %d records", len(seen), n)
		}
	})
}

func TestParseServer(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1:53", "192.0.2.1:5353": "192.0.2.1:5353", "::1": "[::1]:53", "[::1]": "[::1]:53", "[2001:db8::1]:5353": "[2001:db8::1]:5353",
		"localhost": "127.0.0.1:53", "localhost:5353": "127.0.0.1:5353",
		"": "", "ns.example": "", "ns.example:53": "", "192.0.2.1:0": "", "192.0.2.1:x": "", "192.0.2.1:65536": "", ":53": "", "\x1b[2J": "",
	} {
		got, err := ParseServer(text)
		if want == "" {
			if stele.KindOf(err) != stele.Invalid || strings.ContainsRune(err.Error(), 0x1b) {
				t.Errorf("%q: %v, %v", text, got, err)
			}
		} else if err != nil || got.String() != want {
			t.Errorf("%q: %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestSystemServers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if _, err := serversIn(file); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("no file: %v", err)
	}
	for text, want := range map[string]int{"": 0, "search x\n": 0, "nameserver 192.0.2.1\nnameserver ::1\n": 2, "nameserver nonsense\nnameserver 192.0.2.1": 1, strings.Repeat("nameserver ::1\n", 20): maxServers} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if list, err := serversIn(file); len(list) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %v, %v", text, list, err)
		}
	}
}

func TestHostport(t *testing.T) {
	for text, want := range map[string]string{"Host.example.": "http://host.example/", "host.example:8080.": "http://host.example:8080/", "host.example:443": "https://host.example/",
		"": "", ".": "", "a..b": "", "a:x": "", "a:0": "", "a/b": "", "a b": ""} {
		p, err := parseHostport(text)
		if got := p.URL("/"); want == "" && err == nil || want != "" && got != want {
			t.Errorf("%q: %s, %v; want %q", text, got, err, want)
		}
	}
}

func TestAddressesIn(t *testing.T) {
	list := addressesIn(parseZone(t, "a. A 192.0.2.1\na. A 0.0.0.0\na. A 224.0.0.1\na. AAAA 2001:db8::1\na. AAAA ::ffff:192.0.2.2\na. TXT x"))
	want := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("192.0.2.2")}
	if len(list) != 3 || list[0] != want[0] || list[1] != want[1] || list[2] != want[2] {
		t.Errorf("%v", list)
	}
}
