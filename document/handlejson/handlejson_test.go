package handlejson_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/handlejson"
)

// packed puts together the data of a value: bytes and texts get their size before
// them, numbers are four bytes, and raw bytes are as they are.
func packed(parts ...any) (b []byte) {
	for _, part := range parts {
		switch part := part.(type) {
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(part))), part...)
		case []byte:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(part))), part...)
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(part))
		case [2]byte:
			b = append(b, part[:]...)
		case [8]byte:
			b = append(b, part[:]...)
		case [16]byte:
			b = append(b, part[:]...)
		}
	}
	return b
}

// adminBytes is the data of an HS_ADMIN with all rights.
func adminBytes(handle string, index uint32, extra ...byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0x0f, 0xff}, uint32(len(handle)))
	return append(binary.BigEndian.AppendUint32(append(b, handle...), index), extra...)
}

// Data is shown as the reference implementation shows it.
func TestDescribe(t *testing.T) {
	admin := adminBytes("0.NA/20.500", 300)
	admin[0], admin[1] = 0x07, 0xf3
	for _, tt := range []struct {
		kind string
		data []byte
		want string
	}{
		{"URL", []byte("https://example.org/"), `{"format":"string","value":"https://example.org/"}`},
		{"X", nil, `{"format":"string","value":""}`},
		{"X", []byte("a\tb\nc\x13"), `{"format":"string","value":"a\tb\nc\u0013"}`},
		{"X", []byte("a\x14"), `{"format":"base64","value":"YRQ="}`},
		{"X", []byte("a\x7f"), `{"format":"base64","value":"YX8="}`},
		{"X", []byte("\xc3"), `{"format":"base64","value":"ww=="}`},
		{"HS_ADMIN", admin, `{"format":"admin","value":{"handle":"0.NA/20.500","index":300,"permissions":"011111110011"}}`},
		{"hs_admin", adminBytes("0.NA/11858", 200, 0, 0), `{"format":"admin","value":{"handle":"0.NA/11858","index":200,"permissions":"111111111111","legacyByteLength":true}}`},
		{"HS_ADMIN", adminBytes("0.NA/1", 1, 0, 0, 0), `{"format":"base64","value":"D/8AAAAGMC5OQS8xAAAAAQAAAA=="}`},
		{"HS_ADMIN", []byte("none"), `{"format":"string","value":"none"}`},
		{"HS_VLIST", packed(2, "10.1/A", 300, "10.1/B", 301), `{"format":"vlist","value":[{"handle":"10.1/A","index":300},{"handle":"10.1/B","index":301}]}`},
		{"HS_VLIST", packed(0), `{"format":"vlist","value":[]}`},
		{"HS_VLIST", packed(1 << 30), `{"format":"base64","value":"QAAAAA=="}`},
		{"HS_PUBKEY", packed("DSA_PUB_KEY", [2]byte{}, []byte{0, 1}, []byte{2}, []byte{3}, []byte{4}), `{"format":"key","value":{"kty":"DSA","y":"BA","p":"Ag","q":"AQ","g":"Aw"}}`},
		{"HS_PUBKEY", packed("DH_PUB_KEY", [2]byte{}, []byte{0, 1}), `{"format":"base64","value":"AAAACkRIX1BVQl9LRVkAAAAAAAIAAQ=="}`},
		{"HS_SITE.6", packed([8]byte{0, 1, 2, 11, 0, 9, 0x40, 1}, "f", 0, 1, 7, [16]byte{0x20, 1, 0x0d, 0xb8, 15: 1}, "", 1, [2]byte{0, 9}, 1),
			`{"format":"site","value":{"version":1,"protocolVersion":"2.11","serialNumber":9,"primarySite":false,"multiPrimary":true,"hashOption":1,"hashFilter":"f","attributes":[],"servers":[{"serverId":7,"address":"2001:db8::1","publicKey":{"format":"string","value":""},"interfaces":[{"query":false,"admin":false,"protocol":9,"port":1}]}]}}`},
	} {
		got, err := json.Marshal(handlejson.Describe(tt.kind, tt.data))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s %q:\ngot  %s, %v\nwant %s", tt.kind, tt.data, got, err, tt.want)
		}
	}
}

// vectors are octets that the reference implementation made, by their names.
func vectors(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../wire/hdl/testdata/encodings.txt")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && !strings.HasPrefix(line, "#") {
			all[name] = value
		}
	}
	return all
}

