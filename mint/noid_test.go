package mint

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

func mustTemplate(t testing.TB, text string) Template {
	t.Helper()
	tmpl, err := ParseTemplate(text)
	if err != nil {
		t.Fatalf("ParseTemplate(%q): %v", text, err)
	}
	return tmpl
}

func mustName(t interface{ Fatalf(string, ...any) }, tmpl Template, authority string, n, seed uint64) string {
	name, err := tmpl.Name(authority, n, seed)
	if err != nil {
		t.Fatalf("%s: name %d: %v", tmpl, n, err)
	}
	return name
}

func TestParseTemplate(t *testing.T) {
	for text, total := range map[string]uint64{
		".rd":                               10,
		".rddd":                             1000,
		".reedeedk":                         29 * 29 * 10 * 29 * 29 * 10,
		"bc.reed":                           29 * 29 * 10,
		"x5.sdd":                            100,
		"btv1b.sek":                         29,
		".zd":                               0,
		".zeeddk":                           0,
		"0.seeeeeeeeeee":                    12200509765705829,
		".sdddddddddddddddddddk":            10000000000000000000,
		".z" + strings.Repeat("d", 200):     0,
		strings.Repeat("b", 240) + ".seddk": 2900,
	} {
		tmpl := mustTemplate(t, text)
		if got := tmpl.String(); got != text {
			t.Errorf("%q is written %q", text, got)
		}
		n, bounded := tmpl.Total()
		if n != total || bounded != (total > 0) {
			t.Errorf("%q has %d names (bounded: %v), want %d", text, n, bounded, total)
		}
		if again := mustTemplate(t, tmpl.String()); again != tmpl {
			t.Errorf("%q: %v != %v", text, again, tmpl)
		}
	}
}

func TestParseTemplateRefuses(t *testing.T) {
	for text, want := range map[string]struct {
		pos    int
		reason string
	}{
		"":                         {0, "the dot is missing"},
		"reedeedk":                 {8, "the dot is missing"},
		".":                        {1, "begins with r"},
		".k":                       {1, "begins with r"},
		".dd":                      {1, "begins with r"},
		".Rdd":                     {1, "begins with r"},
		".r":                       {2, "at least one"},
		".rk":                      {2, "at least one"},
		".rkd":                     {2, "'k'"},
		".rdxd":                    {3, "'x'"},
		".rddkk":                   {4, "'k'"},
		".rd d":                    {3, "' '"},
		".rd.d":                    {3, "'.'"},
		"bc.rdе":                   {5, "looks like 'e'"},
		".rd\xff":                  {3, "none of them"},
		"al.rd":                    {0, "'a'"},
		"bl.rd":                    {1, "'l'"},
		"B.rd":                     {0, "'B'"},
		"b-c.rd":                   {1, "'-'"},
		"с.rd":                     {0, "looks like 'c'"},
		"13030/.rd":                {5, "'/'"},
		".sdddddddddddddddddddd":   {21, "more names"},
		".reeeeeeeeeeeeee":         {15, "more names"},
		strings.Repeat("b", 1<<20): {255, "at most 255"},
	} {
		tmpl, err := ParseTemplate(text)
		syntax, ok := errors.AsType[*stele.SyntaxError](err)
		if !ok || !errors.Is(err, stele.Invalid) {
			t.Errorf("ParseTemplate(%.40q) = %v, %v; want a syntax error", text, tmpl, err)
			continue
		}
		if syntax.Pos != want.pos || !strings.Contains(syntax.Reason.Error(), want.reason) {
			t.Errorf("ParseTemplate(%.40q): %v; want %q at %d", text, err, want.reason, want.pos)
		}
		if tmpl != (Template{}) {
			t.Errorf("ParseTemplate(%.40q): both a template and an error", text)
		}
	}
}

// Each small space comes whole, each name once, in every order.
func TestNamesEnumerate(t *testing.T) {
	for _, text := range []string{".rd", ".rdk", ".re", ".rede", ".reedk", ".reedeed", ".sdd", "x5.sedk", "bc.reed", "bc.rdeek"} {
		tmpl := mustTemplate(t, text)
		total, _ := tmpl.Total()
		seeds := []uint64{0, 1, 7, math.MaxUint64}
		if total > 1e5 {
			total, seeds = 1e5, seeds[:1] // a part of a larger one
		}
		for _, seed := range seeds {
			enumerate(t, tmpl, total, seed)
		}
	}
}

