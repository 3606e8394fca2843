package naptr

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/internal/dnsrr"
	"github.com/stele-id/stele/scheme/all"
)

func testCut(t testing.TB, scheme, prefix, zone, sep string, parts int) (*Mapping, *stele.Schemes) {
	t.Helper()
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return NewMapping(schemes, &stele.Namespace{Scheme: scheme, Prefix: prefix,
		Publication: stele.Publication{Zone: zone, Layout: stele.LayoutNames, Separator: sep, Parts: parts}}), schemes
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		scheme, prefix, sep string
		parts               int
		joint               string
		casing              Casing
	}{
		{"urn", "urn:paradisec", ":", 3, ":", CaseLower},
		{"urn", "urn:example", ":", 2, ":", CaseCounts},
		{"urn", "urn:example:Foo", "/", 1, ":", CaseCounts},
		{"urn", "urn:uuid", ":", 1, ":", CaseLower},
		{"urn", "urn:isbn", ":", 1, ":", CaseCounts}, // none of its names has letters to ask about
		{"urn", "urn:nbn:de", ":", 1, ":", CaseLower},
		{"ark", "ark:12345", "/", 1, "/", CaseCounts},
		{"ark", "ark:12345/x5", "/", 1, "", CaseCounts},
		{"hdl", "102.100.272/", "/", 1, "", CaseUpper},
	} {
		c, _ := testCut(t, test.scheme, test.prefix, "example.org.", test.sep, test.parts)
		if c.Joint != test.joint || c.Casing != test.casing {
			t.Errorf("%s: joint %q and casing %d, want %q and %d", test.prefix, c.Joint, c.Casing, test.joint, test.casing)
		}
	}
}

func TestOwner(t *testing.T) {
	c, _ := testCut(t, "urn", "urn:paradisec", "paradisec.example.", ":", 3)
	long := strings.Repeat("x", c.label)
	for _, test := range []struct{ id, want, reason string }{
		{"urn:paradisec:ab1:001:a", "a.001.ab1.paradisec.example.", ""},
		{"urn:paradisec:ab1:001:a.wav", "a.wav.001.ab1.paradisec.example.", ""},
		{"urn:paradisec:ab1:-1-:_", "_.-1-.ab1.paradisec.example.", ""},
		{"urn:paradisec:" + long + ":" + long + ":" + strings.Join([]string{long, long, long, long}, "."), strings.Join([]string{long, long, long, long, long, long}, ".") + ".paradisec.example.", ""},
		{"urn:paradisec:" + long + "x:1:1", "", "has 39 bytes"},
		{"urn:paradisec:a:b", "", "it has 2 parts"},
		{"urn:paradisec:a:b:c:d", "", "it has 4 parts"},
		{"urn:paradisec:a::c", "", "is empty"},
		{"urn:paradisec:a:b:c.", "", "is empty"},
		{"urn:paradisec:a:b.b:c", "", `'.' is not a letter`},
		{"urn:paradisec:a:b:1.2.3.4.5", "", "4 dots"},
		{"urn:paradisec:a:b:c%20d", "", `'%' is not a letter`},
		{"urn:paradisec:a:b:c/d", "", `'/' is not a letter`},
		{"urn:other:a:b:c", "", "does not begin with"},
	} {
		got, reason := c.Owner(test.id)
		if got != test.want || (reason == nil) != (test.reason == "") || reason != nil && !strings.Contains(reason.Error(), test.reason) {
			t.Errorf("%s: %q, %v; want %q, %q", test.id, got, reason, test.want, test.reason)
		}
		if len(got) > dnsrr.MaxNameText+1 {
			t.Errorf("%s: %q has %d bytes", test.id, got, len(got))
		}
	}
}

// TestOwnerLongZone tries zone names of all lengths: either names fit in the zone, or rule
// says why not.
func TestOwnerLongZone(t *testing.T) {
	for labels := 1; labels <= 125; labels += 4 {
		zone := strings.Repeat("z.", labels)
		c, _ := testCut(t, "urn", "urn:paradisec", zone, ":", 3)
		e, err := c.Rule()
		if err != nil {
			continue
		}
		part := strings.Repeat("a", c.label)
		id := "urn:paradisec:" + part + ":" + part + ":" + part + strings.Repeat("."+part, c.dots)
		name, reason := c.Owner(id)
		if reason != nil || len(name) > dnsrr.MaxNameText+1 {
			t.Errorf("zone of %d bytes: %s (%d bytes), %v", len(zone), name, len(name), reason)
		}
		if got, ok, err := e.Apply(id); err != nil || !ok || got != name {
			t.Errorf("zone of %d bytes: the rule gives %q, %v, %v", len(zone), got, ok, err)
		}
		if _, ok, _ := e.Apply(id + "a"); ok {
			t.Errorf("zone of %d bytes: the rule takes a name that does not fit", len(zone))
		}
	}
}

