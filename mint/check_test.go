package mint

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Identifiers in public use. The first group's check characters are over NAAN
// and name, as the ARK draft has it; the Bibliothèque nationale de France leaves
// out its NAAN.
var (
	checkedNames = []string{
		"13030/xf93gt2q", // the noid tool's manual
		"13030/tf5p30086k", "13030/kt9s2009hz", "13030/ft1q2n999m", "13030/c87m0fns",
		"13960/t3610x12d", "13960/t00z82c1q", "13960/t8x951q5m", "13960/s2gqkbn48vn",
		"99166/w6kd29q4", "99166/w6028ps4", "99166/w6qz2nsx",
		"88435/dsp01zc77st047", "88435/02870w62c", "21198/z11g7wqv", "20775/bb0308012n",
	}
	checkedAlone = []string{
		"cb11928669t", "cb11907966z", "cb119367821", "cb45295904f", "cb139817766",
		"btv1b8449691v", "btv1b10500001g", "btv1b525174513", "btv1b23006724",
		"bpt6k5834013m", "bpt6k279983", "bpt6k11620369", "bpt6k2982c",
		"cc45158c", "bc6p06xz84t",
	}
)

func TestCheckedInPublicUse(t *testing.T) {
	for _, s := range slices.Concat(checkedNames, checkedAlone) {
		if !Checked(s) {
			t.Errorf("%q does not hold; %q would be its check character", s, CheckChar(s[:len(s)-1]))
		}
	}
	for _, s := range checkedAlone {
		if Checked("12148/" + s) {
			t.Errorf("%q holds with its NAAN as well: a poor sample", s)
		}
	}
}

func TestChecked(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "0": false, "x": false, "00": true, "11": true, "12": false,
		"13030/xf93gt2r": false, "13030/xf93gt2Q": false, "13030/xf39gt2q": false,
		"aeiouyl/0": true, // nothing in it counts
		"\xff\xfe0": true, "é": false,
	} {
		if got := Checked(s); got != want {
			t.Errorf("Checked(%q) = %v, want %v", s, got, want)
		}
	}
}

func betanumericText() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune(Betanumeric)), 1, 28, -1)
}

// One wrong character is noticed within the first 28 positions, a swap of
// neighbours everywhere: 29 is prime.
func TestCheckNoticesMistakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := betanumericText().Draw(t, "s")
		s += string(rune(CheckChar(s)))
		if !Checked(s) {
			t.Fatalf("%q is not Checked", s)
		}
		i := rapid.IntRange(0, len(s)-1).Draw(t, "i")
		c := rapid.SampledFrom([]byte(Betanumeric)).Draw(t, "c")
		wrong := s[:i] + string(rune(c)) + s[i+1:]
		if wrong != s && Checked(wrong) {
			t.Fatalf("%q for %q goes unnoticed", wrong, s)
		}
		if i < len(s)-2 {
			swapped := s[:i] + s[i+1:i+2] + s[i:i+1] + s[i+2:]
			if swapped != s && Checked(swapped) {
				t.Fatalf("%q for %q goes unnoticed", swapped, s)
			}
		}
	})
}

// Repairs is compared with the plain way: try everything.
func TestRepairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune(Betanumeric+"loaXé%")), 0, 31, -1).Draw(t, "s")
		from := rapid.IntRange(-1, len(s)+1).Draw(t, "from")
		got := Repairs(s, from)
		want := triedRepairs(s, from)
		if len(want) > maxRepairs {
			if len(got) != maxRepairs {
				t.Fatalf("%d repairs of %q, want %d", len(got), s, maxRepairs)
			}
			want = slices.DeleteFunc(want, func(w string) bool { return !slices.Contains(got, w) })
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("Repairs(%q, %d)\n got %q\nwant %q", s, from, got, want)
		}
	})
}

