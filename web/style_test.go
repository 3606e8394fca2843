package web

import (
	"strings"
	"testing"
)

// TestContrast computes the contrast of all colours that stand on each other, in
// light and in dark (WCAG 2.2, 1.4.3: 4.5 to 1 for text, and 1.4.11: 3 to 1 for
// what marks a form's field or the focus).
func TestContrast(t *testing.T) {
	css, err := files.ReadFile("assets/stele.css")
	if err != nil {
		t.Fatal(err)
	}
	for mode, dark := range []bool{false, true} {
		colours := paletteOf(string(css), dark)
		if len(colours) < 11 {
			t.Fatalf("mode %d has the colours %v", mode, colours)
		}
		for _, tt := range []struct {
			on, inks string
			least    float64
		}{
			{"paper", "ink soft link gone good", 4.5},
			{"card", "ink soft link", 4.5},
			{"gonepaper", "gone", 4.5},
			{"accent", "onaccent", 4.5},
			{"paper", "accent soft", 3},
		} {
			for ink := range strings.FieldsSeq(tt.inks) {
				got, err := contrast(colours[tt.on], colours[ink])
				if err != nil || got < tt.least {
					t.Errorf("mode %d: %s on %s has a contrast of %.2f, not %.1f (%v)", mode, ink, tt.on, got, tt.least, err)
				}
			}
		}
	}
}
