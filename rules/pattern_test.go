package rules

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"pgregory.net/rapid"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, text, want string // captures as a=1 b=2; "-" if it does not match
	}{
		{"HP_{n:digit,7}", "HP_0000118", "n=0000118"},
		{"HP_{n:digit,7}", "HP_000011", "-"},
		{"HP_{n:digit,7}", "HP_00001180", "-"},
		{"HP_{n:digit,7}", "hp_0000118", "-"},
		{"fixed", "fixed", ""},
		{"fixed", "fixed/", "-"},
		{"{x:any}", "", "-"},
		{"{x:any,0-}", "", "x="},
		{"{x:any}", "a/b c%20é", "x=a/b c%20é"},
		{"{dir:segment}/{file:segment}", "a/b.ttl", "dir=a file=b.ttl"},
		{"{dir:segment}/{file:segment}", "a/b/c", "-"},
		{"{dir:segment}/{file:segment}", "/b", "-"},
		{"{name:any}.ttl", "a.ttl/b.ttl", "name=a.ttl/b"}, // read from the right
		{"{name:any}.{ext=ttl|rdf|jsonld}", "x/y.jsonld", "name=x/y ext=jsonld"},
		{"{name:any}.{ext=ttl|rdf|jsonld}", "x/y.txt", "-"},
		{"{name:any}/v{n:digit}", "a/v1/v23", "name=a/v1 n=23"},
		{"{a:digit,1-3}{b:digit,2}", "12345", "a=123 b=45"},
		{"{a:digit,1-3}{b:digit,2}", "123", "a=1 b=23"},
		{"{a:digit,1-3}{b:digit,2}", "12", "-"},
		{"{l:letter}{n:digit}", "abc123", "l=abc n=123"},
		{"{l:letter}{n:digit}", "abc", "-"},
		{"doc{slash=/|}", "doc", "slash="},
		{"doc{slash=/|}", "doc/", "slash=/"},
		{"doc{slash=/|}", "doc//", "-"},
		{"{a=x|xy}z", "xyz", "a=xy"},
		{"{a=x|xy}z", "xz", "a=x"},
		{"{a=x|xy}yz", "xyyz", "a=xy"}, // the pivot: y may follow x
		{"{a=x|xy}yz", "xyz", "a=x"},
		{"a{{b}}{c:hex,2-4}", "a{b}ff0", "c=ff0"},
		{"{a:upper,1}{b:lower,1}{c:word,0-3}", "Xy_-z", "a=X b=y c=_-z"},
		{"{v:alnum,2-}-{w:alnum}", "ab12-c", "v=ab12 w=c"},
		{"{v:alnum,2-}-{w:alnum}", "a-c", "-"},
	} {
		p, err := ParsePattern(tt.pattern, false)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		if got := matched(p, tt.text); got != tt.want {
			t.Errorf("%s on %q: %q, want %q", tt.pattern, tt.text, got, tt.want)
		}
	}
}

func matched(p *Pattern, text string) string {
	found, ok := p.Match(text)
	if !ok {
		return "-"
	}
	var list []string
	for _, name := range p.Captures() {
		list = append(list, name+"="+found[name])
	}
	return strings.Join(list, " ")
}

func TestFold(t *testing.T) {
	p, err := ParsePattern("Hp_{kind=A|b}{x:lower}", true)
	if err != nil {
		t.Fatal(err)
	}
	if got := matched(p, "hP_BXy"); got != "kind=B x=Xy" {
		t.Errorf("%q", got)
	}
	// Letters of the other case may follow too, so x is ambiguous before Z.
	if _, err := ParsePattern("{x:lower}Z{y:lower}", true); stele.KindOf(err) != stele.Invalid {
		t.Errorf("%v", err)
	}
	if _, err := ParsePattern("{x:lower}Z{y:lower}", false); err != nil {
		t.Error(err)
	}
}

func TestBadPatterns(t *testing.T) {
	for _, tt := range []struct{ pattern, says string }{
		{"", "is missing"},
		{"{x}", "a capture is a name"},
		{"{X:digit}", `"X" can't be the name`},
		{"{:digit}", `"" can't be the name`},
		{"{id:digit}", "take another name"},
		{"{rest:any}", "take another name"},
		{"{a:digit}-{a:digit}", `two captures "a"`},
		{"{a:digits}", `"digits" is not a class of characters; use one of digit, lower`},
		{"{a:.*}", "is not a class"},
		{"{a:digit,}", "how many characters"},
		{"{a:digit,0}", "how many characters"},
		{"{a:digit,3-1}", "how many characters"},
		{"{a:digit,-3}", "how many characters"},
		{"{a:digit,03}", "how many characters"},
		{"{a:digit,99999}", "how many characters"},
		{"{a:digit", "not closed"},
		{"a}b", "closes nothing"},
		{"a\nb", "control characters"},
		{"{a=x|x}", `the word "x" is there twice`},
		{"{a=}", "there are no words"},
		{"{a:segment}{b:segment}", `where the captures "a" and "b" end is not clear`},
		{"{a:any}/{b:segment}-{c:any}", `where the captures "a" and "c" end`},
		{"{a:any}{b:digit}{c:any,1}", `"a" and "b"`},
		{"{a:digit,0-1}{b:digit,0-1}", "not clear"},
		{"{a=x|}{b:any}{c=y|xy}", "not clear"},
		{strings.Repeat("{a:digit,1}", 10), "two captures"},
		{"{a:digit,1}{b:digit,1}{c:digit,1}{d:digit,1}{e:digit,1}{f:digit,1}{g:digit,1}{h:digit,1}{i:digit,1}{j:digit,1}", "at most 9 captures"},
		{strings.Repeat("x", MaxPattern+1), "500 are the most"},
	} {
		_, err := ParsePattern(tt.pattern, false)
		if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.pattern, err, tt.says)
		}
	}
}

