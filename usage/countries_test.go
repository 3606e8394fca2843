package usage

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

// mmdb writes a file of MaxMind's format 2.0 with the countries of networks; see https://maxmind.github.io/MaxMind-DB/.
func mmdb(networks map[string]string) []byte { return mmdbOf(6, networks) }

// mmdbOf writes a file for a version of IP.
func mmdbOf(version int, networks map[string]string) []byte {
	type node [2]int // >= 0: a node; -1: nothing; below: data at -2-n
	nodes := []node{{-1, -1}}
	var data []byte
	text := func(b []byte, s string) []byte { return append(append(b, 2<<5|byte(len(s))), s...) }
	for network, code := range networks {
		p := netip.MustParsePrefix(network)
		address, bits := p.Addr().As16(), p.Bits()
		if p.Addr().Is4() {
			address, bits = [16]byte{}, bits+96
			v4 := p.Addr().As4()
			copy(address[12:], v4[:])
			if version == 4 {
				bits -= 96
				copy(address[:], v4[:])
			}
		}
		at := 0
		for i := range bits {
			side := int(address[i/8]>>(7-i%8)) & 1
			if i == bits-1 {
				nodes[at][side] = -2 - len(data)
				break
			}
			if nodes[at][side] < 0 {
				nodes = append(nodes, node{-1, -1})
				nodes[at][side] = len(nodes) - 1
			}
			at = nodes[at][side]
		}
		data = text(append(data, 7<<5|1), "country") // a map of one entry
		data = text(text(append(data, 7<<5|1), "iso_code"), code)
	}
	var file []byte
	for _, n := range nodes {
		for _, next := range n {
			switch {
			case next == -1:
				next = len(nodes)
			case next < 0:
				next = len(nodes) + 16 + (-2 - next)
			}
			file = append(file, byte(next>>16), byte(next>>8), byte(next))
		}
	}
	file = append(append(file, make([]byte, 16)...), data...)
	file = append(file, "\xab\xcd\xefMaxMind.com"...)
	number := func(name string, kind byte, n uint64) {
		file = text(file, name)
		b := binary.BigEndian.AppendUint64(nil, n)
		for len(b) > 0 && b[0] == 0 {
			b = b[1:]
		}
		if kind > 7 {
			file = append(file, byte(len(b)), kind-7)
		} else {
			file = append(file, kind<<5|byte(len(b)))
		}
		file = append(file, b...)
	}
	file = append(file, 7<<5|9)
	number("binary_format_major_version", 5, 2)
	number("binary_format_minor_version", 5, 0)
	number("build_epoch", 9, uint64(noon.Unix()))
	number("ip_version", 5, uint64(version))
	number("node_count", 6, uint64(len(nodes)))
	number("record_size", 5, 24)
	file = text(text(file, "database_type"), "Test-Country")
	file = append(text(file, "description"), 7<<5)
	return append(text(file, "languages"), 0, 4) // an empty array
}

func writeCountries(t testing.TB, path string, networks map[string]string) {
	t.Helper()
	if err := os.WriteFile(path, mmdb(networks), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCountries finds the countries of addresses, also after the file was replaced, and keeps the former one if the next is broken.
func TestCountries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	writeCountries(t, path, map[string]string{"192.0.2.0/24": "BR", "2001:db8::/32": "AU", "198.51.100.0/25": "xx"})
	c, err := OpenCountries(path)
	if err != nil {
		t.Fatal(err)
	}
	look := func(want map[string]string) {
		t.Helper()
		for range 2 { // from the file, and from memory
			have := make(map[string]string)
			for addr := range want {
				have[addr] = c.Country(netip.MustParseAddr(addr)).String()
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Error(diff)
			}
		}
	}
	look(map[string]string{"192.0.2.1": "BR", "::ffff:192.0.2.255": "BR", "192.0.3.1": "", "2001:db8::2": "AU", "2001:db9::2": "", "198.51.100.1": "", "fe80::1%eth0": ""})
	if n := testing.AllocsPerRun(100, func() { c.Country(netip.MustParseAddr("192.0.2.1")) }); n != 0 {
		t.Errorf("looking up allocates %v times", n)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.Watch(ctx, time.Minute, slog.New(slog.DiscardHandler)); close(done) }()
		for _, step := range []struct{ code, want string }{{"PT", "PT"}, {"", "PT"}, {"DE", "DE"}} {
			if step.code != "" {
				writeCountries(t, path, map[string]string{"192.0.2.0/24": step.code, "203.0.113.0/24": step.code})
			} else if err := os.WriteFile(path, []byte("broken"), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if have := c.Country(netip.MustParseAddr("192.0.2.1")).String(); have != step.want {
				t.Errorf("%q after %q, want %q", have, step.code, step.want)
			}
		}
		stop()
		<-done
	})
	for _, text := range []string{"", "broken"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenCountries(path); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestCountsCountries counts the countries of readers for namespaces and months, and nothing for names.
func TestCountsCountries(t *testing.T) {
	h := newHouse(t)
	h.library()
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	writeCountries(t, path, map[string]string{"192.0.2.0/24": "BR"})
	countries, err := OpenCountries(path)
	if err != nil {
		t.Fatal(err)
	}
	h.counter.o.Country = countries.Country
	for range 3 { // double clicks count once
		h.counter.Redirected(h.id("ark:12345/x1"), h.ann, firefox, "")
	}
	h.counter.Redirected(h.id("ark:12345/x1"), netip.MustParseAddr("192.0.2.77"), firefox, "https://example.org/")
	h.counter.Redirected(h.id("ark:12345/x1"), h.bob, firefox, "")
	h.counter.Redirected(h.id("ark:12345/x1"), h.ann, googlebot, "")
	h.want(3, 3)
	h.at(31 * 24 * time.Hour)
	h.counter.Redirected(h.id("ark:12345/x1"), h.ann, curl, "")
	h.flush()
	book := &Book{Registrar: h.r, Schemes: h.schemes}
	r, err := book.Countries(h.as("ann"), apijson.UsageQuery{Name: "ark:12345"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]apijson.UsageCount{{Text: "BR", Count: 3}}, r.Rows); diff != "" || r.Other != 1 {
		t.Errorf("%s, %+v", diff, r)
	}
	lands := 0
	for c, err := range h.r.UsageList(asServer(t.Context()), landCells, "") {
		if err != nil {
			t.Fatal(err)
		}
		if _, text, _, ok := cutCell(c.Name[len(landCells):], 2); !ok || text != "ark:12345" {
			t.Errorf("%q", c.Name)
		}
		lands++
	}
	if lands != 2 {
		t.Errorf("%d cells with countries, want one for each month", lands)
	}
}

// TestCountriesOfIPv4 looks addresses of IPv6 up in a file that has none: nothing of them comes to the heap.
func TestCountriesOfIPv4(t *testing.T) {
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	if err := os.WriteFile(path, mmdbOf(4, map[string]string{"192.0.2.0/24": "BR"}), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := OpenCountries(path)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"192.0.2.7": "BR", "::ffff:192.0.2.7": "BR", "2001:db8::1": "", "::1": ""} {
		addr := netip.MustParseAddr(text)
		if have := c.Country(addr).String(); have != want {
			t.Errorf("%s: %q", text, have)
		}
		if n := testing.AllocsPerRun(100, func() { c.Country(addr) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}
