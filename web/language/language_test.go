package language

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/stele-id/stele"
)

func catalog(t *testing.T) *Catalog {
	t.Helper()
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var placeholder = regexp.MustCompile(`\{[a-z0-9-]+\}`)

// names returns the placeholders of a text, or of all plural forms of one.
func names(v any) []string {
	var all []string
	switch v := v.(type) {
	case string:
		all = placeholder.FindAllString(v, -1)
	case map[string]any:
		for _, form := range v {
			all = append(all, names(form)...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func open(t *testing.T, tag string) (f file) {
	t.Helper()
	text, err := files.ReadFile(tag + ".toml")
	if err != nil {
		t.Fatal(err)
	}
	if err := toml.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFiles: every language says every text, with the same parameters.
func TestFiles(t *testing.T) {
	c := catalog(t)
	if c.Languages()[0].Tag != Default || len(c.Languages()) < 2 {
		t.Fatalf("the languages are %v", c.Languages())
	}
	english := open(t, Default)
	for _, l := range c.Languages()[1:] {
		other := open(t, l.Tag)
		for key, text := range english.Texts {
			if other.Texts[key] == nil {
				t.Errorf("%s has no %s", l.Tag, key)
			} else if key != "date.day" && !slices.Equal(names(text), names(other.Texts[key])) {
				t.Errorf("%s: %s has the parameters %v, and %v in English", l.Tag, key, names(other.Texts[key]), names(text))
			}
		}
		for key := range other.Texts {
			if english.Texts[key] == nil {
				t.Errorf("%s has %s, which English has not", l.Tag, key)
			}
		}
		if len(other.Months) != 12 || other.Name == "" {
			t.Errorf("%s has no name, or not 12 months", l.Tag)
		}
	}
}

// TestProblemFiles: what a language says of problems is about problems that there are, with
// their parameters.
func TestProblemFiles(t *testing.T) {
	list, err := os.ReadFile(filepath.Join("..", "..", "docs", "messages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for line := range strings.Lines(string(list)) {
		code, text, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		texts[code] = text
	}
	for _, l := range catalog(t).Languages()[1:] {
		for code, text := range l.problems {
			if english, ok := texts[code]; !ok {
				t.Errorf("%s: there is no problem %s", l.Tag, code)
			} else if !slices.Equal(names(text), names(english)) {
				t.Errorf("%s: %s has the parameters %v, and %v in English", l.Tag, code, names(text), names(english))
			}
		}
	}
}

// TestProblemsTranslated: what people see of files that they send or fetch at the desk is said in every language.
func TestProblemsTranslated(t *testing.T) {
	families := []string{"export", "foreign-authority", "handle-json", "import", "proposal", "record", "replace", "webrules", "xml", "zone-note"}
	list, err := os.ReadFile(filepath.Join("..", "..", "docs", "messages.txt"))
	if err != nil {
		t.Fatal(err)
	}
	languages := catalog(t).Languages()[1:]
	for line := range strings.Lines(string(list)) {
		code, _, _ := strings.Cut(line, "\t")
		family, _, _ := strings.Cut(code, ".")
		for _, l := range languages {
			if _, ok := l.problems[code]; !ok && slices.Contains(families, family) {
				t.Errorf("%s has no text for the problem %s", l.Tag, code)
			}
		}
	}
}

// TestKeysUsed: every key is used in a page or in the program, and every key of a page is there.
func TestKeysUsed(t *testing.T) {
	var source strings.Builder
	root := filepath.Join("..", "..")
	for _, folder := range []string{"web", "serve", "server", "mail"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".html" {
				return err
			}
			text, err := os.ReadFile(path)
			source.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	text := source.String()
	english := catalog(t).Languages()[0]
	for _, key := range english.Keys() {
		family, _, _ := strings.Cut(key, ".")
		// Some families are named by what they stand for: "state." and the state.
		if !strings.Contains(text, `"`+key+`"`) && !strings.Contains(text, `"`+family+`."`) && !strings.Contains(text, "done="+strings.TrimPrefix(key, "done.")) {
			t.Errorf("%s is not used", key)
		}
	}
	for _, m := range regexp.MustCompile(`\{\{-?\s*t "([^"]+)"|\(t "([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if key := m[1] + m[2]; !english.Has(key) {
			t.Errorf("a page says %s, which no language has", key)
		}
	}
	for _, m := range regexp.MustCompile(`lang(?:uage)?\.Text\("([^"]+[^."])"|c\.frame\("([a-z-]+\.[a-z-]+)"`).FindAllStringSubmatch(text, -1) {
		if key := m[1] + m[2]; !english.Has(key) {
			t.Errorf("the program says %s, which no language has", key)
		}
	}
}

func TestText(t *testing.T) {
	c := catalog(t)
	en, pt := c.Get("en"), c.Get("pt-BR")
	at := time.Date(2026, 11, 5, 9, 7, 0, 0, time.UTC)
	for _, tt := range []struct{ got, want string }{
		{en.Text("home.names", "count", 1), "one name."},
		{en.Text("home.names", "count", uint64(0)), "0 names."},
		{en.Text("home.names", "count", uint64(1<<64-1)), "18,446,744,073,709,551,615 names."},
		{en.Text("home.names", "count", 48211), "48,211 names."},
		{pt.Text("home.names", "count", 0), "um nome."}, // CLDR: Portuguese has one form for 0 and 1
		{pt.Text("home.names", "count", 48211), "48.211 nomes."},
		{pt.Text("home.names", "count", 1000000), "1.000.000 nomes."},
		{en.Day(at), "5 November 2026"},
		{pt.Day(at), "05/11/2026"},
		{pt.Moment(at), "05/11/2026, 09:07 UTC"},
		{en.Text("no.such-key"), "no.such-key"},
		{en.Text("link.text", "user", "<b>"), "This link signs in the user <b>."},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestProblem(t *testing.T) {
	pt := catalog(t).Get("pt-BR")
	if pt.problems == nil {
		pt.problems = make(map[string]string)
	}
	pt.problems["test.inner"] = "falta {thing}"
	pt.problems["test.outer"] = "em {place}: {cause}"
	inner := stele.Messagef("test.inner", "{thing} is missing", "a porta")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("no code"), "no code"},
		{stele.Messagef("test.outer", "{place}: {cause}", "casa", inner), "em casa: falta a porta"},
		{stele.Messagef("", "{place}: {cause}", "casa", inner), "casa: falta a porta"},
		{stele.Messagef("test.unknown", "in English"), "in English"},
	} {
		if got := pt.Problem(tt.err); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestMatch(t *testing.T) {
	c := catalog(t)
	for _, tt := range []struct{ user, cookie, accept, site, want string }{
		{"", "", "", "", "en"},
		{"", "", "pt-PT,pt;q=0.9,en;q=0.5", "", "pt-BR"},
		{"", "", "ja", "pt-BR", "pt-BR"},
		{"", "en", "pt", "", "en"},
		{"pt-BR", "en", "en", "en", "pt-BR"},
		{"", "zz", "pt", "", "pt-BR"},
		{"", "", strings.Repeat("pt,", 1000), "", "en"},
		{"", "", ";;;==", "", "en"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if tt.cookie != "" {
			r.Header.Set("Cookie", Cookie+"="+tt.cookie)
		}
		if tt.accept != "" {
			r.Header.Set("Accept-Language", tt.accept)
		}
		if got := c.Of(r, tt.user, tt.site).Tag; got != tt.want {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

// TestParseInPieces: a file that is parsed in pieces is the same as one parsed at once, and what it has twice is an error, far apart too.
func TestParseInPieces(t *testing.T) {
	for _, name := range []string{"en.toml", "pt-BR.toml"} {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var want file
		if err := toml.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if got.Name != want.Name || !slices.Equal(got.Months, want.Months) || !reflect.DeepEqual(got.Texts, want.Texts) || !maps.Equal(got.Problems, want.Problems) {
			t.Errorf("%s is read otherwise in pieces", name)
		}
	}
	var long strings.Builder
	for i := range 3 * piece {
		fmt.Fprintf(&long, "\"a%d\" = \"b\"\n", i)
	}
	for _, table := range []string{"texts", "problems"} {
		text := "name = \"x\"\n[" + table + "]\n" + long.String()
		if _, err := parse([]byte(text)); err != nil {
			t.Error(err)
		}
		for _, twice := range []string{"a0", "a190"} {
			if _, err := parse([]byte(text + "\"" + twice + "\" = \"c\"\n")); err == nil {
				t.Errorf("%s has %s twice, and that is no error", table, twice)
			}
		}
	}
}
