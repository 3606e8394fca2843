package stele_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"pgregory.net/rapid"
)

// FuzzParsePosition: any client may send a version token. A token that parses is written
// back unchanged.
func FuzzParsePosition(f *testing.F) {
	const g = "0123456789abcdef0123456789abcdef"
	for _, seed := range []string{"", "0", "17", "+1", "00", g, g + ".", g + ".17", g + ".18446744073709551615", g + ".18446744073709551616", "." + g, strings.ToUpper(g) + ".1", strings.Repeat("0", 32) + ".1", g + ".1.2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := stele.ParsePosition(text)
		if err == nil && p.String() != text || err != nil && (p != stele.Position{} || stele.KindOf(err) != stele.Invalid) {
			t.Errorf("%q is %v, %v", text, p, err)
		}
	})
}

// FuzzGenerations: what a damaged store has is refused, and what is read is written again.
func FuzzGenerations(f *testing.F) {
	first := stele.FirstGeneration(time.Unix(1_900_000_000, 0))
	for _, list := range []stele.Generations{first, first.Next(time.Unix(1_900_000_100, 5000), 7, nil, 0), first.Next(time.Unix(1_900_000_100, 0), 7, first, 9)} {
		text, err := list.MarshalText()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		f.Add(text[:len(text)-1])
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var list stele.Generations
		if err := list.UnmarshalText(text); err != nil {
			if stele.KindOf(err) != stele.Internal || list != nil {
				t.Errorf("%q: %v, %v", text, list, err)
			}
			return
		}
		again, err := list.MarshalText()
		if err != nil {
			t.Fatalf("%q is read and can't be written: %v", text, err)
		}
		var second stele.Generations
		if err := second.UnmarshalText(again); err != nil || !slices.Equal(second, list) {
			t.Errorf("%q became %q: %v", text, again, err)
		}
	})
}

// TestGenerationsRoundTrip: a list that Next made is kept as it is.
func TestGenerationsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := func() time.Time {
			return time.Unix(rapid.Int64Range(0, 1<<37).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns"))
		}
		list := stele.FirstGeneration(moment())
		for range rapid.IntRange(0, 5).Draw(t, "restores") {
			var present stele.Generations
			if rapid.Bool().Draw(t, "present") {
				present = stele.Generations{{ID: stele.NewGenerationID(), Number: rapid.Uint64Range(1, 1<<40).Draw(t, "number")}}
			}
			list = list.Next(moment(), rapid.Uint64().Draw(t, "change"), present, rapid.Uint64().Draw(t, "last"))
		}
		text, err := list.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got stele.Generations
		if err := got.UnmarshalText(text); err != nil || !slices.Equal(got, list) {
			t.Fatalf("%+v became %+v, %v", list, got, err)
		}
		if at := rapid.IntRange(0, len(text)-1).Draw(t, "cut"); !bytes.HasSuffix(text[:at], []byte("\n")) {
			if err := got.UnmarshalText(text[:at]); stele.KindOf(err) != stele.Internal || err == nil {
				t.Fatalf("%q: %v", text[:at], err)
			}
		}
	})
}

// TestJudge: a position is good in its own generation, and a bare one in the first.
func TestJudge(t *testing.T) {
	first := stele.FirstGeneration(time.Unix(1_900_000_000, 0))
	second := first.Next(time.Unix(1_900_000_100, 0), 7, first, 9)
	for name, tt := range map[string]struct {
		in stele.Generations
		p  stele.Position
		ok bool
	}{
		"its own":                       {first, stele.Position{first[0].ID, 5}, true},
		"its own, after a restore":      {second, stele.Position{second[1].ID, 5}, true},
		"bare":                          {first, stele.Position{Change: 5}, true},
		"bare, after a restore":         {second, stele.Position{Change: 5}, false},
		"none, after a restore":         {second, stele.Position{}, true},
		"of before":                     {second, stele.Position{first[0].ID, 5}, false},
		"of before, with no change yet": {second, stele.Position{first[0].ID, 0}, false},
		"of another registry":           {first, stele.Position{stele.NewGenerationID(), 5}, false},
		"of a generation that was lost": {first, stele.Position{second[1].ID, 5}, false},
	} {
		err := tt.in.Judge("the version token", tt.p)
		if (err == nil) != tt.ok || err != nil && (!errors.Is(err, stele.ErrRestored) || stele.KindOf(err) != stele.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
		if code, _ := stele.CodeOf(err); err != nil && code != "restored" {
			t.Errorf("%s: the code is %q", name, code)
		}
	}
}
