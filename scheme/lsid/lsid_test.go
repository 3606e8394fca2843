package lsid

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/schemetest"
)

var samples = schemetest.Samples{
	Canonical: map[string]string{
		"urn:lsid:ubio.org:namebank:11815":                                                    "urn:lsid:ubio.org:namebank:11815",
		"URN:LSID:UBIO.org:namebank:11815":                                                    "urn:lsid:ubio.org:namebank:11815",
		"urn:lsid:ncbi.nlm.nih.gov:GenBank:T48601:2":                                          "urn:lsid:ncbi.nlm.nih.gov:GenBank:T48601:2",
		"urn:lsid:ebi.ac.uk:SWISS-PROT.accession:P34355:3":                                    "urn:lsid:ebi.ac.uk:SWISS-PROT.accession:P34355:3",
		"urn:lsid:ipni.org:names:30000959-2":                                                  "urn:lsid:ipni.org:names:30000959-2",
		"urn:lsid:marinespecies.org:taxname:127160":                                           "urn:lsid:marinespecies.org:taxname:127160",
		"urn:lsid:catalogueoflife.org:taxon:d79c11aa-29c1-102b-9a4a-00304854f820:col20120721": "urn:lsid:catalogueoflife.org:taxon:d79c11aa-29c1-102b-9a4a-00304854f820:col20120721",
		"urn:lsid:Example.org:a%2fB:%c3%A9:~!$&'()*+,;=@":                                     "urn:lsid:example.org:a%2FB:%C3%A9:~!$&'()*+,;=@",
		"urn:lsid:localhost:a:b":                                                              "urn:lsid:localhost:a:b",
		"urn:lsid:ubio.org:namebank:11815?+s=N2C?=x=y#f":                                      "urn:lsid:ubio.org:namebank:11815",
		"lsidres:urn:lsid:ubio.org:namebank:11815":                                            "urn:lsid:ubio.org:namebank:11815",
		"LSIDRES:Urn:Lsid:Ubio.Org:namebank:11815":                                            "urn:lsid:ubio.org:namebank:11815",
		"http://zoobank.org/urn:lsid:zoobank.org:act:8BDC0735-FEA4-4298-83FA-D04F67C3FBEC":    "urn:lsid:zoobank.org:act:8BDC0735-FEA4-4298-83FA-D04F67C3FBEC",
		"https://lsid.tdwg.org/urn:lsid:ubio.org:namebank:11815":                              "urn:lsid:ubio.org:namebank:11815",
		"http://lsid.tdwg.org/?urn:lsid:zoobank.org:act:1234":                                 "urn:lsid:zoobank.org:act:1234",
		"http://lsid.info/urn:lsid:biodiversity.org.au:afd.taxon:31d764a9":                    "urn:lsid:biodiversity.org.au:afd.taxon:31d764a9",
		"http://h.example/a/b/urn:lsid:ubio.org:namebank:1?format=rdf#x":                      "urn:lsid:ubio.org:namebank:1",
		"http://h.example/uri-res/N2L?urn:lsid:ubio.org:namebank:1":                           "urn:lsid:ubio.org:namebank:1",
	},
	Same: [][]string{
		{
			"urn:lsid:ipni.org:names:1:2", "URN:LSID:IPNI.ORG:names:1:2", "lsidres:urn:lsid:ipni.org:names:1:2",
			"http://lsid.tdwg.org/urn:lsid:ipni.org:names:1:2", "http://h/uri-res/N2C?urn:lsid:ipni.org:names:1:2#f",
		},
	},
	Distinct: []string{
		"urn:lsid:ipni.org:names:a", "urn:lsid:ipni.org:names:A", "urn:lsid:ipni.org:Names:a", "urn:lsid:ipni.org:names:a:1",
		"urn:lsid:ipni.org:names:%61", "urn:lsid:www.ipni.org:names:a", "urn:lsid:ipni.org:names:a:1.0",
	},
	Invalid: map[string]string{
		"urn:lsid:":                                        "name of the URN is empty",
		"urn:lsid:ubio.org":                                "a colon and the namespace must follow the authority",
		"urn:lsid:ubio.org:namebank":                       "a colon and the object must follow the namespace",
		"urn:lsid::namebank:1":                             "the authority is empty",
		"urn:lsid:ubio.org::1":                             "the namespace is empty",
		"urn:lsid:ubio.org:namebank:":                      "the object is empty",
		"urn:lsid:ubio.org:namebank::1":                    "the object is empty",
		"urn:lsid:ubio.org:namebank:1:":                    "the revision is empty",
		"urn:lsid:ubio.org:namebank:1:2:":                  "nothing can follow the revision",
		"urn:lsid:ubio.org:a:b:c:d":                        "nothing can follow the revision",
		"urn:lsid:ubio.org.:a:b":                           "a label is missing",
		"urn:lsid:ubio..org:a:b":                           "'.' can't stand here",
		"urn:lsid:-ubio.org:a:b":                           "'-' can't stand here",
		"urn:lsid:ubio_x.org:a:b":                          "'_' can't stand here",
		"urn:lsid:ub%69o.org:a:b":                          "'%' can't stand here",
		"urn:lsid:" + strings.Repeat("a", 64) + ".org:a:b": "can't stand here",
		"urn:lsid:ubiо.org:a:b":                            "which looks like 'o'",
		"urn:lsid:ubio.org:a:b/c":                          "%2F",
		"http://h/urn:lsid:ubio.org:a:b/":                  "%2F",
		"urn:lsid:ubio.org:a:b c":                          "%20",
		"urn:lsid:ubio.org:a:b%2":                          "two hexadecimal digits",
		"urn:lsid:ubio.org:a:b?x":                          "\"?+\" or \"?=\"",
		"urn:lsid:ubio.org:a:b?+":                          "r-component of the URN is empty",
		"urn:lsid:ubio.org:a:b?=":                          "q-component of the URN is empty",
		"lsidres:urn:lsid:ubio.org:a:b?x":                  "\"?+\" or \"?=\"",
		"lsidres:":                                         "must follow",
		"lsidres:urn:isbn:0306406152":                      "must follow",
		"lsidres:ubio.org:a:b":                             "must follow",
		"http:///urn:lsid:ubio.org:a:b":                    "no host",
		"urn:lsid:ubio.org:a:\x00":                         "control character",
		"urn:lsid:ubio.org:a:\xff":                         "not UTF-8",
		"urn:lsid:ubio.org:a:\u202eb":                      "bidirectional control character",
		"urn:lsid:ubio.org:a:" + strings.Repeat("b", 5000): "at most 4096",
	},
	Foreign: []string{
		"urn:lsid", "urn:lsidx:a", "urn:isbn:0306406152", "lsid:ubio.org:a:b", "lsidres", "urn%3Alsid%3Aubio.org%3Aa%3Ab",
		"http://ubio.org/", "http://h/urn:x1:urn:lsid:ubio.org:a:b", "http://h/?lsid=urn:lsid:ubio.org:a:b",
		"http://h/#urn:lsid:ubio.org:a:b", "https://doi.org/10.1/urn:lsid:ubio.org:a:b", "ark:12345/x", " urn:lsid:ubio.org:a:b",
	},
	Parents: map[string][]string{
		"urn:lsid:Ubio.org:namebank:11815":           {"urn:lsid:ubio.org:namebank", "urn:lsid:ubio.org"},
		"urn:lsid:ncbi.nlm.nih.gov:GenBank:T48601:2": {"urn:lsid:ncbi.nlm.nih.gov:GenBank:T48601", "urn:lsid:ncbi.nlm.nih.gov:GenBank", "urn:lsid:ncbi.nlm.nih.gov"},
	},
	Warnings: map[string]string{
		"urn:lsid:ubio.org:a:b%2F?+r":               "",
		"http://h/urn:lsid:ubio.org:a:b":            "",
		"http://h/urn:lsid:ubio.org:a:b?format=rdf": "query of the URL was dropped",
		"urn:lsid:localhost:a:b":                    "not a full domain name",
		"urn:lsid:ubio.org:a:%62":                   "%62",
	},
	Positions: map[string]string{
		"urn:lsid:ubio.org:namebank":                "",
		"urn:lsid:ubio.org::1":                      ":1",
		"urn:lsid:ubio.org:a:b:":                    "",
		"urn:lsid:ubio.org:a:b:c:d":                 ":d",
		"lsidres:urn:lsid:ubio_x.org:a:b":           "_x.org:a:b",
		"lsidres:x":                                 "x",
		"http://h/x/urn:lsid:ubio.org:a:b c":        " c",
		"http://h/uri-res/N2L?urn:lsid:ubio.org::1": ":1",
	},
	Allocations: map[string]int{
		"urn:lsid:zoobank.org:act:8BDC0735-FEA4-4298-83FA-D04F67C3FBEC":                    0,
		"URN:LSID:Ubio.org:namebank:11815%2f":                                              1,
		"http://zoobank.org/urn:lsid:zoobank.org:act:8BDC0735-FEA4-4298-83FA-D04F67C3FBEC": 0,
	},
}

