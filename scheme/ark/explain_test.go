package ark_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mint"
	"github.com/stele-id/stele/scheme/ark"
)

func explain(t *testing.T, text string) stele.Explanation {
	t.Helper()
	x, err := ark.New().Explain(text)
	if err != nil {
		t.Fatalf("Explain(%q): %v", text, err)
	}
	return x
}

func TestExplainParts(t *testing.T) {
	for text, want := range map[string]string{
		"ark:12345/x54xz321":                `{"naan":"12345","name":"x54xz321","shoulder":"x5"}`,
		"ark:12345/x54xz321/s3/f8.05v.tiff": `{"naan":"12345","name":"x54xz321","qualifier":"/s3/f8.05v.tiff","shoulder":"x5"}`,
		"ark:12345/x54xz321.fr?info":        `{"naan":"12345","name":"x54xz321","qualifier":".fr","inflection":"?info","shoulder":"x5"}`,
		"ark:12345/x?":                      `{"naan":"12345","name":"x","inflection":"?"}`,
		"ark:12345/x??":                     `{"naan":"12345","name":"x","inflection":"??"}`,
		"ark:12345/x???":                    `{"naan":"12345","name":"x","query":"??"}`,
		"ark:12345/x?info=1":                `{"naan":"12345","name":"x","query":"info=1"}`,
		"ark:12345/x#?info":                 `{"naan":"12345","name":"x"}`,
		"ark:012345/123":                    `{"naan":"012345","name":"123"}`,
		"ark:/13030/xf9-3gt2q":              `{"naan":"13030","name":"xf93gt2q","check":"q","shoulder":"xf9"}`,
		"ark:13030/xf93gt2q.v1":             `{"naan":"13030","name":"xf93gt2q","qualifier":".v1","check":"q","shoulder":"xf9"}`,
		"ark:13030/xf93gt2r":                `{"naan":"13030","name":"xf93gt2r","shoulder":"xf9"}`,
		"ark:12148/cb11928669t":             `{"naan":"12148","name":"cb11928669t","check":"t","shoulder":"cb"}`,
		"ark:12148/cb":                      `{"naan":"12148","name":"cb"}`,
		"ark:13960/t3610x12d":               `{"naan":"13960","name":"t3610x12d","check":"d","shoulder":"t"}`,
		"https://gallica.bnf.fr/ark:/12148/bpt6k5834013m/f1.item?rk=21459;2": `{"naan":"12148","name":"bpt6k5834013m","qualifier":"/f1.item","check":"m","query":"rk=21459;2","shoulder":"bpt6k"}`,
	} {
		enc, err := json.Marshal(explain(t, text).Parts)
		if err != nil || string(enc) != want {
			t.Errorf("%q, %v\n got %s\nwant %s", text, err, enc, want)
		}
	}
}

func TestExplainNotes(t *testing.T) {
	for _, c := range []struct{ text, part, note string }{
		{"ark:12345/x1", "naan", "examples"},
		{"ark:12345/x54xz321", "name", "need not have one"},
		{"ark:13030/xf93gt2q", "check", "1 name in 29 by chance"},
		{"ark:13030/xf93gt2q", "name", ""},
		{"ark:12148/cb11928669t", "check", "name alone, as for every name under 12148/cb"},
		{"ark:13960/t3610x12d", "check", "NAAN and name, as for every name under 13960/t"},
		{"ark:12345/x?info", "inflection", "promise"},
	} {
		x := explain(t, c.text)
		i := slices.IndexFunc(x.Parts, func(p stele.Part) bool { return p.Name == c.part })
		if i < 0 || !strings.Contains(x.Parts[i].Note, c.note) || (c.note == "") != (x.Parts[i].Note == "") {
			t.Errorf("%q: no note on %s with %q: %+v", c.text, c.part, c.note, x.Parts)
		}
	}
}

// A name of one character has no check character, whatever the sum is.
func TestExplainShortestName(t *testing.T) {
	text := "ark:12345/" + string(rune(mint.CheckChar("12345/")))
	if check := explain(t, text).Parts.Get("check"); check != nil {
		t.Errorf("%q: check character %q", text, check)
	}
}

func TestExplainForm(t *testing.T) {
	for text, want := range map[string]string{
		"ark:12345/x1": "base", "ark:12345/x1/": "base", "ark:12345/x1/y": "qualified", "ark:12345/x1.y": "qualified",
	} {
		if got := explain(t, text).Form; got != want {
			t.Errorf("%q: form %q, want %q", text, got, want)
		}
	}
}

