package foreign_test

import (
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
)

// told returns all that an import tells, a line each.
func (s *w3idSite) told() string {
	var b strings.Builder
	for _, n := range s.report.Notes {
		b.WriteString(n.Error() + "\n")
	}
	return b.String()
}

// leads holds where names lead against what is wanted; "" is nowhere.
func (s *w3idSite) leads(want map[string]string) {
	s.t.Helper()
	for name, to := range want {
		if got, _ := s.location(s.base+name, "*/*"); got != to {
			s.t.Errorf("%s leads to %q, want %q", name, got, to)
		}
	}
}

// TestW3IDLoops checks that a rule that leads to itself is refused by itself, with what would answer in its place, and that the tally
// counts it.
func TestW3IDLoops(t *testing.T) {
	s := newW3ID(t)
	s.load("w3id", map[string]string{"x/.htaccess": `RewriteEngine on
RewriteRule ^good/([0-9]+)$ https://e.org/$1 [R=303,L]
RewriteRule ^(v[0-9]+)$ https://w3id.org/x/$1 [R=303,L]
RewriteRule ^c$ https://e.org/c
RewriteRule ^also/([a-z]+)$ https://e.org/$1 [R=303,L]
RewriteRule ^([a-z][0-9]+)$ https://e.org/any/$1 [R=303,L]
`, "y/.htaccess": `RewriteEngine on
RewriteRule ^a([0-9]+)$ https://w3id.org/y/b$1 [R=303,L]
RewriteRule ^b([0-9]+)$ https://w3id.org/y/a$1 [R=303,L]
RewriteRule ^c([0-9]+)$ https://e.org/$1 [R=303,L]
RewriteRule ^(.*)$ https://w3id.org/y/$1 [R=303,L]
`}, foreign.Options{Namespaces: true}, bulk.FileOptions{})
	s.leads(map[string]string{
		"x/good/1": "https://e.org/1", "x/also/a": "https://e.org/a", "x/c": "https://e.org/c",
		"x/v1": "", "x/w1": "", // another rule would answer for v1
		"y/a1": "", "y/b1": "", "y/c1": "https://e.org/1", "y/z": "",
	})
	if got := s.told(); !strings.Contains(got, "4 of 9 redirects were read (44.4 %); 5 can't be said here, and 0 never answer") || !strings.Contains(got, "3 rules stand in 2 namespaces") {
		t.Error(got)
	}
	for _, says := range []string{
		"x/.htaccess: RewriteRule ^(v[0-9]+)$", `"https://w3id.org/x/v0" leads to a name of the same namespace`, "it would also answer for names of line 3, which is refused",
		"y/.htaccess: RewriteRule ^(.*)$", "y/.htaccess: RewriteRule ^b([0-9]+)$",
	} {
		if !strings.Contains(s.rejects.String(), says) {
			t.Errorf("%q is missing in\n%s", says, s.rejects.String())
		}
	}
}

// TestW3IDLoopsAmongFolders checks that a rule that leads to itself through the rules of another folder is refused by itself, also in a dry
// run.
func TestW3IDLoopsAmongFolders(t *testing.T) {
	files := map[string]string{"a/.htaccess": `RewriteEngine on
RewriteRule ^(v[0-9]+)$ https://w3id.org/b/$1 [R=303,L]
RewriteRule ^(w[0-9]+)$ https://w3id.org/b/c/$1 [R=303,L]
`, "b/.htaccess": `RewriteEngine on
RewriteRule ^(v[0-9]+)$ https://w3id.org/a/$1 [R=303,L]
RewriteRule ^good/([0-9]+)$ https://e.org/$1 [R=303,L]
`, "b/c/.htaccess": `RewriteEngine on
Redirect 303 /b/c/x https://e.org/x
`}
	for _, dry := range []bool{true, false} {
		s := newW3ID(t)
		s.load("w3id", files, foreign.Options{Namespaces: true}, bulk.FileOptions{DryRun: dry})
		const says = `b/.htaccess: RewriteRule ^(v[0-9]+)$ https://w3id.org/a/$1 [R=303,L]`
		if got := s.rejects.String(); !dry && (!strings.Contains(got, says) || !strings.Contains(got, `leads to a name of https://w3id.org/a/, for which a rule answers again`) || strings.Contains(got, "good")) {
			t.Error(got)
		}
		if got := s.told(); !strings.Contains(got, "4 of 5 redirects were read (80.0 %); 1 can't be said here") {
			t.Errorf("dry %t: %s", dry, got)
		}
		if !dry {
			s.leads(map[string]string{"a/v1": "https://w3id.org/b/v1", "b/v1": "", "b/good/1": "https://e.org/1"})
		}
	}
}

// TestW3IDRefusedRules checks that rules that the registry refuses are not told as read.
func TestW3IDRefusedRules(t *testing.T) {
	s := newW3ID(t)
	if _, err := s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "purl", Prefix: "https://w3id.org/x/", Hosts: []string{"e.org"}}); err != nil {
		t.Fatal(err)
	}
	s.load("w3id", map[string]string{"x/.htaccess": `RewriteEngine on
RewriteRule ^good/([0-9]+)$ https://elsewhere.org/$1 [R=303,L]
RewriteRule ^c$ https://e.org/c [L]
`}, foreign.Options{}, bulk.FileOptions{Update: true})
	if got := s.told(); !strings.Contains(got, "1 of 2 redirects were read (50.0 %); 1 can't be said here") || strings.Contains(got, "rules stand") {
		t.Error(got)
	}
}

// TestOBOLoops checks the same of the OBO Foundry.
func TestOBOLoops(t *testing.T) {
	s := newOBO(t)
	s.load("obo", map[string]string{"config/x.yml": `idspace: X
base_url: /obo/x
entries:
- regex: ^/obo/x/good/(\d+)$
  replacement: https://e.org/$1
- regex: ^/obo/x/(v\d+)$
  replacement: https://purl.obolibrary.org/obo/x/$1
- regex: ^/obo/x/also/(\d+)$
  replacement: https://e.org/also/$1
- regex: ^/obo/x/([a-z]\d+)$
  replacement: https://e.org/any/$1
`}, foreign.Options{Namespaces: true}, bulk.FileOptions{})
	s.leads(map[string]string{"x/good/1": "https://e.org/1", "x/also/1": "https://e.org/also/1", "x/v1": "", "x/w1": ""})
	if got := s.told(); !strings.Contains(got, "2 of 4 redirects were read (50.0 %); 2 can't be said here") {
		t.Error(got)
	}
	if !strings.Contains(s.rejects.String(), "leads to a name of the same namespace") {
		t.Error(s.rejects.String())
	}
}
