package naptr

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele/ddds"
)

// TestZoneText asks that names are written as the DNS library would write their records,
// whatever bytes are in them.
func TestZoneText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`[ -~]{0,40}`), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 30), func(b []byte) string { return string(b) }))
		number := rapid.Uint16()
		owner := rapid.SampledFrom([]string{"z.example.", "a.b.z.example.", "z.example.org.", "az.example."}).Draw(t, "owner")
		out := Compiled{TTL: rapid.Uint32().Draw(t, "ttl")}
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			out.Rules = append(out.Rules, ddds.Fields{
				Order: number.Draw(t, "order"), Preference: number.Draw(t, "preference"), Flags: text.Draw(t, "flags"),
				Service: text.Draw(t, "service"), Regexp: text.Draw(t, "expression"), Replacement: "x." + owner,
			})
		}
		for range rapid.IntRange(0, 3).Draw(t, "URIs") {
			out.URIs = append(out.URIs, URI{number.Draw(t, "priority"), rapid.OneOf(text, rapid.Just(strings.Repeat(`x"`, LibraryURI))).Draw(t, "target")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "texts") {
			out.Texts = append(out.Texts, rapid.SliceOfN(text, 1, 3).Draw(t, "strings"))
		}
		want := ""
		for _, rr := range out.Records(owner) {
			want += owner + " " + Text(rr) + "\n"
		}
		if got := out.AppendText(nil, owner); string(got) != want {
			t.Fatalf("written is\n%s, want\n%s", got, want)
		}
	})
}
