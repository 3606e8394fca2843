package foreign_test

import (
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// TestReasons checks that what is wrong with a file is told as it is, with a line of the file.
func TestReasons(t *testing.T) {
	wide := func(text string) string {
		b := []byte("\xff\xfe")
		for _, u := range utf16.Encode([]rune(text)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	for _, tt := range []struct{ system, text, says string }{
		{"ezid", ":: ark:/99999/fk4a\n_target: https://example.org/1\n\n:: ark:/99999/fk4b\n_target: https://example.org/2\nno colon here\n", "line 6: no colon in line"},
		{"ezid", "<?xml version=\"1.0\"?>\n<records>\n<record identifier=\"ark:/99999/fk4a\">", "it is cut off at line 3: </record> is missing there"},
		{"ezid", "<?xml version=\"1.0\"?>\n<!DOCTYPE records>\n<records></records>", "the document type declaration at line 2 is not read"},
		{"handle", "COPY public.handles (handle, idx, type, data) FROM stdin;\n20.500.1/A\t1\tURL\thttps://example.org/\n", "it ends at line 3, within the rows of handles"},
		{"noid", "VERSION=3\nformat=print\nHEADER=END\n 99999/fk4\\09:/c\n", "it ends at line 5, before DATA=END"},
		{"handle", wide("CREATE 20.500.1/A\n"), "it begins with the byte order mark of UTF-16"},
		{"purl.org", `{"purls":[]} ` + "\n" + `{"a":1}`, "the object at line 2 has neither purls nor history"},
	} {
		rows, _, err := readFrom(t, tt.system, "https://purl.org/", []byte(tt.text))
		got := strings.Join(rows, "\n")
		if err != nil {
			got += err.Error()
		}
		if !strings.Contains(got, tt.says) {
			t.Errorf("%s: %q, want %q", tt.system, got, tt.says)
		}
	}
	rows, report, err := readFrom(t, "handle", "", []byte(wide("handle,idx,type,data\n20.500.1/A,1,URL,https://example.org/\n")))
	if err != nil || len(rows) != 1 || !strings.Contains(notesOf(report), "it was read as UTF-16") {
		t.Errorf("%q, %s, %v", rows, notesOf(report), err)
	}
}

// TestW3IDEngineOff checks that rules are refused, and not called idle, where the engine is off. A Redirect answers nevertheless.
func TestW3IDEngineOff(t *testing.T) {
	s := newW3ID(t)
	s.load("w3id", map[string]string{"x/.htaccess": "RewriteRule ^a$ https://example.org/a [L]\nRedirect 302 /x/a https://example.org/b\n"}, foreign.Options{Namespaces: true}, bulk.FileOptions{})
	s.leads(map[string]string{"x/a": "https://example.org/b"})
	if got := s.rejects.String(); !strings.Contains(got, "# line 1: the rewrite engine is off") {
		t.Error(got)
	}
}

// TestLongTexts checks that a README.md longer than a field continues in others, and that what is longer still is told.
func TestLongTexts(t *testing.T) {
	s := newW3ID(t)
	whole := strings.TrimSpace(strings.Repeat("Ana Lima é. ", 2000))
	s.load("w3id", map[string]string{
		"x/.htaccess": "RewriteEngine on\nRewriteRule ^a$ https://example.org/a [L]\n", "x/README.md": whole,
		"y/.htaccess": "RewriteEngine on\nRewriteRule ^a$ https://example.org/a [L]\n", "y/README.md": strings.Repeat("x", 200_007),
	}, foreign.Options{}, bulk.FileOptions{})
	id, err := s.schemes.Parse("https://w3id.org/x/a")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := s.r.Get(s.admin, id)
	if err != nil {
		t.Fatal(err)
	}
	if got := rec.Metadata["w3id.readme"] + rec.Metadata["w3id.readme.2"] + rec.Metadata["w3id.readme.3"]; got != whole || len(rec.Metadata["w3id.readme"]) > stele.MaxProse {
		t.Errorf("%d bytes of %d are kept", len(got), len(whole))
	}
	if got := s.told(); !strings.Contains(got, "y/.htaccess: the last 7 bytes of w3id.readme are not kept") {
		t.Error(got)
	}
}
