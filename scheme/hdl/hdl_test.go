package hdl_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele/scheme/hdl"
	"github.com/stele-id/stele/scheme/schemetest"
)

// today is the date on which the tests happen.
func today() time.Time { return time.Date(2026, time.January, 2, 3, 4, 5, 0, time.UTC) }

const sici = "10.1002/(SICI)1097-0258(19980815/30)17:15/16<1661::AID-SIM968>3.0.CO;2-2"

var samples = schemetest.Samples{
	Canonical: map[string]string{
		// Bare: every character is itself.
		"10.1000/182":               "10.1000/182",
		"102.100.272/Y35XYS0QH":     "102.100.272/Y35XYS0QH",
		"102.100.272/y35xys0qh":     "102.100.272/Y35XYS0QH",
		"20.500.12345/abc-1":        "20.500.12345/ABC-1",
		"4263537/4000":              "4263537/4000",
		"10/g8r7pm":                 "10/G8R7PM",
		"1/2":                       "1/2",
		sici:                        sici,
		"10.1000/a%20b":             "10.1000/A%20B",
		"10.1000/a%2fb%":            "10.1000/A%2FB%",
		"10.1000/456#789?x=1":       "10.1000/456#789?X=1",
		"10.1000/a b":               "10.1000/A B",
		"10.1000/a//b/":             "10.1000/A//B/",
		"10.1000//":                 "10.1000//",
		"10.1000/182.":              "10.1000/182.",
		"10.1000/../x":              "10.1000/../X",
		"10.1000/naïve-ß-ı":         "10.1000/NAïVE-ß-ı",
		"20.500.12345/héllo世界":      "20.500.12345/HéLLO世界",
		"10.1000/hdl:10.1000/doi:1": "10.1000/HDL:10.1000/DOI:1",

		// Marks.
		"hdl:10.1000/182":                  "10.1000/182",
		"HDL:10.1000/182":                  "10.1000/182",
		"hdl: 10.1000/182":                 "10.1000/182",
		"hdl:/102.100.272/Y35XYS0QH":       "102.100.272/Y35XYS0QH",
		"hdl:4263537/5000":                 "4263537/5000",
		"hdl:0.na/10.1000":                 "hdl:0.NA/10.1000",
		"hdl:0.NA/0.NA":                    "hdl:0.NA/0.NA",
		"hdl:cnri.test/x":                  "hdl:CNRI.TEST/X",
		"hdl:cnri-test_2/x y":              "hdl:CNRI-TEST_2/X Y",
		"hdl:bücher.test/ä":                "hdl:BüCHER.TEST/ä",
		"hdl:api/handles/x":                "hdl:API/HANDLES/X",
		"doi:10.1000/182":                  "10.1000/182",
		"DOI: 10.1000/182":                 "10.1000/182",
		"DOI 10.1000/182":                  "10.1000/182",
		"Doi:10.1038/nphys1170":            "10.1038/NPHYS1170",
		"doi:10/g8r7pm":                    "10/G8R7PM",
		"doi:10.1000.10/123":               "10.1000.10/123",
		"doi:10.1000/a%20b":                "10.1000/A%20B",
		"info:doi/10.1000/182":             "10.1000/182",
		"info:hdl/4263537/4069":            "4263537/4069",
		"INFO:HDL/cnri.test/a%20b":         "hdl:CNRI.TEST/A B",
		"info:doi/10.1000/a%2520b":         "10.1000/A%20B",
		"info:doi/10.1000/182#page-2":      "10.1000/182",
		"urn:doi:10.1000/182":              "10.1000/182",
		"urn:doi:10.123:456":               "10.123/456",
		"urn:doi:10.123:456ABC%2Fzyz":      "10.123/456ABC/ZYZ",
		"URN:HDL:20.500.12345/a:b":         "20.500.12345/A:B",
		"urn:handle:102.100.272/0n8j991qh": "102.100.272/0N8J991QH",
		"urn:hdl:20.1/a?+s=N2C?=x#f":       "20.1/A",
		"urn:hdl:cnri.test:x":              "hdl:CNRI.TEST/X",

		// The proxies.
		"https://doi.org/10.1000/182":                          "10.1000/182",
		"http://dx.doi.org/10.1000/182":                        "10.1000/182",
		"HTTPS://WWW.DOI.ORG/10.1000/182":                      "10.1000/182",
		"https://doi.org./10.1000/182":                         "10.1000/182",
		"https://doi.org:443/10.1000/182":                      "10.1000/182",
		"doi.org/10.1000/182":                                  "10.1000/182",
		"dx.doi.org/10.1000/182?x#y":                           "10.1000/182",
		"hdl.handle.net/20.500.12345/a%20b":                    "20.500.12345/A B",
		"https://doi.org//10.1000/182":                         "10.1000/182",
		"https://doi.org/10.1000%2F182":                        "10.1000/182",
		"https://doi.org/10.1000/456%23789":                    "10.1000/456#789",
		"https://doi.org/10.1000/456#789":                      "10.1000/456",
		"https://doi.org/10.1000/a%2520b":                      "10.1000/A%20B",
		"https://doi.org/10.1000/a+b":                          "10.1000/A+B",
		"https://doi.org/" + sici:                              sici,
		"https://doi.org/10/g8r7pm":                            "10/G8R7PM",
		"https://doi.org/doi:10.1000/182":                      "10.1000/182",
		"https://doi.org/hdl%3A10.1000/182":                    "10.1000/182",
		"https://doi.org/urn:doi:10.123:456":                   "10.123/456",
		"https://doi.org/api/handles/10.1000/182?type=URL":     "10.1000/182",
		"https://hdl.handle.net/20.500.12345/ABC-1?noredirect": "20.500.12345/ABC-1",
		"https://hdl.handle.net/0.NA/20.500.12345":             "hdl:0.NA/20.500.12345",
		"https://hdl.handle.net/hdl:api/x":                     "hdl:API/X",
		"https://hdl.handle.net/api/handles/20.1000/112":       "20.1000/112",
		"https://hdl.handle.net/API/handles/api/handles":       "hdl:API/HANDLES",
		"https://hdl.handle.net/20.500.12345/h%C3%A9llo":       "20.500.12345/HéLLO",

		// Any host.
		"http://resolver.net.au/hdl/102.100.272/Y35XYS0QH":  "102.100.272/Y35XYS0QH",
		"https://example.org/hdl:10.1/2":                    "10.1/2",
		"https://example.org/DOI:10.1/2":                    "10.1/2",
		"https://dl.acm.org/doi/10.1145/3292500.3330701":    "10.1145/3292500.3330701",
		"http://[::1]:8080/doi/10.1%2f2?x":                  "10.1/2",
		"https://n2t.net/a/urn:doi:10.1:2?+x":               "10.1/2",
		"https://a.example/urn:hdl:cnri.test/x?y#z":         "hdl:CNRI.TEST/X",
		"https://a.example/uri-res/N2L?urn:hdl:20.1/x%20y":  "20.1/X Y",
		"https://a.example/uri-res/N2L?urn:doi:10.1:2?=x#y": "10.1/2",
		"https://hdl.handle.net/20.500%2Fark:/12345/x":      "20.500/ARK:/12345/X",
		"hdl.handle.net/20.500/ark:/12345/x":                "20.500/ARK:/12345/X",
		"20.500/ark:/12345/x":                               "20.500/ARK:/12345/X",
		"https://hdl.handle.net/20.500/urn:a1:b":            "20.500/URN:A1:B",
		"https://n2t.net/urn:doi:10.1:2":                    "10.1/2",
		"https://bücher.example/hdl/10.1/2":                 "10.1/2",
	},
	Same: [][]string{
		{
			"10.1000/AbC", "10.1000/aBc", "hdl:10.1000/abc", "hdl:/10.1000/abc", "doi: 10.1000/abc", "doi 10.1000/ABC",
			"info:hdl/10.1000/abc", "info:doi/10.1000/%61bc", "urn:hdl:10.1000/abc", "urn:doi:10.1000:abc",
			"urn:handle:10.1000/abc", "https://hdl.handle.net/10.1000/abc", "http://doi.org/10.1000/abc",
			"http://DX.DOI.ORG/10.1000/abc", "https://a.example/hdl/10.1000/abc", "https://a.example/doi/10.1000/abc",
		},
		{"hdl:0.NA/10.1000", "HDL: 0.na/10.1000", "info:hdl/0.na/10.1000", "https://hdl.handle.net/0.NA%2F10.1000"},
	},
	Distinct: []string{
		"10.1000/182", "10.1000/182.", "10.1000/182/", "10.1000/182//", "10.1000//182", "10.10001/82", "10.1000/18 2",
		"10.1000/18%202", "10.1000/18+2", "10.1000/182#", "10.1000/182?", "10.01000/182", "hdl:x10.1000/182",
		"10.1000/é", "10.1000/É", "10.1000/e\u0301", "10.1000/А1", "10.1000/A1", "hdl:10-1000/182", "hdl:0.NA/10.1000/182",
	},
	Invalid: map[string]string{
		// Prefixes.
		"10..1/x": "segment", ".10/x": "segment", "10./x": "segment", "hdl:/x": "no \"/\"", "hdl:": "no \"/\"", "doi:": "no \"/\"",
		"hdl://x/y": "prefix is missing", "hdl:10.1000": "no \"/\"", "hdl:a..b/c": "segment", "hdl:a b/c": "' ' can't stand",
		"hdl:  10.1/2": "' ' can't stand", "hdl:doi:10.1/2": "one mark", "hdl:300:20.500.99999/USER01": "':' can't stand",
		"hdl:%31%30.1000/182": "percent-encoding is for URLs", "hdl:a?b/c": "can't stand", "doi:%31%30.1000/1": "percent-encoding",
		"10.1000∕182": "looks like '/'", "hdl:10.1000∕182": "looks like '/'", "hdl:a\u00a0b/c": "looks like ' '",
		// DOIs.
		"doi:20.500/1": "10.", "doi:11.1/2": "10.", "doi:100.1/2": "10.", "doi:10.a/2": "10.", "doi:/10.1/2": "prefix is missing",
		"info:doi/20.1/2": "10.", "urn:doi:0.NA/10.1": "10.", "https://doi.org/20.1/2": "10.", "https://doi.org/abcde": "shortDOI",
		"https://doi.org/": "no \"/\"", "https://doi.org": "no \"/\"", "doi:1О.1000/182": "10.", "https://www.doi.org/the-identifier/news": "10.",
		// Local names.
		"10.1000/": "local name", "hdl:a/": "local name", "10.1000/ x": "begin with a space", "10.1000/x ": "end with a space",
		"10.1000/x\u3000": "end with a space", "https://doi.org/10.1/x%20": "end with a space", "https://doi.org/10.1/%20x": "begin with a space",
		"urn:doi:10.1:": "local name",
		// Percent-encoding.
		"https://doi.org/10.1/%": "two hexadecimal", "https://doi.org/10.1/a%4": "two hexadecimal", "info:hdl/1/%zz": "two hexadecimal",
		"https://doi.org/10.1/%00": "percent-encoded control character", "urn:hdl:1/%0a": "percent-encoded control character",
		"https://doi.org/10.1/%FF": "percent-encoded byte 0xFF", "https://doi.org/10.1/%E2%80%AE": "percent-encoded bidirectional",
		"https://a.example/hdl/10.1/%7F": "percent-encoded control",
		// Around the name.
		"https://a.example/urn:doi:20.1/2": "10.", "https://a.example/x?urn:hdl:1": "no \"/\"", "https://a.example/x?urn:hdl:1/2?3": "%3F",
		"https:///urn:hdl:1/2": "no host", "10.1%2F2": "percent-encoding is for URLs",
		"info:hdl/1/a?b": "%3F", "urn:hdl:1/a?b": "%3F", "urn:hdl:1/a?": "%3F", "https://hdl.handle.net/api/sessions": "api/handles/",
		"https://x@doi.org/10.1/2": "user information", "https://doi.org@a.example/hdl/10.1/2": "user information",
		"http:///hdl/10.1/2": "no host", "http://a b/hdl/10.1/2": "host name", "https://a\"/hdl/10.1/2": "host name",
		// Invalid text.
		"10.1000/\x00": "control character", "10.1000/\xff": "not UTF-8", "hdl:\u202e1/2": "bidirectional", "10.1000/a\u200bb": "invisible",
		"doi:" + strings.Repeat("1", 5000): "at most 4096", "10.1/" + strings.Repeat("x", 1<<20): "at most 4096",
	},
	Foreign: []string{
		"10.1000", "10", "/10.1000/182", "./x", ".../x", "a10.1000/182", "0.NA/10.1000", "cnri.test/x", "１０.1000/182",
		" 10.1000/182", "doi", "doi 20.1/2", "doi x", "hdl 10.1/2", "doi.org", "doi.org.example/10.1/2", "hdl.handle.net",
		"info:lccn/2002022641", "urn:isbn:9780000000002", "urn:hdlx:1/2", "ark:12345/x", "https://purl.org/dc/terms/title",
		"https://example.org/10.1000/182", "https://example.org/hdl/x/y", "https://example.org/doi/20.1/2", "https://example.org/doi/10/x",
		"https://hdl.handle.net/20.500/ark:/12345/x", "https://doi.org/10.1/ark%3A12345/x", "https://a.example/hdl/10.1/ark:12345/x",
		"https://hdl.handle.net/cnri.test/urn:a1:b", "https://doi.org/?urn:isbn:9780000000002", "https://a.example/urn:a1:hdl:1/2",
		"https://example.org/hdl", "https://example.org/hdl:", "https://example.org/a/hdl/10.1/2", "https://example.org/doi:x",
		"https://example.org/hdl:10.1:2", "https://doi.org.example/10.1/2", "https://example.org/info:hdl/10.1/2", "ftp://doi.org/10.1/2",
		strings.Repeat("1", 1<<20),
	},
	Parents: map[string][]string{
		"10.1000/182":                {"10.1000/"},
		"20.500.12345/A/B/C":         {"20.500.12345/A/B", "20.500.12345/A", "20.500.12345/"},
		"20.500.12345/a/":            {"20.500.12345/A", "20.500.12345/"},
		"20.500.12345//a":            {"20.500.12345/"},
		"20.500.12345/a//b":          {"20.500.12345/A/", "20.500.12345/A", "20.500.12345/"},
		"20.500.12345///":            {"20.500.12345//", "20.500.12345/"},
		"hdl:0.NA/10.1000":           {"hdl:0.NA/"},
		"hdl:cnri.test/a/b":          {"hdl:CNRI.TEST/A", "hdl:CNRI.TEST/"},
		"https://doi.org/10.1/a%2Fb": {"10.1/A", "10.1/"},
	},
	Warnings: map[string]string{
		"10.1000/182":                          "",
		"10.1000/naïve":                        "",
		"10.1000/世界のABC":                       "",
		"https://doi.org/10.1000/%D0%BF":       "",
		"10.1000/100%":                         "",
		"https://doi.org/10.1/2?a":             "query",
		"https://doi.org/10.1/2?":              "query",
		"doi.org/10.1/2?a#b":                   "query\nfragment",
		"https://a.example/hdl/10.1/2?a#b":     "query\nfragment",
		"info:hdl/1/2#a":                       "fragment",
		"urn:hdl:1/2?+a?=b#c":                  "components\nfragment",
		"https://a.example/urn:hdl:1/2?a":      "query",
		"https://a.example/urn:hdl:1/2?+a":     "components",
		"https://a.example/x?urn:hdl:1/2?=a#b": "components\nfragment",
		"10.1000/a%20b":                        "percent-encoded",
		"doi:10.1000/a%2fb":                    "percent-encoded",
		"https://doi.org/10.1/a/../b":          "Browsers remove",
		"https://doi.org/10.1/a/..":            "Browsers remove\n'.'",
		"https://doi.org/10.1/a%2F../b":        "",
		"10.1000/182.":                         "'.'",
		"doi:10.1000/182,":                     "','",
		"10.1000/аbс":                          "U+0430, which looks like 'a'), and 1 more\nCyrillic, Latin",
		"10.1000/x–1":                          "U+2013, which looks like '-'); ",
		"10.1000/a\u00a0b":                     "looks like ' '",
		"10.1000/abc-жюэ":                      "Cyrillic, Latin",
		"hdl:１０.1000/1":                        "U+FF11, which looks like '1'), and 1 more",
	},
	Positions: map[string]string{
		"10..1/x":                         ".1/x",
		".10/x":                           ".10/x",
		"10./x":                           "/x",
		"10.1000/":                        "",
		"10.1000/x ":                      " ",
		"hdl: a b/c":                      " b/c",
		"hdl:10.1000":                     "",
		"doi:20.1/2":                      "20.1/2",
		"info:hdl/1/a?b":                  "?b",
		"https://doi.org/10.1/a%00":       "%00",
		"https://doi.org/10%2E1/%61%00b":  "%00b",
		"https://doi.org/10.1/é%zz":       "%zz",
		"https://doi.org/10.1/%20":        "%20",
		"https://doi.org/10.1/x%20":       "%20",
		"https://doi.org/doi:10..1/2":     ".1/2",
		"https://hdl.handle.net/%61..b/c": ".b/c",
		"http://a.example/hdl/10..1/2":    ".1/2",
		"https://x@doi.org/10.1/2":        "@doi.org/10.1/2",
		"http://a b/hdl/1/2":              " b/hdl/1/2",
	},
	Allocations: map[string]int{
		"10.1000/182":                 0,
		"hdl:0.NA/10.1000":            0,
		"https://doi.org/10.1000/182": 0,
		"10.1000/a-name-of-some-length-in-small-letters":                                   1,
		"https://hdl.handle.net/cnri.test/a-name-of-some-length-%C3%A9-percent-encoded-so": 3,
		"urn:doi:10.123:a-name-of-some-length-%C3%A9-percent-encoded-so":                   3,
		"https://" + strings.Repeat("A", 60) + ".EXAMPLE/hdl/10.1000/182":                  0,
	},
}

