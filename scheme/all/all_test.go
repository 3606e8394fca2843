package all

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/purl"
	"github.com/stele-id/stele/scheme/schemetest"
)

func schemes(t testing.TB) *stele.Schemes {
	t.Helper()
	s, err := New(Config{
		Now:              func() time.Time { return time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC) },
		PURLHosts:        append(purl.DefaultHosts(), "id.example.org"),
		CheckedShoulders: []string{"12345/x9"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// texts are identifiers of all schemes, in many spellings, with hosts and paths
// that two schemes could claim.
func texts(t testing.TB) (all []string) {
	t.Helper()
	f, err := os.Open("../../docs/examples/identifiers.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if line := lines.Text(); line != "" && line[0] != '#' {
			all = append(all, line)
		}
	}
	names := slices.Clone(all)
	for _, name := range append(names, "10.1000/182", "hdl:10.1000/182", "doi:10.1000/182", "hdl:0.NA/10.1000", "urn:hdl:10.1000/182", "net/foo", "a", "1/2",
		"8JMKD3MGP8W%2F34PGRBS", "rep/mtc/2009/02.16.17.46", "dc.terms/title/2009/02.16.17.46") {
		name = strings.TrimPrefix(strings.TrimPrefix(name, "https://"), "http://")
		all = append(all, name)
		for _, host := range []string{"https://purl.org/", "https://id.example.org/", "https://doi.org/", "https://hdl.handle.net/", "http://n2t.net/", "http://urlib.net/"} {
			for _, way := range []string{"", "ibi/", "rep/", "hdl/", "doi/", "uri-res/N2L?", "ark:/12345/", "urn:a1:", "x/"} {
				all = append(all, host+way+name)
			}
		}
	}
	return append(all, schemetest.Hostile...)
}

// readBy returns which schemes read text.
func readBy(s *stele.Schemes, text string) (names []string) {
	for scheme := range s.All() {
		if _, err := scheme.Parse(text); err == nil {
			names = append(names, scheme.Name())
		}
	}
	return names
}

// documented reports whether New's comment says which of two schemes reads a text
// that both could: only URLs are such.
func documented(text, first, second string) bool {
	text = strings.ToLower(text)
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		return false
	}
	switch {
	case first == "hdl":
		return true
	case second == "ark":
		return (first == "urn" || first == "lsid") && strings.Index(text, "urn:") < strings.LastIndex(text, "ark")
	}
	return first == "ibi" && second == "purl"
}

// checkOneReader checks that no text is read by two schemes, except in the cases
// that New's comment documents, and that the list's answer is the first one's.
func checkOneReader(t schemetest.TB, s *stele.Schemes, text string) {
	t.Helper()
	readers := readBy(s, text)
	for i := 1; i < len(readers); i++ {
		if !documented(text, readers[0], readers[i]) {
			t.Errorf("%q is read by %q", text, readers)
		}
	}
	id, err := s.Parse(text)
	if err != nil {
		// A scheme that claims a text refuses it for all: no scheme after it is asked.
		for _, name := range readers {
			if !claimedBefore(s, text, name) {
				t.Errorf("%q is read by %s, but the list says %v", text, name, err)
			}
		}
		return
	}
	if len(readers) == 0 || id.Scheme() != readers[0] {
		t.Errorf("%q: the list gives %s %q, but its readers are %q", text, id.Scheme(), id, readers)
	}
}

// claimedBefore reports whether a scheme that stands before the named one claims
// text.
func claimedBefore(s *stele.Schemes, text, name string) bool {
	for scheme := range s.All() {
		if scheme.Name() == name {
			return false
		}
		if _, err := scheme.Parse(text); err != stele.ErrForeign {
			return true
		}
	}
	return false
}

func TestOneReader(t *testing.T) {
	s, all := schemes(t), texts(t)
	read := 0
	for _, text := range all {
		checkOneReader(t, s, text)
		if len(readBy(s, text)) > 0 {
			read++
		}
	}
	if read < 100 {
		t.Errorf("only %d of %d texts are identifiers; the test is blunt", read, len(all))
	}
	rapid.Check(t, func(t *rapid.T) { checkOneReader(t, s, schemetest.Change(t, all)) })
}

func FuzzOneReader(f *testing.F) {
	s := schemes(f)
	for _, text := range texts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkOneReader(t, s, text)
		for scheme := range s.All() {
			schemetest.Check(t, scheme, text)
		}
	})
}

