package hdl_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/scheme/hdl"
)

func TestExplain(t *testing.T) {
	type part = stele.Part
	for text, want := range map[string]stele.Explanation{
		"hdl:/102.100.272/y35xys0qh": {
			Form: "handle",
			Parts: stele.Parts{
				part{Name: "prefix", Value: "102.100.272"},
				part{Name: "local", Value: "Y35XYS0QH"},
				part{Name: "pilin", Value: "2007-05-25T03:49:52.865Z", Note: "PILIN's, as this prefix uses: the millisecond in which it was asked for"},
			},
			Spellings: []stele.Spelling{
				{Name: "URL", Text: "https://hdl.handle.net/102.100.272/Y35XYS0QH"},
				{Name: "Handle", Text: "hdl:102.100.272/Y35XYS0QH"},
				{Name: "RFC 4452", Text: "info:hdl/102.100.272/Y35XYS0QH"},
			},
		},
		"20.500.12345/0N8J991QH": {
			Form: "handle",
			Parts: stele.Parts{
				part{Name: "prefix", Value: "20.500.12345"},
				part{Name: "local", Value: "0N8J991QH"},
				part{Name: "pilin", Value: "2007-05-30T05:50:34.750Z", Note: "could be PILIN's: the millisecond in which it was asked for"},
			},
			Spellings: []stele.Spelling{
				{Name: "URL", Text: "https://hdl.handle.net/20.500.12345/0N8J991QH"},
				{Name: "Handle", Text: "hdl:20.500.12345/0N8J991QH"},
				{Name: "RFC 4452", Text: "info:hdl/20.500.12345/0N8J991QH"},
			},
		},
		"10.1000/a#b?c%d é/../": {
			Form:  "doi",
			Parts: stele.Parts{part{Name: "prefix", Value: "10.1000"}, part{Name: "local", Value: "A#B?C%D é/../"}},
			Spellings: []stele.Spelling{
				{Name: "URL", Text: "https://doi.org/10.1000/A%23B%3FC%25D%20%C3%A9%2F../"},
				{Name: "DOI", Text: "doi:10.1000/A#B?C%D é/../"},
				{Name: "RFC 4452", Text: "info:doi/10.1000/A%23B%3FC%25D%20%C3%A9%2F../"},
				{Name: "Handle", Text: "hdl:10.1000/A#B?C%D é/../"},
			},
		},
		"doi:10/g8r7pm": {
			Form: "handle",
			Parts: stele.Parts{
				part{Name: "prefix", Value: "10", Note: "shortDOI, an alias of a DOI"},
				part{Name: "local", Value: "G8R7PM"},
			},
			Spellings: []stele.Spelling{
				{Name: "URL", Text: "https://doi.org/10/G8R7PM"},
				{Name: "Handle", Text: "hdl:10/G8R7PM"},
				{Name: "RFC 4452", Text: "info:hdl/10/G8R7PM"},
			},
		},
		"hdl:0.na/10.1000": {
			Form: "handle",
			Parts: stele.Parts{
				part{Name: "prefix", Value: "0.NA"},
				part{Name: "local", Value: "10.1000"},
				part{Name: "describes", Value: "10.1000", Note: "holds this prefix's own values"},
			},
			Spellings: []stele.Spelling{
				{Name: "URL", Text: "https://hdl.handle.net/hdl:0.NA/10.1000"},
				{Name: "RFC 4452", Text: "info:hdl/0.NA/10.1000"},
			},
		},
		"hdl:api/x": {
			Form:  "handle",
			Parts: stele.Parts{part{Name: "prefix", Value: "API"}, part{Name: "local", Value: "X"}},
			Spellings: []stele.Spelling{
				{Name: "URL", Text: "https://hdl.handle.net/hdl:API/X"},
				{Name: "RFC 4452", Text: "info:hdl/API/X"},
			},
		},
	} {
		got, err := hdl.New(today).Explain(text)
		if err != nil {
			t.Errorf("Explain(%q): %v", text, err)
			continue
		}
		want.ID = got.ID // schemetest compares it with Parse's
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b stele.ID) bool { return a == b })); diff != "" {
			t.Errorf("Explain(%q): (-want +got)\n%s", text, diff)
		}
	}
}

// A local name of nine of PILIN's digits is not a PILIN suffix if its date is implausible.
func TestImplausiblePILIN(t *testing.T) {
	for _, date := range []time.Time{
		time.Date(2004, time.December, 31, 23, 59, 59, 999e6, time.UTC),
		today().Add(time.Millisecond),
	} {
		suffix, err := hdl.EncodePILIN(date)
		if err != nil {
			t.Fatal(err)
		}
		x, err := hdl.New(today).Explain("102.100.272/" + suffix)
		if err != nil || x.Parts.Get("pilin") != nil {
			t.Errorf("%s of %s: pilin %v, %v; want none", suffix, date, x.Parts.Get("pilin"), err)
		}
	}
}

// The values of a prefix are told only where the local name can be one.
func TestDescribes(t *testing.T) {
	for text, want := range map[string]any{
		"hdl:0.NA/0.NA":        "0.NA",
		"hdl:0.NA/10.1000/182": nil,
		"hdl:0.NA/10..1":       nil,
		"hdl:0.NA/a/":          nil,
		"hdl:0.SITE/10.1000":   nil,
	} {
		x, err := hdl.New(today).Explain(text)
		if err != nil || x.Parts.Get("describes") != want {
			t.Errorf("Explain(%q) describes %v, %v; want %v", text, x.Parts.Get("describes"), err, want)
		}
	}
}
