package desk

import (
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web"
)

// TestKeepsAll: a form that is saved as it was shown changes nothing of the record, whatever it has.
func TestKeepsAll(t *testing.T) {
	s := newSite(t)
	rec := &stele.Record{ID: must(s.names.Parse("ark:12345/x5full"))(t), State: stele.Active, Metadata: stele.Metadata{"what": "A title\nof two lines", "who": " spaces ", "when": "1999 ", "empty": "", "note": "\nfirst line empty\n"}}
	for i := range 300 {
		rec.Targets = append(rec.Targets, stele.Target{Service: stele.N2L, URL: fmt.Sprintf("https://example.org/%d", i), Order: uint16(i % 2), Preference: uint16(i)})
		rec.Metadata[fmt.Sprintf("field%d", i)] = strings.Repeat("long ", i%50)
	}
	rec.Targets[7].Service, rec.Targets[8].Status, rec.Targets[9].TTL, rec.Targets[10].Partial = "N2X", 307, 60, true
	rec.Persistence = stele.Persistence{Level: stele.Stable, Until: "2040-01-31", Statement: "\nTwo\nlines"}
	rec.Readers = []string{"user:ruth", "group:staff"}
	before := must(s.r.Register(s.admin, rec))(t)
	ed := s.as("olga")
	p := ed.get("/.desk/record?id=ark:12345/x5full").has(http.StatusOK)
	sent := p.fields("record")
	sent.Set("do", "save")
	ed.post("/.desk/record", sent).leads("/.desk/record?id=ark%3A12345%2Fx5full&done=unchanged")
	if after := must(s.r.Get(s.admin, rec.ID))(t); after.Version != before.Version {
		t.Errorf("the record has changed: %v", ed.get("/.desk/history?id=ark:12345/x5full").main())
	}
	// A target without a URL is taken away; one that was added has the usual order and preference.
	sent.Set("target.299.url", "")
	sent.Set("target.300.url", "https://example.org/new")
	ed.post("/.desk/record", sent).leads("/.desk/record?id=ark%3A12345%2Fx5full&done=saved")
	after := must(s.r.Get(s.admin, rec.ID))(t)
	if n := len(after.Targets); n != 300 {
		t.Fatalf("%d targets", n)
	}
	if last := after.Targets[299]; last != (stele.Target{Service: stele.N2L, URL: "https://example.org/new", Order: stele.DefaultOrder, Preference: stele.DefaultPreference}) {
		t.Errorf("%+v", last)
	}
	sent.Set("version", "2")
	sent.Set("more.0.key", "what")
	ed.post("/.desk/record", sent).has(http.StatusUnprocessableEntity, "has a value above already")
}

// fields returns what a browser sends of the form for an action, as browsers read and change it:
// an input has one line, and a textarea loses its first line end.
func (p page) fields(action string) url.Values {
	p.t.Helper()
	values := make(url.Values)
	dec := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(p.text, "<!DOCTYPE html>")))
	dec.Entity = xml.HTMLEntity
	inside, area, choice := false, "", ""
	attribute := func(e xml.StartElement, name string) string {
		for _, a := range e.Attr {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return ""
	}
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return values
		} else if err != nil {
			p.t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			name, value := attribute(e, "name"), attribute(e, "value")
			switch e.Name.Local {
			case "form":
				inside = strings.HasSuffix(attribute(e, "action"), "/"+action)
			case "input":
				if kind := attribute(e, "type"); inside && (kind != "checkbox" || attribute(e, "checked") != "") {
					if kind != "hidden" {
						value = strings.ReplaceAll(value, "\n", "")
					}
					values.Add(name, value)
				}
			case "textarea":
				if area = name; inside {
					values.Add(name, "")
				}
			case "select":
				choice = name
			case "option":
				if inside && choice != "" && (attribute(e, "selected") != "" || !values.Has(choice)) {
					values.Set(choice, value)
				}
			}
		case xml.EndElement:
			switch e.Name.Local {
			case "form":
				inside = false
			case "textarea":
				values.Set(area, strings.ReplaceAll(strings.TrimPrefix(values.Get(area), "\n"), "\n", "\r\n"))
				area = ""
			case "select":
				choice = ""
			}
		case xml.CharData:
			if inside && area != "" {
				values.Set(area, values.Get(area)+string(e))
			}
		}
	}
}