// The reference implementation's octets and its JSON are made of each other.
func TestEncodings(t *testing.T) {
	all := vectors(t)
	for _, tt := range []struct{ name, kind, format, want string }{
		{"hs_pubkey_rsa", "HS_PUBKEY", "key", all["hs_pubkey_rsa_json"]},
		{"hs_pubkey_dsa", "HS_PUBKEY", "key", all["hs_pubkey_dsa_json"]},
		{"hs_site", "HS_SITE", "site", all["hs_site_json"]},
		{"hs_admin_all", "HS_ADMIN", "admin", `{"handle":"0.NA/20.500.99999","index":300,"permissions":"111111111111"}`},
		{"hs_admin_all_legacy_7.3_two_trailing_zero_octets", "HS_ADMIN", "admin", `{"handle":"0.NA/20.500.99999","index":300,"permissions":"111111111111","legacyByteLength":true}`},
		{"hs_vlist", "HS_VLIST", "vlist", `[{"handle":"0.NA/20.500.99999","index":300},{"handle":"a/b","index":0}]`},
		{"hs_vlist_empty", "HS_VLIST", "vlist", `[]`},
		{"hs_site_ipv6_no_key_hashfilter", "HS_SITE", "site", `{"version":1,"protocolVersion":"2.11","serialNumber":65535,"primarySite":false,"multiPrimary":true,"hashOption":0,"hashFilter":"f","attributes":[],"servers":[{"serverId":2,"address":"2001:db8::1","publicKey":{"format":"string","value":""},"interfaces":[{"query":false,"admin":true,"protocol":"HTTPS","port":443}]}]}`},
	} {
		data, err := hex.DecodeString(all[tt.name])
		if err != nil || len(data) == 0 || tt.want == "" {
			t.Fatalf("no vector %s: %v", tt.name, err)
		}
		v := stele.HandleValue{Index: 1, Type: tt.kind, Data: data, TTL: 86400, Permissions: stele.DefaultPermissions}
		want := `{"index":1,"type":"` + tt.kind + `","data":{"format":"` + tt.format + `","value":` + tt.want + `},"ttl":86400}`
		if got := handlejson.AppendValue(nil, &v); string(got) != want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, want)
		}
		got, err := handlejson.DecodeValues([]byte(want))
		if err != nil || !reflect.DeepEqual(got, []stele.HandleValue{v}) {
			t.Errorf("%s: read %+v, %v", tt.name, got, err)
		}
	}
}

// The records of the reference implementation are read and written without a difference.
func TestSeedRecords(t *testing.T) {
	text, err := os.ReadFile("testdata/seed-records.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Records map[string]json.RawMessage `json:"handleRecords"`
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Records) == 0 {
		t.Fatalf("%d records, %v", len(file.Records), err)
	}
	for name, record := range file.Records {
		handle, values, err := handlejson.DecodeRecord(record)
		if err != nil || handle != name {
			t.Errorf("%s: read as %s, %v", name, handle, err)
			continue
		}
		again := []byte(`{"handle":"` + handle + `","values":[`)
		for i := range values {
			if i > 0 {
				again = append(again, ',')
			}
			again = handlejson.AppendValue(again, &values[i])
		}
		again = append(again, "]}"...)
		var got, want any
		if json.Unmarshal(again, &got) != nil || json.Unmarshal(record, &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, again, record)
		}
	}
}