func enumerate(t *testing.T, tmpl Template, total, seed uint64) {
	t.Helper()
	const naan = "12345"
	seen := make(map[string]bool, total)
	var names []string
	for n := range total {
		name := mustName(t, tmpl, naan, n, seed)
		if seen[name] {
			t.Fatalf("%s, seed %d: %q comes twice", tmpl, seed, name)
		}
		seen[name] = true
		names = append(names, name)
		if tmpl.check && !Checked(naan+"/"+name) {
			t.Fatalf("%s, seed %d: %q is not Checked", tmpl, seed, name)
		}
		if back, ok := tmpl.Index(naan, name, seed); !ok || back != n {
			t.Fatalf("%s, seed %d: %q is name %d, but found at %d, %v", tmpl, seed, name, n, back, ok)
		}
	}
	if sorted := slices.IsSorted(names); sorted != (tmpl.order != 'r') {
		t.Errorf("%s, seed %d: sorted: %v", tmpl, seed, sorted)
	}
	if whole, _ := tmpl.Total(); total < whole {
		return
	}
	for _, n := range []uint64{total, total + 1, math.MaxUint64} {
		if name, err := tmpl.Name(naan, n, seed); !errors.Is(err, stele.Exhausted) || name != "" {
			t.Errorf("%s: name %d: %q, %v; want an exhausted space", tmpl, n, name, err)
		}
	}
}

func TestUnboundedGrows(t *testing.T) {
	for _, c := range []struct {
		text string
		want map[uint64]string
	}{
		{".zd", map[uint64]string{0: "0", 9: "9", 10: "10", 99: "99", 100: "100", math.MaxUint64: "18446744073709551615"}},
		{"b.zddd", map[uint64]string{0: "b000", 999: "b999", 1000: "b1000", 12345: "b12345"}},
		{".zed", map[uint64]string{0: "00", 289: "z9", 290: "100", 8409: "zz9", 8410: "1000"}},
		{".zde", map[uint64]string{289: "9z", 290: "100", 319: "110"}},
	} {
		tmpl := mustTemplate(t, c.text)
		for n, want := range c.want {
			if got := mustName(t, tmpl, "", n, 0); got != want {
				t.Errorf("%s: name %d is %q, want %q", tmpl, n, got, want)
			}
			if back, ok := tmpl.Index("", want, 0); !ok || back != n {
				t.Errorf("%s: %q is name %d, %v; want %d", tmpl, want, back, ok, n)
			}
		}
	}
	tmpl := mustTemplate(t, "x5.zedk")
	seen := make(map[string]bool)
	for n := range uint64(20000) {
		name := mustName(t, tmpl, "12345", n, n) // the seed means nothing here
		if seen[name] || !Checked("12345/"+name) {
			t.Fatalf("%s: %q comes twice or is not Checked", tmpl, name)
		}
		seen[name] = true
		if back, ok := tmpl.Index("12345", name, 0); !ok || back != n {
			t.Fatalf("%s: %q is name %d, but found at %d, %v", tmpl, name, n, back, ok)
		}
	}
}

func TestIndexRefuses(t *testing.T) {
	for text, names := range map[string][]string{
		".sdd":  {"", "1", "001", "1b", "1l", "1 ", "b1", "-1", "٣", "12k", strings.Repeat("1", 1<<20)},
		"b.sd":  {"b", "1", "c1", "b12", "B1"},
		".zdd":  {"", "1", "012", "000", "18446744073709551616", "99999999999999999999999"},
		".sddk": {"", "0", "00", "123", "0000", "xxx"},
	} {
		tmpl := mustTemplate(t, text)
		for _, name := range names {
			if n, ok := tmpl.Index("12345", name, 0); ok {
				t.Errorf("%s: %.40q is taken for name %d", text, name, n)
			}
		}
	}
	var zero Template
	if _, ok := zero.Index("", "", 0); ok {
		t.Error("the zero template knows a name")
	}
	if name, err := zero.Name("", 0, 0); !errors.Is(err, stele.Invalid) {
		t.Errorf("the zero template makes %q, %v", name, err)
	}
	if zero.String() != "" {
		t.Errorf("the zero template is written %q", zero)
	}
}

