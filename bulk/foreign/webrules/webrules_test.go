package webrules

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/rules"
	"github.com/stele-id/stele/scheme/all"
)

func options(t testing.TB) Options {
	t.Helper()
	schemes, err := all.New(all.Config{Now: time.Now, PURLHosts: []string{"w3id.org"}})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Schemes: schemes, Base: "https://w3id.org/f/", Path: "/f/"}
}

const on = "RewriteEngine on\n"

// TestRefusals: a directive that can't be said here is refused, with its line and the reason.
func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		on + `RewriteRule`:                                                                                                           "line 2: the rule has no substitution; Apache httpd does not read it",
		on + `RewriteRule ^a$`:                                                                                                       "line 2: the rule has no substitution; Apache httpd does not read it",
		on + `RewriteRule ^a$ https://b.example R`:                                                                                   "line 2: Apache httpd does not read the flags R",
		on + "\n\nRewriteRule ^(a https://b.example [L]":                                                                             "line 4: the expression ^(a is not read here: error parsing regexp: missing closing ): `^(a`",
		on + `RewriteRule ^(a)\1$ https://b.example [L]`:                                                                             "line 2: the expression ^(a)\\1$ is not read here: error parsing regexp: invalid escape sequence: `\\1`",
		on + `RewriteRule !^a https://b.example [L]`:                                                                                 "line 2: it answers for all names that do not match",
		on + `RewriteRule ^a$ https://b.example [P,L]`:                                                                               "line 2: the flag P has no counterpart here",
		on + `RewriteRule ^a$ https://b.example [R=299,L]`:                                                                           "line 2: the status 299 has no counterpart here",
		on + `RewriteRule ^a$ /b [L]`:                                                                                                "line 2: it leads to a path of the same server",
		on + "RewriteCond %{HTTPS} on\n" + `RewriteRule ^a$ https://b.example [L]`:                                                   "line 3: a condition looks at %{HTTPS}, which decides nothing here",
		on + "RewriteCond %{HTTP_ACCEPT}\n" + `RewriteRule ^a$ https://b.example [L]`:                                                "line 3: the condition has no pattern",
		on + "<If \"%{HTTP_HOST} == 'x'\">\n" + "RewriteRule ^a$ https://b.example [L]\n</If>":                                       `line 3: whether it holds depends on the section <If "%{HTTP_HOST} == 'x'">`,
		on + "RewriteRule ^" + strings.Repeat("a?", 3000) + "$ https://b.example [L]":                                                "line 2: the expression is longer than the 4096 bytes, or the 400 steps, that are followed here",
		on + "RewriteRule ^[a-c]{900}$ https://b.example [L]":                                                                        "line 2: the expression is longer than the 4096 bytes, or the 400 steps, that are followed here",
		on + "RewriteCond %{HTTP_ACCEPT} " + "x{999}\nRewriteRule ^a$ https://b.example [L]":                                         "line 3: the expression is longer than the 4096 bytes, or the 400 steps, that are followed here",
		on + "RewriteRule ^a$ https://b.example \\\n" + strings.Repeat("\\\n", 10) + strings.Repeat(" ", maxLine) + "[L]":            "line 2: the directive has more than 65536 bytes, with the lines that continue it",
		on + "RewriteCond %{HTTP_ACCEPT} turtle \\\n" + strings.Repeat(" ", maxLine) + "[NC]\nRewriteRule ^a$ https://b.example [L]": "line 4: the directive has more than 65536 bytes, with the lines that continue it",
		"Redirect":                       "line 1: the directive does not have what Apache httpd needs to read it",
		"Redirect a https://b.example":   "line 1: a path begins with a slash",
		"RedirectMatch (.*) https://b$1": "line 1: the expression does not begin with the path of the folder, /f/, so that its names are not clear",
	} {
		result := Compile(Parse(text, "/f/").Rules, options(t))
		if len(result.Refused) != 1 || len(result.Records)+len(result.Rules) > 0 {
			t.Errorf("%.80q: %+v", text, result)
			continue
		}
		r := result.Refused[0]
		if got := fmt.Sprintf("line %d: %s", r.Rule.Line, r.Err); got != want {
			t.Errorf("%.80q: %s, want %s", text, got, want)
		}
	}
}

