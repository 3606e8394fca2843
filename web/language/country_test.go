package language

import "testing"

// TestCountry names countries in the languages of pages.
func TestCountry(t *testing.T) {
	catalog, err := New()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ tag, code, want string }{
		{"en", "BR", "Brazil"}, {"pt-BR", "DE", "Alemanha"}, {"pt-BR", "BR", "Brasil"}, {"pt-BR", "VN", "Vietnã"}, {"en", "CI", "Côte d’Ivoire"},
		{"en", "", ""}, {"en", "XX", "XX"}, {"en", "EU", "EU"}, {"en", "419", "419"}, {"en", "b<", "b<"},
	} {
		if have := catalog.Get(c.tag).Country(c.code); have != c.want {
			t.Errorf("%s in %s: %q, want %q", c.code, c.tag, have, c.want)
		}
	}
}
