package stele_test

import (
	"testing"

	"github.com/stele-id/stele"
	"pgregory.net/rapid"
)

func TestSecondaryAgainst(t *testing.T) {
	for _, test := range []struct {
		has, zone uint32
		want      stele.SecondaryState
	}{
		{7, 7, stele.SecondarySame},
		{6, 7, stele.SecondaryBehind},
		{8, 7, stele.SecondaryAhead},
		{1<<32 - 1, 2, stele.SecondaryBehind}, // serials go round
		{2, 1<<32 - 1, stele.SecondaryAhead},
		{1<<30 + 6, 7, stele.SecondaryAhead},
		{1<<30 + 7, 7, stele.SecondaryFar},
		{1<<31 + 7, 7, stele.SecondaryFar},
		{1<<31 + 8, 7, stele.SecondaryFar},
		{3<<30 + 7, 7, stele.SecondaryFar},
		{3<<30 + 8, 7, stele.SecondaryBehind},
	} {
		if got := (stele.SecondaryAnswer{State: stele.SecondaryAnswers, Serial: test.has}).Against(test.zone); got.State != test.want {
			t.Errorf("a secondary with %d of a zone with %d is %s, want %s", test.has, test.zone, got.State, test.want)
		}
	}
	for _, state := range []stele.SecondaryState{stele.SecondaryRefuses, stele.SecondaryLame, stele.SecondarySilent, stele.SecondaryUnasked, ""} {
		if got := (stele.SecondaryAnswer{State: state}).Against(7); got.State != state || got.HasSerial() {
			t.Errorf("%q became %q", state, got.State)
		}
	}
}

// Two serials that are near to a third can be compared.
func TestSerialNear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.Uint32().Draw(t, "zone")
		offset := rapid.Int32Range(-(1<<30 - 1), 1<<30-1)
		a, b := zone+uint32(offset.Draw(t, "a")), zone+uint32(offset.Draw(t, "b"))
		if !stele.SerialNear(a, zone) || !stele.SerialNear(zone, a) {
			t.Fatalf("%d and %d are not near", a, zone)
		}
		if a != b && stele.SerialAfter(a, b) == stele.SerialAfter(b, a) {
			t.Fatalf("%d and %d can't be compared", a, b)
		}
	})
	for _, far := range []uint32{1 << 30, 1 << 31, 1<<31 + 1, 3 << 30} {
		if stele.SerialNear(5+far, 5) || stele.SerialNear(5, 5+far) {
			t.Errorf("serials that are %d apart are near", far)
		}
	}
}
