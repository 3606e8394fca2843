package zonemap_test

import (
	"fmt"
	"testing"

	"github.com/stele-id/stele/namespaces"
	"github.com/stele-id/stele/publish/zonemap"
	"github.com/stele-id/stele/scheme/all"
)

func TestKeyOf(t *testing.T) {
	schemes, err := all.New(all.Config{PURLHosts: []string{"purl.example.org", "localhost:8080", "192.0.2.1"}})
	if err != nil {
		t.Fatal(err)
	}
	for prefix, want := range map[string]string{
		"urn:paradisec":                 "{urn [paradisec] } true",
		"urn:paradisec:ab1":             "{urn [paradisec] } true",
		"urn:lsid:example.org:x":        "{urn [lsid] } true",
		"ark:12345/x5":                  "{ark [12345] } true",
		"20.500.99999/":                 "{uri [hdl] } true",
		"hdl:0.NA/":                     "{uri [hdl] } true",
		"10.5072/":                      "{uri [doi hdl] } true",
		"https://purl.example.org/net/": "{uri [https http] purl.example.org.} true",
		"http://localhost:8080/net/":    "{uri [https http] localhost.} true",
		"https://192.0.2.1/net/":        "{uri [https http] 192.0.2.1.} false",
		"sid.inpe.br/mtc-m18@80":        "{ [] } false",
	} {
		ns, err := namespaces.ParsePrefix(schemes, prefix)
		if err != nil {
			t.Fatal(err)
		}
		key, ok := zonemap.KeyOf(schemes, ns)
		if got := fmt.Sprint(key, ok); got != want {
			t.Errorf("the key of %q is %s, not %s", prefix, got, want)
		}
	}
}
