package purl_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/purl"
	"github.com/stele-id/stele/scheme/schemetest"
)

// scheme returns the scheme under test: the public resolvers and a local one.
func scheme(t testing.TB) *purl.Scheme {
	t.Helper()
	s, err := purl.New(append(purl.DefaultHosts(), "localhost:8080")...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var samples = schemetest.Samples{
	Canonical: map[string]string{
		"https://purl.org/dc/terms/title":           "https://purl.org/dc/terms/title",
		"http://purl.org/dc/terms/title":            "https://purl.org/dc/terms/title",
		"HTTP://PURL.ORG/dc/terms/title":            "https://purl.org/dc/terms/title",
		"https://purl.org./dc/":                     "https://purl.org/dc/",
		"http://purl.org:80/dc":                     "https://purl.org/dc",
		"https://purl.org:443/dc":                   "https://purl.org/dc",
		"https://purl.org:/dc":                      "https://purl.org/dc",
		"http://localhost:8080/a":                   "https://localhost:8080/a",
		"http://purl.oclc.org/OCLC/OLUC/32127398/1": "https://purl.oclc.org/OCLC/OLUC/32127398/1",
		"http://purl.obolibrary.org/obo/GO_0008150": "https://purl.obolibrary.org/obo/GO_0008150",
		"https://w3id.org/security/v1":              "https://w3id.org/security/v1",
		"http://purl.fdlp.gov/GPO/gpo1234":          "https://purl.fdlp.gov/GPO/gpo1234",
		"http://purl.org/net/a%2db%7Ec%2fd%c3%a9":   "https://purl.org/net/a-b~c%2Fd%C3%A9",
		"http://purl.org/net/a%20b":                 "https://purl.org/net/a%20b",
		"http://purl.org/net/%25%41":                "https://purl.org/net/%25A",
		"http://purl.org/net//a/":                   "https://purl.org/net//a/",
		"http://purl.org//net":                      "https://purl.org//net",
		"http://purl.org/!$&'()*+,;=:@-._~":         "https://purl.org/!$&'()*+,;=:@-._~",
		"http://purl.org/x/.../..a/a../.a":          "https://purl.org/x/.../..a/a../.a",
		"http://purl.org/dc/terms/?x=1#title":       "https://purl.org/dc/terms/",
		"http://purl.org/dc?":                       "https://purl.org/dc",
		"http://purl.org/dc?é#\"":                   "https://purl.org/dc",
		"http://purl.org/1/urn:a1:b":                "https://purl.org/1/urn:a1:b",
		"http://purl.org/hdlx/a":                    "https://purl.org/hdlx/a",
		"http://purl.org/a/hdl:10.1/2":              "https://purl.org/a/hdl:10.1/2",
		"http://purl.org/a/api":                     "https://purl.org/a/api",
	},
	Same: [][]string{
		{
			"https://purl.org/net/A~b", "http://purl.org/net/A~b", "https://PURL.org:443/net/A~b", "http://purl.org.:80/net/%41%7eb",
			"https://purl.org/n%65t/A~b?q#f",
		},
	},
	Distinct: []string{
		"https://purl.org/net/a", "https://purl.org/net/A", "https://purl.org/net/a/", "https://purl.org/net//a", "https://purl.org//net/a",
		"https://purl.net/net/a", "https://purl.com/net/a", "https://localhost:8080/net/a", "https://purl.org/net%2Fa", "https://purl.org/net/a%2B",
		"https://purl.org/net/a+",
	},
	Invalid: map[string]string{
		// Nothing is named.
		"https://purl.org": "nothing is named", "https://purl.org/": "nothing is named", "http://purl.org//": "nothing is named",
		"http://purl.org?a": "nothing is named", "http://purl.org#a": "nothing is named",
		// Dot segments.
		"http://purl.org/./a": "browsers remove", "http://purl.org/a/../b": "browsers remove", "http://purl.org/a/..": "browsers remove",
		"http://purl.org/a/%2e%2E/b": "browsers remove", "http://purl.org/.%2e": "browsers remove", "http://purl.org/..": "browsers remove",
		// User information.
		"https://a@purl.org/b": "user information", "https://a:b@purl.org/c": "user information", "https://@purl.org/c": "user information",
		// Characters.
		"http://purl.org/a b": "%20", "http://purl.org/é": "'é' (U+00E9) can't stand in a URL's path; if it belongs to the name, write it percent-encoded, %C3%A9",
		"http://purl.org/а": "looks like 'a'", "http://purl.org/a\\b": "%5C", "http://purl.org/a<b>": "%3C", "http://purl.org/a[b": "%5B",
		"http://purl.org/a|b": "%7C", "http://purl.org/a\"": "%22", "http://purl.org/a^": "%5E", "http://purl.org/a`": "%60", "http://purl.org/{a}": "%7B",
		"http://purl.org/%": "two hexadecimal", "http://purl.org/a%4": "two hexadecimal", "http://purl.org/%zz": "two hexadecimal",
		"http://purl.org/a%00": "control character U+0000", "http://purl.org/a%0D%0Ab": "control character U+000D", "http://purl.org/%7f": "control character",
		"http://purl.org/a\x00": "control character", "http://purl.org/\xff": "not UTF-8", "http://purl.org/a?\u202e": "bidirectional",
		"http://purl.org/a\u200b": "invisible",
		// The resolver's own.
		"http://purl.org/hdl/10.1/2": "resolver uses itself", "http://purl.org/doi": "resolver uses itself", "http://purl.org/IBI/a": "resolver uses itself",
		"http://purl.org/rep/a": "resolver uses itself", "http://purl.org/uri-res/N2L": "resolver uses itself", "http://purl.org/api/v1": "resolver uses itself",
		"http://purl.org/authority/": "resolver uses itself", "http://purl.org/healthz": "resolver uses itself", "http://purl.org/.well-known/x": "reserved for the resolver",
		"http://purl.org/.desk": "reserved for the resolver", "http://purl.org/.ezid/a": "reserved for the resolver", "http://purl.org/...": "reserved for the resolver",
		"http://purl.org/%2Elog/a": "reserved for the resolver",
		"http://purl.org/%61pi/v1": "resolver uses itself", "http://purl.org/.info": "reserved for the resolver",
		"http://purl.org/%61rk:12345/x": "resolver uses itself", "http://purl.org/a/%61rk:12345/x": "encoded mark", "http://purl.org/a/u%72n:a1:b": "encoded mark",
		"http://purl.org/h%64l:1/2": "resolver uses itself",
		// Size.
		"http://purl.org/" + strings.Repeat("a", 1<<20):                                 "at most 4096",
		"http://purl.org/" + strings.Repeat("a", stele.MaxText-len("http://purl.org/")): "at most 4096",
	},
	Foreign: []string{
		"purl.org/dc", "//purl.org/dc", "ftp://purl.org/dc", "purl:dc", "https:purl.org/dc", "https://", "https:///dc", "https://example.org/dc",
		"https://www.purl.org/dc", "https://purl.org.example/dc", "https://xpurl.org/dc", "https://purl.org@example.org/dc", "https://purl.orgx/dc",
		"https://purl.org:8080/dc", "http://purl.org:443/dc", "https://purl.org:80/dc", "https://purl.org:0443/dc", "https://localhost/a",
		"https://localhost:80800/a", "https://purl.org../dc", "https://рurl.org/dc", "https://purl%2Eorg/dc", "https://purl.org\\/dc", "https://[purl.org]/dc",
		"https://purl.org/ark:/12345/x", "https://purl.org/a/ARK:12345/x", "https://purl.org/ark%3A12345/x", "https://purl.org/urn:a1:b",
		"https://purl.org/a/urn:a1:b", "https://purl.org/uri-res/N2L?urn:a1:b", "https://purl.org/hdl:10.1/2", "https://purl.org/DOI:10.1/2",
		"https://purl.org/doi:", "https://example.org/this/is/not/there", "https://" + strings.Repeat("a", 1<<20),
	},
	Parents: map[string][]string{
		"http://purl.org/a": {"https://purl.org/"},
		"http://purl.org/net/a/b": {
			"https://purl.org/net/a/", "https://purl.org/net/a", "https://purl.org/net/", "https://purl.org/net", "https://purl.org/",
		},
		"http://purl.org/net/a/": {"https://purl.org/net/a", "https://purl.org/net/", "https://purl.org/net", "https://purl.org/"},
		"http://purl.org/net//b": {"https://purl.org/net//", "https://purl.org/net/", "https://purl.org/net", "https://purl.org/"},
		"http://purl.org//net":   {"https://purl.org//", "https://purl.org/"},
		"http://localhost:8080/a%2Fb/c": {
			"https://localhost:8080/a%2Fb/", "https://localhost:8080/a%2Fb", "https://localhost:8080/",
		},
	},
	Cuts: map[string][]string{
		"http://purl.org/obo/HP_1": {
			"https://purl.org/obo/HP_", "https://purl.org/obo/HP", "https://purl.org/obo/H", "https://purl.org/obo/",
			"https://purl.org/obo", "https://purl.org/ob", "https://purl.org/o", "https://purl.org/",
		},
		"http://localhost:8080/a%2Fb": {"https://localhost:8080/a%2F", "https://localhost:8080/a", "https://localhost:8080/"},
	},
	Positions: map[string]string{
		"https://purl.org":               "",
		"https://purl.org/":              "/",
		"http://purl.org/a/../b":         "../b",
		"http://purl.org/a%2f/%2e":       "%2e",
		"http://ab@purl.org/c":           "@purl.org/c",
		"http://purl.org/a b":            " b",
		"http://purl.org/a%41%4":         "%4",
		"http://purl.org/%41%00":         "%00",
		"http://purl.org/api/v1":         "api/v1",
		"http://purl.org/a?b\x00":        "\x00",
		"http://purl.org/x/%61rk:1234/x": "/x/%61rk:1234/x",
	},
	Allocations: map[string]int{
		"https://purl.org/dc/terms/title":       0,
		"https://purl.org/dc/terms/?a#b":        0,
		"https://localhost:8080/a%2Fb/c:d":      0,
		"HTTP://PURL.ORG:80/dc/%74erms/title":   1,
		"https://example.org/this/is/not/there": 0,
	},
}

func TestScheme(t *testing.T) { schemetest.Run(t, scheme(t), samples) }

func FuzzParse(f *testing.F) { schemetest.Fuzz(f, scheme(f), samples) }

func BenchmarkParse(b *testing.B) {
	schemetest.Benchmark(b, scheme(b), map[string]string{
		"canonical": "https://purl.org/dc/terms/title",
		"http":      "http://purl.obolibrary.org/obo/GO_0008150",
		"encoded":   "http://purl.org/net/a%2db%7Ec%2fd%c3%a9?x=1#y",
	})
}

func TestExplain(t *testing.T) {
	for text, want := range map[string]stele.Explanation{
		"HTTP://Purl.org:80/dc/terms%2f/": {
			Parts:    stele.Parts{{Name: "host", Value: "purl.org"}, {Name: "path", Value: "/dc/terms%2F/"}},
			Warnings: []string{"The path has an encoded slash (%2F), which is not the same as a slash, but which many programs take for one."},
		},
		"http://localhost:8080//a?b=c#d": {
			Parts: stele.Parts{
				{Name: "host", Value: "localhost:8080"}, {Name: "path", Value: "//a"},
				{Name: "query", Value: "b=c"}, {Name: "fragment", Value: "d"},
			},
			Warnings: []string{
				"The query is not part of the name and was left out.",
				"The fragment is not part of the name and was left out; servers never see it.",
				"The path has a doubled slash, which counts, but which many programs make one.",
			},
		},
		"https://purl.org/a?": {
			Parts:    stele.Parts{{Name: "host", Value: "purl.org"}, {Name: "path", Value: "/a"}},
			Warnings: []string{"The query is not part of the name and was left out."},
		},
		"https://purl.org/a": {
			Parts: stele.Parts{{Name: "host", Value: "purl.org"}, {Name: "path", Value: "/a"}},
		},
	} {
		got, err := scheme(t).Explain(text)
		if err != nil {
			t.Errorf("Explain(%q): %v", text, err)
			continue
		}
		want.ID, want.Form = got.ID, "purl" // schemetest compares the ID with Parse's
		want.Spellings = []stele.Spelling{{Name: "http", Text: "http" + strings.TrimPrefix(got.ID.String(), "https")}}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b stele.ID) bool { return a == b })); diff != "" {
			t.Errorf("Explain(%q): (-want +got)\n%s", text, diff)
		}
	}
}

