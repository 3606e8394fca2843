package binary

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stele-id/stele"
	"pgregory.net/rapid"
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
		data := MarshalAudit(e)
		var got stele.AuditEntry
		if err := UnmarshalAudit(data, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*e, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		cut := rapid.IntRange(0, len(data)-1).Draw(t, "cut")
		if err := UnmarshalAudit(data[:cut], &got); err == nil {
			t.Fatalf("the first %d of %d bytes are read as an entry", cut, len(data))
		}
	})
}
