package urn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/schemetest"
)

var samples = schemetest.Samples{
	Canonical: map[string]string{
		// The RFC's own rules; names from RFC 8141, section 3.2, and from use.
		"urn:example:a123,z456":                              "urn:example:a123,z456",
		"URN:EXAMPLE:a123,z456":                              "urn:example:a123,z456",
		"urn:example:a123,z456?+abc":                         "urn:example:a123,z456",
		"urn:example:a123,z456?=xyz":                         "urn:example:a123,z456",
		"urn:example:a123,z456#789":                          "urn:example:a123,z456",
		"urn:example:A123,z456":                              "urn:example:A123,z456",
		"urn:example:a123%2cz456":                            "urn:example:a123%2Cz456",
		"URN:EXAMPLE:a123%2cz456":                            "urn:example:a123%2Cz456",
		"urn:ietf:rfc:2648":                                  "urn:ietf:rfc:2648",
		"urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6":      "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
		"urn:oid:2.16.840":                                   "urn:oid:2.16.840",
		"urn:issn:1535-3613":                                 "urn:issn:1535-3613",
		"urn:lex:br:federal:lei:2008-06-19;11705":            "urn:lex:br:federal:lei:2008-06-19;11705",
		"urn:mpeg:mpeg7:schema:2001":                         "urn:mpeg:mpeg7:schema:2001",
		"urn:x1::a":                                          "urn:x1::a",
		"urn:x1:a//":                                         "urn:x1:a//",
		"urn:0a:~!$&'()*+,;=@":                               "urn:0a:~!$&'()*+,;=@",
		"urn:" + strings.Repeat("a", 32) + ":x":              "urn:" + strings.Repeat("a", 32) + ":x",
		"urn:a-b--c:x":                                       "urn:a-b--c:x",
		"https://resolver.example/urn:x1:a?+r?=q#f":          "urn:x1:a",
		"https://resolver.example/urn:x1:A/b?style=x&y#f":    "urn:x1:A/b",
		"HTTPS://resolver.example/x/URN:X1:a%2f":             "urn:x1:a%2F",
		"http://resolver.example/uri-res/N2L?urn:x1:a":       "urn:x1:a",
		"http://resolver.example:8080/uri-res/N2C?URN:X1:a":  "urn:x1:a",
		"http://resolver.example/uri-res/N2L?urn:x1:a&b=c#f": "urn:x1:a&b=c",

		// PARADISEC.
		"urn:paradisec:AB1:001:A":      "urn:paradisec:ab1:001:a",
		"URN:PARADISEC:ab1:001:a":      "urn:paradisec:ab1:001:a",
		"urn:paradisec:AB1:0%c3%a9Z":   "urn:paradisec:ab1:0%C3%A9z",
		"urn:paradisec:NT1:98007:98A1": "urn:paradisec:nt1:98007:98a1",

		// ISBN.
		"urn:isbn:9780306406157":                          "urn:isbn:9780306406157",
		"urn:isbn:978-0-306-40615-7":                      "urn:isbn:9780306406157",
		"URN:ISBN:0-306-40615-2":                          "urn:isbn:9780306406157",
		"urn:isbn:0306406152?+s=N2C#p7":                   "urn:isbn:9780306406157",
		"https://resolver.example/urn:isbn:0-395-36341-1": "urn:isbn:9780395363416",
		"isbn:080442957x":                                 "urn:isbn:9780804429573",
		"ISBN 0-8044-2957-X":                              "urn:isbn:9780804429573",
		"ISBN: 978 0 306 40615 7":                         "urn:isbn:9780306406157",
		"ISBN-13: 979-10-90636-07-1":                      "urn:isbn:9791090636071",
		"isbn-10 0 306 40615 2":                           "urn:isbn:9780306406157",
		"urn:isbn:979-8-88645-174-0":                      "urn:isbn:9798886451740",

		// NBN.
		"URN:NBN:fi-fe201003181510":                                            "urn:nbn:fi-fe201003181510",
		"urn:nbn:se:uu:diva-3475":                                              "urn:nbn:se:uu:diva-3475",
		"URN:NBN:SE:UU:DIVA-3475":                                              "urn:nbn:se:uu:diva-3475",
		"URN:NBN:CH:SERVAL-BIB_D3B827073C8A5":                                  "urn:nbn:ch:serval-BIB_D3B827073C8A5",
		"urn:nbn:hu-3006":                                                      "urn:nbn:hu-3006",
		"URN:NBN:SI:DOC-DUX30CEW":                                              "urn:nbn:si:doc-DUX30CEW",
		"URN:NBN:HR:188:49A":                                                   "urn:nbn:hr:188:49A",
		"urn:nbn:AT:at-UBI:2-3870":                                             "urn:nbn:at:at-UBI:2-3870",
		"urn:nbn:NL:UI:13-A%2fb":                                               "urn:nbn:nl:ui:13-A%2Fb",
		"https://urn.nsk.hr/urn:nbn:hr:105:621611":                             "urn:nbn:hr:105:621611",
		"URN:NBN:DE:BVB:12-BSB00103137-3":                                      "urn:nbn:de:bvb:12-bsb00103137-3",
		"https://nbn-resolving.org/urn:nbn:de:101:1-201102033592":              "urn:nbn:de:101:1-201102033592",
		"http://nbn-resolving.de/urn/resolver.pl?urn:nbn:de:hebis:30:3-347825": "urn:nbn:de:hebis:30:3-347825",
		"urn:nbn:de:101:1-2019072802401757702913":                              "urn:nbn:de:101:1-2019072802401757702913",
		"urn:nbn:de:KOBV:109-1-15356869/Fragment/Page=1121%aa":                 "urn:nbn:de:kobv:109-1-15356869/fragment/Page=1121%AA",
	},
	Same: [][]string{
		{"urn:paradisec:ab1:001:a", "urn:paradisec:AB1:001:A", "URN:Paradisec:Ab1:001:a?+s=N2C", "https://h/urn:paradisec:AB1:001:A"},
		{"urn:isbn:9780306406157", "urn:isbn:0306406152", "ISBN 0-306-40615-2", "isbn:9780306406157", "http://h/uri-res/N2L?urn:isbn:0-306-40615-2"},
		{"urn:nbn:de:gbv:089-3321752945", "URN:NBN:DE:GBV:089-3321752945", "https://nbn-resolving.org/urn:nbn:de:gbv:089-3321752945"},
	},
	Distinct: []string{
		// RFC 8141, section 3.2.
		"urn:example:a123,z456", "urn:example:a123,z456/foo", "urn:example:a123,z456/bar", "urn:example:a123,z456/baz",
		"urn:example:a123%2Cz456", "urn:example:A123,z456", "urn:example:a123,Z456", "urn:example:%D0%B0123,z456",
		"urn:x1:a", "urn:x1:a:", "urn:x1:%61", "urn:x2:a",
		"urn:nbn:si:doc-dux30cew", "urn:nbn:si:doc-DUX30CEW",
		"urn:nbn:de:kobv:109-1-15356869/fragment/page=1", "urn:nbn:de:kobv:109-1-15356869/fragment/Page=1",
		"urn:isbn:9780306406157", "urn:isbn:9791090636071",
	},
	Invalid: map[string]string{
		"urn:":                                  "2 to 32",
		"urn::":                                 "2 to 32",
		"urn:a:b":                               "2 to 32",
		"urn:ab":                                "a colon and a name",
		"urn:ab?+r":                             "a colon and a name",
		"urn:ab#f:x":                            "a colon and a name",
		"urn:ab:":                               "name of the URN is empty",
		"urn:-ab:c":                             "begin with a hyphen",
		"urn:ab-:c":                             "end with a hyphen",
		"urn:a_b:c":                             "'_' can't stand in a namespace identifier",
		"urn:a b:c":                             "' ' can't stand in a namespace identifier",
		"urn:ехample:c":                         "which looks like 'e'",
		"urn:urn:c":                             "write \"urn:\" once",
		"URN:Urn:isbn:0306406152":               "write \"urn:\" once",
		"urn:" + strings.Repeat("a", 33) + ":x": "it can have 32",
		"urn:lsid":                              "a colon and a name",
		"urn:x1:a b":                            "%20",
		" urn:x1:a"[1:] + " ":                   "%20",
		"urn:x1:<a>":                            "%3C",
		"urn:x1:a?b":                            "\"?+\" or \"?=\"",
		"urn:x1:a?+":                            "r-component of the URN is empty",
		"urn:x1:a?=":                            "q-component of the URN is empty",
		"urn:x1:é":                              "'é' (U+00E9) can't stand in the name",
		"urn:x1:\x00":                           "control character U+0000",
		"urn:x1:\xff":                           "not UTF-8",
		"urn:x1:a\u202eb":                       "bidirectional control character",
		"urn:x1:a%0":                            "two hexadecimal digits",
		"urn:x1:" + strings.Repeat("a", 5000):   "at most 4096",
		"https:///urn:x1:a":                     "no host",
		"https://h/urn:":                        "2 to 32",
		"https://h/urn:x1:a?+":                  "r-component of the URN is empty",
		"http://h/uri-res/N2L?urn:x1:a?foo=bar": "\"?+\" or \"?=\"",

		"urn:isbn:":                    "name of the URN is empty",
		"isbn:":                        "this has 0",
		"ISBN ":                        "this has 0",
		"urn:isbn:978030640615":        "this has 12",
		"urn:isbn:97803064061570":      "10 digits, of which the last may be X, or 13",
		"urn:isbn:0306406153":          "the check digit '3' of the ISBN is wrong",
		"urn:isbn:9780306406158":       "the check digit '8' of the ISBN is wrong",
		"urn:isbn:9770306406157":       "978 or 979",
		"urn:isbn:4006381333931":       "978 or 979",
		"urn:isbn:080442957X7":         "10 digits, of which the last may be X",
		"urn:isbn:080442X579":          "'X' can't stand in an ISBN here",
		"urn:isbn:978030640615X":       "'X' can't stand in an ISBN here",
		"urn:isbn:-9780306406157":      "singly between the digits",
		"urn:isbn:9780306406157-":      "singly between the digits",
		"urn:isbn:978--0306406157":     "singly between the digits",
		"ISBN 978  0306406157":         "singly between the digits",
		"ISBN 978 -0306406157":         "singly between the digits",
		"urn:isbn:978 0306406157":      "%20",
		"ISBN 978‐0306406157":          "which looks like '-'",
		"ISBN 978_0306406157":          "'_' can't stand in an ISBN",
		"urn:isbn:%39780306406157":     "'%' can't stand in an ISBN",
		"ISBN-10: 9780306406157":       "says ISBN-10, and has 13 digits",
		"ISBN-13 0306406152":           "says ISBN-13, and has 10 digits",
		"urn:isbn:\u202e9780000000002": "bidirectional control character",

		"urn:nbn:1":                         "two letters",
		"urn:nbn:d":                         "two letters",
		"urn:nbn:de":                        "must follow the code of the country",
		"urn:nbn:de:":                       "must follow the code of the country",
		"urn:nbn:deu:x-1":                   "must follow the code of the country",
		"urn:nbn:fi-":                       "must follow the code of the country",
		"urn:nbn:fi:x-":                     "a number must follow the hyphen",
		"urn:nbn:fi::x-1":                   "sub-namespace is empty",
		"urn:nbn:fi:x:-1":                   "sub-namespace is empty",
		"urn:nbn:de:gbv:089-3321752946":     "'6' is not the check digit of this urn:nbn:de, which is '5'",
		"urn:nbn:de:gbv:089-332175294x":     "'x' is not the check digit",
		"urn:nbn:de:gbv:089-33217529454/x=": "'=' can't stand in urn:nbn:de",
		"urn:nbn:de:gbv:089-33%32":          "'%' can't stand in urn:nbn:de",
		"urn:nbn:de:101:1-201102033593":     "is not the check digit",
		"urn:nbn:de:kobv:109-1-15356868/fragment/page=1": "is not the check digit",
		"urn:nbn:de:/fragment/5":                         "is not the check digit",
	},
	Foreign: []string{
		"urn", "urn%3Ax1%3Aa", " urn:x1:a", "urm:x1:a", "ｕｒｎ:x1:a",
		"urn:lsid:ubio.org:namebank:11815", "URN:LSID:x", "urn:hdl:10.1/2", "Urn:Doi:10.1/2", "urn:handle:10.1/2",
		"https://h/urn:lsid:ubio.org:namebank:11815", "http://h/uri-res/N2L?urn:hdl:10.1/2", "https://h/x/URN:DOI:10.1/2",
		"https://h/", "https://h", "https://h/x?y=urn:x1:a", "https://h/#urn:x1:a", "https://h/urn%3Ax1%3Aa",
		"https://doi.org/10.1000/urn:x1:a", "https://n2t.net/ark:/12345/urn:x1:a",
		"isbn", "ISBN", "isbnx", "isbn9780306406157", "ISBN-9780306406157", "ISBN-13", "isbn/9780306406157", "9780306406157",
		"ark:12345/x1", "hdl:10.1/2", "nbn:de:gbv:089-3321752945",
	},
	Parents: map[string][]string{
		"urn:paradisec:AB1:001:A":  {"urn:paradisec:ab1:001", "urn:paradisec:ab1", "urn:paradisec"},
		"urn:x1:a":                 {"urn:x1"},
		"urn:x1:a/b:c":             {"urn:x1:a/b", "urn:x1:a", "urn:x1"},
		"urn:x1:a:":                {"urn:x1:a", "urn:x1"},
		"urn:x1:a:/b//":            {"urn:x1:a:/b", "urn:x1:a", "urn:x1"},
		"urn:x1:::":                {"urn:x1"},
		"urn:x1:a-b:c-d":           {"urn:x1:a-b", "urn:x1"},
		"urn:isbn:0306406152":      {"urn:isbn"},
		"urn:nbn:hu-3006":          {"urn:nbn:hu", "urn:nbn"},
		"urn:nbn:hr:188:496570":    {"urn:nbn:hr:188", "urn:nbn:hr", "urn:nbn"},
		"urn:nbn:at:at-ubi:2-3870": {"urn:nbn:at:at-ubi", "urn:nbn:at:at", "urn:nbn:at", "urn:nbn"},
		"urn:nbn:de:101:1-2019072802401757702913": {"urn:nbn:de:101:1", "urn:nbn:de:101", "urn:nbn:de", "urn:nbn"},
		"urn:nbn:de:kobv:109-1-15356869/fragment/page=1": {
			"urn:nbn:de:kobv:109-1-15356869/fragment", "urn:nbn:de:kobv:109-1-15356869",
			"urn:nbn:de:kobv:109", "urn:nbn:de:kobv", "urn:nbn:de", "urn:nbn",
		},
	},
	Warnings: map[string]string{
		"urn:x1:a":                                "",
		"urn:x1:a?+r#f":                           "",
		"urn:x1:%2F":                              "",
		"urn:x1:%2F%41":                           "%41",
		"urn:x-acme:a":                            "registered nowhere",
		"https://h/urn:x1:a?b=c":                  "query of the URL was dropped",
		"https://h/urn:x1:a?":                     "query of the URL was dropped",
		"https://h/urn:x1:a?+b=c":                 "",
		"urn:nbn:hr:188:496570":                   "no hyphen",
		"urn:nbn:de:101:1-201102033592":           "",
		"urn:nbn:de:101:1-2020042904595660732648": "no check digit",
	},
	Positions: map[string]string{
		"urn:a_b:c":                                 "_b:c",
		"https://h.example/x/urn:x1:a b":            " b",
		"http://h/uri-res/N2L?urn:x1:a?b":           "?b",
		"https://h/urn:isbn:0-306-40615-3":          "3",
		"ISBN: 0-306-40615-3":                       "3",
		"ISBN-13: 977-0-306-40615-7":                "977-0-306-40615-7",
		"https://h/urn:nbn:de:gbv:089-3321752946?x": "6?x",
		"urn:nbn:fi:x:-1":                           "-1",
	},
	Allocations: map[string]int{
		"urn:paradisec:ab1:001:a":                                                  0,
		"URN:Example:A/b%c3%a9?+s=N2C":                                             1,
		"urn:isbn:0-306-40615-2":                                                   1,
		"urn:nbn:de:bvb:12-bsb00103137-3":                                          0,
		"urn:example:" + strings.Repeat("collection/item:", 20):                    0,
		"urn:nbn:de:gbv:3:3-171133730-30089663818490701-14/fragment/page=00000017": 0,
		"https://nbn-resolving.org/urn:nbn:de:gbv:089-3321752945":                  0,
	},
}