func TestNew(t *testing.T) {
	for _, host := range []string{
		"", ".", "purl..org", "-purl.org", "purl_org", "https://purl.org", "purl.org/", "purl.org/net", "a@purl.org", "purl.org:", "purl.org:0",
		"purl.org:080", "purl.org:65536", "purl.org:+80", "purl.org:http", "purl.org:80:80", "[::1]:80", "pürl.org", " purl.org", "*.purl.org",
		strings.Repeat("a.", 130) + "org",
	} {
		if _, err := purl.New("purl.org", host); err == nil {
			t.Errorf("New(%q) takes it, want an error", host)
		}
	}
	for host, text := range map[string]string{
		"PURL.Example":        "https://purl.example/a",
		"purl.example.":       "https://purl.example/a",
		"purl.example:80":     "https://purl.example/a",
		"purl.example:443":    "https://purl.example/a",
		"purl.example:8443":   "https://purl.example:8443/a",
		"192.0.2.1:8080":      "https://192.0.2.1:8080/a",
		"xn--prl-hoa.example": "https://xn--prl-hoa.example/a",
	} {
		s, err := purl.New(host, host)
		if err != nil {
			t.Errorf("New(%q): %v", host, err)
			continue
		}
		if id, err := s.Parse(text); err != nil || id.String() != text {
			t.Errorf("New(%q) reads %q as %q, %v", host, text, id, err)
		}
	}
	none, err := purl.New()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Parse("https://purl.org/dc"); err != stele.ErrForeign {
		t.Errorf("without hosts: %v, want ErrForeign", err)
	}
}