func TestSpellings(t *testing.T) {
	want := []stele.Spelling{
		{Name: "N2T URL", Text: "https://n2t.net/ark:12345/x1.y"},
		{Name: "classic form", Text: "ark:/12345/x1.y"},
	}
	if got := explain(t, "ark:12345/x1.y").Spellings; !slices.Equal(got, want) {
		t.Errorf("spellings %q, want %q", got, want)
	}
}

func syntaxError(t interface{ Fatalf(string, ...any) }, scheme *ark.Scheme, text string) *stele.SyntaxError {
	id, err := scheme.Parse(text)
	syntax, ok := errors.AsType[*stele.SyntaxError](err)
	if !ok || !errors.Is(err, stele.Invalid) {
		t.Fatalf("Parse(%q) = %v, %v; want a syntax error", text, id, err)
	}
	return syntax
}

func TestSuggestions(t *testing.T) {
	for text, want := range map[string]string{
		"ark:12148/cb19128669t":                       "ark:12148/cb11928669t", // swapped
		"https://n2t.net/ark:/12148/cb11928669x?info": "ark:12148/cb11928669t", // wrong check character
		"ark:/12148/cb1-l9286-69t/f1.item":            "ark:12148/cb11928669t/f1.item",
		"ark:12148/btv1b8449961v":                     "ark:12148/btv1b8449691v",
		"ark:12148/bpt6k5834031m":                     "ark:12148/bpt6k5834013m",
		"ark:13960/t3610x1d2":                         "ark:13960/t3610x12d",
	} {
		got := syntaxError(t, ark.New(), text).Suggestions
		if !slices.Contains(got, want) {
			t.Errorf("%q: suggestions %q, want %q among them", text, got, want)
		}
	}
	if got := syntaxError(t, ark.New(), "ark:12345").Suggestions; got != nil {
		t.Errorf("suggestions where no check character shows a mistake: %q", got)
	}
}

// Every suggestion is an identifier in canonical form under the same shoulder,
// also where names hold signs that a repair could tear.
func TestSuggestionsAreValid(t *testing.T) {
	scheme := ark.New(ark.WithChecked(ark.Checked{Shoulder: "12345/x"}, ark.Checked{Shoulder: "12345/xb", Alone: true}))
	rapid.Check(t, func(t *rapid.T) {
		text := "ark:12345/x" + rapid.StringMatching(`(b|c|%2[0-9A-F]|[0-9a-z=~]){1,12}(/[a-z]{1,3}|\.v1)?`).Draw(t, "name")
		if _, err := scheme.Parse(text); err == nil {
			return
		}
		for _, s := range syntaxError(t, scheme, text).Suggestions {
			if id, err := scheme.Parse(s); err != nil || id.String() != s || !strings.HasPrefix(s, "ark:12345/x") {
				t.Fatalf("%q: suggestion %q gives %q, %v", text, s, id, err)
			}
		}
	})
}

// One mistake in a name under a checked shoulder is noticed, and what was meant
// is among the suggestions.
func TestMistakesAreRepaired(t *testing.T) {
	scheme := ark.New()
	template, err := mint.ParseTemplate("cb.rddddddddk")
	if err != nil {
		t.Fatal(err)
	}
	total, _ := template.Total()
	rapid.Check(t, func(t *rapid.T) {
		right, err := template.Name("", rapid.Uint64Range(0, total-1).Draw(t, "n"), 0)
		if err != nil {
			t.Fatalf("%v", err)
		}
		i := rapid.IntRange(2, len(right)-2).Draw(t, "i")
		c := rapid.SampledFrom([]byte(mint.Betanumeric+"lo")).Draw(t, "c")
		for _, wrong := range []string{
			right[:i] + string(rune(c)) + right[i+1:],
			right[:i] + right[i+1:i+2] + right[i:i+1] + right[i+2:],
		} {
			if wrong == right || mint.Checked(wrong) { // an o counts like a 0
				continue
			}
			got := syntaxError(t, scheme, "ark:/12148/"+wrong).Suggestions
			if !slices.Contains(got, "ark:12148/"+right) {
				t.Fatalf("%q for %q: suggestions %q", wrong, right, got)
			}
		}
	})
}

// A long name is refused without a long list of what it may have been.
func TestSuggestionsAreBounded(t *testing.T) {
	got := syntaxError(t, ark.New(), "ark:12148/cb"+strings.Repeat("14", 2000)).Suggestions
	if len(got) > 32 {
		t.Errorf("%d suggestions", len(got))
	}
}

