package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/stele-id/stele"
)

// Which target --to replaces, where a session can't easily make the record.
func TestPlace(t *testing.T) {
	target := func(url, media string, preference uint16) stele.Target {
		return stele.Target{Service: stele.N2L, URL: url, Type: media, Order: stele.DefaultOrder, Preference: preference}
	}
	a, b, pdf := target("https://a.org", "", 10), target("https://b.org", "", 20), target("https://c.org", "application/pdf", 10)
	for _, tt := range []struct {
		name   string
		before []stele.Target
		flags  []string
		want   []stele.Target // nil: refused
	}{
		{"the first", nil, []string{"--to=https://x.org"}, []stele.Target{target("https://x.org", "", 10)}},
		{"the only one like it", []stele.Target{b, pdf}, []string{"--to=https://x.org"}, []stele.Target{target("https://x.org", "", 20), pdf}},
		{"another type", []stele.Target{a}, []string{"--to=https://c.org", "--type=application/pdf"}, []stele.Target{a, pdf}},
		{"the same URL, another type", []stele.Target{a, b}, []string{"--to=https://b.org", "--type=text/html"}, []stele.Target{a, target("https://b.org", "text/html", 20)}},
		{"one of two like it", []stele.Target{a, b}, []string{"--to=https://x.org"}, nil},
		{"one of two like it, named", []stele.Target{a, b}, []string{"--to=https://x.org", "--drop-to=https://b.org"}, []stele.Target{a, target("https://x.org", "", 20)}},
		{"two like it, named", []stele.Target{a, b}, []string{"--to=https://x.org", "--drop-to=https://b.org", "--drop-to=https://a.org"}, []stele.Target{target("https://x.org", "", 20)}},
		{"in the place of another type", []stele.Target{pdf}, []string{"--to=https://x.org", "--drop-to=https://c.org"}, []stele.Target{target("https://x.org", "", 10)}},
		{"one that is not there", []stele.Target{a}, []string{"--drop-to=https://x.org"}, nil},
		{"none left", []stele.Target{a}, []string{"--drop-to=https://a.org"}, []stele.Target{}},
	} {
		var f updateFlags
		cmd := &cobra.Command{}
		f.add(cmd)
		cmd.Flags().StringArrayVar(&f.drop, "drop-to", nil, "")
		if err := cmd.ParseFlags(tt.flags); err != nil {
			t.Fatal(err)
		}
		rec := &stele.Record{State: stele.Active, Targets: append([]stele.Target(nil), tt.before...)}
		err := f.change(rec, nil)
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

func TestParseMoment(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2024-05-17":                time.Date(2024, 5, 17, 23, 59, 59, 999999999, time.UTC),
		"2024-02-29":                time.Date(2024, 2, 29, 23, 59, 59, 999999999, time.UTC),
		"2024-05-17T10:00:00Z":      time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC),
		"2024-05-17T10:00:00.5Z":    time.Date(2024, 5, 17, 10, 0, 0, 5e8, time.UTC),
		"2024-05-17T10:00:00-03:00": time.Date(2024, 5, 17, 13, 0, 0, 0, time.UTC),
		"2024-05-17T10:00":          time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC),
		"2024-05-17 10:00:01":       time.Date(2024, 5, 17, 10, 0, 1, 0, time.UTC),
	} {
		if got, err := parseMoment(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2024", "2024-02-30", "17.5.2024", "now"} {
		if got, err := parseMoment(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
