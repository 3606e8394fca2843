package web

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"rsc.io/qr"

	"github.com/stele-id/stele"
)

// TestQR draws the path again and compares it dot by dot with the code.
func TestQR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringN(1, maxQR/4, maxQR).Draw(t, "text")
		got, err := NewQR(text)
		if err != nil {
			t.Fatal(err)
		}
		want, err := qr.Encode(text, qr.M)
		if err != nil {
			t.Fatal(err)
		}
		if got.Size != want.Size+2*quiet {
			t.Fatalf("a side has %d dots, not %d and the margin", got.Size, want.Size)
		}
		dots := make(map[[2]int]bool)
		for run := range strings.SplitSeq(strings.TrimSuffix(got.Path, "z"), "z") {
			var x, y, n, back int
			if _, err := fmt.Sscanf(run, "M%d %dh%dv1h-%d", &x, &y, &n, &back); err != nil || n != back {
				t.Fatalf("run %q: %v", run, err)
			}
			for i := range n {
				dots[[2]int{x + i - quiet, y - quiet}] = true
			}
		}
		for y := range want.Size {
			for x := range want.Size {
				if dots[[2]int{x, y}] != want.Black(x, y) {
					t.Fatalf("dot %d, %d is wrong", x, y)
				}
				delete(dots, [2]int{x, y})
			}
		}
		if len(dots) > 0 {
			t.Fatalf("%d dots are outside", len(dots))
		}
	})
}

func TestQRLimits(t *testing.T) {
	for _, n := range []int{0, maxQR + 1, 1 << 20} {
		if code, err := NewQR(strings.Repeat("x", n)); stele.KindOf(err) != stele.Invalid || code != (QR{}) {
			t.Errorf("%d bytes: %v, %v", n, code.Size, err)
		}
	}
	if _, err := NewQR(strings.Repeat("\xff", maxQR)); err != nil {
		t.Error(err)
	}
}
