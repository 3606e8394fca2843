package describe

import (
	"testing"

	"github.com/stele-id/stele"
)

func TestAgents(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []agent
	}{
		{"", nil},
		{" ; ;", nil},
		{"(:unkn)", nil},
		{"Lima, Ana", []agent{{name: "Lima, Ana", family: "Lima", given: "Ana"}}},
		{"Ana Lima", []agent{{name: "Ana Lima"}}},
		{"Sand, Sons, and Co", []agent{{name: "Sand, Sons, and Co"}}},
		{"Rivers, Inc.", []agent{{name: "Rivers, Inc."}}},
		{"Lima, A. (0000-0002-1825-0097)", []agent{{"Lima, A.", "Lima", "A.", "https://orcid.org/0000-0002-1825-0097"}}},
		{"Lima, A. (ORCID: 0000-0002-1694-233X)", []agent{{"Lima, A.", "Lima", "A.", "https://orcid.org/0000-0002-1694-233X"}}},
		{"Lima, A. (0000-0002-1825-0098)", []agent{{name: "Lima, A. (0000-0002-1825-0098)", family: "Lima", given: "A. (0000-0002-1825-0098)"}}},
		{"INPE <https://www.gov.br/inpe>", []agent{{name: "INPE", url: "https://www.gov.br/inpe"}}},
		{"INPE <javascript:alert(1)>", []agent{{name: "INPE <javascript:alert(1)>"}}},
		{"https://example.org/a", []agent{{name: "https://example.org/a", url: "https://example.org/a"}}},
	} {
		got := agents(tt.text)
		if len(got) != len(tt.want) {
			t.Errorf("%q: %+v", tt.text, got)
			continue
		}
		for i := range got {
			if got[i] != tt.want[i] {
				t.Errorf("%q: got %+v, want %+v", tt.text, got[i], tt.want[i])
			}
		}
	}
}

func TestParseDate(t *testing.T) {
	for _, tt := range []struct {
		text string
		want date
	}{
		{"2024", date{2024, 0, 0, "2024"}},
		{"2024-05", date{2024, 5, 0, "2024-05"}},
		{"2024-05-17", date{2024, 5, 17, "2024-05-17"}},
		{"20240517", date{2024, 5, 17, "2024-05-17"}},
		{"2024-05-17T23:00:00-03:00", date{2024, 5, 17, "2024-05-17"}},
		{"2024-02-30", date{}},
		{"0000", date{}},
		{"1999-2001", date{}},
		{"circa 1900", date{}},
		{"", date{}},
	} {
		if got := parseDate(tt.text); got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.text, got, tt.want)
		}
	}
}

func TestParseKind(t *testing.T) {
	for _, tt := range []struct{ word, schema, url string }{
		{"", "CreativeWork", ""},
		{"Dataset", "Dataset", ""},
		{"Moving Image", "VideoObject", ""},
		{"still-image", "ImageObject", ""},
		{"whatever", "CreativeWork", ""},
		{"https://example.org/type", "CreativeWork", "https://example.org/type"},
		{"javascript:x", "CreativeWork", ""},
	} {
		if got := parseKind(tt.word); got.schema != tt.schema || got.url != tt.url {
			t.Errorf("%q: got %+v", tt.word, got)
		}
	}
}

func TestURLs(t *testing.T) {
	for _, tt := range []struct{ text, web, target string }{
		{"https://example.org/a", "https://example.org/a", "https://example.org/a"},
		{"HTTP://example.org/é", "HTTP://example.org/%C3%A9", "HTTP://example.org/%C3%A9"},
		{"ftp://example.org/a", "", "ftp://example.org/a"},
		{"https://", "", ""},
		{"https:///x", "", "https:///x"},
		{"javascript://example.org/%0Aalert(1)", "", ""},
		{"data:text/html,x", "", ""},
		{"https://example.org/>; rel=\"x", "", "https://example.org/%3E;%20rel=%22x"},
		{"https://example.org/a%2", "https://example.org/a%252", "https://example.org/a%252"},
	} {
		if got, _ := webURL(tt.text); got != tt.web {
			t.Errorf("webURL(%q) = %q, want %q", tt.text, got, tt.web)
		}
		if got, _ := targetURL(tt.text); got != tt.target {
			t.Errorf("targetURL(%q) = %q, want %q", tt.text, got, tt.target)
		}
	}
}

// TestLocate holds that the server's own idea of where a name is comes first.
func TestLocate(t *testing.T) {
	s := withdrawn(t)
	alias := s.Record.Aliases[1]
	if got, want := s.locate(alias), base+"/urn:example:rivers%231"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.Locate = func(id stele.ID) string { return "https://other.example/?" + id.Scheme() + "\r\n" }
	if got, want := s.locate(alias), "https://other.example/?urn%0D%0A"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestPromise holds that a record's promise comes before its namespace's.
func TestPromise(t *testing.T) {
	s := full(t)
	if got := newFacts(&s).promise().Level; got != stele.Stable {
		t.Errorf("the record's promise is %q", got)
	}
	s.Record.Persistence = stele.Persistence{}
	if got := newFacts(&s).promise().Level; got != stele.Permanent {
		t.Errorf("the namespace's promise is %q", got)
	}
	s.Namespace = nil
	if got := newFacts(&s).promise(); got != (stele.Persistence{}) {
		t.Errorf("nobody's promise is %+v", got)
	}
}