func drawTemplate(t *rapid.T) Template {
	text := rapid.StringMatching(`[0-9b-df-hjkmnp-tv-xz]{0,6}\.[rsz][de]{1,12}k?`).Draw(t, "template")
	tmpl, err := ParseTemplate(text)
	if err != nil {
		t.Fatalf("ParseTemplate(%q): %v", text, err)
	}
	return tmpl
}

func TestIndexInvertsName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tmpl := drawTemplate(t)
		authority := rapid.SampledFrom([]string{"", "12345", "b5488", "99999"}).Draw(t, "authority")
		seed := rapid.Uint64().Draw(t, "seed")
		last := uint64(math.MaxUint64)
		if total, bounded := tmpl.Total(); bounded {
			last = total - 1
		}
		n := rapid.Uint64Range(0, last).Draw(t, "n")
		name := mustName(t, tmpl, authority, n, seed)
		if back, ok := tmpl.Index(authority, name, seed); !ok || back != n {
			t.Fatalf("%s: %q is name %d, but found at %d, %v", tmpl, name, n, back, ok)
		}
		zone := strings.TrimPrefix(authority+"/"+name, "/")
		if tmpl.check && !Checked(zone) {
			t.Fatalf("%s: %q is not Checked", tmpl, zone)
		}
	})
}

// Whatever Index accepts is what Name gives.
func TestNameInvertsIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tmpl := drawTemplate(t)
		name := tmpl.prefix + rapid.StringMatching(`[0-9b-df-hjkmnp-tv-xzl]{0,14}`).Draw(t, "digits")
		if rapid.Bool().Draw(t, "checked") {
			name += string(rune(CheckChar(name)))
		}
		if n, ok := tmpl.Index("", name, 3); ok {
			if got := mustName(t, tmpl, "", n, 3); got != name {
				t.Fatalf("%s: %q is said to be name %d, which is %q", tmpl, name, n, got)
			}
		}
	})
}

// Names in use depend on these. If this test fails, the code is wrong, never the
// names.
func TestNamesNeverChange(t *testing.T) {
	for _, g := range []struct {
		text, authority string
		seed            uint64
		want            string
	}{
		{".reedeedk", "12345", 0, "mt7bn5r 8w3f29w hn9xd27 xt0z34g km6n078"},
		{".reedeedk", "12345", 1, "963v15q 6z93v5f sn6xf4f nx5t260 526vw6g"},
		{"x5.reeddeek", "99999", 20240229, "x5mh251sp x5fs0277v x5gg512k4 x5hq729mn x5mw34bd5"},
		{"cb.sddk", "", 0, "cb002 cb016 cb02b cb03g cb04m"},
		{"fk4.zeek", "b5488", 0, "fk400n fk4011 fk402d fk403s fk4045"},
	} {
		tmpl := mustTemplate(t, g.text)
		var got []string
		for n := range uint64(5) {
			got = append(got, mustName(t, tmpl, g.authority, n, g.seed))
		}
		if s := fmt.Sprint(got); s != "["+g.want+"]" {
			t.Errorf("%s, %q, seed %d:\n got %s\nwant [%s]", g.text, g.authority, g.seed, s, g.want)
		}
	}
}

func TestNameAllocatesOnce(t *testing.T) {
	tmpl := mustTemplate(t, "x5.reedeedk")
	n := testing.AllocsPerRun(100, func() {
		name := mustName(t, tmpl, "12345", 12345, 42)
		tmpl.Index("12345", name, 42)
	})
	if n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}

func BenchmarkName(b *testing.B) {
	for _, text := range []string{"x5.reedeedk", "x5.seedeedk", "x5.zeeddk"} {
		b.Run(text[3:], func(b *testing.B) {
			tmpl := mustTemplate(b, text)
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				mustName(b, tmpl, "12345", n%1e6, 42)
				n++
			}
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	tmpl := mustTemplate(b, "x5.reedeedk")
	name := mustName(b, tmpl, "12345", 12345, 42)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := tmpl.Index("12345", name, 42); !ok {
			b.Fatalf("%q is not found", name)
		}
	}
}
