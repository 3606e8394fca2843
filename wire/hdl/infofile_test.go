package hdl_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

// TestInfoFiles reads the files of the reference's clients and writes them again.
func TestInfoFiles(t *testing.T) {
	v := vectors(t, "encodings.txt")
	root, local := v["global_values"], v["local_info"]
	values, err := hdl.ParseRootInfo(root)
	if err != nil || len(values) != 1 || !bytes.Equal(hdl.AppendRootInfo(nil, values), root) {
		t.Errorf("root_info: %+v, %v", values, err)
	}
	sites, err := hdl.ParseLocalInfo(local)
	if err != nil || len(sites) != 1 || !slices.Equal(sites[0].Prefixes, []string{"0.NA/1", "0.NA/2"}) || !bytes.Equal(hdl.AppendLocalInfo(nil, sites), local) {
		t.Errorf("local_info: %+v, %v", sites, err)
	}
	if !bytes.Equal(sites[0].Site.Append(nil), v["hs_site_ipv6_no_key_hashfilter"]) {
		t.Error("the site of local_info is another one")
	}
	for n := range root {
		if _, err := hdl.ParseRootInfo(root[:n]); err == nil {
			t.Errorf("%d octets of root_info are accepted", n)
		}
	}
	for n := range local {
		if _, err := hdl.ParseLocalInfo(local[:n]); err == nil {
			t.Errorf("%d octets of local_info are accepted", n)
		}
	}
}

func FuzzInfoFile(f *testing.F) {
	v := vectors(f, "encodings.txt")
	f.Add(v["global_values"])
	f.Add(v["local_info"])
	f.Fuzz(func(t *testing.T, b []byte) {
		if values, err := hdl.ParseRootInfo(b); err == nil && !bytes.Equal(hdl.AppendRootInfo(nil, values), b) {
			t.Fatalf("%x", b)
		}
		if sites, err := hdl.ParseLocalInfo(b); err == nil && !bytes.Equal(hdl.AppendLocalInfo(nil, sites), b) {
			t.Fatalf("%x", b)
		}
	})
}