func triedRepairs(s string, from int) (found []string) {
	if Checked(s) && !strings.ContainsAny(s[min(max(from, 0), len(s)):], "loaXé%") {
		return nil
	}
	b := []byte(s)
	keep := func() {
		if t := string(b); t != s && Checked(t) {
			found = append(found, t)
		}
	}
	for i := max(from, 0); i < len(b); i++ {
		if s[i] >= 0x80 {
			continue
		}
		if (i+1)%radix != 0 || i == len(b)-1 { // others weigh nothing
			for _, c := range []byte(Betanumeric) {
				b[i] = c
				keep()
			}
		}
		b[i] = s[i]
		if i+1 < len(b) && s[i+1] < 0x80 {
			b[i], b[i+1] = b[i+1], b[i]
			keep()
			b[i], b[i+1] = b[i+1], b[i]
		}
	}
	return found
}

func TestRepairsFindsWhatWasMeant(t *testing.T) {
	for wrong, meant := range map[string]string{
		"13030/xf93g2tq": "13030/xf93gt2q", // swapped
		"13030/xf93gtq2": "13030/xf93gt2q", // swapped with the check character
		"13030/xf9gt32q": "",               // two mistakes
		"13030/xf98gt2q": "13030/xf93gt2q", // wrong
		"13030/xf93gt2p": "13030/xf93gt2q", // wrong check character
	} {
		got := Repairs(wrong, len("13030/xf"))
		if slices.Contains(got, "13030/xf93gt2q") != (meant != "") {
			t.Errorf("Repairs(%q) = %q, want %q among them", wrong, got, meant)
		}
		for _, s := range got {
			if !strings.HasPrefix(s, "13030/xf") || !Checked(s) {
				t.Errorf("Repairs(%q) gives %q", wrong, s)
			}
		}
	}
	if got := Repairs("13030/xf93gt2q", len("13030/")); got != nil {
		t.Errorf("a text that is Checked is repaired: %q", got)
	}
	// An o for a 0 weighs the same, and is found all the same.
	if got := Repairs("cb119o7966z", 2); len(got) == 0 || got[0] != "cb11907966z" {
		t.Errorf("Repairs of an o for a 0: %q", got)
	}
	// An l can't be in a NOID name, so that is where the mistake is.
	if got := Repairs("cb1l928669t", 2); len(got) == 0 || got[0] != "cb11928669t" {
		t.Errorf("Repairs of an l for a 1: %q", got)
	}
	// Then a digit is likelier to stand for a digit.
	if got := Repairs("cb11628669t", 2); len(got) < 3 || got[1] != "cb11928669t" || strings.ContainsAny(got[0][2:10], "bcdfghjkmnpqrstvwxz") {
		t.Errorf("Repairs of a 6 for a 9: %q", got)
	}
	if got := Repairs("13030/xf39gt2q", len("13030/xf")); len(got) == 0 || got[0] != "13030/xf93gt2q" {
		t.Errorf("swaps must come first: %q", got)
	}
}

func TestRepairsIsBounded(t *testing.T) {
	long := strings.Repeat("b4", maxRepaired/2-1) + "z"
	if got := Repairs(long, 0); len(got) != maxRepairs {
		t.Errorf("%d repairs of a long text, want %d", len(got), maxRepairs)
	}
	if got := Repairs(strings.Repeat("b4", maxRepaired), 0); got != nil {
		t.Errorf("%d repairs of a text that nobody typed", len(got))
	}
	if got := Repairs(long, len(long)); got != nil {
		t.Errorf("repairs past the end: %d", len(got))
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	n := testing.AllocsPerRun(100, func() {
		if CheckChar("13030/xf93gt2") != 'q' || !Checked("13030/xf93gt2q") {
			t.Error("13030/xf93gt2q does not hold")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkChecked(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if !Checked("13030/xf93gt2q") {
			b.Fatal("13030/xf93gt2q does not hold")
		}
	}
}

func BenchmarkRepairs(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if Repairs("13030/xf39gt2q", 8) == nil {
			b.Fatal("no repairs")
		}
	}
}
