package describe

import (
	"encoding/json"
	"encoding/xml"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

// resourceTypes is the controlled list of resourceTypeGeneral (DataCite Metadata Schema 4.4,
// appendix 1, table 7).
var resourceTypes = strings.Fields("Audiovisual Book BookChapter Collection ComputationalNotebook ConferencePaper ConferenceProceeding DataPaper Dataset Dissertation Event Image InteractiveResource Journal JournalArticle Model OutputManagementPlan PeerReview PhysicalObject Preprint Report Service Software Sound Standard Text Workflow Other")

// child returns the elements of a name below e.
func (e *xmlElement) child(name string) (some []xmlElement) {
	for _, c := range e.Elements {
		if c.XMLName.Local == name {
			some = append(some, c)
		}
	}
	return some
}

func (e *xmlElement) plain(name string) string {
	for _, a := range e.Attributes {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// TestDataCiteRequired holds that whatever a record says, its DataCite XML has what version 4
// of the schema requires, once, and of the lists that it controls (section 2.2, table 2). The
// JSON says the same.
func TestDataCiteRequired(t *testing.T) {
	year := regexp.MustCompile(`^\d{4}$`)
	check := func(t interface {
		Helper()
		Fatal(...any)
		Fatalf(string, ...any)
	}, s Subject) {
		t.Helper()
		asXML, _ := Named("datacitexml")
		text := mustAppend(t, asXML, s)
		var r xmlElement
		if err := xml.Unmarshal(text, &r); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		one := func(name string) xmlElement {
			t.Helper()
			some := r.child(name)
			if len(some) != 1 || some[0].XMLName.Space != "http://datacite.org/schema/kernel-4" {
				t.Fatalf("%d elements %s in:\n%s", len(some), name, text)
			}
			return some[0]
		}
		identifier, creators, titles, publisher := one("identifier"), one("creators"), one("titles"), one("publisher")
		published, kind := one("publicationYear"), one("resourceType")
		if identifier.Text == "" || identifier.plain("identifierType") == "" || strings.TrimSpace(publisher.Text) == "" || !year.MatchString(published.Text) {
			t.Fatalf("an identifier, a publisher or a year is missing:\n%s", text)
		}
		if len(creators.child("creator")) == 0 || len(titles.child("title")) == 0 || titles.Elements[0].Text == "" || !slices.Contains(resourceTypes, kind.plain("resourceTypeGeneral")) {
			t.Fatalf("creators, titles or the type are wrong:\n%s", text)
		}
		for _, c := range creators.Elements {
			if names := c.child("creatorName"); len(names) != 1 || names[0].Text == "" {
				t.Fatalf("a creator has no name:\n%s", text)
			}
		}
		for _, e := range r.Elements { // no list is empty (the schema forbids it)
			switch e.XMLName.Local {
			case "subjects", "contributors", "dates", "alternateIdentifiers", "rightsList", "descriptions", "relatedItems":
				if len(e.Elements) == 0 {
					t.Fatalf("%s is empty:\n%s", e.XMLName.Local, text)
				}
			}
		}
		asJSON, _ := Named("datacite")
		var j struct {
			Titles   []struct{ Title string }
			Creators []struct{ Name string }
			Year     int `json:"publicationYear"`
			Types    struct{ ResourceTypeGeneral string }
		}
		if err := json.Unmarshal(mustAppend(t, asJSON, s), &j); err != nil || len(j.Creators) != len(creators.Elements) || j.Titles[0].Title != titles.Elements[0].Text || j.Types.ResourceTypeGeneral != kind.plain("resourceTypeGeneral") {
			t.Fatalf("%v: JSON says %+v, and XML\n%s", err, j, text)
		}
	}
	for _, s := range samples(t) {
		check(t, s)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, anySubject().Draw(t, "subject")) })
}

// TestDataCiteTypes: a type may have both parts of a resource type.
func TestDataCiteTypes(t *testing.T) {
	for word, want := range map[string][3]string{
		"Dataset/Weather data": {"Dataset", "Weather data", "Dataset"},
		"Preprint":             {"Preprint", "Preprint", "CreativeWork"},
		"Text/Thesis/PhD":      {"Text", "Thesis/PhD", "CreativeWork"},
		"dataset":              {"Dataset", "dataset", "Dataset"},
		"weather/data":         {"Other", "weather/data", "CreativeWork"},
		"Audiovisual/Film":     {"Audiovisual", "Film", "VideoObject"},
	} {
		s := subject(&stele.Record{ID: id(t, "ark", "ark:12345/x1"), State: stele.Active, Metadata: stele.Metadata{"type": word}})
		r := newFacts(&s).datacite()
		if got := [3]string{r.Type.General, r.Type.Text, r.Type.Schema}; got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

// TestRIS holds that a reference is lines of tags and values, which begin with the type and
// end with ER, whatever the record says.
func TestRIS(t *testing.T) {
	tag := regexp.MustCompile(`^[A-Z][A-Z0-9]  - (.*)$`)
	ris, _ := Named("ris")
	rapid.Check(t, func(t *rapid.T) {
		text := string(mustAppend(t, ris, anySubject().Draw(t, "subject")))
		lines := strings.Split(text, "\r\n")
		if lines[len(lines)-1] != "" || lines[len(lines)-2] != "ER  - " || !strings.HasPrefix(text, "TY  - ") || strings.Count(text, "TY  - ") < 1 {
			t.Fatalf("%q", text)
		}
		for _, l := range lines[:len(lines)-1] {
			if !tag.MatchString(l) || strings.ContainsAny(l, "\r\n") {
				t.Fatalf("%q", l)
			}
		}
	})
}

func TestStyled(t *testing.T) {
	s := subject(&stele.Record{ID: id(t, "ark", "ark:12345/x1"), State: stele.Active, Metadata: stele.Metadata{"who": "Lima, Ana", "what": "Rivers", "when": "2020", "type": "dataset", "publisher": "Press", "version": "2"}})
	for ask, want := range map[string]string{
		"text/x-bibliography":                           "Lima, A. (2020). Rivers (2) [Data set]. Press. https://resolver.example/ark:12345/x1\n",
		"text/bibliography;style=apa;locale=de-DE":      "Lima, A. (2020). Rivers (2) [Data set]. Press. https://resolver.example/ark:12345/x1\n",
		"text/x-bibliography;style=IEEE":                "[1] A. Lima, “Rivers.” Press, 2020. [Online]. Available: https://resolver.example/ark:12345/x1\n",
		`text/x-bibliography;locale=en-US;style="ieee"`: "[1] A. Lima, “Rivers.” Press, 2020. [Online]. Available: https://resolver.example/ark:12345/x1\n",
		"text/x-bibliography;style=datacite":            "Lima, Ana (2020): Rivers. Version 2. Press. Dataset. https://resolver.example/ark:12345/x1\n",
		"text/x-bibliography;style=ris":                 string(mustAppend(t, format(t, "ris"), s)),
		"text/x-bibliography;style=bibtex":              string(mustAppend(t, format(t, "bibtex"), s)),
		"text/x-bibliography;style=chicago-author-date": "",
		"text/x-bibliography;style=../../etc/passwd":    "",
		"application/x-bibtex;style=apa":                "",
		"text/html":                                     "",
	} {
		f, ok := Styled(ask)
		if !ok {
			if want != "" {
				t.Errorf("%s: there is none", ask)
			}
			continue
		}
		if got := string(mustAppend(t, f, s)); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", ask, got, want)
		}
	}
}
