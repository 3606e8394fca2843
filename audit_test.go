package stele_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

// An entry that was bounded can be stored, and its texts are still texts.
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
