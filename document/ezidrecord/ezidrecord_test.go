package ezidrecord

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/anvl"
	"github.com/stele-id/stele/scheme/all"
)

func newSchemes(t testing.TB) *stele.Schemes {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return schemes
}

func parse(t testing.TB, schemes *stele.Schemes, text string) stele.ID {
	id, err := schemes.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestName(t *testing.T) {
	schemes := newSchemes(t)
	for text, want := range map[string]string{
		"ark:99999/fk4-test":  "ark:/99999/fk4test erc",
		"ARK:/99999/fk4test":  "ark:/99999/fk4test erc",
		"doi:10.5072/fk2test": "doi:10.5072/FK2TEST datacite",
		"hdl:20.500.12345/a":  "20.500.12345/A erc",
		"urn:paradisec:a":     "urn:paradisec:a erc",
	} {
		id := parse(t, schemes, text)
		if got := Name(schemes, id) + " " + DefaultProfile(schemes, id); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if again := parse(t, schemes, Name(schemes, id)); again != id {
			t.Errorf("%s is read back as %s", id, again)
		}
	}
}

// change applies elements, given as names and values.
func change(t testing.TB, schemes *stele.Schemes, rec *stele.Record, given ...string) error {
	t.Helper()
	var list []anvl.Element
	for i := 0; i+1 < len(given); i += 2 {
		list = append(list, anvl.Element{Label: given[i], Value: given[i+1]})
	}
	c, err := ReadChange(list)
	if err != nil {
		return err
	}
	return c.Apply(schemes, rec)
}

func TestFields(t *testing.T) {
	schemes := newSchemes(t)
	for _, c := range []struct {
		id    string
		given []string
		want  stele.Metadata
	}{
		{"ark:99999/a", []string{"erc.who", "A", "erc.what", "B", "erc.when", "1", "who", "C", "dc.title", "D", "Title 1", "E", "ezid.x", "F"},
			stele.Metadata{"who": "A", "what": "B", "when": "1", "ezid.who": "C", "dc.title": "D", "ezid.-54itle-201": "E", "ezid.ezid.x": "F", keptProfile: "erc"}},
		{"doi:10.5072/a", []string{"datacite.creator", "A", "datacite.title", "B", "datacite.publicationyear", "1", "datacite.publisher", "P", "datacite.resourcetype", "Dataset", "erc.who", "X"},
			stele.Metadata{"who": "A", "what": "B", "when": "1", "publisher": "P", "type": "Dataset", "erc.who": "X", keptProfile: "datacite"}},
		{"ark:99999/a", []string{"_profile", "dc", "dc.creator", "A", "dc.subject", "s", "publisher", "P", "_export", "No"},
			stele.Metadata{"who": "A", "subject": "s", "ezid.publisher": "P", keptProfile: "dc", keptExport: "no"}},
		{"ark:99999/a", []string{"erc", "who: A\nwhat: B"}, stele.Metadata{"erc": "who: A\nwhat: B", "who": "A", "what": "B", keptProfile: "erc"}},
	} {
		rec := &stele.Record{ID: parse(t, schemes, c.id)}
		if err := change(t, schemes, rec, c.given...); err != nil {
			t.Errorf("%v: %v", c.given, err)
		}
		if d := cmp.Diff(c.want, rec.Metadata); d != "" {
			t.Errorf("%v: %s", c.given, d)
		}
	}
}

// TestComesBack: whatever elements a client gives, it sees them again, and no others.
func TestComesBack(t *testing.T) {
	schemes := newSchemes(t)
	ids := []stele.ID{parse(t, schemes, "ark:99999/a"), parse(t, schemes, "doi:10.5072/a")}
	rapid.Check(t, func(t *rapid.T) {
		known := rapid.SampledFrom(strings.Fields("who what when publisher type erc.who erc.what erc.when dc.creator dc.title dc.type datacite.title datacite.creator ezid.who ezid.-41 ezid.ezid.x description subject x"))
		name := rapid.OneOf(known, known, rapid.StringN(1, 8, 12)).Filter(func(s string) bool {
			return strings.TrimSpace(s) == s && s != "" && s[0] != '_'
		})
		value := rapid.StringMatching(`[a-zé<&:%]([a-zé<&:%\n]{0,8}[a-z])?`)
		rec := &stele.Record{ID: rapid.SampledFrom(ids).Draw(t, "id")}
		profile := rapid.SampledFrom([]string{"erc", "dc", "datacite", "crossref", "own-one"}).Draw(t, "profile")
		want := map[string]string{Profile: profile, Status: "public", Export: "yes"}
		for range 3 { // changes add up
			list := []anvl.Element{{Label: Profile, Value: profile}}
			for n, v := range rapid.MapOfN(name, value, 0, 6).Draw(t, "elements") {
				if n == "erc" || n == "datacite" {
					continue
				}
				list = append(list, anvl.Element{Label: n, Value: v})
				want[n] = v
			}
			if len(want) > 4 && rapid.Bool().Draw(t, "take away") {
				for _, n := range slices.Sorted(maps.Keys(want)) {
					if n[0] != '_' && !slices.ContainsFunc(list, func(e anvl.Element) bool { return e.Label == n }) {
						list = append(list, anvl.Element{Label: n})
						delete(want, n)
						break
					}
				}
			}
			c, err := ReadChange(list)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Apply(schemes, rec); err != nil {
				t.Fatal(err)
			}
		}
		if d := cmp.Diff(want, Elements(schemes, rec)); d != "" {
			t.Fatalf("%s\nof %v", d, rec.Metadata)
		}
		for key := range rec.Metadata {
			if !stele.IsField(key) {
				t.Fatalf("%q is not a field", key)
			}
		}
	})
}

func TestDatacite(t *testing.T) {
	schemes := newSchemes(t)
	rec := &stele.Record{ID: parse(t, schemes, "doi:10.5072/a")}
	xml := `<?xml version="1.0"?>
<resource xmlns="http://datacite.org/schema/kernel-4"><identifier identifierType="DOI">(:tba)</identifier>
<creators><creator><creatorName>Lima, A.</creatorName></creator><creator><creatorName>Sá &amp; Co</creatorName></creator></creators>
<titles><title>Rivers
  of Pará</title><title titleType="Subtitle">x</title></titles><publisher>INPE</publisher><publicationYear>2024</publicationYear>
<resourceType resourceTypeGeneral="Dataset">Survey</resourceType></resource>
`
	if err := change(t, schemes, rec, "datacite", xml); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"who": "Lima, A.; Sá & Co", "what": "Rivers of Pará", "publisher": "INPE", "when": "2024", "type": "Dataset/Survey"}
	for key, value := range want {
		if rec.Metadata[key] != value {
			t.Errorf("%s is %q", key, rec.Metadata[key])
		}
	}
	// A client sees the document, and not what was read from it; what it gives beside the document counts.
	shown := Elements(schemes, rec)
	if len(shown) != 4 || shown["datacite"] == "" {
		t.Errorf("%v", shown)
	}
	if err := change(t, schemes, rec, "datacite.title", "Another"); err != nil || Elements(schemes, rec)["datacite.title"] != "Another" || rec.Metadata["what"] != "Another" {
		t.Errorf("%v, %v", err, rec.Metadata)
	}
	// Another document takes what the first one gave away.
	if err := change(t, schemes, rec, "datacite", "<resource><titles><title>Z</title></titles></resource>", "datacite.title", ""); err != nil || rec.Metadata["who"] != "" || rec.Metadata["what"] != "Z" {
		t.Errorf("%v, %v", err, rec.Metadata)
	}
	for text, code := range map[string]string{
		"<resource>":               "ezid.xml-malformed",
		"resource":                 "ezid.xml-malformed",
		"<a/>":                     "ezid.xml-not-datacite",
		"<resource/><resource/>":   "ezid.xml-not-datacite",
		"<resource>&x;</resource>": "ezid.xml-malformed",
		"<!DOCTYPE x [<!ENTITY a 'b'>]><resource/>":                            "ezid.xml-directive",
		`<?xml version="1.0" encoding="UTF-16"?><resource/>`:                   "ezid.xml-malformed",
		strings.Repeat("<resource>", 100) + strings.Repeat("</resource>", 100): "ezid.xml-too-deep",
	} {
		err := change(t, schemes, rec, "datacite", text)
		if m := messageAt(err, "datacite"); m == nil || m.Code != code {
			t.Errorf("%.40s: %v", text, err)
		}
	}
}

