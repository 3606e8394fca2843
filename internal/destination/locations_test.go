package destination

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

const sampleLocations = `<?xml version="1.0" encoding="UTF-8"?>
<locations chooseby="locatt,country,weighted" http_sc="303">
  <!-- comment -->
  <location id="0" href="https://a.example.org/1" country="gb" weight="0"/>
  <location id="1" href="https://b.example.org/?a=1&amp;b=2" weight="0.5" http_sc="307"><note>x</note></location>
  <LOCATION id="2" href_template="https://c.example.org/{hdl}?p={hdl:path}" role="metadata"/>
  <other href="https://d.example.org/"/>
</locations>`

func TestParseLocations(t *testing.T) {
	l, err := ParseLocations([]byte(sampleLocations))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range l.List {
		one := &l.List[i]
		href, ok := one.Href("10.1/A b")
		got = append(got, fmt.Sprintf("%s %s %t %d %d", one.Get("id"), href, ok, one.weight, l.RedirectStatus(one)))
	}
	want := []string{
		"0 https://a.example.org/1 true 0 303",
		"1 https://b.example.org/?a=1&b=2 true 500 307",
		"2 https://c.example.org/10.1%2FA%20b?p=10.1/A%20b true 1000 303",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || l.chooseBy != "locatt,country,weighted" {
		t.Errorf("chosen by %q:\n%s", l.chooseBy, strings.Join(got, "\n"))
	}
}

func TestParseLocationsRefuses(t *testing.T) {
	many := strings.Repeat(`<location href="https://x/"/>`, MaxLocations+1)
	for name, text := range map[string]string{
		"nothing":           "",
		"text":              "https://example.org/",
		"two lists":         "<locations/><locations/>",
		"not closed":        "<locations><location>",
		"closed wrongly":    "<locations><location></locations></location>",
		"a document type":   `<!DOCTYPE x [<!ENTITY a "aaaa">]><locations><location href="&a;"/></locations>`,
		"an entity":         `<locations><location href="&a;"/></locations>`,
		"another encoding":  `<?xml version="1.0" encoding="UTF-16"?><locations/>`,
		"not UTF-8":         "<locations a=\"\xff\"/>",
		"too deep":          strings.Repeat("<a>", maxLocationDepth+1) + strings.Repeat("</a>", maxLocationDepth+1),
		"too many":          "<l>" + many + "</l>",
		"too many atts":     "<l " + strings.Repeat(`a="1" `, maxLocationAtts+1) + "/>",
		"too long":          "<l>" + strings.Repeat(" ", stele.MaxData) + "</l>",
		"control character": "<l a=\"\x01\"/>",
	} {
		if l, err := ParseLocations([]byte(text)); err == nil {
			t.Errorf("%s: got %+v", name, l)
		}
	}
}

func TestParseWeight(t *testing.T) {
	for text, want := range map[string]int{
		"1": 1000, " 0.25 ": 250, "0": 0, "-1": 0, "": 0, "x": 0, "NaN": 0, "Inf": 1e9, "1e300": 1e9, "0.00001": 1,
	} {
		if got := parseWeight(text); got != want {
			t.Errorf("parseWeight(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestChooseLocation(t *testing.T) {
	list := func(chooseBy string) *Locations {
		l, err := ParseLocations([]byte(`<locations choose_by="` + chooseBy + `">
			<location id="a" href="https://a/" weight="1" lang="en" kind="x"/>
			<location id="b" href="https://b/" weight="2" lang="pt" kind="x"/>
			<location id="c" href="https://c/" weight="0" lang="en" kind="y"/></locations>`))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, tt := range []struct {
		by     string
		wanted string // with commas between
		draw   int    // in thousandths; -1: nothing is to be drawn
		want   string
	}{
		{"", "", 0, "a"},
		{"", "", 999, "a"},
		{"", "", 1000, "b"},
		{"", "", 2999, "b"},
		{"locatt,country,weighted", "id:c", -1, "c"},
		{"locatt", "lang:en", 999, "a"}, // of a and c, c weighs nothing
		{"locatt", "lang:en,kind:y", -1, "c"},
		{"locatt", "lang", 1500, "b"}, // all have one
		{"locatt", "lang:de", 1500, "b"},
		{"locatt", "lang:de,kind:y", -1, "c"},
		{"weighted", "id:c", 0, "a"}, // the owner wants it so
		{"weighted,locatt", "id:c", 0, "a"},
		{" LocAtt , Weighted", "id: c,id:c", -1, "c"},
		{"country,address", "id:c", 1000, "b"},
	} {
		wanted := strings.Split(tt.wanted, ",")
		if tt.wanted == "" {
			wanted = nil
		}
		one, ok := list(tt.by).Choose(wanted, func(n int) int {
			if tt.draw < 0 || tt.draw >= n {
				t.Errorf("%+v: drawn from %d", tt, n)
				return 0
			}
			return tt.draw
		})
		if !ok || one.Get("id") != tt.want {
			t.Errorf("%+v: got %v", tt, one)
		}
	}
	if one, ok := new(Locations).Choose(nil, nil); ok {
		t.Errorf("of nothing %v was chosen", one)
	}
	nothing := &Locations{List: []Location{Spare("https://a/"), Spare("https://b/")}}
	if one, ok := nothing.Choose(nil, func(n int) int { return n - 1 }); !ok || one.Get("href") != "https://b/" {
		t.Errorf("of two without weight: %v", one)
	}
}

// For any XML, ParseLocations returns a list within its limits, or an error; and a chosen
// location can stand in a header.
func FuzzParseLocations(f *testing.F) {
	f.Add([]byte(sampleLocations), "id:1", 7)
	f.Add([]byte(`<locations><location href="javascript:alert(1)"/><location href="https://x/&#13;&#10;a: b"/></locations>`), "", 0)
	f.Add([]byte(`<!DOCTYPE a><locations/>`), ":", 1)
	f.Add([]byte(`<a:locations xmlns:a="x"><a:location href="//h" weight="-1"/></a:locations>`), "href", 3)
	f.Fuzz(func(t *testing.T, data []byte, locatt string, draw int) {
		l, err := ParseLocations(data)
		if err != nil {
			return
		}
		if len(l.List) > MaxLocations {
			t.Fatalf("%d locations", len(l.List))
		}
		var safe Locations
		safe.Merge(l, "10.1/\r\n<>\"")
		one, ok := safe.Choose([]string{locatt}, func(n int) int {
			if n <= 0 {
				t.Fatalf("drawn from %d", n)
			}
			return int(uint(draw) % uint(n))
		})
		if !ok {
			return
		}
		href, ok := one.Href("10.1/\r\n<>\"")
		if !ok || strings.ContainsFunc(href, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("%q was chosen: %t", href, ok)
		}
	})
}