// Each form of the REST interface is read.
func TestDecodeForms(t *testing.T) {
	one := stele.HandleValue{Index: 7, Type: "URL", Data: []byte("https://example.org/"), TTL: 86400, Permissions: stele.DefaultPermissions}
	for text, want := range map[string]stele.HandleValue{
		`[{"index":7,"type":"URL","data":"https://example.org/"}]`:                                                one,
		`{"values":[{"index":7,"type":"URL","data":"https://example.org/"}],"handle":"a/b"}`:                      one,
		`{"index":7,"type":"URL","data":{"value":"https://example.org/","format":"string"}}`:                      one,
		`{"index":"7","type":"URL","data":{"format":"hex","value":"68747470733A2f2f6578616d706c652e6f72672f"}}`:   one,
		`{"index":7,"type":"URL","data":"","ttl":0,"permissions":"0001","timestamp":"1970-01-01T01:00:01+01:00"}`: {Index: 7, Type: "URL", Permissions: stele.PublicWrite, Timestamp: 1},
		`{"index":7,"type":"X","data":"","ttl":"2030-01-01T00:00:00Z","references":[{"handle":"a/b","index":1}]}`: {
			Index: 7, Type: "X", TTL: 1893456000, TTLAbsolute: true, Permissions: stele.DefaultPermissions, References: []stele.HandleReference{{Handle: "a/b", Index: 1}}},
		// As pyhandle writes it.
		`{"index":7,"type":"HS_ADMIN","data":{"value":{"index":"200","handle":"0.NA/1","permissions":"111111111111"},"format":"admin"}}`: {
			Index: 7, Type: "HS_ADMIN", Data: adminBytes("0.NA/1", 200), TTL: 86400, Permissions: stele.DefaultPermissions},
	} {
		got, err := handlejson.DecodeValues([]byte(text))
		if err != nil || !reflect.DeepEqual(got, []stele.HandleValue{want}) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", text, got, err, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	value := func(data string) string { return `[{"index":1,"type":"X","data":` + data + `}]` }
	site := func(member string) string { return value(`{"format":"site","value":{` + member + `}}`) }
	for text, want := range map[string]string{
		``:                                       "this is not JSON",
		`{}`:                                     "has no values",
		`null`:                                   "should be an object",
		`[{"index":-1}]`:                         "[0].index: should be a whole number",
		`[{"index":"x"}]`:                        `[0].index: "x" is not an index`,
		`[{"index":1,"index":2}]`:                "[0].index: is given twice",
		`[{"idx":1}]`:                            "[0].idx: there is no such field",
		`{"index":1,"values":[]}`:                "give one of both",
		`[{"permissions":"111"}]`:                "[0].permissions: ",
		`[{"permissions":"1112"}]`:               "write four digits",
		`[{"ttl":"soon"}]`:                       `[0].ttl: "soon" is not a time`,
		`[{"ttl":"1969-01-01T00:00:00Z"}]`:       "[0].ttl: 1969-01-01T00:00:00Z is not a time of a handle value",
		`[{"timestamp":1}]`:                      "[0].timestamp: should be a string",
		value(`{"format":"string"}`):             "[0].data: has no value",
		value(`{"value":"x"}`):                   `[0].data.value: has the unknown format ""`,
		value(`{"format":"x","value":{"a":1}}`):  `the unknown format "x"`,
		value(`{"format":"hex","value":"abc"}`):  "[0].data.value: is not hexadecimal",
		value(`{"format":"base64","value":"!"}`): "[0].data.value: is not base64",
		value(`{"format":"string","value":1}`):   "[0].data.value: should be a string",
		value(`{"format":"admin","value":{"permissions":"2"}}`):                            "[0].data.value.permissions: ",
		value(`{"format":"admin","value":{"handle":"` + strings.Repeat("x", 2049) + `"}}`): "has 2049 bytes; 2048 are the most",
		value(`{"format":"key","value":{"kty":"EC"}}`):                                     `a key of the type "EC"`,
		value(`{"format":"key","value":{"kty":"RSA","n":"AQ"}}`):                           `"e" is not there`,
		value(`{"format":"key","value":{"kty":"RSA","n":"AQ","e":"AQ","q":"AQ"}}`):         "alone",
		value(`{"format":"key","value":{"kty":"RSA","n":"AQ","e":"="}}`):                   "[0].data.value.e: is not a number of a key",
		value(`{"format":"key","value":{"kty":"RSA","n":"AQ","e":"AQEBAQE"}}`):             "the exponent of the key has 33 bits",
		value(`{"format":"key","value":{"kty":"RSA","n":"AA","e":"AQ"}}`):                  "is zero",
		site(`"version":2`):                                      "[0].data.value.version: is 2",
		site(`"protocolVersion":"2"`):                            `"2" is not a version`,
		site(`"servers":[{"address":"h"}]`):                      `[0].data.value.servers[0].address: "h" is not an address of a server`,
		site(`"servers":[{"interfaces":[{"protocol":"SCTP"}]}]`): `"SCTP" is not a protocol`,
		site(`"servers":[{"publicKey":{"format":"key","value":{"kty":"RSA","n":"AQ","e":"!"}}}]`): "[0].data.value.servers[0].publicKey.value.e: ",
	} {
		got, err := handlejson.DecodeValues([]byte(text))
		if err == nil || got != nil || stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s:\ngot  %v, %v\nwant %s", text, got, err, want)
		}
	}
}

