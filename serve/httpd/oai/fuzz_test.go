package oai

import (
	"encoding/xml"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/all"
)

// FuzzArguments: any query gives arguments or a fault, any token one that is written so, and any identifier a name that is
// written so. An answer with them is XML.
func FuzzArguments(f *testing.F) {
	generation := stele.GenerationID{1}
	f.Add("verb=ListRecords&metadataPrefix=oai_dc&from=2026-01-01&until=2026-01-02&set=ark.12345~2Fx5")
	f.Add("verb=ListRecords&resumptionToken=" + (&token{Generation: generation.String(), Format: "oai_dc", Scheme: "ark", After: "ark:12345/x", Count: 3}).String())
	f.Add("verb=GetRecord&metadataPrefix=oai_dc&identifier=hdl:20.500.1%2FA%00%ff")
	f.Add("verb=%zz&verb=&&=")
	schemes, err := all.New(all.Config{Now: func() time.Time { return time.Unix(1, 0) }})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, query string) {
		a, bad := parseArguments(query)
		var w writer
		body := w.document(time.Unix(1, 0), "http://localhost", &a, bad)
		if err := xml.Unmarshal(body, new(struct{})); err != nil && bad == nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if one, bad := parseToken(a.get("resumptionToken"), generation); bad == nil && one.String() != a.get("resumptionToken") {
			t.Errorf("%+v", one)
		}
		if id, ok := parseIdentifier(schemes, a.get("identifier")); ok && identifier(id) != a.get("identifier") {
			t.Errorf("%s", id)
		}
		_, _, _ = parseDates(a.get("from"), a.get("until"))
	})
}

// TestIdentifiers: the identifiers of all schemes are URIs and lead back, and sets of namespaces have names that sets can have.
func TestIdentifiers(t *testing.T) {
	schemes, err := all.New(all.Config{Now: func() time.Time { return time.Unix(1, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"ark:12345/x5": "ark:12345/x5", "20.500.1/A b|c": "", "10.1000/182": "", "urn:isbn:9780395363416": "", "urn:lsid:example.org:birds:robin": "",
		"urlib.net/www/2011/03.29.20.55": "", "20.500.1/é%41": "", "20.500.1/a:b": "",
	} {
		id, err := schemes.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		uri := identifier(id)
		if back, ok := parseIdentifier(schemes, uri); !ok || back != id || !isURI(uri) || want != "" && uri != want {
			t.Errorf("%s is %s, which is %s", text, uri, back)
		}
		if set := setSpec(stele.NamespaceKey{Scheme: id.Scheme(), Prefix: id.String()}); !isSetSpec(set) {
			t.Errorf("%s: %s", id, set)
		}
	}
}