// TestContinuedLines: a line that others continue is put together once, and not again for each of them.
func TestContinuedLines(t *testing.T) {
	text := "# " + strings.Repeat("ab\\\r\n", 50_000) + "c\nRedirect 302 /f/a \\\n https://example.org/a\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list, comments, _ := readDirectives(text)
	runtime.ReadMemStats(&after)
	if comments[0] != strings.Repeat("ab", 50_000)+"c" || len(list) != 1 || list[0].line != 50_002 || list[0].text != "Redirect 302 /f/a  https://example.org/a" {
		t.Errorf("%.100q, %+v", comments, list)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 10<<20 {
		t.Errorf("%d bytes of memory were taken for a file of %d", took, len(text))
	}
}

// TestDirectivesTooMany: what is not read of a file is told.
func TestDirectivesTooMany(t *testing.T) {
	text := on + strings.Repeat("RewriteRule ^a$ https://example.org/ [L]\n", maxDirectives)
	result := Compile(Parse(text, "/f/").Rules, options(t))
	if len(result.Refused) == 0 || result.Refused[len(result.Refused)-1].Rule.Line != maxDirectives+1 {
		t.Errorf("%d are refused", len(result.Refused))
	}
}

// TestWorkBounded: a file that takes too much work is refused, rule by rule. Work is counted, since time depends on the machine.
func TestWorkBounded(t *testing.T) {
	types := func(b *strings.Builder) { // as many as are tried
		for i := range 200 {
			fmt.Fprintf(b, "RewriteCond %%{HTTP_ACCEPT} text/x%d [OR]\n", i)
		}
		b.WriteString("RewriteCond %{HTTP_ACCEPT} text/y\nRewriteRule ^y$ https://example.org/y [R,L]\n")
	}
	for name, write := range map[string]func(b *strings.Builder){
		"expressions": func(b *strings.Builder) {
			for i := range 600 {
				fmt.Fprintf(b, "RewriteRule (a|b|%d)[a-y]{%d}(c|d|%d)[b-z]{%d} https://example.org/%d [L]\n", i, 3+i%20, i%7, 2+i%25, i)
			}
		},
		"names": func(b *strings.Builder) {
			types(b)
			for i := range 480 {
				fmt.Fprintf(b, "RewriteCond %%{HTTP_USER_AGENT} ^$\nRewriteRule ^(a|b|c|d|e|f|g|h|i|j)$ https://example.org/%d [R,L]\n", i)
			}
		},
		"conditions": func(b *strings.Builder) {
			types(b)
			for i := range 30 {
				b.WriteString(strings.Repeat("RewriteCond %{HTTP_ACCEPT} .\n", 90))
				fmt.Fprintf(b, "RewriteCond %%{HTTP_ACCEPT} !.\nRewriteRule ^(a|b|c|d|e|f|g|h|i|j)$ https://example.org/%d [R,L]\n", i)
			}
		},
	} {
		text := on
		var b strings.Builder
		write(&b)
		text += b.String()
		list := Parse(text, "/f/").Rules
		const limit = maxWork / 20 // what an import has left, so that the test is short
		left := limit
		o := options(t)
		o.Work = &left
		result := Compile(list, o)
		if n := result.Read + len(result.Refused) + len(result.Idle); n != len(list) || len(result.Refused) == 0 && result.work >= limit {
			t.Errorf("%s: %d of %d directives are accounted for, %d of them refused", name, n, len(list), len(result.Refused))
		}
		// What is begun is done; the largest step is a comparison of two expressions.
		if most := limit + maxWork/20; result.work < limit*9/10 || result.work > most {
			t.Errorf("%s: %d steps of work, of %d", name, result.work, most)
		}
	}
}

// TestAsApache: what is easily read otherwise than Apache httpd reads it. Want has a line for each record: the name, and where its first target
// leads; names that are refused stand behind "-".
func TestAsApache(t *testing.T) {
	words := make([]string, 20)
	for i := range words {
		words[i] = fmt.Sprintf("w%02d", i+1)
	}
	own := ""
	for _, w := range words {
		own += "RewriteRule ^" + w + "$ https://example.org/own/" + w + " [R,L]\n"
	}
	for name, tt := range map[string]struct {
		text    string
		records []string
		rules   int
		refused []int
	}{
		"the last condition has OR": {"RewriteCond %{HTTP_ACCEPT} text/html [OR]\nRewriteRule ^x$ https://example.org/x.html [R=303,L]\nRewriteRule ^x$ https://example.org/x.ttl [R=303,L]\n",
			[]string{"x https://example.org/x.html"}, 0, nil},
		"a chain": {"RewriteRule ^a/ - [C]\nRewriteRule ^b$ https://example.org/b [R,L]\nRewriteRule ^c$ https://example.org/c [R,L]\n",
			[]string{"c https://example.org/c"}, 0, []int{2, 3}},
		"a name in a folder with a file of its own": {"RewriteRule ^v1/spec$ https://example.org/old [R,L]\nRewriteRule ^v2/spec$ https://example.org/new [R,L]\n",
			[]string{"v2/spec https://example.org/new"}, 0, []int{2}},
		"a form whose names have redirects of their own": {own + "RewriteRule ^(" + strings.Join(words, "|") + "|w99)$ https://example.org/some [R,L]\nRewriteRule ^(.*)$ https://example.org/all/$1 [R,L]\n",
			nil, 2, nil},
		"a form all of whose names have redirects of their own": {own + "RewriteRule ^(" + strings.Join(words, "|") + ")$ https://example.org/some [R,L]\nRewriteRule ^(.*)$ https://example.org/all/$1 [R,L]\n",
			nil, 1, nil},
	} {
		o := options(t)
		o.Folders = []string{"v1"}
		result := Compile(Parse(on+tt.text, o.Path).Rules, o)
		var records []string
		for _, r := range result.Records {
			if len(r.Targets) != 1 {
				t.Errorf("%s: %s has %d targets", name, r.Name, len(r.Targets))
				continue
			}
			records = append(records, r.Name+" "+r.Targets[0].URL)
		}
		var refused []int
		for _, r := range result.Refused {
			refused = append(refused, r.Rule.Line)
		}
		slices.Sort(refused)
		if tt.records != nil && !slices.Equal(records, tt.records) || len(result.Rules) != tt.rules || !slices.Equal(refused, tt.refused) {
			t.Errorf("%s: records %q, %d rules, refused %v", name, records, len(result.Rules), refused)
		}
	}
}

// TestUnshown: if all names of a form that are tried have redirects of their own, others may not: neither the form nor what would answer for its
// names in its place becomes a rule.
func TestUnshown(t *testing.T) {
	o := options(t)
	const rule = "RewriteRule ^k([0-9]{2})$ https://example.org/some/$1 [R,L]\n"
	form := Parse(on+rule, o.Path).Rules[0]
	tried := make(map[string]bool)
	text := on
	for _, name := range form.variants[0].samples(false) {
		if !tried[name] {
			tried[name] = true
			text += "RewriteRule ^" + name + "$ https://example.org/own [R,L]\n"
		}
	}
	text += rule + "RewriteRule ^(.*)$ https://example.org/all/$1 [R,L]\n"
	result := Compile(Parse(text, o.Path).Rules, o)
	if len(result.Rules) != 0 || len(result.Refused) != 2 || len(result.Records) != len(tried) {
		t.Errorf("%v rules, %v refused, %d records of %d", result.Texts, result.Refused, len(result.Records), len(tried))
	}
}

// TestFolderBeyondASCII: a folder whose name has letters of several bytes.
func TestFolderBeyondASCII(t *testing.T) {
	o := options(t)
	o.Path = "/f/é/"
	Compile(Parse("Redirect /f/é/ https://example.org/\nRedirect /f/é/x https://example.org/x\n", o.Path).Rules, o)
}

// TestHostile: every directive of files that hostile users might give is accounted for.
func TestHostile(t *testing.T) {
	for _, text := range hostile {
		checkFile(t, options(t), text)
	}
}

var hostile = []string{
	"", "\x00", "\xff\xfe\xff", "#", "\\", "\\\n\\\n", "</If>", strings.Repeat("<If x>\n", 100), "RewriteRule \"", "RewriteRule ' ' '", `RewriteRule ^\ $ \`,
	on + "RewriteRule ^$ https://example.org/ [L]\nRewriteRule ^(.*)$ https://example.org/$1 [R=303,L]",
	on + "RewriteCond %{HTTP_ACCEPT} text/turtle [OR]\nRewriteRule ^a(b|c)?/([0-9]+)$ https://example.org/$2/$1$9%1 [NE]",
	on + "RewriteRule ^(?i)a{0}b{0,0}[^!-~]$ https://example.org/{x} [NC,L]", on + "RewriteRule () https://$1 [G,R=410]",
	on + "RewriteRule ^(a|b|)(|c)*?(d+)+$ https://example.org/%{x}${y:$1} [L]", "RedirectMatch 410 ^/f/(.*)$\nRedirect gone /f\nRedirect 301 /f/ https://example.org",
	on + `RewriteRule ^\bx\B\z(?m)^$ https://example.org/ [L]`, on + "RewriteRule ^é[é-í]*$ https://example.org/é\xff [L]",
}

// checkFile holds that every directive of a file becomes a part of the result, is refused or never answers, and that rules are valid.
func checkFile(t *testing.T, o Options, text string) {
	t.Helper()
	file := Parse(text, o.Path)
	result := Compile(file.Rules, o)
	if n := result.Read + len(result.Refused) + len(result.Idle); n != len(file.Rules) {
		t.Errorf("%q: %d of %d directives are accounted for", text, n, len(file.Rules))
	}
	ns := &stele.Namespace{Scheme: "purl", Prefix: o.Base, Rules: result.Rules}
	if _, problems := rules.Compile(ns); len(problems) > 0 {
		t.Errorf("%q: %v", text, problems)
	}
	for _, r := range result.Refused {
		if r.Err == nil || r.Rule.Line < 1 {
			t.Errorf("%q: line %d is refused for no reason", text, r.Rule.Line)
		}
	}
	result.Merge()
}

func FuzzParse(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	o := options(f)
	f.Fuzz(func(t *testing.T, text string) { checkFile(t, o, text) })
}
