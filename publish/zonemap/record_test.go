package zonemap

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func TestParseRecord(t *testing.T) {
	long := strings.Repeat("a", 300)
	for _, tt := range []struct {
		kind       stele.RecordType
		data, want string // want is "" if it is refused
	}{
		{"A", "192.0.2.1", "192.0.2.1"},
		{"A", "192.0.2.1 ; a comment", "192.0.2.1"},
		{"A", "192.0.2.256", ""},
		{"A", "192.0.2.1 192.0.2.2", ""},
		{"A", "", ""},
		{"A", "192.0.2.1\n$INCLUDE /etc/passwd", ""},
		{"A", "(", ""},
		{"A", "( 192.0.2.1 )", "192.0.2.1"},
		{"A", `\# 4 C0000201`, "192.0.2.1"},
		{"AAAA", "2001:DB8::1", "2001:db8::1"},
		{"AAAA", "192.0.2.1", ""},
		{"MX", "10 MX.example.org.", "10 mx.example.org."},
		{"MX", "0 .", "0 ."},
		{"MX", "10 mx.example.org", ""},
		{"MX", "mx.example.org.", ""},
		{"CNAME", "www.Example.org.", "www.example.org."},
		{"CNAME", "www", ""},
		{"CAA", "0 ISSUE ca.example.net", `0 issue "ca.example.net"`},
		{"CAA", "0 is-sue ca.example.net", ""},
		{"SRV", "1 2 443 www.example.org.", "1 2 443 www.example.org."},
		{"SRV", "1 2 70000 www.example.org.", ""},
		{"TXT", "v=spf1 -all", `"v=spf1" "-all"`},
		{"TXT", `"v=spf1 -all"`, `"v=spf1 -all"`},
		{"TXT", `"a;b\"c"`, `"a;b\"c"`},
		{"TXT", `"` + long + `"`, `"` + long[:255] + `" "` + long[255:] + `"`},
		{"TXT", `"open`, ""},
		{"NS", "ns.example.org.", ""},
		{"NAPTR", `100 10 "u" "N2L" "!^.*$!x!" .`, ""},
	} {
		r := stele.ZoneRecord{Name: "a.example.", TTL: 60, Type: tt.kind, Data: tt.data}
		rr, err := ParseRecord(r)
		switch {
		case err != nil && tt.want != "":
			t.Errorf("%s %.60s: %v", tt.kind, tt.data, err)
		case err == nil && RecordData(rr) != tt.want:
			t.Errorf("%s %.60s: %s, want %s", tt.kind, tt.data, RecordData(rr), tt.want)
		}
	}
}

// FuzzParseRecord checks that data that is read, and written again, is read as the same.
func FuzzParseRecord(f *testing.F) {
	for i, data := range []string{"192.0.2.1", "2001:db8::1", `0 issue "a"`, "a.b.", "10 a.b.", "1 2 3 a.b.", `"a\"b\\" c\100 "\255"`, `\# 4 00000000`, "$INCLUDE x"} {
		f.Add(uint8(i), data)
	}
	types := stele.RecordTypes()
	f.Fuzz(func(t *testing.T, kind uint8, data string) {
		r := stele.ZoneRecord{Name: "a.example.", TTL: 60, Type: types[int(kind)%len(types)], Data: data}
		rr, err := ParseRecord(r)
		if err != nil {
			return
		}
		r.Data = RecordData(rr)
		again, err := ParseRecord(r)
		if len(r.Data) > stele.MaxZoneRecordData {
			return // it grows by escapes, and is refused then
		}
		if err != nil || RecordData(again) != r.Data {
			t.Errorf("%s %q: %v, %v", r.Type, r.Data, again, err)
		}
	})
}

func TestCheckRecords(t *testing.T) {
	p := &stele.Publication{Zone: "example.", Records: []stele.ZoneRecord{
		{Name: "www.example.", TTL: 60, Type: "CNAME", Data: "a.example."},
		{Name: "example.", TTL: 60, Type: "MX", Data: "10 www.example."},
		{Name: "example.", TTL: 60, Type: "TXT", Data: "bare"},
		{Name: "a.example.", TTL: 60, Type: "A", Data: "192.0.2.1"},
	}}
	var got []string
	CheckRecords(p, func(path string, err error) { got = append(got, path+": "+err.Error()) })
	want := []string{
		"publication.records[1].data: www.example. is an alias (CNAME), and a MX record names a host itself (RFC 2181, section 10.3)",
		`publication.records[2].data: "bare" is not written as usual; write "bare"`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}