// TestStatusWords: fields that are named like the first line of an answer are shown under other names, and can be changed by them.
func TestStatusWords(t *testing.T) {
	schemes := newSchemes(t)
	rec := &stele.Record{ID: parse(t, schemes, "ark:99999/a"), Metadata: stele.Metadata{"success": "1", "error": "2", "ezid.error": "3"}}
	want := map[string]string{Profile: "erc", Status: "public", Export: "yes", "ezid.success": "1", "ezid.error": "2", "ezid.ezid.error": "3"}
	if d := cmp.Diff(want, Elements(schemes, rec)); d != "" {
		t.Error(d)
	}
	if err := change(t, schemes, rec, "ezid.success", "4"); err != nil || rec.Metadata["success"] != "4" || len(rec.Metadata) != 4 {
		t.Errorf("%v, %v", err, rec.Metadata)
	}
}

// messageAt returns what is wrong with an element.
func messageAt(err error, path string) *stele.Message {
	problems, _ := errors.AsType[stele.Problems](err)
	for _, p := range problems {
		if m, ok := p.Err.(*stele.Message); ok && p.Path == path {
			return m
		}
	}
	return nil
}

func TestReadChangeRefuses(t *testing.T) {
	schemes := newSchemes(t)
	for _, c := range []struct{ name, value, code string }{
		{"_created", "1", "ezid.element-not-settable"},
		{"_ownergroup", "x", "ezid.element-not-settable"},
		{"_x", "x", "ezid.element-not-settable"},
		{"_status", "gone", "ezid.status-unknown"},
		{"_status", "public | because", "ezid.status-unknown"},
		{"_export", "maybe", "ezid.export-malformed"},
		{"_profile", "ER C", "ezid.profile-malformed"},
		{" ", "x", "ezid.label-empty"},
		{"success", "x", "ezid.label-reserved"},
		{" error ", "x", "ezid.label-reserved"},
		{strings.Repeat("x", 65), "x", "ezid.name-too-long"},
		{strings.Repeat("é", 10), "x", "ezid.name-too-long"},
	} {
		rec := &stele.Record{ID: parse(t, schemes, "ark:99999/a")}
		err := change(t, schemes, rec, c.name, c.value)
		if m := messageAt(err, strings.TrimSpace(c.name)); m == nil || m.Code != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if err := change(t, schemes, &stele.Record{}, "a", "1", " a ", "2"); err == nil {
		t.Error("a label twice is taken")
	}
}

func TestStatus(t *testing.T) {
	for text, want := range map[string]string{
		"public": "active ", "reserved": "reserved ", "unavailable": "withdrawn " + NoReason, "unavailable | by the author ": "withdrawn by the author",
		"unavailable|x | y": "withdrawn x | y", "Public": " ", "": " ",
	} {
		state, reason, ok := ParseStatus(text)
		if got := string(state) + " " + reason; got != want || ok != (want != " ") {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
		rec := &stele.Record{State: state}
		if state == stele.Withdrawn {
			rec.Tombstone = &stele.Tombstone{Reason: reason, At: time.Unix(1, 0)}
		}
		if again, why, _ := ParseStatus(statusOf(rec)); ok && (again != state || why != reason) {
			t.Errorf("%q is shown as %q", text, statusOf(rec))
		}
	}
}

func TestTarget(t *testing.T) {
	rec := &stele.Record{Targets: []stele.Target{{Service: stele.N2C, URL: "https://example.org/c"}, {Service: stele.N2L, URL: "https://example.org/2", Order: 200}, {Service: stele.N2L, URL: "https://example.org/1", Order: 100, Partial: true}}}
	schemes := newSchemes(t)
	if err := change(t, schemes, rec, Target, "https://example.org/new"); err != nil || rec.Targets[2].URL != "https://example.org/new" || !rec.Targets[2].Partial {
		t.Errorf("%v, %v", rec.Targets, err)
	}
	if err := change(t, schemes, rec, Target, ""); err != nil || len(rec.Targets) != 2 || Elements(schemes, rec)[Target] != "https://example.org/2" {
		t.Errorf("%v, %v", rec.Targets, err)
	}
	if rec.Readers = []string{"user:ann"}; IsBlank(&stele.Record{Readers: rec.Readers}) {
		t.Error("a record that says who may see it is blank")
	}
	Blank(rec)
	if !IsBlank(rec) || rec.Readers != nil {
		t.Errorf("%v", rec)
	}
	if err := change(t, schemes, rec, Target, "https://example.org/1"); err != nil || len(rec.Targets) != 1 || rec.Targets[0].Order != stele.DefaultOrder || IsBlank(rec) {
		t.Errorf("%v, %v", rec.Targets, err)
	}
}

func FuzzDatacite(f *testing.F) {
	f.Add("<resource><titles><title>a</title></titles></resource>")
	f.Add(`<?xml version="1.0"?><resource><resourceType resourceTypeGeneral="x"/></resource>`)
	f.Add("<!DOCTYPE a><resource/>")
	f.Fuzz(func(t *testing.T, text string) {
		fields, err := dataciteFields(text)
		if (fields == nil) == (err == nil) {
			t.Fatalf("%v, %v", fields, err)
		}
		for key := range fields {
			if !stele.IsField(key) {
				t.Fatalf("%q", key)
			}
		}
	})
}
