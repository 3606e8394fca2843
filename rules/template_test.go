package rules

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/all"
)

// ruleOf is a rule for all names with one template.
func ruleOf(pattern, template string) stele.Rule {
	return stele.Rule{Pattern: pattern, Targets: []stele.Target{{Service: stele.N2L, URL: template, Order: 100, Preference: 10}}}
}

// lead returns where a name leads in a namespace ark:12345/x with one rule.
func lead(t *testing.T, rule stele.Rule, rest, query string) (string, error) {
	t.Helper()
	set, problems := Compile(&stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x", Rules: []stele.Rule{rule}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	m, ok := set.Match("ark:12345/x" + rest)
	if !ok {
		t.Fatalf("%s does not match %q", rule.Pattern, rest)
	}
	return m.URL(0, "ark:12345/x"+rest, query, false)
}

func TestURL(t *testing.T) {
	for _, tt := range []struct{ pattern, template, rest, query, want string }{
		{"{a:any}", "https://h/{a}", "b/c d?e#f", "", "https://h/b/c%20d%3Fe%23f"},
		{"{a:any}", "https://h/?v={a}&w=1", "b&c=d+e;#", "", "https://h/?v=b%26c%3Dd%2Be%3B%23&w=1"},
		{"{a:any}", "https://h/p#{a}", "b#c", "q=1", "https://h/p?q=1#b%23c"},
		{"{a:any}", "https://h/p?x=1#{a}", "b", "q=1", "https://h/p?x=1&q=1#b"},
		{"{a:any}", "https://h/{a}", "b", "q=1&r=é", "https://h/b?q=1&r=%C3%A9"},
		{"{a:digit,2}{b:any}", "https://h/{b}/{a}{b:upper}/{b:lower}", "01xY", "", "https://h/xY/01XY/xy"},
		{"{a:any}", "https://h/?id={id}&r={rest}", "b%2Fc", "", "https://h/?id=ark:12345/xb%2Fc&r=b%2Fc"},
		{"{a:any}", "https://h/", "b", "", "https://h/"},
		{"{a:any}", "https://h/{a}", "v1..2", "", "https://h/v1..2"},
		{"{a:any}", "https://h/x/{a}", "b/../c", "", "https://h/x/b/../c"},
		{"{a:any}", "https://h/x/{a}", "é\r\n\x00", "", "https://h/x/%C3%A9%0D%0A%00"},

		// What climbs out of the template's path is refused.
		{"{a:any}", "https://h/x/{a}", "../c", "", ""},
		{"{a:any}", "https://h/x/{a}", "b/%2e%2E/..;/c", "", ""},
		{"{a:any}", "https://h/x/.{a}/c", "./../..", "", ""},
		{"{a:segment}", "https://h/x/{a}/y", "..", "", ""},
		{"{a:word}/{b:any}", "https://h/{a}/public/{b}", "acme/../../secret/x", "", ""},
		{"{a:word}/{b:any}", "https://h/{a}/public/{b}", "acme/%2e%2e/..;/secret/x", "", ""},
		{"{a:word}/{b:any}", "https://h/{a}/public/{b}", "acme/x/../y", "", "https://h/acme/public/x/../y"},
		{"{a:any}", "https://h/" + strings.Repeat("{a}", 100), strings.Repeat("b", 100), "", ""},
		{"{a:any}", "https://h/{a}", "b", strings.Repeat("q", 9000), ""},
	} {
		got, err := lead(t, ruleOf(tt.pattern, tt.template), tt.rest, tt.query)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s, %s on %.40q: %q, %v; want %q", tt.pattern, tt.template, tt.rest, got, err, tt.want)
		}
	}
}

func TestBadTemplates(t *testing.T) {
	for _, tt := range []struct{ template, says string }{
		{"", "is missing"},
		{"{a}", "must not stand in the protocol, host or port"},
		{"{a}://h/", "must not stand in the protocol"},
		{"https://{a}/", "must not stand in the protocol"},
		{"https://{a}.example.org/", "must not stand in the protocol"},
		{"https://example.org{a}", "must not stand in the protocol"},
		{"https://example.org:{a}/", "must not stand in the protocol"},
		{"https://example.org:80{a}/", "must not stand in the protocol"},
		{"https://u{a}@example.org/", "must not stand in the protocol"},
		{"https:{a}", "must not stand in the protocol"},
		{"https:///{a}", "must not stand in the protocol"},
		{"//evil.example/{a}", "must not stand in the protocol"},
		{"/{a}", "must not stand in the protocol"},
		{"javascript:alert({a})", "must not stand in the protocol"},
		{"javascript://h/%0A{a}", "does not begin with a protocol that is allowed"},
		{"data://h/{a}", "does not begin with a protocol that is allowed"},
		{"https://u:p@h/{a}", "user's name or password"},
		{"https://h\\evil.example/{a}", "in its host"},
		{"https://h/\r\nX: {a}", "can't stand in a URL"},
		{"https://h/{b}", `no capture "b"`},
		{"https://h/{a:title}", "lower or upper"},
		{"https://h/{a", "not closed"},
		{"https://h/a}", "can't stand in a URL"},
		{"https://h/#{a}#", "a second #"},
		{"https://h/" + strings.Repeat("x", stele.MaxURL), "2000 are the most"},
	} {
		p, err := ParsePattern("{a:any}", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = p.ParseTemplate(tt.template); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%.60s: %v, want %q", tt.template, err, tt.says)
		}
	}
}

// A template that slipped through the reader would be found by what a parser of URLs sees.
func TestVerifyFindsHosts(t *testing.T) {
	loose := &Template{start: "https://h", body: 2, pieces: []piece{{text: "https://h", source: ownText}, {source: wholeRest}}}
	if err := loose.verify(); err == nil {
		t.Error("a capture right after the host is not found")
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"https://h/{a}", "https://h/?x={a}#{a:upper}", "https://h?{a}", "https://{a}/", "https://h:80/{id}/{rest}", "//{a}", "https://h/{a}/../{b}"} {
		for _, rest := range hostile {
			f.Add(seed, rest, "q=1")
		}
	}
	p, err := ParsePattern("{a:any,0-}", false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, template, rest, query string) {
		x, err := p.ParseTemplate(template)
		if err != nil {
			if stele.KindOf(err) != stele.Invalid {
				t.Errorf("%q: %v", template, err)
			}
			return
		}
		var at spans
		if !p.match(rest, &at) {
			return
		}
		made, err := x.url(&values{id: "ark:12345/" + rest, rest: rest, at: &at}, query)
		if err != nil {
			return
		}
		before, err := url.Parse(x.start)
		if err != nil {
			t.Fatalf("%q: %v", x.start, err)
		}
		after, err := url.Parse(made)
		if err != nil || after.Scheme != before.Scheme || after.Host != before.Host || after.User != nil {
			t.Errorf("%q with %q: %q, %v", template, rest, made, err)
		}
		if strings.ContainsAny(made, "\r\n\x00 ") {
			t.Errorf("%q with %q: %q", template, rest, made)
		}
	})
}

func schemes(t *testing.T) *stele.Schemes {
	t.Helper()
	s, err := all.New(all.Config{PURLHosts: []string{"purl.obolibrary.org"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
