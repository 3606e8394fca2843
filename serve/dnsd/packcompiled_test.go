package dnsd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/publish/naptr"
)

// TestPackCompiled checks that what is compiled is packed byte for byte as the DNS library
// does it.
func TestPackCompiled(t *testing.T) {
	long := strings.Repeat("x", dnsrr.MaxString)
	for _, out := range []naptr.Compiled{
		{},
		{TTL: 60, Rules: []ddds.Fields{
			{Order: 100, Preference: 10, Flags: "RES:https", Service: "N2L:text/html", Regexp: `!^urn:a"b\\c$!https://example.org/\é;(x)!i`, Replacement: "."},
			{Order: 200, Preference: 65535, Flags: "s", Service: "thttp+N2L", Replacement: "_http._tcp.z.example."},
			{Regexp: long, Replacement: "."},
		}},
		{TTL: 1 << 31, URIs: []naptr.URI{{Priority: 10, Target: "https://example.org/"}, {Priority: 65535, Target: `ftp://x/"\` + strings.Repeat("y", naptr.LibraryURI-10)}, {Priority: 20, Target: strings.Repeat("z", naptr.LibraryURI)}}},
		{TTL: 5, URIs: []naptr.URI{{Priority: 20, Target: strings.Repeat("z", naptr.LibraryURI+1)}}},
		{TTL: 5, Texts: [][]string{{"persistence=permanent", "", long, "a;\"\\\x00\xff"}, {"b"}}},
	} {
		question := []byte("\x01z\x07example\x00\x00\xfc\x00\x01")
		got, want := newEnvelopes(1, 0, question), newEnvelopes(1, 0, question)
		for _, name := range []string{"a.z.example.", "a.z.example.", `b\.c.z.example.`, strings.Repeat("l.", 100) + "z.example."} {
			if err := got.addCompiled(name, &out); err != nil {
				t.Fatal(err)
			}
			if err := want.addAll(out.Records(name)); err != nil {
				t.Fatal(err)
			}
		}
		got.close()
		want.close()
		if a, b := bytes.Join(got.take(), nil), bytes.Join(want.take(), nil); !bytes.Equal(a, b) {
			t.Errorf("%+v:\n%q, want\n%q", out, a, b)
		}
	}
	e := newEnvelopes(1, 0, []byte("\x01z\x07example\x00\x00\xfc\x00\x01"))
	if err := e.addCompiled("y.", &naptr.Compiled{URIs: []naptr.URI{{Priority: 1, Target: "x:"}}}); err == nil {
		t.Error("a name of another zone was packed")
	}
}