// TestOwnerProperties checks that the rewriting rule matches exactly the names that fit,
// and gives their owner names, and that the inverse gives the identifier.
func TestOwnerProperties(t *testing.T) {
	cases := []struct {
		scheme, prefix, sep string
		parts               int
	}{
		{"urn", "urn:paradisec", ":", 3}, {"urn", "urn:paradisec", "-", 2}, {"urn", "urn:paradisec", ".", 2},
		{"urn", "urn:paradisec", "_", 4}, {"urn", "urn:example", ":", 2}, {"urn", "urn:example:Foo", "/", 1},
		{"urn", "urn:paradisec", "!", 2}, {"urn", "urn:example", "*", 4}, {"hdl", "102.100.272/", "/", 1},
		{"hdl", "10.5072/", "/", 2}, {"hdl", "hdl:0.NA/", ".", 2}, {"purl", "https://purl.org/net/", "/", 2}, {"purl", "https://purl.org/obo/HP_", ":", 1},
	}
	rapid.Check(t, func(t *rapid.T) {
		test := rapid.SampledFrom(cases).Draw(t, "namespace")
		zone := rapid.SampledFrom([]string{"paradisec.example.", "x.", strings.Repeat("zone.", 20)}).Draw(t, "zone")
		schemes, err := all.New(all.Config{PURLHosts: []string{"purl.org"}})
		if err != nil {
			t.Fatal(err)
		}
		c := NewMapping(schemes, &stele.Namespace{Scheme: test.scheme, Prefix: test.prefix,
			Publication: stele.Publication{Zone: zone, Layout: stele.LayoutNames, Separator: test.sep, Parts: test.parts}})
		rule, err := c.Rule()
		if err != nil {
			t.Fatal(err)
		}
		part := rapid.StringMatching(`[-_a-zA-Z0-9]{0,45}|[a-z0-9.]{1,20}|[a-zA-Z:/%.]{1,5}`)
		parts := rapid.SliceOfN(part, test.parts, test.parts+1).Draw(t, "parts")
		if rapid.IntRange(0, 3).Draw(t, "more") > 0 {
			parts = parts[:test.parts]
		}
		text := test.prefix + c.Joint + strings.Join(parts, test.sep)
		name, reason := c.Owner(text)
		for _, applied := range asApplied(schemes, test.scheme, text) {
			got, ok, err := rule.Apply(applied)
			if err != nil || ok != (reason == nil) || ok && strings.ToLower(got) != name {
				t.Fatalf("%q: owner name %q (%v), and the rule %s gives %q, %v, %v for %q", text, name, reason, rule, got, ok, err, applied)
			}
		}
		if reason == nil {
			checkBack(t, c, schemes, text, name)
		}
	})
}

// asApplied returns a name as clients apply rules to it.
func asApplied(schemes *stele.Schemes, scheme, text string) (all []string) {
	list, rest, ok := schemes.URI(scheme, text)
	if !ok {
		return []string{text}
	}
	for _, s := range list {
		all = append(all, s+":"+rest)
	}
	return all
}

// checkBack looks whether the way back gives the identifier.
func checkBack(t *rapid.T, c *Mapping, schemes *stele.Schemes, text, name string) {
	rest, more, ok := c.Rest(name)
	if !ok || more || !strings.EqualFold(c.Prefix+c.Joint+rest, text) {
		t.Fatalf("%s: back to %q, %v, %v; want %q", name, rest, more, ok, text)
	}
	id, err := schemes.Parse(text)
	if err != nil || c.Casing == CaseCounts {
		return
	}
	if back, ok := c.Parse(schemes, rest); !ok || back != id {
		t.Fatalf("%s: back to %s, %v; want %s", name, back, ok, id)
	}
}

// TestOwnerMemory asks that the name of an owner is all that is made for it.
func TestOwnerMemory(t *testing.T) {
	c, schemes := testCut(t, "urn", "urn:paradisec", "paradisec.example.", ":", 3)
	id, err := schemes.Parse("urn:paradisec:AB1:001:A.wav")
	if err != nil {
		t.Fatal(err)
	}
	text := id.String()
	if n := testing.AllocsPerRun(100, func() { _, _ = c.Owner(text) }); n > 1 {
		t.Errorf("%v pieces of memory", n)
	}
}