// Which scheme reads a text that two schemes could claim.
func TestPrecedence(t *testing.T) {
	s := schemes(t)
	for text, want := range map[string]string{
		"urn:isbn:9783161484100": "urn",
		"urn:lsid:zoobank.org:act:8BDC0735-FEA4-4298-83FA-D04F67C3FBEC": "lsid",
		"urn:hdl:10.1000/182":                                  "hdl",
		"urn:doi:10.1000/182":                                  "hdl",
		"urn:handle:10.1000/182":                               "hdl",
		"10.1000/182":                                          "hdl",
		"12345/678":                                            "hdl",
		"LK47B6W/362SFKH":                                      "ibi",
		"https://id.example.org/LK47B6W/362SFKH":               "ibi", // a PURL too, by its form
		"https://id.example.org/LK47B6W/362SFKH/x":             "purl",
		"https://id.example.org/ibi/LK47B6W/362SFKH":           "ibi",
		"https://id.example.org/ark:/12345/x1":                 "ark",
		"https://id.example.org/urn:a1:b":                      "urn",
		"https://id.example.org/urn:lsid:example.org:ns:ob":    "lsid",
		"https://id.example.org/hdl/10.1000/182":               "hdl",
		"https://id.example.org/doi/10.1000/182":               "hdl",
		"https://id.example.org/hdl:10.1000/182":               "hdl",
		"https://id.example.org/net/foo":                       "purl",
		"https://purl.org/dc/terms/title":                      "purl",
		"https://doi.org/10.1000/182":                          "hdl",
		"https://hdl.handle.net/LK47B6W/362SFKH":               "hdl", // an IBI by its form
		"https://hdl.handle.net/2027/uc1.ark:/13960/t1":        "hdl",
		"https://hdl.handle.net/2027/ark:/13960/t3610x12d":     "ark",
		"https://id.example.org/hdl/10.1/ark:/12345/x1":        "ark",
		"https://hdl.handle.net/api/handles/20.1000/112":       "hdl",
		"https://dspace.mit.edu/handle/1721.1/7582":            "hdl",
		"http://purl.oclc.org/OCLC/OLUC/32127398/1":            "purl",
		"https://id.example.org/urn:hdl:10.1000/ark:/12345/x1": "hdl",
		"hdl.handle.net/0/2000/01.01.00.00":                    "hdl",
		"doi.org/10.1000/2009/02.16.17.46":                     "hdl",
		"http://urn.kb.se/resolve?urn=urn:nbn:se:uu:diva-3475": "urn",
		"http://hdl.loc.gov/loc.pnp/cph.3b46085":               "hdl",
		"https://id.example.org/ark:/12345/x1/urn:a1:b":        "ark",
		"https://id.example.org/urn:a1:b/ark:/12345/x1":        "urn",
	} {
		if id, err := s.Parse(text); err != nil || id.Scheme() != want {
			t.Errorf("%q: %s %q, %v; want %s", text, id.Scheme(), id, err, want)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{
		{PURLHosts: []string{"no host"}},
		{CheckedShoulders: []string{"x5"}},
		{CheckedShoulders: []string{"ark:1/x5"}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	s := schemes(t)
	if _, err := s.Parse("ark:12345/x9bcdf"); err == nil {
		t.Error("a configured shoulder's check character is not demanded")
	}
	if _, err := s.Parse("ark:12148/cb11928669x"); err == nil {
		t.Error("the known shoulders are forgotten where others are configured")
	}
}

// Each scheme reads with few allocations through the whole list.
func TestAllocations(t *testing.T) {
	s := schemes(t)
	for _, text := range append(texts(t), "https://purl.org/x/doi.org/10.1000/182") {
		if _, err := s.Parse(text); err != nil {
			continue
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = s.Parse(text) }); n > 3 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}
