package web

import (
	"fmt"
	"math"
	"regexp"
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
	roots := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(css), -1)
	if len(roots) != 2 {
		t.Fatalf("%d sets of colours, not light and dark", len(roots))
	}
	for mode, root := range roots {
		colours := make(map[string]string)
		for _, m := range regexp.MustCompile(`--(\w+): (#[0-9a-f]{6});`).FindAllStringSubmatch(root[1], -1) {
			colours[m[1]] = m[2]
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

// contrast returns the ratio of two colours' luminances.
func contrast(a, b string) (float64, error) {
	x, err := luminance(a)
	if err != nil {
		return 0, err
	}
	y, err := luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05), err
}

func luminance(colour string) (sum float64, err error) {
	var rgb [3]int
	if _, err := fmt.Sscanf(colour, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2]); err != nil {
		return 0, fmt.Errorf("%q is not a colour: %w", colour, err)
	}
	for i, weight := range [...]float64{0.2126, 0.7152, 0.0722} {
		c := float64(rgb[i]) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum, nil
}
