package handle

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stele-id/stele/wire/hdl"
)

func TestParseAuthorization(t *testing.T) {
	for _, tt := range []struct {
		text string
		want *Authorization
		bad  bool
	}{
		{text: "Bearer x"},
		{text: ""},
		{text: "Handles x"},
		{text: "Basic MzAwJTNBMjAuNTAwLjk5OTk5L1VTRVIwMTpzM2NyZXQgcGFzcw==", want: &Authorization{Basic: &Basic{"300:20.500.99999/USER01", "s3cret pass"}}},
		{text: "basic  YTpiOmM=", want: &Authorization{Basic: &Basic{"a", "b:c"}}},
		{text: "Basic JTpi", want: &Authorization{Basic: &Basic{"%", "b"}}},
		{text: "Basic YQ==", bad: true},
		{text: "Basic !", bad: true},
		{text: "Basic", bad: true},
		{text: "Handle", want: &Authorization{Handle: &Fields{}}},
		{text: `Handle clientCert="true"`, want: &Authorization{Handle: &Fields{ClientCert: true}}},
		{text: `handle version="0",sessionId="a\"b\\" , ID=300%3Aa/b,alg=sha1`, want: &Authorization{Handle: &Fields{Version: "0", SessionID: `a"b\`, ID: "300:a/b", Alg: "SHA1"}}},
		{text: `Handle cnonce="AAEC", signature="AAEC", salt=AA, iterations="10", length=160, other="x"`,
			want: &Authorization{Handle: &Fields{CNonce: []byte{0, 1, 2}, Signature: []byte{0, 1, 2}, Derivation: hdl.Derivation{Salt: []byte{0}, Iterations: 10, Bits: 160}}}},
		{text: `Handle id="a", id="b"`, bad: true},
		{text: `Handle id="a`, bad: true},
		{text: `Handle id="a\`, bad: true},
		{text: `Handle id="a" type="b"`, bad: true},
		{text: `Handle id`, bad: true},
		{text: `Handle ="a"`, bad: true},
		{text: `Handle "id"="a"`, bad: true},
		{text: `Handle cnonce="!"`, bad: true},
		{text: `Handle iterations=4294967296`, bad: true},
		{text: `Handle cnonce="` + strings.Repeat("AAAA", 22) + `"`, bad: true},
		{text: `Handle ` + strings.Repeat("a=b,", maxFields+1), bad: true},
		{text: `Handle id="` + strings.Repeat("a", maxAuthorization) + `"`, bad: true},
		{text: `Basic ` + strings.Repeat("AAAA", maxAuthorization/4+1), bad: true},
	} {
		got, err := ParseAuthorization(tt.text)
		if (err != nil) != tt.bad || !tt.bad && !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%.80q: got %+v, %v", tt.text, got, err)
		}
	}
}

// FuzzAuthorization: any header is an authorization or an error, and what is read keeps to its bounds. The same fields as
// JSON are read without fault, too.
func FuzzAuthorization(f *testing.F) {
	for _, seed := range []string{
		"Basic MzAwJTNBMjAuNTAwLjk5OTk5L1VTRVIwMTpzM2NyZXQgcGFzcw==",
		`Handle version="0", sessionId="a", id="300%3Aa/b", type="HS_PUBKEY", cnonce="AAEC", alg="SHA256", signature="AAEC"`,
		`Handle sessionId="a", type="HS_SECKEY", alg="PBKDF2-HMAC-SHA1", salt="AA==", iterations=10000, length=160`,
		`Handle clientCert="true"`, `Handle a="\"`, `Handle ,,a = b ,`, `{"sessionId":"a","iterations":10000,"length":"160"}`, `{"id":null,"clientCert":true}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAuthorization(text)
		if err == nil && a != nil {
			if (a.Basic == nil) == (a.Handle == nil) {
				t.Fatalf("%q is both or none: %+v", text, a)
			}
			if a.Handle != nil && (len(a.Handle.CNonce) > maxNonce || len(a.Handle.Signature) > maxAuthorization) {
				t.Fatalf("%q is too long: %+v", text, a.Handle)
			}
		}
		if fields, err := parseJSON([]byte(text)); err == nil && len(fields.CNonce) > maxNonce {
			t.Fatalf("%q is too long: %+v", text, fields)
		}
	})
}
