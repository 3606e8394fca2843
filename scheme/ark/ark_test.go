package ark_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele/scheme/ark"
	"github.com/stele-id/stele/scheme/schemetest"
)

var samples = schemetest.Samples{
	Canonical: map[string]string{
		"ark:12345/x54xz321": "ark:12345/x54xz321",
		"https://n2t.net/ark:/12345/X5-4xz-321/s3//f8.05v.tiff?info": "ark:12345/X54xz321/s3/f8.05v.tiff",

		// In public use.
		"https://n2t.net/ark:/12148/btv1b8449691v":                              "ark:12148/btv1b8449691v",
		"https://gallica.bnf.fr/ark:/12148/bpt6k5834013m/f12.item.r=carte.zoom": "ark:12148/bpt6k5834013m/f12.item.r=carte.zoom",
		"https://gallica.bnf.fr/ark:/12148/bpt6k6254645z.texteImage":            "ark:12148/bpt6k6254645z.texteImage",
		"https://gallica.bnf.fr/ark:/12148/cb327033728/date1880.liste":          "ark:12148/cb327033728/date1880.liste",
		"https://gallica.bnf.fr/iiif/ark:/12148/btv1b10500001g/f207/info.json":  "ark:12148/btv1b10500001g/f207/info.json",
		"http://data.bnf.fr/ark:/12148/cb12011248f#about":                       "ark:12148/cb12011248f",
		"https://catalogue.bnf.fr/ark%3A/12148/cb12228801p":                     "ark:12148/cb12228801p",
		"ark:/13960/t3610x12d":                                                            "ark:13960/t3610x12d",
		"https://snaccooperative.org/ark:/99166/w6kd29q4":                                 "ark:99166/w6kd29q4",
		"http://arks.princeton.edu/ark:/88435/dsp01zc77st047":                             "ark:88435/dsp01zc77st047",
		"https://texashistory.unt.edu/ark:/67531/metapth346793/m1/1/?q=map":               "ark:67531/metapth346793/m1/1",
		"ark:/67375/39D-S2GXG1TW-8":                                                       "ark:67375/39DS2GXG1TW8",
		"https://gallica.bnf.fr/iiif/ark:/12148/btv1b8449691v/f29/full/500,/0/native.jpg": "ark:12148/btv1b8449691v/f29/full/500,/0/native.jpg",
		"https://h.example/ark:12345/x/ark:/1":                                            "ark:12345/x/ark:/1",
		"https://www.familysearch.org/ark:/61903/1:1:QVLK-2C94":                           "ark:61903/1:1:QVLK2C94",
		"n2t.net/ark:/12345/x1":                                                           "ark:12345/x1",
		"gallica.bnf.fr/ark:/12148/btv1b8449691v/f29.item":                                "ark:12148/btv1b8449691v/f29.item",
		"https://n2t.net/ark:/12345/x%E2%80%90y%e2%80%95z":                                "ark:12345/xyz",
		"https://oac.cdlib.org/findaid/ark:/13030/c87m0fns/entire_text/":                  "ark:13030/c87m0fns/entire_text",
		"https://collections.louvre.fr/ark:/53355/cl010062370":                            "ark:53355/cl010062370",

		// Section 3.2, step by step: NMA, query, label, NAAN, percent, hyphens,
		// inflection, separators.
		"HTTPS://user:secret@host.example:8443/a/b/ark:12345/x1": "ark:12345/x1",
		"http://[2001:db8::1]/ark:12345/x1":                      "ark:12345/x1",
		"https:///ark:12345/x1":                                  "ark:12345/x1",
		"https://host.example//ark:12345/x1":                     "ark:12345/x1",
		"https://host.example/bark:/ark:12345/x1":                "ark:12345/x1",
		"https://host.example/Curiosités/ARK%3a/12345/x1":        "ark:12345/x1",
		"ark:12345/x1?a=b&c=/d?e":                                "ark:12345/x1",
		"ark:12345/x1?info&x=1":                                  "ark:12345/x1",
		"ark:12345/x1/?":                                         "ark:12345/x1",
		"ark:12345/x1??":                                         "ark:12345/x1",
		"ark:12345/x1???":                                        "ark:12345/x1",
		"ark:12345/x1#a?b#c":                                     "ark:12345/x1",
		"aRK:/12345/x1":                                          "ark:12345/x1",
		"ark:/B5488/X1":                                          "ark:b5488/X1",
		"ark:00001/x1":                                           "ark:00001/x1",
		"ark:b5488fqz0123456789bcdfghjkmnpqrstvwxz/x":            "ark:b5488fqz0123456789bcdfghjkmnpqrstvwxz/x",
		"ark:12345/x%c3%A9%7d":                                   "ark:12345/x%C3%A9%7D",
		"ark:12345/%2d%2f%2E":                                    "ark:12345/%2D%2F%2E",
		"ark:12-345/-x-1-/-y-.-z-":                               "ark:12345/x1/y.z",
		"ark:12345/x\u20101\u2011/\u2012y\u2013.\u2014z\u2015":   "ark:12345/x1/y.z",
		"ark:\u201012345\u2015/x1":                               "ark:12345/x1",
		"ark:12345//./x1/.y./z//./":                              "ark:12345/x1/y.z",
		"ark:12345/x1/-.-/y":                                     "ark:12345/x1/y",
		"ark:12345/x1.-/-.y":                                     "ark:12345/x1.y",
		"ark:12345/x1-/-":                                        "ark:12345/x1",
		"ark:12345/=~*+@_$":                                      "ark:12345/=~*+@_$",
		"ark:12345/" + strings.Repeat("x", 255):                  "ark:12345/" + strings.Repeat("x", 255),
	},
	Same: [][]string{
		{"ark:12345/x5-4-xz-321", "https://sneezy.example/ark:12345/x54--xz32-1", "ark:12345/x54xz321", "ARK:/12345/x54xz321/"},
		{"ark:b5488/x1", "ark:B5488/x1", "ark:/b-5488/x1"},
	},
	Distinct: []string{
		"ark:12345/x1", "ark:12345/X1", "ark:12345/x1/y", "ark:12345/x1.y", "ark:12345/x1y",
		"ark:12345/%78%31", "ark:12345/x%2D1", "ark:012345/x1", "ark:99999/x1", "ark:12345/x1%2Fy",
	},
	Invalid: map[string]string{
		"ark:":                                  "no NAAN",
		"ark:/":                                 "no NAAN",
		"https://n2t.net/ark:":                  "no NAAN",
		"https://n2t.net/ark:?info":             "no NAAN",
		"ark://12345/x1":                        "not more than one slash",
		"ark:-/12345/x1":                        "no NAAN",
		"ark:1234/x1":                           "4 characters",
		"ark:12-34/x1":                          "4 characters",
		"ark:12345":                             "no name",
		"ark:12345?info":                        "no name",
		"ark:12345/":                            "no name",
		"ark:12345/-/.-":                        "no name",
		"ark:12345/?info":                       "no name",
		"ark:12345.x1/y":                        "'.'",
		"ark:12345l/x1":                         "'l'",
		"ark:abcde/x1":                          "'a'",
		"ark:1234y/x1":                          "'y'",
		"ark: 12345/x1":                         "' '",
		"ark:%31%32%33%34%35/x1":                "decode the text first",
		"https://n2t.net/ark%3A%2F12345%2Fx1":   "decode the text first",
		"ark:١٢٣٤٥/x":                           "none of them",
		"ark:１２３４５/x":                           "looks like '1'",
		"ark:12345/x 1":                         `"%20"`,
		"ark:12345/x{1}":                        `"%7B"`,
		"ark:12345/x%":                          "hexadecimal",
		"ark:12345/x%4":                         "hexadecimal",
		"ark:12345/x%2-D":                       "hexadecimal",
		"ark:12345/x%-2D":                       "hexadecimal",
		"ark:12345/x%G0":                        "hexadecimal",
		"ark:12345/x/%2":                        "hexadecimal",
		"ark:12345/хyz":                         "looks like 'x'",
		"ark:12345/x1é":                         "can't stand in an ARK",
		"ark:12345/x\u22121":                    "looks like '-'",
		"ark:12345/x\u20161":                    "can't stand in an ARK",
		"ark:12345/x\u00ad1":                    "invisible",
		"ark:12345/x\u202e1":                    "bidirectional",
		"ark:12345/x\x001":                      "control character",
		"ark:12345/x\xff":                       "not UTF-8",
		"ark:12345/x?a\nb":                      "control character",
		"ark:12345/" + strings.Repeat("x", 1e6): "at most 4096",
		"https://h.example/ark:12345/" + strings.Repeat("x", 1e6): "at most 4096",
		"ark:12148/cb11928669x":                                   "check character",
		"ark:12148/cb119o7966z":                                   "'o' is none of them",
		"ark:12148/cb19128669t":                                   "check character",
		"ark:12148/cb1192866":                                     "check character",
		"ark:13960/t3610x12c":                                     "check character",
	},
	Foreign: []string{
		"", "ark", "ark/12345/x1", " ark:12345/x1", "аrk:12345/x1", "ark%3A12345/x1", "urn:ark:12345/x1", "info:ark/12345/x1",
		"ftp://host.example/ark:12345/x1", "https://host.example/", "https://host.example/ark/12345/x1",
		"https://ark:80/12345/x1", "https://host.example/?u=/ark:12345/x1", "https://host.example/#/ark:12345/x1",
		"https://hdl.handle.net/2027/loc.ark:/13960/t3kw65n8k", "https://host.example/bark:12345/x1",
		"https://host.example/" + strings.Repeat("x", 1e6) + "/ark:12345/x1",
	},
	Parents: map[string][]string{
		"ark:12345/x54xz321/s3/f8.05v.tiff": {
			"ark:12345/x54xz321/s3/f8.05v", "ark:12345/x54xz321/s3/f8", "ark:12345/x54xz321/s3",
			"ark:12345/x54xz321", "ark:12345/x5", "ark:12345",
		},
		"ark:12345/x5":            {"ark:12345"},
		"ark:12345/x5.y":          {"ark:12345/x5", "ark:12345"},
		"ark:12345/x":             {"ark:12345"},
		"ark:12345/54":            {"ark:12345"},
		"ark:12345/x_54":          {"ark:12345"},
		"ark:12148/btv1b8449691v": {"ark:12148/btv1b", "ark:12148/btv1", "ark:12148"},
		"ark:12148/cb11928669t":   {"ark:12148/cb1", "ark:12148/cb", "ark:12148"},
		"ark:13960/t3610x12d":     {"ark:13960/t3", "ark:13960/t", "ark:13960"},
		"ark:b5488/B0c1/d":        {"ark:b5488/B0c1", "ark:b5488/B0", "ark:b5488"},
	},
	Cuts: map[string][]string{
		"ark:13030/qt5a/b.c": {
			"ark:13030/qt5a/b", "ark:13030/qt5a", "ark:13030/qt5", "ark:13030/qt", "ark:13030/q", "ark:13030",
		},
		"ark:12345/a%2Fb": {"ark:12345/a%2F", "ark:12345/a", "ark:12345"},
		"ark:12345/x":     {"ark:12345"},
	},
	Warnings: map[string]string{
		"ark:12345/x-1":                    "",
		"ark:/12345/x1/":                   "",
		"ARK:12345/x1?info":                "",
		"https://n2t.net/ark:/12345/x1?":   "",
		"ark:12345/x%2D%2F%2E%25":          "",
		"ark:12345/x%20y":                  "",
		"ark:12345/x1?a":                   "query",
		"https://n2t.net/ark:12345/x1?a#b": "query\nfragment",
		"ark:12345/x\u20111":               "not ASCII",
		"ark:B5488/x1":                     "capital letters",
		"ark:12345/%78":                    "percent-encoded",
		"ark:12345/%20%2F%7e":              "percent-encoded",
	},
	Positions: map[string]string{
		"ark:":                           "",
		"ark:/":                          "",
		"ark://12345/x":                  "/12345/x",
		"ark:/1234/x":                    "1234/x",
		"ark:12345":                      "",
		"ark:12345/":                     "",
		"ark:1234\u2010a/x":              "a/x",
		"ark:12345/x y":                  " y",
		"https://h/a/ark:12345/x%4":      "%4",
		"https://h/ark%3a12345/x\u2013é": "é",
		"ark:12345/x?a\x01":              "\x01",
		"ark:12148/cb11928669x":          "x",
		"ark:12148/cb-1192-8669-x-/f1":   "x-/f1",
		"https://gallica.bnf.fr/ark:/12148//cb11928669x": "x",
	},
	Allocations: map[string]int{
		"ark:12148/btv1b8449691v":                                    0,
		"https://n2t.net/ark:12148/btv1b8449691v?info":               0,
		"ark:12345/x54xz321/s3/":                                     0,
		"ark:/12148/btv1b8449691v":                                   1,
		"https://n2t.net/ark:/12345/X5-4xz-321/s3//f8.05v.tiff?info": 1,
		"https://n2t.net/ark:/12345/x%c3%a9%c3%a8%c3%aa":             1,
	},
}

