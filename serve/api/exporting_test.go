package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

func TestExport(t *testing.T) {
	s := newSite(t)
	const at = Root + "/export"
	all := s.ask(theAdmin, "GET", at, "").want(t, 200)
	if got := all.get("Content-Type"); got != apijson.Lines || strings.Count(all.body, "\n") != 6 || strings.Contains(all.body, `"version"`) {
		t.Errorf("%s: %s", got, all.body)
	}
	some := s.ask(theReader, "GET", at+"?prefix=ark:12345", "").want(t, 200).body
	if strings.Count(some, "\n") != 5 || strings.Contains(some, "99999") || !strings.Contains(some, "ark:12345/hidden") || !strings.Contains(some, "user:carl") {
		t.Errorf("got %s", some)
	}
	withNamespaces := s.ask(theReader, "GET", at+"?prefix=ark:12345&namespaces=true", "").want(t, 200).body
	if !strings.HasSuffix(withNamespaces, some) || strings.Count(withNamespaces, `{"namespace":`) != 2 {
		t.Errorf("got %s", withNamespaces)
	}
	history := s.ask(theReader, "GET", at+"?prefix=ark:12345/gone&history=true", "").want(t, 200).body
	if lines := strings.Split(history, "\n"); len(lines) != 3 || !strings.Contains(lines[0], `"version":1`) || !strings.Contains(lines[1], `"version":2`) {
		t.Errorf("got %s", history)
	}
	if none := s.ask(theReader, "GET", at+"?prefix=ark:12345/zzz", "").want(t, 200).body; none != "" {
		t.Errorf("got %s", none)
	}
	if head := s.ask(theAdmin, "HEAD", at, "").want(t, 200); head.body != "" {
		t.Errorf("got %s", head.body)
	}
	for _, query := range []string{"", "?prefix=ark:", "?prefix=ark:12345", "?prefix=ark:12345&namespaces=true", "?namespaces=true"} {
		s.ask(theStranger, "GET", at+query, "").want(t, 403)
		s.ask("", "GET", at+query, "").want(t, 401)
	}
	s.ask(theAdmin, "GET", at+"?prefix=?", "").want(t, 400)

	// Another registry that imports it exports the same.
	s.add(`{"id":"ark:12345/e1","url":"https://example.org/e1"}`, `{"id":"ark:12345/e2","state":"reserved"}`)
	mine := s.ask(theAdmin, "GET", at+"?prefix=ark:12345/e", "").want(t, 200).body
	other := newSite(t)
	if _, last := other.imports(theAdmin, "?keep=true", mine, 200); last.Created != 2 {
		t.Errorf("got %+v", last)
	}
	if got := other.ask(theAdmin, "GET", at+"?prefix=ark:12345/e", "").body; got != mine {
		t.Errorf("got %s, want %s", got, mine)
	}
}

// revoking is a directory in which a token that was good a few times is revoked.
type revoking struct {
	Directory
	left int
}

func (d *revoking) Authenticate(ctx context.Context, credential string) (auth.Principal, error) {
	if d.left--; d.left < 0 {
		return auth.Principal{}, &stele.Error{Op: "authenticate", Kind: stele.Unauthenticated}
	}
	return d.Directory.Authenticate(ctx, credential)
}

// TestExportEndsWithTheRight: an export ends when the caller loses the right to have it.
func TestExportEndsWithTheRight(t *testing.T) {
	var directory revoking
	s := newSite(t, func(o *Options) {
		directory.Directory = o.Directory
		o.Directory = &directory
	})
	var lines []string
	for i := range 2*exportPace + 10 {
		lines = append(lines, fmt.Sprintf(`{"id":"ark:12345/m%05d","url":"https://example.org/"}`, i))
	}
	s.add(lines...)
	directory.left = 1000
	if all := s.ask(theReader, "GET", Root+"/export?prefix=ark:12345/m", "").want(t, 200).body; strings.Count(all, "\n") != len(lines) {
		t.Fatalf("%d lines of %d", strings.Count(all, "\n"), len(lines))
	}
	directory.left = 2 // for the request, and after the first lines
	cut := s.ask(theReader, "GET", Root+"/export?prefix=ark:12345/m", "").body
	if n := strings.Count(cut, "\n"); n >= len(lines) {
		t.Errorf("the export went on, for %d lines", n)
	}
}
