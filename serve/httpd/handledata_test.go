package httpd

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stele-id/stele/document/handlejson"
	"github.com/stele-id/stele/handles"
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
	got, err := json.Marshal(handlejson.Describe("HS_SITE", data))
	if err != nil {
		t.Fatal(err)
	}
	if whole := `{"format":"site","value":` + string(want.Site) + "}"; string(got) != whole {
		t.Errorf("got  %s\nwant %s", got, whole)
	}
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
		if got := handles.WantsType(tt.want, tt.kind); got != tt.ok {
			t.Errorf("wantsType(%q, %q) = %t", tt.want, tt.kind, got)
		}
	}
}