func TestScheme(t *testing.T) { schemetest.Run(t, New(), samples) }

func FuzzParse(f *testing.F) { schemetest.Fuzz(f, New(), samples) }

func BenchmarkParse(b *testing.B) {
	schemetest.Benchmark(b, New(), map[string]string{
		"canonical": "urn:paradisec:ab1:001:a",
		"folded":    "URN:Example:A/b%c3%a9?+s=N2C",
		"isbn":      "urn:isbn:0-306-40615-2",
		"nbn-de":    "urn:nbn:de:bvb:12-bsb00103137-3",
		"long":      "urn:example:" + strings.Repeat("collection/item:", 20),
		"long-de":   "urn:nbn:de:gbv:3:3-171133730-30089663818490701-14/fragment/page=00000017",
		"link":      "https://nbn-resolving.org/urn:nbn:de:gbv:089-3321752945",
	})
}

func TestExplain(t *testing.T) {
	components := []stele.Part{
		{Name: "r", Value: "s=N2C", Note: "for the resolver, no part of the name"},
		{Name: "q", Value: "lang=en", Note: "for the thing itself, no part of the name"},
		{Name: "f", Value: "p7", Note: "a place in the thing, no part of the name"},
	}
	for _, c := range []struct {
		text string
		want stele.Explanation
	}{
		{"urn:X1:a%2fB?+s=N2C?=lang=en#p7", stele.Explanation{
			Form:  "urn",
			Parts: append(stele.Parts{{Name: "nid", Value: "x1"}, {Name: "nss", Value: "a%2FB"}}, components...),
		}},
		{"urn:paradisec:AB1:001:A", stele.Explanation{
			Form: "urn",
			Parts: stele.Parts{
				{Name: "nid", Value: "paradisec", Note: "the archive PARADISEC"},
				{Name: "nss", Value: "ab1:001:a"},
			},
		}},
		{"urn:isbn:0-306-40615-2?+s=N2C?=lang=en#p7", stele.Explanation{
			Form: "isbn",
			Parts: append(append(stele.Parts{
				{Name: "nid", Value: "isbn", Note: "books, International Standard Book Number"},
				{Name: "nss", Value: "9780306406157"},
			}, components...),
				stele.Part{Name: "isbn10", Value: "0306406152", Note: "as before 2007"},
				stele.Part{Name: "isbn13", Value: "9780306406157"}),
			Spellings: []stele.Spelling{
				{Name: "ISBN", Text: "ISBN 9780306406157"},
				{Name: "ISBN-10", Text: "urn:isbn:0306406152"},
			},
		}},
		{"ISBN 979-10-90636-07-1", stele.Explanation{
			Form: "isbn",
			Parts: stele.Parts{
				{Name: "nid", Value: "isbn", Note: "books, International Standard Book Number"},
				{Name: "nss", Value: "9791090636071"},
				{Name: "isbn13", Value: "9791090636071"},
			},
			Spellings: []stele.Spelling{{Name: "ISBN", Text: "ISBN 9791090636071"}},
		}},
		{"urn:nbn:de:gbv:089-3321752945", stele.Explanation{
			Form: "nbn",
			Parts: stele.Parts{
				{Name: "nid", Value: "nbn", Note: "national libraries, National Bibliography Number"},
				{Name: "nss", Value: "de:gbv:089-3321752945"},
				{Name: "check", Value: "5", Note: "the German National Library's check digit, and it holds"},
			},
			Spellings: []stele.Spelling{{Name: "DNB resolver", Text: "https://nbn-resolving.org/urn:nbn:de:gbv:089-3321752945"}},
		}},
	} {
		x, err := New().Explain(c.text)
		if err != nil {
			t.Errorf("Explain(%q): %v", c.text, err)
		}
		c.want.ID = x.ID // schemetest compares it with Parse's
		if diff := cmp.Diff(c.want, x, cmp.Comparer(func(a, b stele.ID) bool { return a == b })); diff != "" {
			t.Errorf("Explain(%q):\n%s", c.text, diff)
		}
	}
}
