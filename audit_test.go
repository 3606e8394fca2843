package stele_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// drawAudit draws an entry with texts of any length.
func drawAudit(t *rapid.T) *stele.AuditEntry {
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	return &stele.AuditEntry{
		By: text.Draw(t, "by"), Token: text.Draw(t, "token"), System: text.Draw(t, "system"), Via: text.Draw(t, "via"),
		Address: text.Draw(t, "address"), Operation: text.Draw(t, "operation"), Object: text.Draw(t, "object"),
		Namespace: stele.NamespaceKey{Scheme: rapid.StringMatching(`[a-z]*`).Draw(t, "scheme"), Prefix: text.Draw(t, "prefix")},
		Outcome:   rapid.SampledFrom([]stele.AuditOutcome{stele.AuditDone, stele.AuditRefused, stele.AuditFailed}).Draw(t, "outcome"),
		Kind:      stele.Kind(rapid.Byte().Draw(t, "kind")),
		Count:     rapid.Uint64().Draw(t, "count"), Trimmed: rapid.Uint64().Draw(t, "trimmed"), Details: text.Draw(t, "details"),
	}
}

func TestAuditRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawAudit(t)
		data, err := e.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var got stele.AuditEntry
		if err := got.UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*e, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		cut := rapid.IntRange(0, len(data)-1).Draw(t, "cut")
		if err := got.UnmarshalBinary(data[:cut]); err == nil {
			t.Fatalf("the first %d of %d bytes are read as an entry", cut, len(data))
		}
	})
}

// An entry that was bounded can be kept, and its texts are still texts.
func TestAuditBound(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("ä", 3000), strings.Repeat("x", 3000)} {
		e := &stele.AuditEntry{By: text, Token: text, Address: text, Operation: "set" + text, Object: text, Details: text, Outcome: stele.AuditDone}
		e.Bound()
		if err := e.Check(); err != nil {
			t.Errorf("%.10q: %v", text, err)
		}
		for _, got := range []string{e.By, e.Object, e.Details} {
			if !utf8.ValidString(got) {
				t.Errorf("cut inside a character: %q", got)
			}
			if len(text) > 3000-1 && !strings.HasSuffix(got, "...") {
				t.Errorf("%.10q does not say that it was cut: %q", text, got)
			}
		}
	}
}