func TestIsReserved(t *testing.T) {
	for part, want := range map[string]bool{
		"": false, "dc": false, "net": false, "apis": false, "ap": false, "info": false, "ark": false, "urn": false,
		"api": true, "API": true, "hdl": true, "doi": true, "ibi": true, "rep": true, "uri-res": true, "authority": true, "dns-query": true,
		"healthz": true, "readyz": true, "metrics": true, ".info": true, ".well-known": true,
		"ark:": true, "ARK:12345": true, "urn:a1:b": true, "hdl:10.1": true, "doi%3A10.1": true,
	} {
		if got := purl.IsReserved(part); got != want {
			t.Errorf("IsReserved(%q) = %v, want %v", part, got, want)
		}
	}
}

// Encoding a character that means the same unencoded changes no name, encoding
// another one does, and the encoders of other programs are understood.
func TestEncoding(t *testing.T) {
	s := scheme(t)
	part := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09-._~%/+ :é")), 1, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		text := part.Draw(t, "part")
		if strings.Trim(text, ".") == "" {
			return
		}
		id, err := s.Parse("http://purl.org/net/" + url.PathEscape(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		u, err := url.Parse(id.String())
		if err != nil || u.Path != "/net/"+text {
			t.Fatalf("%q becomes %q, which is %q, %v", text, id, u.Path, err)
		}
		var all strings.Builder
		for i := range len(text) {
			all.WriteString("%" + string("0123456789abcdef"[text[i]>>4]) + string("0123456789ABCDEF"[text[i]&15]))
		}
		again, err := s.Parse("https://purl.org/net/" + all.String())
		// PathEscape leaves these as they are; encoded, they are another name.
		if same := !strings.ContainsAny(text, "+:"); err != nil || (again == id) != same {
			t.Fatalf("%q is %q, but wholly encoded %q, %v", text, id, again, err)
		}
	})
}
