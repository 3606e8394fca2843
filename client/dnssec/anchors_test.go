package dnssec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func TestParseAnchors(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	for _, tt := range []struct {
		text string
		want string // zones, or a part of the error
		bad  bool
	}{
		{rootKeys, ".", false},
		{"example. 3600 IN DS 1 13 2 " + digest, "example.", false},
		{"EXAMPLE DS 1 13 2 " + digest + "\nb.example. DS 1 15 4 " + strings.Repeat("ab", 48), "b.example. example.", false},
		{"; a comment\n$ORIGIN example.\n@ IN DNSKEY 256 3 13 (\n  " + strings.Repeat("A", 86) + "== ) ; here\n", "example.", false},
		{"", "there is no DNSKEY or DS record", true},
		{"example. A 192.0.2.1", "this is not an anchor; write DNSKEY or DS records", true},
		{"example. DS 1 13 1 " + strings.Repeat("ab", 20), "digests of type 1", true},
		{"example. DS 1 5 2 " + digest, "keys of algorithm 5", true},
		{"example. DNSKEY 257 3 7 AwEAAQ==", "algorithm 7 can't be checked", true},
		{"example. DNSKEY 385 3 13 AAAA", "revoked", true},
		{"example. DNSKEY 1 3 13 AAAA", "not a key of a zone", true},
		{"example. DNSKEY 257 2 13 AAAA", "not a key of a zone", true},
		{"example. CH DS 1 13 2 " + digest, "class is not IN", true},
		{"<TrustAnchor/>", "write DNSKEY or DS records", true},
		{"$INCLUDE /etc/hostname", "write DNSKEY or DS records", true},
		{strings.Repeat("example. DS 1 13 2 "+digest+"\n", maxAnchors+1), "more than 1000 records", true},
		{strings.Repeat("; much\n", maxAnchorBytes/6), "more than 1048576 bytes", true},
	} {
		a, err := ParseAnchors(strings.NewReader(tt.text))
		if tt.bad {
			if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%.60q: %v, want %s", tt.text, err, tt.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%.60q: %v", tt.text, err)
			continue
		}
		for _, zone := range strings.Fields(tt.want) {
			if a.zones[zone] == nil || len(a.zones) != len(strings.Fields(tt.want)) {
				t.Errorf("%.60q: %v, want %s", tt.text, a.zones, tt.want)
			}
		}
	}
	if a, err := RootAnchors(); err != nil || len(a.zones["."].ds) != 2 {
		t.Errorf("%v, %v", a, err)
	}
}

// TestCanonicalOrder is the order of RFC 4034, section 6.1.
func TestCanonicalOrder(t *testing.T) {
	list := []string{
		"example.", "a.example.", "yljkjljk.a.example.", "Z.a.example.", "zABC.a.EXAMPLE.", "z.example.", `\001.z.example.`, "*.z.example.", `\200.z.example.`,
	}
	for i := range list {
		for j := range list {
			if got := compareNames(list[i], list[j]); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%s and %s: %d", list[i], list[j], got)
			}
		}
	}
}

func TestStatusInJSON(t *testing.T) {
	for _, s := range []Status{Unchecked, Insecure, Secure} {
		text, err := json.Marshal(s)
		if err != nil || string(text) != fmt.Sprintf("%q", s.String()) {
			t.Errorf("%v: %s, %v", s, text, err)
		}
		var back Status
		if err := json.Unmarshal(text, &back); err != nil || back != s {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
	if err := json.Unmarshal([]byte(`"bogus"`), new(Status)); err == nil {
		t.Error("bogus is not a status")
	}
}
