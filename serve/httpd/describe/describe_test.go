package describe

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/scheme/all"
)

var update = flag.Bool("update", false, "write the golden files anew")

func mustAppend(t interface {
	Helper()
	Fatal(...any)
}, f Format, s Subject) []byte {
	t.Helper()
	b, err := f.Append(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func format(t testing.TB, name string) Format {
	t.Helper()
	f, ok := Named(name)
	if !ok {
		t.Fatalf("there is no format %s", name)
	}
	return f
}

func samples(t testing.TB) map[string]Subject {
	return map[string]Subject{"full": full(t), "bare": bare(t), "withdrawn": withdrawn(t), "redacted": redacted(t)}
}

// TestGolden shows each format of each sample, and the header's links.
func TestGolden(t *testing.T) {
	for name, s := range samples(t) {
		for _, f := range Formats() {
			t.Run(name+"/"+f.Name, func(t *testing.T) {
				golden(t, name+"."+f.Name, mustAppend(t, f, s))
			})
		}
		t.Run(name+"/links", func(t *testing.T) {
			var b []byte
			for _, l := range Links(s) {
				b = append(l.Append(b), '\n')
			}
			golden(t, name+".links", b)
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct{ ask, want string }{
		{"application/json", "json"},
		{"Application/LD+JSON", "jsonld"},
		{`application/ld+json; profile="https://schema.org"`, "jsonld"},
		{"application/vnd.schemaorg.ld+json", "jsonld"},
		{"text/turtle", "turtle"},
		{"text/turtle;charset=utf-8", "turtle"},
		{"application/x-turtle", "turtle"},
		{"application/linkset+json", "linkset"},
		{"text/plain", "anvl"},
		{"application/vnd.citationstyles.csl+json", "csl"},
		{"application/citeproc+json", "csl"},
		{"application/x-bibtex", "bibtex"},
		{"text/x-bibtex", "bibtex"},
		{"text/x-bibliography", "citation"},
		{"text/bibliography", "citation"},
		{"text/x-bibliography; style = apa; locale = en-US", "citation"},
		{"application/rdf+xml", "rdfxml"},
		{"application/x-research-info-systems", "ris"},
		{"application/vnd.datacite.datacite+json", "datacite"},
		{"application/vnd.datacite.datacite+xml", "datacitexml"},
		{"application/xml", ""},
		{"application/*", ""},
		{"text/html", ""},
		{"", ""},
	} {
		f, ok := Find(tt.ask)
		if f.Name != tt.want || ok != (tt.want != "") {
			t.Errorf("Find(%q) = %q, %v; want %q", tt.ask, f.Name, ok, tt.want)
		}
	}
}

// TestFormats holds that all types lead to their format, and to one only.
func TestFormats(t *testing.T) {
	seen := make(map[string]bool)
	for _, f := range Formats() {
		if named, _ := Named(f.Name); named.Type != f.Type {
			t.Errorf("Named(%q) = %q", f.Name, named.Type)
		}
		for _, kind := range f.Types() {
			if found, _ := Find(kind); found.Name != f.Name {
				t.Errorf("%s is found as %s", kind, found.Name)
			}
			if seen[kind] {
				t.Errorf("%s asks for two formats", kind)
			}
			seen[kind] = true
		}
		if !strings.HasPrefix(f.Served, f.Type) || f.Title == "" {
			t.Errorf("%s is served as %q, titled %q", f.Name, f.Served, f.Title)
		}
	}
	if f, ok := Named("xml"); ok {
		t.Errorf("Named(xml) = %v", f)
	}
}

func TestNothingToDescribe(t *testing.T) {
	f := format(t, "json")
	for _, s := range []Subject{{}, {Record: new(stele.Record)}} {
		if b, err := f.Append([]byte("x"), s); stele.KindOf(err) != stele.Internal || string(b) != "x" {
			t.Errorf("Append(%v) = %q, %v", s, b, err)
		}
		if got := Links(s); got != nil {
			t.Errorf("Links(%v) = %v", s, got)
		}
		if got := Citation(s); got != "" {
			t.Errorf("Citation(%v) = %v", s, got)
		}
	}
	if _, err := (Format{}).Append(nil, full(t)); stele.KindOf(err) != stele.Internal {
		t.Errorf("the zero Format: %v", err)
	}
}

// TestSecrets looks in all formats for what the public must not see.
func TestSecrets(t *testing.T) {
	for name, s := range samples(t) {
		for _, f := range Formats() {
			if got := mustAppend(t, f, s); bytes.Contains(got, []byte("secret")) || bytes.Contains(got, []byte("HS_SECKEY")) {
				t.Errorf("%s as %s:\n%s", name, f.Name, got)
			}
		}
	}
	before := full(t)
	mustAppend(t, format(t, "json"), before)
	if diff := cmp.Diff(full(t).Record, before.Record, cmp.AllowUnexported(stele.ID{})); diff != "" {
		t.Errorf("describing changes the record:\n%s", diff)
	}
}

// TestGone holds that a withdrawn record says why, and not where it was.
func TestGone(t *testing.T) {
	for _, f := range Formats() {
		got := string(mustAppend(t, f, withdrawn(t)))
		for _, not := range []string{"rivers.pdf", "rivers.zip", "rivers.xml"} {
			if strings.Contains(got, not) {
				t.Errorf("%s tells %s:\n%s", f.Name, not, got)
			}
		}
		if f.Name != "linkset" && f.Name != "citation" {
			if !strings.Contains(got, "The measurements were wrong.") || !strings.Contains(got, "2025-01-02") && !strings.Contains(got, "20250102") {
				t.Errorf("%s does not tell why and when:\n%s", f.Name, got)
			}
		}
		if f.Name != "citation" && !strings.Contains(got, "ark:12345/x5rivers2") {
			t.Errorf("%s does not tell the replacement:\n%s", f.Name, got)
		}
	}
}

// TestRedacted holds that formats show nothing of a redacted record except its tombstone.
func TestRedacted(t *testing.T) {
	for _, f := range Formats() {
		got := string(mustAppend(t, f, redacted(t)))
		for _, not := range []string{"Lima", "Rivers of", "Belém", "example.org", "10.5072", "RIVERS", "Stable", "Corrections", "Example Press"} {
			if strings.Contains(got, not) {
				t.Errorf("%s tells %q:\n%s", f.Name, not, got)
			}
		}
		if f.Name != "linkset" && f.Name != "citation" && !strings.Contains(got, "Court order 7.") {
			t.Errorf("%s does not tell why:\n%s", f.Name, got)
		}
	}
}

// TestPublicJSON reads the JSON back as a record.
func TestPublicJSON(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range samples(t) {
		s.Record.Aliases = nil // that of the URN has a fragment on purpose
		r, err := document.DecodeRecord(schemes, mustAppend(t, format(t, "json"), s))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if r.ID != s.Record.ID || r.State != s.Record.State || r.By != "" || r.Readers != nil || len(r.Values) > 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestAnyText holds that bad text never breaks a format: JSON is JSON, and all
// are valid UTF-8 without control characters.
func TestAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySubject().Draw(t, "subject")
		for _, f := range Formats() {
			got := mustAppend(t, f, s)
			if !utf8.Valid(got) || len(got) == 0 || got[len(got)-1] != '\n' {
				t.Fatalf("%s: %q", f.Name, got)
			}
			control := func(r rune) bool {
				return r < ' ' && r != '\n' && r != '\t' && (r != '\r' || f.Name != "ris") || r == 0x7f && f.Name != "json"
			}
			if strings.ContainsFunc(string(got), control) {
				t.Fatalf("%s has control characters: %q", f.Name, got)
			}
			if strings.HasSuffix(f.Type, "json") && !json.Valid(got) {
				t.Fatalf("%s is not JSON: %s", f.Name, got)
			}
			if f.Name != "json" && strings.HasSuffix(f.Type, "json") && bytes.Contains(got, []byte("</")) {
				t.Fatalf("%s can end a script: %s", f.Name, got)
			}
		}
	})
}

// TestBounded describes a record with more of everything than one may have.
func TestBounded(t *testing.T) {
	s := full(t)
	for range 10_000 {
		s.Record.Targets = append(s.Record.Targets, stele.Target{Service: stele.N2L, URL: "https://example.org/" + strings.Repeat("x", 100)})
		s.Record.Aliases = append(s.Record.Aliases, s.Record.Aliases[0])
		s.Record.Values = append(s.Record.Values, s.Record.Values[0])
	}
	for i := range 10_000 {
		s.Record.Metadata["x"+strings.Repeat("y", i%50)+string(rune('a'+i%26))] = strings.Repeat("z", 100)
	}
	const most = 2 << 20
	for _, f := range Formats() {
		if got := mustAppend(t, f, s); len(got) > most {
			t.Errorf("%s has %d bytes", f.Name, len(got))
		}
	}
	links := Links(s)
	if got := AppendLinks(nil, links); len(links) > maxLinks+1 || len(got) > maxLinkBytes+512 {
		t.Errorf("%d links in %d bytes", len(links), len(got))
	}
}

func BenchmarkFormats(b *testing.B) {
	s := full(b)
	for _, f := range Formats() {
		b.Run(f.Name, func(b *testing.B) {
			var buf []byte
			for b.Loop() {
				buf, _ = f.Append(buf[:0], s)
			}
		})
	}
	for name, s := range samples(b) {
		b.Run("links/"+name, func(b *testing.B) {
			var buf []byte
			for b.Loop() {
				buf = AppendLinks(buf[:0], Links(s))
			}
		})
	}
}