func TestScheme(t *testing.T) { schemetest.Run(t, New(), samples) }

func FuzzParse(f *testing.F) { schemetest.Fuzz(f, New(), samples) }

func BenchmarkParse(b *testing.B) {
	schemetest.Benchmark(b, New(), map[string]string{
		"canonical": "urn:lsid:zoobank.org:act:8BDC0735-FEA4-4298-83FA-D04F67C3FBEC",
		"folded":    "URN:LSID:Ubio.org:namebank:11815%2f",
		"link":      "http://zoobank.org/urn:lsid:zoobank.org:act:8BDC0735-FEA4-4298-83FA-D04F67C3FBEC",
	})
}

func TestExplain(t *testing.T) {
	got, err := New().Explain("http://h/URN:LSID:NCBI.nlm.nih.gov:GenBank:T48601:2?+s=N2C?=x#f")
	if err != nil {
		t.Fatal(err)
	}
	const canonical = "urn:lsid:ncbi.nlm.nih.gov:GenBank:T48601:2"
	want := stele.Explanation{
		ID:   got.ID,
		Form: "lsid",
		Parts: stele.Parts{
			{Name: "authority", Value: "ncbi.nlm.nih.gov"},
			{Name: "namespace", Value: "GenBank"},
			{Name: "object", Value: "T48601"},
			{Name: "revision", Value: "2"},
			{Name: "r", Value: "s=N2C", Note: "for the resolver, no part of the name"},
			{Name: "q", Value: "x", Note: "for the thing itself, no part of the name"},
			{Name: "f", Value: "f", Note: "a place in the thing, no part of the name"},
		},
		Spellings: []stele.Spelling{
			{Name: "TDWG proxy", Text: "http://lsid.tdwg.org/" + canonical},
			{Name: "lsidres", Text: "lsidres:" + canonical},
		},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b stele.ID) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if got.ID.String() != canonical {
		t.Errorf("canonical text %q", got.ID)
	}
	got, err = New().Explain("urn:lsid:ubio.org:namebank:11815")
	if err != nil || len(got.Parts) != 3 {
		t.Errorf("without revision: %v, %v", got.Parts, err)
	}
}

func TestDiscovery(t *testing.T) {
	s := New().(Scheme)
	for prefix, want := range map[string]string{
		"urn:lsid:example.org":      "_lsid._tcp.example.org.",
		"urn:lsid:example.org:ns":   "_lsid._tcp.example.org.",
		"urn:lsid:example.org:ns:a": "_lsid._tcp.example.org.",
		"":                          "",
	} {
		if got := s.Discovery(prefix); got != want {
			t.Errorf("%s: %q", prefix, got)
		}
	}
}