func TestLongestShoulderCounts(t *testing.T) {
	scheme := ark.New(ark.WithChecked(
		ark.Checked{Shoulder: "12345/x"},
		ark.Checked{Shoulder: "12345/xf9", Alone: true},
		ark.Checked{Shoulder: "12345/xf"},
	))
	name := "xf93gt2"
	alone := name + string(rune(mint.CheckChar(name)))
	full := name + string(rune(mint.CheckChar("12345/"+name)))
	if id, err := scheme.Parse("ark:12345/" + alone); err != nil {
		t.Errorf("%v, %v", id, err)
	}
	if id, err := scheme.Parse("ark:12345/" + full); err == nil {
		t.Errorf("%v: the shorter shoulder's rule was taken", id)
	}
	for _, free := range []string{"ark:12345/y93gt2q", "ark:99999/xf93gt2x", "ark:12345/x"} {
		if id, err := scheme.Parse(free); err != nil {
			t.Errorf("%v, %v: no rule is for it", id, err)
		}
	}
}

// Real names under the default shoulders, as catalogues and public code cite
// them. If one fails, its shoulder must leave the list.
func TestDefaultShouldersInPublicUse(t *testing.T) {
	for shoulder, names := range map[string]string{
		"12148/cb": `11928669t 11907966z 16462208q 12011248f 11910868w 45295904f 119367821 12115867h 120082823 119254833
			138970711 139817766 11930250k 13615969g 12228801p 13895278h 34087386n 350330441 328261098 308749370 34777112j
			32304699p 327033728 359748158 39782645k 450989938 46838232d 475687112 44496975d 43710471x 453946454 45023474z
			410407518 42328162f 40499435z 205486774 14571449q 12533159k 162377504 15020434p 12488688m 17740615v 16676218j`,
		"12148/bpt6k": `5834013m 279983 34565h 165680m 6254645z 2982c 6228238v 932364m 11620369 12401693 113565r 11767775
			1057560q 1040534s 1426047z 927127w 9907264 96916946 999266f 932715h 9764647w 9923506 716144h 73858n 7258`,
		"12148/btv1b": `8449691v 525174513 8415207g 9000761d 6930733g 6931954n 10500001g 6000517p 9060633d 8600297j 531454753
			531737635 530293076 55001425m 53041280v 531776044 53009905z 52506706r 100331057 10544068q 10466041s 23006724`,
		"13960/t": `3610x12d 9184k94v 1pg22p71 3kw65n8k 44q88j4t 3rv1w56b 1kh1mc46 5gb3bf7f 5fc1jj24 53f4ms96 5z64fc55
			0rr3326c 05x3dc2n 0wp9vx13 02z7k303 05x2fk69 00z82c1q 08w3w21h 2h78660m 2891gn8g 2v41mn4r 88g8h13f 6sx67388`,
	} {
		for _, n := range strings.Fields(names) {
			text := "ark:" + shoulder + n
			if id, err := ark.New().Parse(text); err != nil || id.String() != text {
				t.Errorf("Parse(%q) = %v, %v", text, id, err)
			}
		}
	}
}

// The shoulder is what is registered, as far as it ends in the base name.
func TestPlace(t *testing.T) {
	s := ark.New()
	for _, tt := range []struct{ text, prefixes, want string }{
		{"ark:12345/x54xz321/s3", "", "x5"},
		{"ark:12345/x54xz321/s3", "ark:12345", "x5"},
		{"ark:12345/x54xz321/s3", "ark:12345/x ark:12345", "x"},
		{"ark:12345/x54xz321/s3", "ark:12345/x54xz321/s ark:12345/x54 ark:12345/x", "x54"},
		{"ark:12345/x54xz321/s3", "ark:12345/x54xz321", "x54xz321"},
		{"ark:13030/qtabcdef", "", "<nil>"},
		{"ark:13030/qtabcdef", "ark:13030/qt", "qt"},
	} {
		x, err := s.Explain(tt.text)
		if err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprint(x.Parts)
		got := s.Place(x, strings.Fields(tt.prefixes))
		if shoulder := fmt.Sprint(got.Parts.Get("shoulder")); shoulder != tt.want {
			t.Errorf("%s in %s: %s, want %s", tt.text, tt.prefixes, shoulder, tt.want)
		}
		if fmt.Sprint(x.Parts) != before {
			t.Errorf("%s: what was given is changed", tt.text)
		}
	}
}
