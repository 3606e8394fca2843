package describe

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
)

const base = "https://resolver.example"

func id(t testing.TB, scheme, text string) stele.ID {
	t.Helper()
	id, err := stele.NewID(scheme, text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// subject puts a record where the samples are resolved.
func subject(r *stele.Record) Subject {
	return Subject{
		Record: r,
		Namespace: &stele.Namespace{
			Scheme: "ark", Prefix: "ark:12345", Title: "Archive of Rivers",
			Persistence: stele.Persistence{Level: stele.Permanent, Statement: "Names are kept for ever."},
		},
		Base: base,
		Self: base + "/" + r.ID.String(),
	}
}

// full is a record that uses everything.
func full(t testing.TB) Subject {
	s := subject(&stele.Record{
		ID:       id(t, "ark", "ark:12345/x5rivers"),
		Spelling: "ark:/12345/x5-rivers",
		Aliases:  []stele.ID{id(t, "hdl", "10.5072/RIVERS"), id(t, "urn", "urn:example:rivers#1")},
		State:    stele.Active,
		Targets: []stele.Target{
			{Service: stele.N2L, URL: "https://example.org/rivers.pdf", Type: "application/pdf", Language: "pt-BR", Order: 100, Preference: 20},
			{Service: stele.N2L, URL: "https://example.org/rivers.html", Type: "text/html", Language: "en", Order: 100, Preference: 10},
			{Service: stele.N2L, URL: "ftp://ftp.example.org/rivers.zip", Order: 200, Preference: 10},
			{Service: stele.N2C, URL: "https://example.org/rivers.xml", Type: "application/xml", Order: 100, Preference: 10},
			{Service: stele.N2S, URL: "https://example.org/rivers.sig", Order: 100, Preference: 10},
			{Service: stele.N2P, URL: "https://example.org/promise", Order: 100, Preference: 10},
		},
		Metadata: stele.Metadata{
			"who":         "Lima, Ana (https://orcid.org/0000-0002-1825-0097); Sand & Sons; Ortiz, R.",
			"what":        "Rivers of Pará: 100% {water}",
			"when":        "2024-05-17",
			"where":       "Belém",
			"type":        "article",
			"description": "What the rivers carry.\nA second line, with \"quotes\" and a \\.",
			"publisher":   "Example Press",
			"contributor": "Souza, B.",
			"language":    "en",
			"license":     "https://creativecommons.org/licenses/by/4.0/",
			"rights":      "(c) 2024 the authors",
			"subject":     "water; sediment",
			"version":     "2",
			"journal":     "Journal of Rivers",
			"volume":      "7",
			"issue":       "1",
			"pages":       "1-20",
			"depth":       "up to 100 m, measured over so many years by so many people that this line has to be folded",
		},
		Persistence: stele.Persistence{Level: stele.Stable, Until: "2040-01-01", Statement: "Corrections only."},
		Values: []stele.HandleValue{
			{Index: 1, Type: "URL", Data: []byte("https://example.org/rivers.html"), Permissions: stele.DefaultPermissions},
			{Index: 300, Type: "HS_SECKEY", Data: []byte("secret-key"), Permissions: stele.AdminRead | stele.AdminWrite},
		},
		Readers:  []string{"group:secret-readers"},
		Version:  3,
		Created:  time.Date(2024, 5, 17, 10, 0, 0, 0, time.UTC),
		Modified: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC),
		By:       "secret-ann",
	})
	s.DOI = "10.5072/RIVERS"
	return s
}

// bare is a record that has a target and says nothing.
func bare(t testing.TB) Subject {
	s := subject(&stele.Record{
		ID: id(t, "hdl", "102.100.272/Y35XYS0QH"), State: stele.Active,
		Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/1", Order: stele.DefaultOrder, Preference: stele.DefaultPreference}},
	})
	s.Namespace = nil
	return s
}

// withdrawn is a record that something replaces.
func withdrawn(t testing.TB) Subject {
	s := full(t)
	s.Record.State = stele.Withdrawn
	s.Record.Tombstone = &stele.Tombstone{
		Reason:      "The measurements were wrong.\nSee the new edition.",
		At:          time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC),
		Replacement: id(t, "ark", "ark:12345/x5rivers2"),
	}
	return s
}

