package hdl_test

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

// TestEncodings compares values and types of values with what the reference library makes.
func TestEncodings(t *testing.T) {
	v := vectors(t, "encodings.txt")
	identity := hdl.Reference{Handle: "0.NA/20.500.99999", Index: 300}
	same := func(name string, got []byte) {
		t.Helper()
		if want := v[name]; len(want) == 0 || !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", name, got, want)
		}
	}
	admin := hdl.Admin{Permissions: 0x0fff, Identity: identity}
	same("hs_admin_all", admin.Append(nil))
	admin.Legacy = true
	same("hs_admin_all_legacy_7.3_two_trailing_zero_octets", admin.Append(nil))
	if got, err := hdl.ParseAdmin(admin.Append(nil)); err != nil || got != admin {
		t.Errorf("legacy HS_ADMIN: %+v, %v", got, err)
	}
	same("hs_vlist", hdl.AppendReferences(nil, []hdl.Reference{identity, {Handle: "a/b"}}))
	same("hs_vlist_empty", hdl.AppendReferences(nil, nil))

	url := hdl.Value{Index: 1, Timestamp: 1700000000, TTL: 86400, Permissions: 14, Type: []byte("URL"), Data: []byte("https://example.org/1")}
	same("value_url", url.Append(nil))
	absolute := hdl.Value{Index: 2, Timestamp: 1700000000, TTLType: hdl.TTLAbsolute, TTL: 1893456000, Permissions: 9, Type: []byte("X.Y"),
		Data: []byte{0, 0xff}, References: []hdl.Reference{{Handle: "20.500.99999/ABC-1", Index: 1}}}
	same("value_absolute_ttl_with_reference_perms_9", absolute.Append(nil))
	if got, err := hdl.ParseValue(v["value_absolute_ttl_with_reference_perms_9"]); err != nil || got.References[0] != absolute.References[0] {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := hdl.ParseValueList(v["global_values"][4:], nil); err != nil || len(got) != 1 || got[0].Index != 2 {
		t.Errorf("root_info: %+v, %v", got, err)
	}

	ipv6 := hdl.Site{Version: hdl.Version{Major: 2, Minor: 11}, Serial: 0xffff, Flags: hdl.SiteMultiPrimary, HashFilter: []byte("f"),
		Servers: []hdl.Server{{ID: 2, Interfaces: []hdl.Interface{{Type: hdl.InterfaceAdmin, Protocol: hdl.HTTPS, Port: 443}}}}}
	ipv6.Servers[0].SetAddr(netip.MustParseAddr("2001:db8::1"))
	same("hs_site_ipv6_no_key_hashfilter", ipv6.Append(nil))

	site, err := hdl.ParseSite(v["hs_site"])
	if err != nil {
		t.Fatal(err)
	}
	same("hs_site", site.Append(nil))
	srv := site.Servers[0]
	if site.Version != (hdl.Version{Major: 2, Minor: 10}) || site.Serial != 7 || site.Flags != hdl.SitePrimary || site.HashOption != hdl.HashAll ||
		len(site.Attributes) != 2 || site.Attributes[1] != (hdl.Attribute{Name: "domain", Value: "h.example.org"}) ||
		srv.Addr() != netip.MustParseAddr("127.0.0.1") || !bytes.Equal(srv.Key, v["srv_pubkey"]) || len(srv.Interfaces) != 3 ||
		srv.Interfaces[1] != (hdl.Interface{Type: hdl.InterfaceQuery, Protocol: hdl.UDP, Port: 2641}) {
		t.Errorf("%+v", site)
	}
}

// TestPermissions compares the text forms of permissions with those of the reference library.
func TestPermissions(t *testing.T) {
	seen := 0
	for _, line := range lines(t, "encodings.txt") {
		f := strings.Fields(line)
		if len(f) != 4 || !strings.HasPrefix(f[0], "perm_") {
			continue
		}
		seen++
		admin, err := hdl.ParseAdmin(unhex(t, strings.TrimPrefix(f[3], "bytes=")))
		if err != nil {
			t.Fatal(err)
		}
		json, batch := strings.TrimPrefix(f[1], "json="), strings.TrimPrefix(f[2], "batch=")
		if got := admin.Permissions; got.String() != json || got.Batch() != batch {
			t.Errorf("%s: %s, %s", f[0], got, got.Batch())
		}
		if got, err := hdl.ParsePermissions(json); err != nil || got != admin.Permissions {
			t.Errorf("%s: %v, %v", json, got, err)
		}
		if got, err := hdl.ParseBatchPermissions(batch); err != nil || got != admin.Permissions {
			t.Errorf("%s: %v, %v", batch, got, err)
		}
	}
	if seen != 12 {
		t.Errorf("%d permissions", seen)
	}
	for _, bad := range []string{"", "2", "00000000000 ", strings.Repeat("0", 17)} {
		if _, err := hdl.ParsePermissions(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	// Rights that we do not know are kept.
	high := hdl.Admin{Permissions: 0xf001, Identity: hdl.Reference{Handle: "a/b", Index: 7}}
	if got, err := hdl.ParseAdmin(high.Append(nil)); err != nil || got != high {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestHash compares which server of a site is asked.
func TestHash(t *testing.T) {
	seen := 0
	for _, line := range lines(t, "hash.txt") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		fields := make(map[string]uint32)
		for _, s := range f[1:] {
			key, value, _ := strings.Cut(s, "=")
			n := uint32(0)
			for _, c := range value {
				n = n*10 + uint32(c-'0')
			}
			fields[key] = n
		}
		seen++
		option := hdl.HashOption(fields["option"])
		if got := option.Hash([]byte(f[0])); got != fields["hash"] {
			t.Errorf("%s: %d", line, got)
		}
		for name, n := range map[string]int{"mod2": 2, "mod3": 3, "mod5": 5} {
			site := hdl.Site{HashOption: option, Servers: make([]hdl.Server, n)}
			if got := site.ServerFor([]byte(f[0])); got != &site.Servers[fields[name]] {
				t.Errorf("%s of %s: another server", name, line)
			}
		}
	}
	if seen != 15 {
		t.Errorf("%d lines", seen)
	}
	if (&hdl.Site{}).ServerFor([]byte("a/b")) != nil {
		t.Error("a site without servers has one")
	}
}

func TestBadTypes(t *testing.T) {
	v := vectors(t, "encodings.txt")
	for name, b := range map[string][]byte{"hs_admin_all": v["hs_admin_all"], "hs_vlist": v["hs_vlist"], "hs_site": v["hs_site"], "value_url": v["value_url"]} {
		parse := map[string]func([]byte) error{
			"hs_admin_all": func(b []byte) error { _, err := hdl.ParseAdmin(b); return err },
			"hs_vlist":     func(b []byte) error { _, err := hdl.ParseReferences(b); return err },
			"hs_site":      func(b []byte) error { _, err := hdl.ParseSite(b); return err },
			"value_url":    func(b []byte) error { _, err := hdl.ParseValue(b); return err },
		}[name]
		for n := range b {
			if parse(b[:n]) == nil {
				t.Errorf("%s: %d of %d octets are accepted", name, n, len(b))
			}
		}
		if parse(append(bytes.Clone(b), 1)) == nil {
			t.Errorf("%s: an octet after the end is accepted", name)
		}
	}
	two := append([]byte{0, 2}, v["hs_site"][2:]...)
	if _, err := hdl.ParseSite(two); err == nil {
		t.Error("HS_SITE of format 2 is accepted")
	}
}