// goRegexp is the pattern as a regular expression of Go, which is the reference. Bytes that
// are not UTF-8 do not occur in names.
func goRegexp(t interface{ Fatal(...any) }, p *Pattern) *regexp.Regexp {
	flags := "s"
	if p.fold {
		flags = "si"
	}
	re, err := regexp.Compile("(?" + flags + ")^(?:" + p.Regexp(regexp.QuoteMeta) + ")$")
	if err != nil {
		t.Fatal(err)
	}
	return re
}

// asReference reports what the reference finds.
func asReference(p *Pattern, re *regexp.Regexp, text string) (map[string]string, bool) {
	m := re.FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	found, group := make(map[string]string), 1
	for i := range p.elements {
		if e := &p.elements[i]; e.capture >= 0 {
			found[p.names[e.capture]] = m[group]
			group += e.groups()
		}
	}
	return found, true
}

// anyPattern is a pattern of a few elements over a small alphabet, so that they meet often.
var anyPattern = rapid.Custom(func(t *rapid.T) string {
	var b strings.Builder
	for i := range rapid.IntRange(1, 5).Draw(t, "elements") {
		name := string(rune('a' + i))
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			b.WriteString(rapid.SampledFrom([]string{"a", "1", "/", "-", ".", "a1", "A", "/a", "{{", "}}"}).Draw(t, "text"))
		case 1, 2:
			b.WriteString("{" + name + ":" + rapid.SampledFrom(Classes()).Draw(t, "class"))
			b.WriteString(rapid.SampledFrom([]string{"", "", ",1", ",2", ",0-1", ",0-", ",1-2", ",2-"}).Draw(t, "lengths") + "}")
		case 3:
			words := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "a", "aa", "1", "a1", "/a", "A", "-"}), 1, 3, rapid.ID[string]).Draw(t, "words")
			b.WriteString("{" + name + "=" + strings.Join(words, "|") + "}")
		}
	}
	return b.String()
})

// Every pattern that is accepted matches what a regular expression of the same shape
// matches, with the same captures: it has one meaning.
func TestMatchIsThatOfRegularExpressions(t *testing.T) {
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		p, err := ParsePattern(anyPattern.Draw(t, "pattern"), rapid.Bool().Draw(t, "fold"))
		if err != nil {
			return
		}
		accepted++
		re := goRegexp(t, p)
		longest := goRegexp(t, p)
		longest.Longest()
		for range 20 {
			text := rapid.StringOfN(rapid.SampledFrom([]rune("aA1/-.{}")), 0, 7, -1).Draw(t, "text")
			if samples := p.samples(); len(samples) > 0 && rapid.Bool().Draw(t, "sample") {
				text = rapid.SampledFrom(samples).Draw(t, "sample text")
			}
			got, ok := p.Match(text)
			for _, reference := range []*regexp.Regexp{re, longest} {
				want, should := asReference(p, reference, text)
				if ok != should || ok && !maps.Equal(got, want) {
					t.Fatalf("%q: %v %v, want %v %v by %s", text, ok, got, should, want, reference)
				}
			}
		}
	})
	if accepted == 0 {
		t.Error("no pattern was accepted")
	}
}

func FuzzPattern(f *testing.F) {
	for _, seed := range []string{"HP_{n:digit,7}", "{name:any}.{ext=ttl|rdf}", "{a:digit,1-3}{b:digit,2}", "a{{b}}", "{x:segment}/{y:any,0-}", "{a=x|xy}yz", "{", "}", "{a:", "{a=|"} {
		f.Add(seed, "HP_0000118", false)
		f.Add(seed, "x/y.ttl", true)
	}
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		p, err := ParsePattern(pattern, fold)
		if err != nil {
			if stele.KindOf(err) != stele.Invalid {
				t.Errorf("%q: %v", pattern, err)
			}
			return
		}
		found, ok := p.Match(text)
		for name, value := range found {
			if !strings.Contains(text, value) {
				t.Errorf("%q on %q: %s is %q", pattern, text, name, value)
			}
		}
		if ok && len(found) != len(p.Captures()) {
			t.Errorf("%q on %q: %v", pattern, text, found)
		}
	})
}

// TestPatternBytes: a pattern that is not text is refused, since its document could not say it.
func TestPatternBytes(t *testing.T) {
	if _, err := ParsePattern("x{a=1|\xff}", false); err == nil {
		t.Error("it is a pattern")
	}
}
