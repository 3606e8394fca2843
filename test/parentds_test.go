package test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestParentDS has BIND serve a signed zone and the zone above it, which has the right DS
// record of its key, one of another key, or none: the doctor reports it, and signing can't be
// turned off while the DS record is still there.
func TestParentDS(t *testing.T) {
	a := newArchive(t)
	a.stele("zone", "sign", archiveZone, "--mode", "transfer")
	ds := a.stele("zone", "ds", archiveZone)
	file := filepath.Join(t.TempDir(), "signed.zone")
	a.stele("zone", "export", archiveZone, "--signed", "-o", file)
	parent := func(ds string) string {
		above := filepath.Join(t.TempDir(), "example.zone")
		writeFile(t, above, "$TTL 60\nexample. SOA ns.example. h.example. 1 60 60 60 60\nexample. NS ns.example.\nns.example. A 127.0.0.1\n"+
			archiveZone+" NS ns1.paradisec.example.\n"+archiveZone+" NS ns2.paradisec.example.\nns1.paradisec.example. A 127.0.0.1\nns2.paradisec.example. A 127.0.0.1\n"+ds, 0o644)
		return bind.start(t, zoneFile{"example.", above}, zoneFile{archiveZone, file}).addr
	}
	digest := regexp.MustCompile(`[0-9A-F]{64}`)
	right := parent(ds)
	none := parent("")
	config := filepath.Join(t.TempDir(), "stele.toml")
	writeFile(t, config, "http = \"127.0.0.1:"+strconv.Itoa(a.http)+"\"\n", 0o644) // where no server is
	for _, test := range []struct{ at, want string }{
		{right, "example. has the DS records of paradisec.example."},
		{parent(digest.ReplaceAllString(ds, strings.Repeat("AB", 32))), "example. has DS records of paradisec.example. that are of none of its keys, so validating resolvers refuse it"},
		{none, "paradisec.example. is signed, and example. has no DS records of it, so resolvers do not check the signatures"},
	} {
		out, _ := runStele(t, "doctor", "--config", config, "--data", a.data, "--dns", test.at) // there may be other things that are wrong
		if !strings.Contains(out, test.want) {
			t.Errorf("no %q in\n%s", test.want, out)
		}
	}
	a.stele("zone", "sign", archiveZone, "--mode", "off")
	out, err := runStele(t, "zone", "sign", archiveZone, "--mode", "off", "--ds-removed", "--dns", right, "--data", a.data)
	if err == nil || !strings.Contains(out, "example. still has the DS record") {
		t.Errorf("the DS record is still there, and %v: %s", err, out)
	}
	if out := a.stele("zone", "sign", archiveZone, "--mode", "off", "--ds-removed", "--dns", none); !strings.Contains(out, "can go without signatures") {
		t.Errorf("the DS record is gone, and %s", out)
	}
}
