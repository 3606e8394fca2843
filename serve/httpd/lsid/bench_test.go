package lsid_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stele-id/stele"
)

// BenchmarkMetadata compares getMetadata by HTTP GET with the JSON-LD of the same record: it should cost at most twice as
// much.
func BenchmarkMetadata(b *testing.B) {
	a := newAuthority(b)
	a.put(one, stele.Record{Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Type: "text/html"}},
		Metadata: stele.Metadata{"who": "Lima, A.; Souza, B.", "what": "Birds of the rivers of Pará", "when": "2024-05-17", "type": "dataset", "publisher": "Example Press", "subject": "birds; rivers"}})
	for name, target := range map[string]struct{ path, accept string }{
		"jsonld":   {"/" + one, "application/ld+json"},
		"rdfxml":   {"/" + one, "application/rdf+xml"},
		"lsid":     {"/authority/metadata?lsid=" + one, ""},
		"services": {"/authority/?lsid=" + one, ""},
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, target.path, nil)
			r.Host = "id.example.org"
			if target.accept != "" {
				r.Header.Set("Accept", target.accept)
			}
			b.ReportAllocs()
			for b.Loop() {
				w := httptest.NewRecorder()
				a.handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Code, w.Body)
				}
			}
		})
	}
}
