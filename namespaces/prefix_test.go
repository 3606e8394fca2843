package namespaces

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

func TestParsePrefix(t *testing.T) {
	schemes := newSchemes(t)
	for _, tt := range []struct{ text, scheme, prefix string }{
		{"urn:paradisec", "urn", "urn:paradisec"},
		{"URN:Paradisec", "urn", "urn:paradisec"},
		{"urn:example:a/b", "urn", "urn:example:a/b"},
		{"urn:isbn", "urn", "urn:isbn"},
		{"urn:nbn:de", "urn", "urn:nbn:de"},
		{"urn:nbn:de:101", "urn", "urn:nbn:de:101"},
		{"urn:nbn:fi", "urn", "urn:nbn:fi"},
		{"urn:uuid", "urn", "urn:uuid"},
		{"ark:12345", "ark", "ark:12345"},
		{"ark:12345/x5", "ark", "ark:12345/x5"},
		{"ARK:/12345/x5", "ark", "ark:12345/x5"},
		{"https://n2t.net/ark:/12345/x5", "ark", "ark:12345/x5"},
		{"ark:12345/name", "ark", "ark:12345/name"},
		{"ark:13960/t", "ark", "ark:13960/t"}, // of qualifiers: it has no first digit
		{"ark:/12345/", "ark", "ark:12345"},
		{"ark:12148/cb3", "ark", "ark:12148/cb3"}, // names below it end in a check character
		{"urn", "ibi", "urn"},
		{"rep/mtc/2009", "ibi", "rep/mtc/2009"},
		{"ibi/8JMKD3MGP8W", "ibi", "8JMKD3MGP8W"},
		{"https://nbn-resolving.org/urn:nbn:de:101", "urn", "urn:nbn:de:101"},
		{"br", "ibi", "br"},
		{"102.100.272/", "hdl", "102.100.272/"},
		{"hdl:102.100.272/", "hdl", "102.100.272/"},
		{"102.100.272/a", "hdl", "102.100.272/A"},
		{"hdl:0.NA/", "hdl", "hdl:0.NA/"},
		{"10.1000/", "hdl", "10.1000/"},
		{"sid.inpe.br/mtc-m18", "ibi", "sid.inpe.br/mtc-m18"},
		{"SID.inpe.br/mtc-m18.8080", "ibi", "sid.inpe.br/mtc-m18.8080"},
		{"sid.inpe.br", "ibi", "sid.inpe.br"},
		{"sid.inpe.br/mtc-m18/2009", "ibi", "sid.inpe.br/mtc-m18/2009"},
		{"8JMKD3MGP8W", "ibi", "8JMKD3MGP8W"},
		{"8jmkd3mgp8w", "ibi", "8JMKD3MGP8W"},
		{"https://purl.org/net/", "purl", "https://purl.org/net/"},
		{"http://purl.org/net/", "purl", "https://purl.org/net/"},
		{"https://purl.org/net", "purl", "https://purl.org/net"},
		{"https://purl.org/", "purl", "https://purl.org/"},
		{"urn:lsid:ubio.org", "lsid", "urn:lsid:ubio.org"},
		{"urn:lsid:ubio.org:namebank", "lsid", "urn:lsid:ubio.org:namebank"},
		{"ark:", "ark", ""},
		{"urn:", "urn", ""},
	} {
		key, err := ParsePrefix(schemes, tt.text)
		if want := (stele.NamespaceKey{Scheme: tt.scheme, Prefix: tt.prefix}); err != nil || key != want {
			t.Errorf("%s: %+v, %v; want %+v", tt.text, key, err, want)
		}
	}
	for _, tt := range []struct{ text, says string }{
		{"", "no text"},
		{"urn:paradisec:", `"urn:paradisec"`},
		{"urn:nbn:de:bvb:", `"urn:nbn:de:bvb"`},
		{"102.100.272", `"102.100.272/"`},
		{"sid.inpe.br/mtc-m18.80", "not a prefix"},
		{"sid.inpe.br/mtc-m18/", `"sid.inpe.br/mtc-m18"`},
		{"sid.inpe.br/mtc-m18/2009/02.16.17.46", "not a prefix"},
		{"8JMKD3MGP8W/", `"8JMKD3MGP8W"`},
		{"ark:12345/x5?", "not a prefix"},
		{"https://purl.org/net/?a=", "not a prefix"},
		{"https://purl.org/net/#", "not a prefix"},
		{"https://example.org/net/", "not a prefix"},
		{"https://example.org/net", "not a prefix"},
		{"urn:lsid:", "not a prefix"},
		{"doi:", "not a prefix"},
		{"https:", "not a prefix"},
		{"x y", "not a prefix"},
		{"ark:1234", "this NAAN has 4 characters"},
		{"a\x00b", "control character"},
	} {
		key, err := ParsePrefix(schemes, tt.text)
		if err == nil {
			t.Errorf("%q is a prefix, %v", tt.text, key)
			continue
		}
		if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.says)
		}
	}
}

// TestPrefixesAreParents holds the rule against the schemes: whatever is a prefix
// is a parent of the name below it, and reads as itself.
func TestPrefixesAreParents(t *testing.T) {
	schemes := newSchemes(t)
	for _, text := range []string{
		"urn:paradisec:sds:5", "ark:12345/x54xz321/s3/f8.05v", "20.500.12345/A/B", "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
		"8JMKD3MGP8W/34PGRBS", "https://purl.org/net/a/b", "urn:lsid:ubio.org:namebank:11815:2", "urn:nbn:de:101:1-201102033592",
		"urn:isbn:9780306406157",
	} {
		id, err := schemes.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		for p := range schemes.Parents(id) {
			key, below, err := ReadPrefix(schemes, p.String())
			if err != nil || key.Prefix != p.String() || key.Scheme != id.Scheme() {
				t.Errorf("%s of %s: %+v, %v", p, id, key, err)
				continue
			}
			if !strings.HasPrefix(below.String(), p.String()) {
				t.Errorf("%s is said to be below %s", below, p)
			}
		}
	}
}

// TestIsBelow: a namespace is not below another one since a name right below it is.
func TestIsBelow(t *testing.T) {
	schemes := newSchemes(t)
	for _, tt := range []struct {
		prefix, namespace string
		want              bool
	}{
		{"ark:12345", "ark:12345", true},
		{"ark:12345/x", "ark:12345", true},
		{"ark:12345/x", "ark:12345/x", true},
		{"ark:12345", "ark:12345/x", false},
		{"ark:12345/x5", "ark:12345/x5x", false},
		{"urn:example", "urn:example:x", false},
		{"urn:example:x", "urn:example", true},
		{"20.500.1/", "20.500.1/X", false},
		{"ark:12346", "ark:12345", false},
		{"no prefix", "ark:12345", false},
	} {
		if got := IsBelow(schemes, tt.prefix, tt.namespace); got != tt.want {
			t.Errorf("%s below %s: %t", tt.prefix, tt.namespace, got)
		}
	}
}
