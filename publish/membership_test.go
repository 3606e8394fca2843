package publish_test

import (
	"testing"

	"github.com/stele-id/stele/publish/publishtest"
)

// TestMembership asks that a zone has the identifiers whose zone it is, and no others,
// whether it is alone or others are below it, or beside it with a name that begins the
// same.
func TestMembership(t *testing.T) {
	for _, prefixes := range [][]string{
		{"urn:paradisec", "ark:12345", "urn:isbn"},
		{"urn:paradisec", "urn:paradisec:ab1", "urn:paradisecs"},
		{"urn:nbn:de", "urn:nbn", "ark:12345/x5", "ark:12345"},
		{"urn:isbn", "urn:example", "urn:example:x"},
	} {
		p := publishtest.New(t)
		for i, prefix := range prefixes {
			p.Publish(prefix, string(rune('a'+i))+".example.", "/", 1)
		}
		zones, err := p.Zones.All(p.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		found := make(map[string]int)
		for _, head := range append([]string{"urn:paradise", "urn:paradisecs", "ark:1234", "ark:12346", "urn:example:xy"}, prefixes...) {
			for _, rest := range []string{"", "a", "x5", ":a", ":ab1", ":ab1:a", ":x:a", "/a", "/x5", "/x5a", "/x6/a", "/x5/a", ":de:101:1-2019", ":101:1-2019", ":fi:tkk-004781", ":bvb:19-146642", ":9783161484100", "s:a"} {
				id, err := p.Schemes.Parse(head + rest)
				if err != nil {
					continue
				}
				home, err := p.Zones.ZoneOf(p.Ctx, id)
				if err != nil {
					t.Fatal(err)
				}
				for _, z := range zones {
					got, want := z.Has(id), home == z
					if got != want {
						t.Errorf("%s is in %s: %v, and its zone is: %v", id, z.Name, got, want)
					}
					if want {
						found[z.Name]++
					}
				}
			}
		}
		if len(found) != len(prefixes) {
			t.Errorf("of %q there are names in %v only", prefixes, found)
		}
	}
}