func TestScheme(t *testing.T) { schemetest.Run(t, ark.New(), samples) }

func TestSchemeWithoutChecks(t *testing.T) {
	scheme := ark.New(ark.WithChecked())
	schemetest.Check(t, scheme, "ark:12148/cb11928669x")
	if id, err := scheme.Parse("ark:12148/cb11928669x"); err != nil || id.String() != "ark:12148/cb11928669x" {
		t.Errorf("a check character is demanded that nobody asked for: %v, %v", id, err)
	}
}

func TestParseChecked(t *testing.T) {
	for text, want := range map[string]string{"12345/x5": "12345/x5", "ark:/12345/x5": "12345/x5", "ARK:B5488/x-5": "b5488/x5"} {
		if c, err := ark.ParseChecked(text); err != nil || c.Shoulder != want || c.Alone {
			t.Errorf("%q: %+v, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "x5", "12345", "12345/", "1/x5", "12345/x5/y", "12345/x5.y", "12345/x 5", "urn:a1:b"} {
		if c, err := ark.ParseChecked(text); err == nil {
			t.Errorf("%q is a shoulder: %+v", text, c)
		}
	}
}

func TestCheckZone(t *testing.T) {
	for text, want := range map[string]string{
		"ark:12345/x54xz321/s3.pdf": "12345/x54xz321", "ark:13960/t3610x12d": "13960/t3610x12d",
		"ark:12148/cb11928669t/a": "cb11928669t", "nothing": "",
	} {
		if got := ark.New().CheckZone(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzParse(f *testing.F) { schemetest.Fuzz(f, ark.New(), samples) }

func BenchmarkParse(b *testing.B) {
	schemetest.Benchmark(b, ark.New(), map[string]string{
		"canonical": "ark:12148/btv1b8449691v",
		"classic":   "ark:/12148/btv1b8449691v/f29.item",
		"url":       "https://gallica.bnf.fr/ark:/12148/btv1b8449691v/f29.item?lang=en",
		"untidy":    "https://n2t.net/ark:/12345/X5-4xz-321/s3//f8.05v.tiff?info",
	})
}