// TestLabels: labels can be printed of one name and of all that a search finds, a sheet at a time,
// and a record is cited in all styles.
func TestLabels(t *testing.T) {
	s := newSite(t)
	for i := range maxLabels + 3 {
		must(s.r.Register(s.admin, &stele.Record{ID: must(s.names.Parse(fmt.Sprintf("ark:12345/x5%d", i)))(t), State: stele.Active,
			Metadata: stele.Metadata{"what": fmt.Sprintf("<b>Map %d", i), "who": "Costa, R.", "when": "2015"}}))(t)
	}
	must(s.r.Register(s.admin, &stele.Record{ID: must(s.names.Parse("ark:12345/x5secret"))(t), State: stele.Active, Readers: []string{"user:olga"}}))(t)
	b := s.as("ruth")
	b.get("/.desk/record?id=ark:12345/x51").has(200, "Costa, R. (2015)", "@misc{", "TY  - ")
	b.get("/.desk/labels?id=ark:12345/x51").has(200, "&lt;b&gt;Map 1", s.url+"/ark:12345/x51", `<img src="/.desk/qr.svg?id=ark%3A12345%2Fx51"`, `href="/.desk/record?id=ark%3A12345%2Fx51"`)
	s.as("sam").get("/.desk/labels?id=ark:12345/x5secret").has(404)
	b.get("/.desk/labels?since=nonsense").has(400, "a filter is wrong")
	sheet := b.get("/.desk/labels?namespace=ark:12345/x5&size=small").has(200, `class="labels small"`, "Next sheet")
	_, next, _ := strings.Cut(sheet.text, `href="/.desk/labels?`)
	next, _, _ = strings.Cut(next, `"`)
	last := b.get("/.desk/labels?"+html.UnescapeString(next)).has(200, `class="labels small"`)
	if n := len(sheet.text); n > 60<<10 {
		t.Errorf("the first sheet has %d bytes", n)
	}
	if n := strings.Count(sheet.text, `<img src="/.desk/qr.svg?`); n != maxLabels {
		t.Errorf("the first sheet has %d labels", n)
	}
	if n := strings.Count(last.text, `<img src="/.desk/qr.svg?`); n != 4 || strings.Contains(last.text, "Next sheet") {
		t.Errorf("the last sheet has %d labels", n)
	}
	if p := b.get("/.desk/names.csv?namespace=ark:12345/x5").has(200); strings.Count(p.text, "\n") != maxLabels+5 {
		t.Errorf("the file has %d lines", strings.Count(p.text, "\n"))
	}
}

// TestSentTwice: a form that a browser sends twice makes one name.
func TestSentTwice(t *testing.T) {
	s := newSite(t)
	ed := s.as("ed")
	sent := ed.get("/.desk/new?namespace=ark:12345/x5").has(http.StatusOK).fields("new")
	sent.Set("target.0.url", "https://example.org/1")
	sent.Set("do", "save")
	first := ed.post("/.desk/new", sent).leads("/.desk/record?id=").Header.Get("Location")
	ed.post("/.desk/new", sent).leads(first)
	sent.Set("what", "Another")
	again := ed.post("/.desk/new", sent).has(http.StatusUnprocessableEntity, "has made a name already").fields("new")
	again.Set("do", "save")
	if second := ed.post("/.desk/new", again).leads("/.desk/record?id=").Header.Get("Location"); second == first {
		t.Error("the second form led to the first name")
	}
}

// TestWeight: a page of the desk takes at most 60 KB on the first visit, with scripts and styles, and
// without compression.
func TestWeight(t *testing.T) {
	s, _ := newZonedSite(t)
	for i := range pageRows {
		must(s.r.Register(s.admin, &stele.Record{ID: must(s.names.Parse(fmt.Sprintf("ark:12345/x5%d", i)))(t), State: stele.Active, Targets: target(i),
			Metadata: stele.Metadata{"what": fmt.Sprintf("Mapa %d dos rios do estado do Pará, feito de imagens em 2015", i), "who": "Costa, R.", "when": "2015"}}))(t) // titles of 60 characters
	}
	b := s.as("admin")
	var sheet strings.Builder
	sheet.WriteString("url,title,creator,date\n")
	for i := range 2 * previewRows {
		fmt.Fprintf(&sheet, "https://example.org/maps/%d,Mapa %d dos rios do estado do Pará,\"Costa, R.\",2015\n", i, i)
	}
	preview := b.send("maps.csv", sheet.String(), intoX5).leads("/.desk/many/").location()
	b.once = true
	for _, path := range []string{"/.desk/", "/.desk/names", "/.desk/new", "/.desk/record?id=ark:12345/x51", "/.desk/many", preview, "/.desk/namespaces", "/.desk/namespace?namespace=ark:12345/x5", "/.desk/namespace/edit?namespace=ark:12345/x5",
		"/.desk/zone?namespace=ark:12345/x5", "/.desk/keeping?namespace=ark:12345/x5", "/.desk/members?namespace=ark:12345/x5", "/.desk/people", "/.desk/audit", "/.desk/account"} {
		page := b.get(path).has(200).text
		size, files := len(page), 0
		for _, picture := range regexp.MustCompile(`<img [^>]*src="(/[^"]*)"`).FindAllStringSubmatch(page, -1) {
			if strings.HasPrefix(picture[1], web.AssetPath) {
				continue // counted below
			}
			size, files = size+len(b.get(html.UnescapeString(picture[1])).has(200).text), files+1
		}
		for _, name := range regexp.MustCompile(`"`+web.AssetPath+`([^"]+)"`).FindAllStringSubmatch(page, -1) {
			a, ok := s.public.Asset(name[1])
			if !ok {
				t.Fatalf("%s names %s, which is not there", path, name[1])
			}
			n := len(a.Content)
			if a.Gzipped != nil {
				n = len(a.Gzipped)
			}
			size, files = size+n, files+1
		}
		if files < 4 {
			t.Errorf("%s names %d files", path, files)
		}
		if size > 60<<10 {
			t.Errorf("%s takes %d bytes", path, size)
		}
	}
}

func target(n int) []stele.Target {
	return []stele.Target{{Service: stele.N2L, URL: fmt.Sprintf("https://example.org/maps/%d", n), Order: stele.DefaultOrder, Preference: stele.DefaultPreference}}
}
