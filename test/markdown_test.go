package test

import (
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// page is a Markdown file, cut into code fences and prose.
type page struct {
	path   string // from the root, with slashes
	lines  []string
	fences []fence
	prose  []int // indexes of the lines outside fences
}

// fence is a block of code.
type fence struct {
	tag    string // the first word after the opening fence
	first  int    // index of its first line in the page, after the opening
	indent string // what stands before the opening fence, in a list for example
	body   []string
}

var opening = regexp.MustCompile("^([ \t]*)(```+|~~~+)[ \t]*([^ \t`]*)[^`]*$")

// parsePage reads Markdown. A fence that is never closed is an error, because a
// reader sees the rest of the page as code.
func parsePage(name, text string) (*page, error) {
	p := &page{path: name, lines: strings.Split(text, "\n")}
	for i := 0; i < len(p.lines); i++ {
		open := opening.FindStringSubmatch(p.lines[i])
		if open == nil {
			p.prose = append(p.prose, i)
			continue
		}
		f := fence{tag: open[3], first: i + 1, indent: open[1]}
		for i++; ; i++ {
			if i == len(p.lines) {
				return nil, fmt.Errorf("%s:%d: the fence is never closed", name, f.first)
			}
			line := p.lines[i]
			if end := strings.TrimSpace(line); strings.HasPrefix(end, open[2]) && strings.Trim(end, open[2][:1]) == "" {
				break
			}
			f.body = append(f.body, strings.TrimPrefix(line, f.indent))
		}
		p.fences = append(p.fences, f)
	}
	return p, nil
}

// at makes a complaint about line i of the page, counted from 0.
func (p *page) at(i int, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", p.path, i+1, fmt.Sprintf(format, args...))
}

// replace puts other lines in place of a fence's body, which must be the last
// that is replaced or stand before those that were.
func (p *page) replace(f fence, body []string) {
	out := append([]string(nil), p.lines[:f.first]...)
	for _, line := range body {
		if line != "" {
			line = f.indent + line
		}
		out = append(out, line)
	}
	p.lines = append(out, p.lines[f.first+len(f.body):]...)
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^)>\s]+)>?(?:\s+"[^"]*")?\s*\)`)
	linkTarget = regexp.MustCompile(`^ {0,3}\[[^\]^]+\]:\s*<?([^>\s]+)`)
	hasScheme  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`)
)

// links returns the page's links to files beside it, by line.
func (p *page) links() map[int][]string {
	found := make(map[int][]string)
	for _, i := range p.prose {
		line := inlineCode.ReplaceAllString(p.lines[i], "``")
		for _, m := range append(inlineLink.FindAllStringSubmatch(line, -1), linkTarget.FindAllStringSubmatch(line, -1)...) {
			if to := m[1]; !hasScheme.MatchString(to) && !strings.HasPrefix(to, "#") {
				found[i] = append(found[i], to)
			}
		}
	}
	return found
}

// brokenLinks complains of links to files that are not in the repository at dir.
func (p *page) brokenLinks(dir string) (complaints []string) {
	links := p.links()
	for _, i := range p.prose {
		for _, to := range links[i] {
			name, _, _ := strings.Cut(to, "#")
			name, err := url.PathUnescape(name)
			name = path.Join(path.Dir(p.path), name)
			switch {
			case err != nil, strings.HasPrefix(to, "/"), !filepath.IsLocal(name):
				complaints = append(complaints, p.at(i, "%q must be a path from this page to a file of the repository", to))
			default:
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					complaints = append(complaints, p.at(i, "%q links to nothing", to))
				}
			}
		}
	}
	return complaints
}

// step is a command that a console block shows, with what it prints.
type step struct {
	shown   []string // the lines as they are, with prompts
	command string
	want    []string
}

// steps reads a console block: "$ command", perhaps continued on lines that begin
// with "> ", as bash prompts, and then what the command prints.
func steps(body []string) ([]step, error) {
	var all []step
	for _, line := range body {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, step{shown: []string{line}, command: command})
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("the block must begin with a command, \"$ ...\", but begins with %q", line)
		}
		s := &all[len(all)-1]
		if (line == ">" || strings.HasPrefix(line, "> ")) && s.want == nil {
			s.shown = append(s.shown, line)
			s.command += "\n" + strings.TrimPrefix(line[1:], " ")
			continue
		}
		s.want = append(s.want, line)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the block is empty")
	}
	return all, nil
}

// matches reports whether got is what is shown. In want, "..." alone on a line
// stands for any lines, or none.
func matches(want, got []string) bool {
	for i, line := range want {
		if line == "..." {
			for j := i; j <= len(got); j++ {
				if matches(want[i+1:], got[j:]) {
					return true
				}
			}
			return false
		}
		if i >= len(got) || line != got[i] {
			return false
		}
	}
	return len(got) == len(want)
}

func TestParsePage(t *testing.T) {
	p, err := parsePage("a.md", strings.Join([]string{
		"# Title", "```console", "$ a", "b", "```", "text `code` ``` no fence",
		"- item", "  ~~~~sh extra words", "  c", "", "    d", "  ~~~", "  ~~~~", "````", "```", "````", "end",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []fence{
		{"console", 2, "", []string{"$ a", "b"}},
		{"sh", 8, "  ", []string{"c", "", "  d", "~~~"}},
		{"", 14, "", []string{"```"}},
	}
	if !reflect.DeepEqual(p.fences, want) {
		t.Errorf("fences\n got %+v\nwant %+v", p.fences, want)
	}
	if want := []int{0, 5, 6, 16}; !reflect.DeepEqual(p.prose, want) {
		t.Errorf("prose: lines %d, want %d", p.prose, want)
	}
	if _, err := parsePage("a.md", "text\n```\ncode\n"); err == nil || !strings.HasPrefix(err.Error(), "a.md:2: ") {
		t.Errorf("an open fence: %v", err)
	}
}