// redacted is a record that should have been blanked, from a store that forgot to.
func redacted(t testing.TB) Subject {
	s := withdrawn(t)
	s.Record.Redacted = true
	s.Record.Tombstone.Reason = "Court order 7."
	s.Record.Tombstone.Replacement = stele.ID{}
	return s
}

// nasty are pieces of text that some format or other stumbles over.
var nasty = []string{
	`"`, `'`, `\`, `\"`, "{", "}", "{{", "%", "%0A", "%2", "$", "&", "&amp;", "#", "_", "~", "^", ";", ":", ",", ", ", "<", ">", "<!--", "]]>",
	"</script>", "<script>alert(1)</script>", "\n", "\r", "\r\n", "\t", "\x00", "\x1b[31m", "\x7f", "\u0085", "\u00a0", "\u2028", "\u2029",
	"\u202e", "\u202d", "\u2066", "\u200d", "\ufeff", "\xff", "\xc3\x28", "\xed\xa0\x80", "\U000e0001", "é", "漢字", "🪨", " ", "  ", "and", " and ",
	"(:unkn)", "(:", "javascript:alert(1)", "https://example.org/a b>", "0000-0002-1825-0097", "erc:", "@misc{x,", `\u0041`, "|", "=", ".",
}

// text draws a text that is worse than any that a registry keeps.
func text() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom(nasty), rapid.StringN(0, 12, 40), rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, "bytes"))
	}))
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), "")
	})
}

// anySubject draws a record full of bad text.
func anySubject() *rapid.Generator[Subject] {
	known := rapid.SampledFrom(strings.Fields("who what when where type description publisher contributor language license rights subject version journal volume issue pages erc erc-support x"))
	return rapid.Custom(func(t *rapid.T) Subject {
		pick := func(good string) string {
			if rapid.Bool().Draw(t, "good") {
				return good
			}
			return text().Draw(t, "text")
		}
		ident, err := stele.NewID("urn", "urn:x:"+rapid.StringMatching(`[a-z0-9%?#é{}<>" ]{1,20}`).Draw(t, "id"))
		if err != nil {
			t.Fatal(err)
		}
		r := &stele.Record{ID: ident, State: rapid.SampledFrom([]stele.State{stele.Active, stele.Reserved, stele.Withdrawn}).Draw(t, "state")}
		r.Metadata = make(stele.Metadata)
		for range rapid.IntRange(0, 12).Draw(t, "fields") {
			r.Metadata[known.Draw(t, "key")] = pick("2024")
		}
		if rapid.Bool().Draw(t, "odd key") {
			r.Metadata[text().Draw(t, "key")] = text().Draw(t, "value")
		}
		for range rapid.IntRange(0, 4).Draw(t, "targets") {
			r.Targets = append(r.Targets, stele.Target{
				Service: rapid.SampledFrom([]stele.Service{stele.N2L, stele.N2C, stele.N2S, stele.N2P}).Draw(t, "service"),
				URL:     pick("https://example.org/") + pick("x"), Type: pick("text/html"), Language: pick("en"),
			})
		}
		if r.State == stele.Withdrawn {
			r.Tombstone = &stele.Tombstone{Reason: text().Draw(t, "reason"), Replacement: ident}
		}
		r.Redacted = rapid.IntRange(0, 9).Draw(t, "redacted") == 0
		r.Persistence = stele.Persistence{Level: stele.Stable, Until: pick("2040-01-01"), Statement: text().Draw(t, "statement")}
		return subject(r)
	})
}
