package edit

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/all"
)

// Which target a new one replaces.
func TestPlace(t *testing.T) {
	target := func(url, media string, preference uint16) stele.Target {
		return stele.Target{Service: stele.N2L, URL: url, Type: media, Order: stele.DefaultOrder, Preference: preference}
	}
	a, b, pdf := target("https://a.org", "", 10), target("https://b.org", "", 20), target("https://c.org", "application/pdf", 10)
	for _, tt := range []struct {
		name   string
		before []stele.Target
		to     string // "URL", or "URL TYPE"
		drop   []string
		want   []stele.Target // nil: refused
	}{
		{"the first", nil, "https://x.org", nil, []stele.Target{target("https://x.org", "", 10)}},
		{"the only one like it", []stele.Target{b, pdf}, "https://x.org", nil, []stele.Target{target("https://x.org", "", 20), pdf}},
		{"another type", []stele.Target{a}, "https://c.org application/pdf", nil, []stele.Target{a, pdf}},
		{"the same URL, another type", []stele.Target{a, b}, "https://b.org text/html", nil, []stele.Target{a, target("https://b.org", "text/html", 20)}},
		{"one of two like it", []stele.Target{a, b}, "https://x.org", nil, nil},
		{"one of two like it, named", []stele.Target{a, b}, "https://x.org", []string{"https://b.org"}, []stele.Target{a, target("https://x.org", "", 20)}},
		{"two like it, named", []stele.Target{a, b}, "https://x.org", []string{"https://b.org", "https://a.org"}, []stele.Target{target("https://x.org", "", 20)}},
		{"in the place of another type", []stele.Target{pdf}, "https://x.org", []string{"https://c.org"}, []stele.Target{target("https://x.org", "", 10)}},
		{"one that is not there", []stele.Target{a}, "", []string{"https://x.org"}, nil},
		{"none left", []stele.Target{a}, "", []string{"https://a.org"}, []stele.Target{}},
	} {
		e := Record{Drop: tt.drop}
		if url, media, given := strings.Cut(tt.to, " "); url != "" {
			e.Target = &Target{target(url, media, stele.DefaultPreference), func(field string) bool { return given && field == "type" }}
		}
		rec := &stele.Record{State: stele.Active, Targets: slices.Clone(tt.before)}
		err := e.Apply(rec)
		if tt.want == nil {
			if err == nil || stele.KindOf(err) != stele.Conflict {
				t.Errorf("%s: error %v, want a conflict", tt.name, err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, rec.Targets); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", tt.name, err, diff)
		}
	}
}

// What was given replaces what is there, and the rest stays.
func TestRevise(t *testing.T) {
	have := stele.Target{Service: stele.N2L, URL: "https://a.org", Order: 1, Preference: 2, TTL: 3, Status: 301, Partial: true}
	for _, field := range []string{"type", "language", "order", "preference", "ttl", "status", "partial"} {
		e := Target{stele.Target{Service: stele.N2L, URL: "https://a.org", Type: "x/y", Language: "en", Order: 9, Preference: 9, TTL: 9, Status: 302}, func(f string) bool { return f == field }}
		got := have
		e.revise(&got)
		changed := 0
		for _, differs := range []bool{got.Type != have.Type, got.Language != have.Language, got.Order != have.Order, got.Preference != have.Preference, got.TTL != have.TTL, got.Status != have.Status, got.Partial != have.Partial} {
			if differs {
				changed++
			}
		}
		if changed != 1 {
			t.Errorf("%s changes %d fields: %+v", field, changed, got)
		}
	}
}

func TestApply(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	aliases, bad := ParseAliases(schemes, []string{"urn:example:1", "not a name", "ark:12345/x1"})
	if len(aliases) != 2 || len(bad) != 1 || bad[0].Path != "aliases[1]" {
		t.Fatalf("%v, %v", aliases, bad)
	}
	rec := &stele.Record{ID: aliases[1], State: stele.Reserved, Aliases: aliases[:1], Metadata: stele.Metadata{"a": "1", "b": "2"}, Readers: []string{"user:ann"}}
	e := Record{Metadata: map[string]string{"a": "", "b": "3", "c": "4"}, Aliases: aliases, Activate: true, Persistence: func(p *stele.Persistence) { p.Level = stele.Stable }}
	if err := e.Apply(rec); err != nil || rec.State != stele.Active || len(rec.Aliases) != 1 || !cmp.Equal(rec.Metadata, stele.Metadata{"b": "3", "c": "4"}) || rec.Persistence.Level != stele.Stable || rec.IsPublic() {
		t.Errorf("%+v, %v", rec, err)
	}
	for _, e := range []Record{{Readers: []string{"user:bob"}}, {Public: true}} {
		if err := e.Apply(rec); err != nil || !slices.Equal(rec.Readers, e.Readers) {
			t.Errorf("%q, %v", rec.Readers, err)
		}
	}
}

func TestNew(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	model := &stele.Record{Targets: []stele.Target{{Service: stele.N2L, URL: "https://a.org"}}, Metadata: stele.Metadata{"what": "a"}, Version: 7, Readers: []string{"user:ann"}}
	e := Record{Metadata: map[string]string{"what": "b"}}
	rec, err := e.New(schemes, "ark:/12345/x1", nil, model)
	if err != nil || rec.ID.String() != "ark:12345/x1" || rec.Spelling != "ark:/12345/x1" || rec.Version != 0 || rec.Targets[0].URL != "https://a.org" || rec.Metadata["what"] != "b" || model.Metadata["what"] != "a" {
		t.Errorf("%+v, %v", rec, err)
	}
	e.Target = &Target{Target: stele.Target{Service: stele.N2L, URL: "no URL"}}
	_, err = e.New(schemes, "not a name", []string{"nor this"}, &stele.Record{})
	if !errors.Is(err, stele.Invalid) {
		t.Fatal(err)
	}
	var paths []string
	problems, _ := errors.AsType[stele.Problems](err)
	for _, p := range problems {
		paths = append(paths, p.Path)
	}
	if got := strings.Join(paths, " "); got != "id aliases[0] targets[0].url" {
		t.Errorf("%s: %v", got, err)
	}
}
