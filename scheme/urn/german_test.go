package urn

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// registered are names in public use, of publishers with different software.
var registered = []string{
	// The DNB's example, and the library itself.
	"urn:nbn:de:gbv:089-3321752945", "urn:nbn:de:0001-00016",
	"urn:nbn:de:101:1-201102033592", "urn:nbn:de:101:1-200910131091", "urn:nbn:de:101:1-201603278995",
	// OPUS.
	"urn:nbn:de:bsz:21-opus-2952", "urn:nbn:de:bvb:20-opus-180753", "urn:nbn:de:kobv:517-opus-55789",
	"urn:nbn:de:kobv:83-opus4-39397", "urn:nbn:de:0297-zib-90159", "urn:nbn:de:hbz:386-kluedo-38558",
	"urn:nbn:de:hebis:30:3-347825", "urn:nbn:de:bvb:703-opus-7136", "urn:nbn:de:bsz:mh39-84250",
	// Qucosa.
	"urn:nbn:de:bsz:15-qucosa2-819717", "urn:nbn:de:bsz:14-qucosa-153365", "urn:nbn:de:bsz:ch1-qucosa-226576",
	// Digitised books: Munich's, Kitodo, Visual Library.
	"urn:nbn:de:bvb:12-bsb00103137-3", "urn:nbn:de:bvb:12-bsb11059254-9", "urn:nbn:de:gbv:3:1-1192015415-147638674-17",
	"urn:nbn:de:gbv:3:3-21437-p0005-2", "urn:nbn:de:kobv:109-1-15356869", "urn:nbn:de:hbz:6:1-143638",
	// DSpace, EPrints, MyCoRe and others.
	"urn:nbn:de:0168-ssoar-57615-2", "urn:nbn:de:bsz:352-246910", "urn:nbn:de:tuda-tuprints-23388",
	"urn:nbn:de:gbv:700-20181116806", "urn:nbn:de:hbz:465-20070308-164527-0", "urn:nbn:de:gbv:28-diss2011-0162-1",
	"urn:nbn:de:0030-drops-207053", "urn:nbn:de:0183-mbi0003721", "urn:nbn:de:0074-1000-9", "urn:nbn:de:0070-pub-16809824",
}

func TestGermanRegistered(t *testing.T) {
	scheme := New()
	for _, text := range registered {
		if id, err := scheme.Parse(text); err != nil || id.String() != text {
			t.Errorf("Parse(%q) = %q, %v", text, id, err)
		}
		id, err := scheme.Parse("https://nbn-resolving.org/" + strings.ToUpper(text))
		if err != nil || id.String() != text {
			t.Errorf("Parse(%q) in capitals = %q, %v", text, id, err)
		}
		// Nine of ten last digits are wrong, and the right one is suggested.
		for digit := byte('0'); digit <= '9'; digit++ {
			wrong := text[:len(text)-1] + string(digit)
			if wrong != text && !slices.Contains(suggested(t, wrong), text) {
				t.Errorf("for %q not %q is suggested", wrong, text)
			}
		}
	}
}

// TestGermanUnchecked are names that the DNB gave out without a check digit.
func TestGermanUnchecked(t *testing.T) {
	for _, number := range []string{
		"2019072802401757702913", "2019110122350057754631", "2020011823361862943632", "2020042904595660732648",
		"2020112012434733354624", "2022072702462487314192", "2022090515501014226277", "2023102516403481026473",
	} {
		if _, err := New().Parse("urn:nbn:de:101:1-" + number); err != nil {
			t.Error(err)
		}
	}
	// The like is checked elsewhere, and so are the library's older numbers.
	for _, text := range []string{"urn:nbn:de:101:2-2019072802401757702913", "urn:nbn:de:101:1-2011020335921"} {
		if got := suggested(t, text); len(got) == 0 {
			t.Errorf("nothing is suggested for %q", text)
		}
	}
}

// TestGermanDigit repeats the algorithm in the words of its description, with a
// row of digits in memory.
func TestGermanDigit(t *testing.T) {
	numbers := map[rune]string{}
	for i, c := range "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ+:_-./" {
		numbers[c] = strings.Fields("1 2 3 4 5 6 7 8 9 41 18 14 19 15 16 21 22 23 24 25 42 26 27 13 28 29 31 12 32 33 11 34 35 36 37 38 49 17 43 39 47 45")[i]
	}
	describe := func(urn string) byte {
		row := ""
		for _, c := range strings.ToUpper(urn) {
			row += numbers[c]
		}
		sum := 0
		for i, digit := range row {
			sum += (i + 1) * int(digit-'0')
		}
		quotient := sum / int(row[len(row)-1]-'0')
		return byte('0' + quotient%10)
	}
	rapid.Check(t, func(t *rapid.T) {
		base := rapid.StringMatching(`[dD]e:[a-zA-Z0-9+:_./-]{0,80}`).Draw(t, "name")
		got, bad := germanDigit(base + "0")
		if want := describe("urn:nbn:" + base); got != want || bad >= 0 {
			t.Errorf("germanDigit(%q) = %q, %d; want %q", base, got, bad, want)
		}
	})
}

// TestGermanRepair checks that what is suggested for any name is right.
func TestGermanRepair(t *testing.T) {
	scheme := New()
	rapid.Check(t, func(t *rapid.T) {
		text := "urn:nbn:de" + rapid.StringMatching(`[:-][a-zA-Z0-9]{0,3}[a-z0-9:./_-]{1,20}[0-9](/fragment/[a-zA-Z]{0,3})?`).Draw(t, "name")
		if _, err := scheme.Parse(text); err == nil {
			return
		}
		checkSuggestions(t, scheme, suggested(t, text))
	})
}

// TestGermanSwap checks the promise that swaps come first.
func TestGermanSwap(t *testing.T) {
	got := suggested(t, "urn:nbn:de:bvb:12-bsb00130137-3") // of 00103137
	swap := slices.Index(got, "urn:nbn:de:bvb:12-bsb00103137-3")
	digit := slices.Index(got, "urn:nbn:de:bvb:12-bsb00130137-2")
	if swap < 0 || digit < swap {
		t.Errorf("suggestions: %q", got)
	}
	// A fragment stays with its name, and very long names are not repaired.
	got = suggested(t, "urn:nbn:de:kobv:109-1-15356868/fragment/Page=1")
	if !slices.Contains(got, "urn:nbn:de:kobv:109-1-15356869/fragment/Page=1") {
		t.Errorf("suggestions: %q", got)
	}
	if got := suggested(t, "urn:nbn:de:x-"+strings.Repeat("1", 4000)+"x"); got != nil {
		t.Errorf("suggestions for a long name: %q", got)
	}
}