// drawData draws data of a type: octets that are nothing, or the parts of the type.
func drawData(t *rapid.T, kind string) []byte {
	if rapid.Bool().Draw(t, "any") {
		if data := rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "octets"); len(data) > 0 {
			return data
		}
		return nil
	}
	text := rapid.StringN(0, 10, -1)
	octets := func(name string) []byte { return rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, name) }
	number := rapid.IntRange(0, 1<<31)
	switch kind {
	case "HS_ADMIN":
		return adminBytes(text.Draw(t, "handle"), rapid.Uint32().Draw(t, "index"), make([]byte, rapid.IntRange(0, 3).Draw(t, "zeros"))...)
	case "HS_VLIST":
		return packed(2, text.Draw(t, "a"), number.Draw(t, "i"), text.Draw(t, "b"), number.Draw(t, "j"))
	case "HS_PUBKEY":
		if rapid.Bool().Draw(t, "rsa") {
			return packed("RSA_PUB_KEY", [2]byte{}, octets("e"), octets("n"), rapid.SampledFrom([]int{0, 1}).Draw(t, "reserved"))
		}
		return packed("DSA_PUB_KEY", [2]byte{}, octets("q"), octets("p"), octets("g"), octets("y"))
	case "HS_SITE":
		head := [8]byte{0, 1, 2, rapid.Byte().Draw(t, "minor"), 0, 9, rapid.Byte().Draw(t, "flags"), rapid.Byte().Draw(t, "hash")}
		var address [16]byte
		copy(address[rapid.IntRange(0, 12).Draw(t, "at"):], octets("address"))
		return packed(head, text.Draw(t, "filter"), 1, text.Draw(t, "name"), text.Draw(t, "value"), 1, number.Draw(t, "id"), address, octets("key"),
			1, [2]byte{rapid.Byte().Draw(t, "type"), rapid.Byte().Draw(t, "protocol")}, number.Draw(t, "port"))
	}
	return []byte(text.Filter(func(s string) bool { return s != "" }).Draw(t, "text"))
}

// What is written is read as the same value, whatever its data is.
func TestRoundTrip(t *testing.T) {
	kinds := rapid.SampledFrom([]string{"URL", "HS_ADMIN", "HS_VLIST", "HS_SITE", "HS_PUBKEY", "hs_site.prefix"})
	rapid.Check(t, func(t *rapid.T) {
		v := stele.HandleValue{
			Index: rapid.Uint32().Draw(t, "index"), Type: kinds.Draw(t, "kind"), TTL: rapid.Uint32().Draw(t, "ttl"), TTLAbsolute: rapid.Bool().Draw(t, "absolute"),
			Timestamp: rapid.Uint32().Draw(t, "timestamp"), Permissions: stele.Permission(rapid.IntRange(0, 15).Draw(t, "permissions")),
		}
		v.Data = drawData(t, v.Type)
		for range rapid.IntRange(0, 2).Draw(t, "references") {
			v.References = append(v.References, stele.HandleReference{Handle: rapid.String().Draw(t, "handle"), Index: rapid.Uint32().Draw(t, "at")})
		}
		text := handlejson.AppendValue(nil, &v)
		got, err := handlejson.DecodeValues(text)
		if err != nil || !reflect.DeepEqual(got, []stele.HandleValue{v}) {
			t.Fatalf("%+v became %s and then %+v, %v", v, text, got, err)
		}
	})
}

// Any text gives values, which are written and read again as they are, or an error.
func FuzzDecodeValues(f *testing.F) {
	seed, err := os.ReadFile("testdata/seed-records.json")
	if err != nil {
		f.Fatal(err)
	}
	var file struct {
		Records map[string]json.RawMessage `json:"handleRecords"`
	}
	if err := json.Unmarshal(seed, &file); err != nil {
		f.Fatal(err)
	}
	for _, record := range file.Records {
		f.Add([]byte(record))
	}
	f.Add([]byte(`[{"index":7,"type":"URL","data":{"value":"00","format":"hex"},"ttl":"2030-01-01T00:00:00Z"}]`))
	f.Add([]byte(`{"index":"7","type":"URL","data":"x","permissions":"0001"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		values, err := handlejson.DecodeValues(text)
		if err != nil {
			if len(err.Error()) > 1<<20 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		for i := range values {
			again, err := handlejson.DecodeValues(handlejson.AppendValue(nil, &values[i]))
			if err != nil || !reflect.DeepEqual(again, values[i:i+1:i+1]) {
				t.Fatalf("%+v became %+v, %v", values[i], again, err)
			}
		}
	})
}

// Any data is shown, and written so that it is read as it is.
func FuzzDescribe(f *testing.F) {
	for name, text := range vectors(f) {
		if data, err := hex.DecodeString(text); err == nil && strings.HasPrefix(name, "hs_") {
			kind, _, _ := strings.Cut(strings.TrimPrefix(name, "hs_"), "_")
			f.Add("HS_"+strings.ToUpper(kind), data)
		}
	}
	f.Add("URL", []byte("https://example.org/"))
	f.Add("X", []byte{0xff})
	f.Fuzz(func(t *testing.T, kind string, data []byte) {
		if len(kind) > 255 || len(data) > stele.MaxData {
			return
		}
		if _, err := json.Marshal(handlejson.Describe(kind, data)); err != nil {
			t.Fatal(err)
		}
		v := stele.HandleValue{Index: 1, Type: strings.ToValidUTF8(kind, "?"), Data: data}
		got, err := handlejson.DecodeValues(handlejson.AppendValue(nil, &v))
		if err != nil || string(got[0].Data) != string(data) || got[0].Type != v.Type {
			t.Fatalf("%q %x became %+v, %v", kind, data, got, err)
		}
	})
}
