package hdlclient

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/wire/hdl"
)

// recordedJSON returns the siteinfo.json of the recordings.
func recordedJSON(t *testing.T) string {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "wire", "hdl", "testdata", "encodings.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "hs_site_json = "); ok {
			return text
		}
	}
	t.Fatal("there is no hs_site_json")
	return ""
}

func TestParseSites(t *testing.T) {
	text := recordedJSON(t)
	fromJSON, err := ParseSites([]byte(" \n" + text))
	if err != nil || len(fromJSON) != 1 || fromJSON[0].Serial != 7 {
		t.Fatalf("%+v, %v", fromJSON, err)
	}
	octets := fromJSON[0].Append(nil)
	binary, err := ParseSites(octets)
	if err != nil || len(binary) != 1 || string(binary[0].Append(nil)) != string(octets) {
		t.Errorf("siteinfo.bin: %+v, %v", binary, err)
	}
	value := hdl.Value{Index: 1, Type: []byte("hs_site"), Data: octets}
	note := hdl.Value{Index: 2, Type: []byte("NOTE"), Data: []byte("x")}
	root, err := ParseSites(hdl.AppendRootInfo(nil, []hdl.Value{note, value, value}))
	if err != nil || len(root) != 2 || string(root[1].Append(nil)) != string(octets) {
		t.Errorf("root_info: %+v, %v", root, err)
	}
	for _, bad := range []string{"", "x", "{", `{"a":1}}},{"index":2`, `{"serialNumber":"x"}`, string(octets[:len(octets)-1]), strings.Repeat("x", MaxSiteFile+1),
		string(hdl.AppendRootInfo(nil, []hdl.Value{note}))} {
		if list, err := ParseSites([]byte(bad)); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%.40q: %+v, %v", bad, list, err)
		}
	}
}

func FuzzParseSites(f *testing.F) {
	f.Add([]byte(`{"version":1,"protocolVersion":"2.10","serialNumber":7,"primarySite":true,"attributes":[],"servers":[]}`))
	f.Add([]byte{0, 1, 2, 11, 0, 1, 0x80, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ParseSites(data)
		if (err == nil) != (len(list) > 0) || err != nil && stele.KindOf(err) != stele.Invalid {
			t.Errorf("%d sites, %v", len(list), err)
		}
	})
}
