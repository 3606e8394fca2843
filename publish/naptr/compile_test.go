package naptr

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/scheme/all"
)

// TestExpression checks that expression writes what package ddds would write.
func TestExpression(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		id := "urn:example:" + rapid.StringMatching(`[-_A-Za-z0-9.:/%$()*+,;=@!'\\^|?{}\[\]]{1,120}`).Draw(t, "id")
		url := "http://example.org/" + rapid.StringMatching(`[!-~]{0,200}`).Draw(t, "url")
		ere, fold := identifierPattern(schemes, "urn", id, rapid.Bool().Draw(t, "tells"))
		field, ok := expression(ere, url, fold)
		e, err := ddds.NewExpression(ere, ddds.QuoteReplacement(url), fold)
		if ok != (err == nil) || ok && e.String() != field {
			t.Fatalf("%q, %v; package ddds says %v, %v", field, ok, e, err)
		}
		if !ok {
			return
		}
		if got, matched, err := e.Apply(id); err != nil || !matched || got != url {
			t.Fatalf("%q gives %q, %v, %v; want %q", field, got, matched, err, url)
		}
	})
}
