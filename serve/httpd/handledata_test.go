package httpd

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
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

// The site that the reference server describes at /api/site is shown as it does.
func TestSiteRecorded(t *testing.T) {
	var want struct {
		Site json.RawMessage `json:"site"`
	}
	for _, one := range readRecorded(t) {
		if strings.HasSuffix(one.command, "/api/site") {
			if err := json.Unmarshal([]byte(one.body), &want); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, modulus, _ := strings.Cut(string(want.Site), `"n":"`)
	modulus, _, _ = strings.Cut(modulus, `"`)
	n, err := base64.RawURLEncoding.DecodeString(modulus)
	if err != nil || len(n) == 0 {
		t.Fatalf("the recorded key %q: %v", modulus, err)
	}
	key := packed("RSA_PUB_KEY", [2]byte{}, []byte{1, 0, 1}, append([]byte{0}, n...), 0)
	data := packed([8]byte{0, 1, 2, 10, 0, 1, 0x80, 2}, "", 1, "desc", "loopback 9.2", 1,
		1, [16]byte{12: 127, 15: 1}, key, 3, [2]byte{3, 1}, 22641, [2]byte{2, 0}, 22641, [2]byte{3, 2}, 28000)
	got, err := json.Marshal(readHandleData("HS_SITE", data))
	if err != nil {
		t.Fatal(err)
	}
	if whole := `{"format":"site","value":` + string(want.Site) + "}"; string(got) != whole {
		t.Errorf("got  %s\nwant %s", got, whole)
	}
}

func TestHandleData(t *testing.T) {
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
		got, err := json.Marshal(readHandleData(tt.kind, tt.data))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s %q:\ngot  %s, %v\nwant %s", tt.kind, tt.data, got, err, tt.want)
		}
	}
}

// Any data of any type is shown, and texts and bytes come back as they were.
func TestHandleDataTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"URL", "HS_ADMIN", "HS_VLIST", "HS_SITE", "HS_NA_DELEGATE", "HS_PUBKEY"}).Draw(t, "kind")
		data := rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "data")
		shown := readHandleData(kind, data)
		text, err := json.Marshal(shown)
		if err != nil {
			t.Fatal(err)
		}
		var back struct {
			Format string
			Value  any
		}
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		switch back.Format {
		case "string":
			if back.Value != string(data) {
				t.Fatalf("%q became %q", data, back.Value)
			}
		case "base64":
			if got, err := base64.StdEncoding.DecodeString(back.Value.(string)); err != nil || string(got) != string(data) {
				t.Fatalf("%q became %q, %v", data, got, err)
			}
		}
	})
}

func TestHandleType(t *testing.T) {
	for _, tt := range []struct {
		want, kind string
		ok         bool
	}{
		{"URL", "url", true},
		{"URL", "URL.OLD", false},
		{"URL.", "URL.OLD", true},
		{"URL.", "URL", true},
		{"URL.", "URLS", false},
		{"", "URL", false},
		{".", "URL", false},
	} {
		if got := wantsType(tt.want, tt.kind); got != tt.ok {
			t.Errorf("wantsType(%q, %q) = %t", tt.want, tt.kind, got)
		}
	}
}
