package resolver

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// targets makes N2L targets of descriptions such as "audio/wav pt-BR 1 2": type
// and language (- for none), order and preference. The URL is the description.
func targets(descriptions ...string) (list []stele.Target) {
	for _, d := range descriptions {
		t := stele.Target{Service: stele.N2L, URL: d}
		var media, language string
		fmt.Sscan(d, &media, &language, &t.Order, &t.Preference)
		t.Type, t.Language = strings.Trim(media, "-"), strings.TrimPrefix(language, "-")
		list = append(list, t)
	}
	return list
}

func urls(list []candidate) (urls []string) {
	for _, c := range list {
		urls = append(urls, c.target.URL)
	}
	return urls
}

func accept(t testing.TB, header string) []Preference {
	t.Helper()
	list, err := ParseAccept(header)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRank(t *testing.T) {
	// The thesis's worked example, and a target that does not say what it is.
	paradisec := []string{"text/html", "audio/wav", "audio/mpeg", "-"}
	for _, tt := range []struct {
		targets  []string
		accept   string
		language string
		want     string // joined with commas
	}{
		{paradisec, "", "", "text/html,audio/wav,audio/mpeg,-"},
		{paradisec, "audio/mpeg", "", "audio/mpeg,audio/wav,-,text/html"},
		{[]string{"text/html", "audio/wav"}, "audio/mpeg", "", "audio/wav,text/html"},
		{paradisec, "video/mp4", "", "-,text/html,audio/wav,audio/mpeg"},
		{paradisec, "*/*", "", "text/html,audio/wav,audio/mpeg,-"},
		{paradisec, "audio/*", "", "audio/wav,audio/mpeg,-,text/html"},
		{paradisec, "audio/mpeg, */*", "", "audio/mpeg,text/html,audio/wav,-"},
		{paradisec, "audio/mpeg;q=0.2, text/*;q=0.9", "", "text/html,audio/mpeg,audio/wav,-"},
		{paradisec, "audio/mpeg;q=0.5, text/html;q=0.501", "", "text/html,audio/mpeg,audio/wav,-"},
		{paradisec, "text/html;q=0, */*;q=0.1", "", "audio/wav,audio/mpeg,-,text/html"},
		{paradisec, "audio/*;q=0", "", "-,text/html,audio/wav,audio/mpeg"},
		{paradisec, "audio/x;q=0.5, text/plain;q=0.6", "", "text/html,audio/wav,audio/mpeg,-"}, // similar ones, by weight
		{paradisec, "AUDIO/MPEG;q=0.1", "", "audio/mpeg,audio/wav,-,text/html"},

		// What was asked for comes before what the owner prefers, and only then order
		// and preference count.
		{[]string{"a/b - 1 1", "a/c - 9 9"}, "a/c", "", "a/c - 9 9,a/b - 1 1"},
		{[]string{"a/b - 2 1", "a/b - 1 2", "a/b - 1 1"}, "a/b", "", "a/b - 1 1,a/b - 1 2,a/b - 2 1"},
		{[]string{"- - 2 1", "a/b - 1 2", "x/y - 1 1"}, "", "", "x/y - 1 1,a/b - 1 2,- - 2 1"},

		// Parameters (RFC 9110's table of weights).
		{[]string{"text/html", "text/plain;format=fixed", "image/jpeg", "text/plain", "text/plain;format=flowed"},
			"text/*;q=0.3, text/plain;q=0.7, text/plain;format=flowed, text/plain;format=fixed;q=0.4, */*;q=0.5", "",
			"text/plain;format=flowed,text/plain,image/jpeg,text/plain;format=fixed,text/html"},
		{[]string{"text/html", "application/ld+json"}, `application/ld+json;profile="x y", */*;q=0.1`, "", "application/ld+json,text/html"},
		{[]string{"a/b;c=1", "a/b;c=2"}, `a/b;c="2"`, "", "a/b;c=2,a/b;c=1"},

		// Languages come after types.
		{[]string{"a/b en", "a/b pt-BR", "a/b", "a/b pt"}, "", "pt", "a/b pt-BR,a/b pt,a/b,a/b en"},
		{[]string{"a/b en", "a/b pt-PT", "a/b", "a/b pt"}, "", "pt-BR", "a/b pt,a/b,a/b en,a/b pt-PT"},
		{[]string{"a/b en", "a/b pt"}, "", "pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7", "a/b pt,a/b en"},
		{[]string{"a/b en", "a/b de", "a/b fr"}, "", "de, *;q=0.5, en;q=0", "a/b de,a/b fr,a/b en"},
		{[]string{"a/b pt", "a/b ptx"}, "", "ptx", "a/b ptx,a/b pt"},
		{[]string{"a/b en", "a/c de"}, "a/b", "de", "a/b en,a/c de"},
		{[]string{"a/b en 1 1", "a/b de 2 2"}, "", "de", "a/b de 2 2,a/b en 1 1"},
	} {
		languages, err := ParseAcceptLanguage(tt.language)
		if err != nil {
			t.Fatal(err)
		}
		q := Request{Service: stele.N2L, Accept: accept(t, tt.accept), Languages: languages}
		if got := strings.Join(urls(rank(nil, targets(tt.targets...), &q, false, nil)), ","); got != tt.want {
			t.Errorf("%q for %q, %q:\n got %s\nwant %s", tt.targets, tt.accept, tt.language, got, tt.want)
		}
	}
}

func TestFit(t *testing.T) {
	r := newRegistry(t, Options{})
	r.to("ark:12345/x1", stele.Target{Service: stele.N2L, URL: "https://example.org/", Type: "text/html"})
	r.to("ark:12345/x2", page("https://example.org/"))
	for _, tt := range []struct {
		name, accept string
		want         Fit
	}{
		{"ark:12345/x1", "", Asked},
		{"ark:12345/x1", "text/html;q=0.1", Asked},
		{"ark:12345/x1", "text/plain", Similar},
		{"ark:12345/x2", "text/plain", Unstated},
		{"ark:12345/x1", "a/b", Different},
		{"ark:12345/x1", "*/*, text/html;q=0", Refused},
	} {
		if res := r.resolve(Request{ID: r.id(tt.name), Accept: accept(t, tt.accept)}); res.Fit != tt.want {
			t.Errorf("%s for %q: %s, want %s", tt.name, tt.accept, res.Fit, tt.want)
		}
	}
}

func TestProtocols(t *testing.T) {
	r := newRegistry(t, Options{})
	r.to("ark:12345/x1", page("http://example.org/"), page("HTTPS://example.org/"), page("ftp://example.org/"))
	for _, tt := range []struct {
		protocols []string
		only      bool
		want      string
	}{
		{nil, false, "http://example.org/ HTTPS://example.org/ ftp://example.org/"},
		{[]string{"ftp"}, false, "ftp://example.org/ http://example.org/ HTTPS://example.org/"},
		{[]string{"https", "ftp"}, false, "HTTPS://example.org/ ftp://example.org/ http://example.org/"},
		{[]string{"https", "ftp"}, true, "HTTPS://example.org/ ftp://example.org/"},
		{[]string{"rtsp"}, true, "not found"},
		{nil, true, "not found"},
	} {
		var got []string
		res, err := r.Resolve(t.Context(), Request{ID: r.id("ark:12345/x1"), Protocols: tt.protocols, OnlyProtocols: tt.only})
		for _, target := range res.Targets {
			got = append(got, target.URL)
		}
		if err != nil {
			got = []string{stele.KindOf(err).String()}
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%q, only these: %t: %s, want %s", tt.protocols, tt.only, text, tt.want)
		}
	}
}

// Targets of different types or languages and equal order stand as the record lists
// them; only mirrors, of one type and language, change places. A client that accepts
// anything is not sent to a page today and to a file tomorrow.
func TestRandomIsForMirrors(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	list := targets("a/b en 1 1", "a/c en 1 1", "a/b de 1 1", "a/b en 1 1", "- - 1 1")
	for i := range list {
		list[i].URL = fmt.Sprint(i)
	}
	count := make(map[string]int)
	for range 200 {
		for _, header := range []string{"", "*/*"} {
			q := &Request{Service: stele.N2L, Accept: accept(t, header)}
			count[strings.Join(urls(rank(nil, list, q, false, source.IntN)), " ")]++
		}
	}
	if len(count) != 2 || count["0 1 2 3 4"] < 100 || count["3 1 2 0 4"] < 100 {
		t.Errorf("the orders are %v; only 0 and 3 are mirrors", count)
	}
}

// Mirrors share the load.
func TestRandom(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	list := targets("a/b - 1 1", "a/b - 1 1", "a/b - 1 1", "a/e - 2 1")
	for i := range list[:3] {
		list[i].URL = fmt.Sprint(i)
	}
	const rounds = 6000
	count := make(map[string]int)
	for range rounds {
		got := urls(rank(nil, list, &Request{Service: stele.N2L}, false, source.IntN))
		if got[3] != "a/e - 2 1" {
			t.Fatalf("a spare comes before others: %q", got)
		}
		count[strings.Join(got, " ")]++
	}
	if len(count) != 6 {
		t.Errorf("%d of 6 orders", len(count))
	}
	for order, n := range count {
		if n < rounds/6-200 || n > rounds/6+200 { // 7 standard deviations; the seed is fixed
			t.Errorf("%s comes %d times in %d", order, n, rounds)
		}
	}
}

// The ranking of any targets for any wishes is all of them, in an order that
// compare agrees with, and the same again from the same random source. compare
// is an order: it says the opposite of the opposite, and nothing in a circle.
func TestRankProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		media := rapid.SampledFrom([]string{"", "a/b", "a/c", "a/b;d=1", "a/b;d=2", "e/f"})
		language := rapid.SampledFrom([]string{"", "en", "pt", "pt-BR", "pt-PT"})
		weight := rapid.SampledFrom([]int{0, 1, 500, 1000})
		small := rapid.Uint16Range(0, 2)
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stele.Target {
			return stele.Target{Service: stele.N2L, Type: media.Draw(t, "type"), Language: language.Draw(t, "language"),
				Order: small.Draw(t, "order"), Preference: small.Draw(t, "preference")}
		}), 0, 12).Draw(t, "targets")
		for i := range list {
			list[i].URL = fmt.Sprintf("%s://example.org/%d", rapid.SampledFrom([]string{"http", "https", "ftp"}).Draw(t, "protocol"), i)
		}
		prefer := func(ranges ...string) []Preference {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Preference {
				return Preference{Range: rapid.SampledFrom(ranges).Draw(t, "range"), Q: weight.Draw(t, "weight")}
			}), 0, 4).Draw(t, "preferences")
		}
		q := Request{Service: stele.N2L, Accept: prefer("*/*", "a/*", "a/b", "a/b;d=1", "g/h"), Languages: prefer("*", "en", "pt", "pt-br"),
			Protocols: rapid.SliceOfN(rapid.SampledFrom([]string{"http", "ftp"}), 0, 2).Draw(t, "protocols")}
		seed := rapid.Uint64().Draw(t, "seed")
		random := func() func(int) int { return rand.New(rand.NewPCG(seed, 0)).IntN }

		ranked := rank(nil, list, &q, false, random())
		if got, again := urls(ranked), urls(rank(nil, list, &q, false, random())); !slices.Equal(got, again) {
			t.Fatalf("%q, and then %q", got, again)
		}
		byURL := func(a, b stele.Target) int { return cmp.Compare(a.URL, b.URL) }
		var back []stele.Target
		for _, c := range ranked {
			back = append(back, c.target)
		}
		slices.SortFunc(back, byURL)
		slices.SortFunc(list, byURL)
		if !slices.Equal(back, list) {
			t.Fatalf("%+v is ranked as %+v", list, back)
		}
		for i := range ranked {
			for j := range ranked {
				c := ranked[i].compare(&ranked[j])
				if c != -ranked[j].compare(&ranked[i]) || i < j && c > 0 || i == j && c != 0 {
					t.Fatalf("%s and %s: %d", ranked[i].target.URL, ranked[j].target.URL, c)
				}
			}
		}
	})
}