func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"LICENSE", "docs/a b.md"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for text, good := range map[string]bool{
		"[x](../LICENSE)":                       true,
		"[x](../LICENSE#terms \"title\") more":  true,
		"[x](a%20b.md) [y](.)":                  true,
		"[x](<a%20b.md>)":                       true,
		"[x](https://example.org/none)":         true,
		"[x](#here) [y](mailto:a@example.org)":  true,
		"[x]: ../LICENSE":                       true,
		"`[x](none)`":                           true,
		"```\n[x](none)\n```":                   true,
		"[x](none)":                             false,
		"![x](none.png)":                        false,
		"[x](../LICENSE) and [y](none)":         false,
		"[x]: none":                             false,
		"[x](../../LICENSE)":                    false,
		"[x](/LICENSE)":                         false,
		"[x](%zz)":                              false,
		"a [long\ntext](none) over two lines":   false,
		"```\ncode\n```\n[x](none) after fence": false,
	} {
		p, err := parsePage("docs/page.md", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.brokenLinks(dir); (got == nil) != good {
			t.Errorf("%q: good %t, complaints %q", text, good, got)
		}
	}
}

func TestSteps(t *testing.T) {
	got, err := steps([]string{"$ a \\", "> b", ">", "> c", "x", "> y", "", "$ d", "$ e", "$"})
	if err != nil {
		t.Fatal(err)
	}
	want := []step{
		{[]string{"$ a \\", "> b", ">", "> c"}, "a \\\nb\n\nc", []string{"x", "> y", ""}},
		{[]string{"$ d"}, "d", nil},
		{[]string{"$ e"}, "e", []string{"$"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, bad := range [][]string{nil, {"output first", "$ a"}, {"> a"}} {
		if _, err := steps(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		want, got string // lines, divided by |
		ok        bool
	}{
		{"a", "a", true},
		{"a", "a ", false},
		{"a", "b", false},
		{"a", "a|b", false},
		{"a|b", "a", false},
		{"...", "a", true},
		{"...", "a|b|c", true},
		{"a|...", "a|b|c", true},
		{"a|...", "a", true},
		{"a|...|c", "a|c", true},
		{"a|...|c", "a|b|c|b|c", true},
		{"a|...|c", "a|b", false},
		{"...|b|...|d", "a|b|c|d", true},
		{"...|b|...|d", "a|d|c|b", false},
		{"a...", "a|b", false},
	} {
		if got := matches(strings.Split(tt.want, "|"), strings.Split(tt.got, "|")); got != tt.ok {
			t.Errorf("matches(%q, %q) = %t", tt.want, tt.got, got)
		}
	}
	if !matches(nil, nil) || matches(nil, []string{"a"}) || matches([]string{"a"}, nil) || !matches([]string{"..."}, nil) {
		t.Error("no lines match no lines, or \"...\", and nothing else")
	}
}
