package deskpage

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/web/language"
)

func englishWords(t testing.TB) *rowWords {
	t.Helper()
	catalog, err := language.New()
	if err != nil {
		t.Fatal(err)
	}
	return newRowWords(newAgos(catalog.English()))
}

// TestListRows: what stands in a record is text and no markup, wherever it is shown, and rows are well-formed.
func TestListRows(t *testing.T) {
	const hostile = `"><script>alert('x')</script>&amp;` + "\u202e\x00"
	now := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	rows := written(t, &Frame{Now: now, words: englishWords(t), page: new(bytes.Buffer)}, []Row{
		{ID: hostile, Title: hostile, URL: hostile, State: `"><script>`, Target: hostile, By: hostile, Modified: now, Restricted: true, What: []string{hostile, hostile}},
		{ID: "ark:1/a", URL: "/.desk/record?id=ark%3A1%2Fa&x=1", State: stele.Active, Target: "https://example.org/?a=1&b=2", Modified: now.Add(-3 * time.Hour)},
		{ID: "ark:1/b", Title: "Rios", URL: "javascript:alert(1)", State: stele.Withdrawn, Modified: now.Add(-400 * 24 * time.Hour), What: []string{"made"}},
	})
	var names []string
	d := xml.NewDecoder(strings.NewReader("<table>" + rows + "</table>"))
	for {
		token, err := d.Token()
		if token == nil {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, rows)
		}
		if e, ok := token.(xml.StartElement); ok {
			names = append(names, e.Name.Local)
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" && a.Value != "" && !strings.HasPrefix(a.Value, "/.desk/") {
					t.Errorf("%s has %s=%q", e.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
	if text := strings.Join(names, " "); strings.Contains(text, "script") || strings.Count(text, "tr") != 3 {
		t.Errorf("the elements are %s", text)
	}
	for _, want := range []string{
		`<a class="strong" href="/.desk/record?id=ark%3A1%2Fa&amp;x=1"><bdi>ark:1/a</bdi></a></td>`, "3 hours ago", "13 October 2025", "https://example.org/?a=1&amp;b=2",
		`<br/><code class="id"><bdi>ark:1/b</bdi></code>`, `<span class="badge active">`, `<span class="note">made</span>`, "⟨U+202E⟩",
	} {
		if !strings.Contains(rows, want) {
			t.Errorf("no %s in\n%s", want, rows)
		}
	}
}

// written returns the rows of a list.
func written(t testing.TB, f *Frame, list []Row) string {
	t.Helper()
	f.page.Reset()
	if printed := f.WriteRows(list); printed != "" {
		t.Fatalf("the template prints %q", printed)
	}
	return f.page.String()
}

func BenchmarkListRows(b *testing.B) {
	now := time.Now()
	f := &Frame{Now: now, words: englishWords(b), page: new(bytes.Buffer)}
	var list []Row
	for i := range 50 {
		list = append(list, Row{ID: fmt.Sprintf("ark:12345/x%d", i), Title: fmt.Sprintf("On the rivers of Bahia, volume %d", i), URL: "/.desk/record?id=ark%3A12345%2Fx", State: stele.Active,
			Target: "https://archive.example.org/items/x/view", By: "curator", Modified: now.Add(-time.Duration(i) * 7 * time.Hour)})
	}
	for b.Loop() {
		written(b, f, list)
	}
}
