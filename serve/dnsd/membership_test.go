package dnsd

import (
	"testing"

	"pgregory.net/rapid"
)

// TestMembership asks that a zone has the identifiers whose zone it is, and no others,
// whether it is alone or others are below it, or beside it with a name that begins the
// same.
func TestMembership(t *testing.T) {
	for _, prefixes := range [][]string{
		{"urn:paradisec", "ark:12345", "hdl:102.100.272/"},
		{"urn:paradisec", "urn:paradisec:ab1", "urn:paradisecs"},
		{"urn:nbn:de", "urn:nbn", "ark:12345/x5", "ark:12345"},
		{"urn:isbn", "urn:example", "urn:example:x"},
	} {
		p := newPress(t)
		for i, prefix := range prefixes {
			p.publish(prefix, string(rune('a'+i))+".example.", "/", 1)
		}
		set, err := p.zones.current(p.ctx)
		if err != nil {
			t.Fatal(err)
		}
		heads := append([]string{"urn:paradise", "ark:1234", "hdl:102.100.27/"}, prefixes...)
		found := 0
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.SampledFrom(heads).Draw(t, "head") + rapid.StringMatching(`[:/]?[ax5]{0,4}([:/]x5?[0-9]?)?|:de:[1-3]{3}-[0-9]{4}|:978316148410[0-9]`).Draw(t, "rest")
			id, err := p.schemes.Parse(text)
			if err != nil {
				return
			}
			for _, name := range set.order {
				z := set.zones[name]
				got, want := z.membership().has(id), set.zoneOf(id) == z
				if got != want {
					t.Fatalf("%s is in %s: %v, and its zone is: %v", id, name, got, want)
				}
				if want {
					found++
				}
			}
		})
		if found < 10 {
			t.Errorf("only %d identifiers of %q were in a zone", found, prefixes)
		}
	}
}

// TestOwnerMemory asks that the name of an owner is all that is made for it.
func TestOwnerMemory(t *testing.T) {
	c, schemes := testCut(t, "urn", "urn:paradisec", "paradisec.example.", ":", 3)
	id, err := schemes.Parse("urn:paradisec:AB1:001:A.wav")
	if err != nil {
		t.Fatal(err)
	}
	text := id.String()
	if n := testing.AllocsPerRun(100, func() { _, _ = c.owner(text) }); n > 1 {
		t.Errorf("%v pieces of memory", n)
	}
}
