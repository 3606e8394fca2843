package search

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stele-id/stele"
)

func wordsOf(text string) (list []string) {
	s := splitter{add: func(word []byte, _ bool, _ int) { list = append(list, string(word)) }}
	s.text(text)
	return list
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"On the rivers of Pará": "on the rivers of para",
		"Para\u0301":            "para", // a letter and its accent apart
		"ＰＡＲＡ ｱｲ":               "para アイ イ",
		"São João del-Rei":      "sao joao del rei",
		"Straße ŁÓDŹ Ærø œuvre Þórr İı": "strasse lodz aero oeuvre thorr ii",
		"Σίσυφος":                    "σισυφοσ",
		"Война и мир, ёлка":          "воина и мир елка",
		"שָׁלוֹם עֲלֵיכֶם":           "שלום עליכם",
		"مُحَمَّد":                   "محمد",
		"हिन्दी भाषा":                "हिन्दी भाषा", // the vowels stay
		"한국어 책":                      "한국어 책",
		"東京都":                        "東京 京都 都",
		"東京 tower都":                  "東京 京 tower 都",
		"がき・ひらがな":                    "がき き ひら らが がな な",
		"ark:12345/x5-4xz":           "ark 12345 x5 4xz",
		"１２ ½ x²":                    "12 1 2 x2",
		"co\u00adop zero\u200dwidth": "coop zerowidth",
		"\xff\xfea\xc3":              "a",
		"ﬁnd ﬀ":                      "find ff",
		"a_b's":                      "a b s",
	} {
		if got := strings.Join(wordsOf(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if long := wordsOf(strings.Repeat("a", 1000) + strings.Repeat("b", 1000)); len(long) != 1 || len(long[0]) != maxWord {
		t.Errorf("got %q", long)
	}
}

func TestURLText(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.org/a%20b/%c3%a9?q=x#y": "example.org/a b/é?q=x#y",
		"https://example.org/%zz%2":              "example.org/%zz%2",
		"example.org/a":                          "example.org/a",
	} {
		if got := urlText(url); got != want {
			t.Errorf("%q: got %q, want %q", url, got, want)
		}
	}
}

// TestMatch holds one record against queries.
func TestMatch(t *testing.T) {
	alias, err := stele.NewID("hdl", "10.5072/RIVERS")
	if err != nil {
		t.Fatal(err)
	}
	r := &stele.Record{
		ID: id("ark:12345/x54xz321"), Aliases: []stele.ID{alias}, State: stele.Active, By: "ann", Created: clock, Modified: clock.Add(time.Hour),
		Metadata: stele.Metadata{"what": "On the rivers of Pará, 東京都", "who": "Castro, M. A.", "when": "1999"},
		Targets:  []stele.Target{{Service: stele.N2L, URL: "https://archive.example.org:8443/items/42/Relat%C3%B3rio%20final.pdf"}},
	}
	for text, want := range map[string]bool{
		"": true, "rivers": true, "RIVERS PARA": true, "rivers castro": true, "rivers nowhere": false,
		"riv*": true, "ivers": false, "riv": false, "*": true, `"*"`: true, "r*": true,
		`"rivers of"`: true, `"of rivers"`: false, `"rivers of par*"`: true, `"the rivers" "M. A."`: true, `"pará castro"`: false,
		`rivers"of the"`: false, `"on the`: true, `on"the`: true,
		"ark:12345/x54xz321": true, "x54*": true, "12345 x54xz321": true, "hdl:10.5072/rivers": false, "10.5072/rivers": true,
		"https://archive.example.org": true, "archive.example.org": true, "example.archive.org": false, "example.org:8443/items/42": true,
		"https://archive.example.org:8443/items/42/Relat%C3%B3rio%20final.pdf": true, "relatorio": true, "https": false,
		"東京": true, "京都": true, "東京都": true, "東都": false, "京": true, "都": true, "大": false, "東京*": true,
		"1999": true, "199": false, "199*": true,
	} {
		q := &Query{Text: text}
		clauses, err := q.parse()
		if err != nil {
			t.Fatal(err)
		}
		if got := newMatcher(q, clauses).matches(r); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestParseLimits(t *testing.T) {
	for _, q := range []Query{
		{Text: strings.Repeat("a", MaxText+1)}, {Text: strings.Repeat("a ", MaxTerms+1)}, {Text: strings.Repeat("a-", MaxTerms+1)},
		{Host: strings.Repeat("a", MaxFilter+1)}, {By: strings.Repeat("a", MaxFilter+1)},
		{Namespace: stele.NamespaceKey{Scheme: "ark", Prefix: strings.Repeat("a", stele.MaxText+1)}},
	} {
		if _, err := q.parse(); stele.KindOf(err) != stele.Invalid {
			t.Errorf("%.60v: %v", q, err)
		}
	}
}

// FuzzQuery parses any text, and holds what was parsed against a record that has this text: it
// is found by its own words, if they are not too many.
func FuzzQuery(f *testing.F) {
	for _, text := range []string{
		"", "rivers", `"two words" riv*`, `"`, `""""`, "*", "a*b*", "https://example.org/a%20b?c=d#e", "東京都 京*", "\xff\xfe", "Straße\u0301\u0301", "ﬁ½",
		"ark:12345/x5", " \t\n", strings.Repeat("a ", 40), "\u0301", "e\u0301", "가나다", "がぎ", "\u200d", "İ", "x\u00ad",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := &Query{Text: text}
		clauses, err := q.parse()
		if err != nil {
			if stele.KindOf(err) != stele.Invalid {
				t.Fatal(err)
			}
			return
		}
		count := 0
		for _, c := range clauses {
			if len(c) == 0 {
				t.Fatal("an empty clause")
			}
			for _, term := range c {
				if term.word == "" || len(term.word) > maxWord {
					t.Fatalf("the word %q", term.word)
				}
				count++
			}
		}
		if count > MaxTerms {
			t.Fatalf("%d words", count)
		}
		for _, word := range wordsOf(text) {
			if again := wordsOf(word); utf8.ValidString(word) && len(word) < maxWord && !slices.Contains(again, word) {
				t.Fatalf("the word %q is read again as %q", word, again)
			}
		}
		if strings.ContainsAny(text, `"*%`) || strings.Contains(text, "://") || len(text) > maxWord {
			return
		}
		r := &stele.Record{ID: id("ark:1/x"), Metadata: stele.Metadata{"what": text}}
		if !newMatcher(q, clauses).matches(r) {
			t.Fatalf("%q is not found by its own words %v", text, clauses)
		}
	})
}

// TestSets stores and reads sets, and joins them as Pebble does.
func TestSets(t *testing.T) {
	var all []uint16
	for i := range blockSize {
		all = append(all, uint16(i))
	}
	lists := [][]uint16{nil, {0}, {65535}, {0, 65535}, all, all[1:], all[:65535], all[63:65], all[64:128]}
	for _, step := range []int{2, 3, 7, 8, 9, 17, 1000} {
		var list []uint16
		for i := step / 2; i < blockSize; i += step {
			list = append(list, uint16(i))
		}
		lists = append(lists, list, append(slices.Clone(list[:len(list)/2]), all[40000:]...)[:len(list)/2])
	}
	for _, list := range lists {
		if !slices.IsSorted(list) {
			t.Fatal("not in order")
		}
		stored := appendSet(nil, list)
		if len(stored) > 1+blockSize/8 || len(stored) > 1+3*len(list) {
			t.Errorf("%d bytes for %d members", len(stored), len(list))
		}
		var s set
		if !s.addStored(stored) || !slices.Equal(s.members(nil), list) || s.count() != len(list) || s.isEmpty() != (len(list) == 0) {
			t.Errorf("%d members are read as %d", len(list), s.count())
		}
		var down []uint16
		for at := s.before(blockSize); at >= 0; at = s.before(at) {
			down = append(down, uint16(at))
		}
		slices.Reverse(down)
		if !slices.Equal(down, list) {
			t.Errorf("%d members downwards are %d", len(list), len(down))
		}
		for _, other := range lists[:12] {
			m, err := merger.Merge([]byte{familyDead}, stored)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.MergeOlder(appendSet(nil, other)); err != nil {
				t.Fatal(err)
			}
			joined, _, err := m.Finish(true)
			if err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(list), other...)
			slices.Sort(want)
			var got set
			if !got.addStored(joined) || !slices.Equal(got.members(nil), slices.Compact(want)) {
				t.Fatalf("%d and %d members give %d", len(list), len(other), got.count())
			}
		}
	}
	for _, damaged := range []string{"", "\x03", "\x01abc", "\x00\xff\xff\x04", "\x00\x80", "\x02\x01", "\x02\x00\xff\xff\x07", "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"} {
		var s set
		if s.addStored([]byte(damaged)) {
			t.Errorf("%q is read", damaged)
		}
	}
}

func TestDates(t *testing.T) {
	day := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, tt := range []struct{ from, before, want string }{
		{"2026-11-16T20:00:00Z", "2026-11-16T20:00:01Z", "20261116"},
		{"2026-11-16T20:00:00Z", "2026-11-16T20:00:00Z", "20261116"},
		{"2026-12-30T20:00:00Z", "2029-02-03T00:00:00Z", "20261230 20261231 2027 2028 202901 20290201 20290202"},
		{"2026-11-16T23:00:00-03:00", "2026-11-17T03:00:00Z", "20261117"},
	} {
		got, ok := datesWithin(day(tt.from), day(tt.before))
		if !ok || strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
	for _, span := range [][2]time.Time{{}, {clock, {}}, {{}, clock}, {clock, clock.AddDate(300, 0, 0)}} {
		if _, ok := datesWithin(span[0], span[1]); ok {
			t.Errorf("%v is asked of the index", span)
		}
	}
}

// TestPatience: a search says how far the index is if it can't wait for it.
func TestPatience(t *testing.T) {
	w := newWorld(t, 0)
	w.open(t)
	defer w.index.Close()
	w.put(t, &stele.Record{ID: id("ark:1/a"), State: stele.Active, Metadata: stele.Metadata{"what": "rio"}})
	if got := w.find(t, Query{Text: "rio", Limit: 9}, everything); len(got) != 1 {
		t.Fatalf("an acknowledged write is not found: %q", got)
	}
	w.put(t, &stele.Record{ID: id("ark:1/b"), State: stele.Active, Metadata: stele.Metadata{"what": "rio"}})
	w.index.patience = time.Millisecond
	if err := w.index.take(t.Context()); err != nil { // so that the index can't follow
		t.Fatal(err)
	}
	page, err := w.index.Find(context.Background(), &Query{Text: "rio", Limit: 9}, everything)
	<-w.index.turn
	w.index.patience = Patience
	if err != nil || len(page.Records) != 1 || page.Behind() != 1 || page.At.Change != 1 || page.Last != 2 {
		t.Errorf("got %+v, %v", page, err)
	}
	if got := w.find(t, Query{Text: "rio", Limit: 9}, everything); !slices.Equal(got, []string{"ark:1/b", "ark:1/a"}) {
		t.Errorf("got %q", got)
	}
}