func TestScheme(t *testing.T) { schemetest.Run(t, hdl.New(today), samples) }

func FuzzParse(f *testing.F) { schemetest.Fuzz(f, hdl.New(today), samples) }

func BenchmarkParse(b *testing.B) {
	schemetest.Benchmark(b, hdl.New(today), map[string]string{
		"bare":       "102.100.272/Y35XYS0QH",
		"doi":        "doi:10.1038/nphys1170",
		"url":        "https://doi.org/10.1002/(sici)1097-0258(19980815/30)17:15/16%3C1661::aid-sim968%3E3.0.co;2-2",
		"other host": "http://resolver.net.au/hdl/102.100.272/Y35XYS0QH",
	})
}

// A handle of any printable characters survives each of its spellings, and so
// does one that is spelled by the standard library's own encoder.
func TestRoundTrip(t *testing.T) {
	scheme := hdl.New(today)
	prefix := rapid.StringMatching(`[0-9]{1,3}(\.[0-9]{1,5}){0,2}|[0-9A-Za-z_-]{1,4}(\.[A-Za-z]{1,3})?`)
	char := rapid.RuneFrom([]rune(`aZ09%?#/.:+ &;<>"\^|{}[]` + "`'éжß世"))
	local := rapid.StringOfN(char, 1, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		p, l := prefix.Draw(t, "prefix"), local.Draw(t, "local")
		if strings.Trim(l, " ") != l {
			return
		}
		id, err := scheme.Parse("hdl:" + p + "/" + l)
		if err != nil {
			t.Fatalf("%q, %q: %v", p, l, err)
		}
		schemetest.Check(t, scheme, id.String())
		for _, start := range []string{"info:hdl/", "urn:hdl:", "https://hdl.handle.net/hdl:"} {
			text := start + url.PathEscape(p+"/"+l)
			if again, err := scheme.Parse(text); err != nil || again != id {
				t.Errorf("%q gives %q, %v; want %q", text, again, err, id)
			}
		}
	})
}

// TestClaims: the record of a prefix belongs to the namespace of that prefix, and no other name does.
func TestClaims(t *testing.T) {
	s := hdl.New(today)
	for prefix, want := range map[string]string{
		"20.500.12345/":  "hdl:0.NA/20.500.12345",
		"hdl:21.T14999/": "hdl:0.NA/21.T14999",
		"hdl:0.NA/":      "hdl:0.NA/0.NA",
		"20.500.12345/A": "",
		"":               "",
	} {
		if got := strings.Join(s.Claims(prefix), " "); got != want {
			t.Errorf("%q claims %q, want %q", prefix, got, want)
		}
	}
}
