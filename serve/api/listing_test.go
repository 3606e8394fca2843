package api

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// all walks through all pages of a list, and returns the names on them.
func (s *site) all(who, target string) (names []string) {
	s.t.Helper()
	cursor := ""
	for range 1000 {
		a := s.ask(who, "GET", Root+target+cursor, "").want(s.t, 200)
		var page struct {
			Items []struct {
				ID, Name, Prefix, Scheme string
				Version                  int
			}
			Next string
		}
		a.read(s.t, &page)
		for _, i := range page.Items {
			name := i.ID + i.Name + i.Prefix
			if i.ID == "" && i.Name == "" && i.Prefix == "" {
				name = i.Scheme + ":"
			}
			if strings.HasPrefix(target, "/history") {
				name = fmt.Sprint(i.Version)
			}
			names = append(names, name)
		}
		if page.Next == "" {
			return names
		}
		mark := "?"
		if strings.Contains(target, "?") {
			mark = "&"
		}
		cursor = mark + "cursor=" + url.QueryEscape(page.Next)
	}
	s.t.Fatal("the list has no end")
	return nil
}

func TestLists(t *testing.T) {
	s := newSite(t)
	s.add(`{"id":"urn:example:a","url":"https://example.org/a"}`, `{"id":"10.5072/B","url":"https://example.net/b"}`)
	ours := []string{"ark:12345/gone", "ark:12345/hidden", "ark:12345/secret", "ark:12345/x1", "ark:12345/x2"}
	everything := slices.Concat(ours, []string{"ark:99999/y1", "10.5072/B", "urn:example:a"})
	for _, tt := range []struct {
		who, target string
		want        []string
	}{
		{theReader, "/records?prefix=ark:12345", ours},
		{theReader, "/records?prefix=ark:12345&limit=1", ours},
		{theReader, "/records?prefix=ark:12345&limit=2", ours},
		{theReader, "/records?prefix=ark:/12345", ours},
		{theReader, "/records?prefix=ark:12345/x1", []string{"ark:12345/x1"}},
		{theReader, "/records?prefix=ark:12345&after=ark:12345/secret", ours[3:]},
		{theReader, "/records?prefix=ark:12345&state=reserved", ours[1:2]},
		{theReader, "/records?prefix=ark:12345&state=withdrawn&limit=1", ours[:1]},
		{theReader, "/records?pointing=example.org", ours},
		{theReader, "/records?pointing=EXAMPLE.org&state=active", ours[2:]},
		{theReader, "/records?pointing=https://example.org/1", ours[3:4]},
		{theReader, "/records?pointing=example.org&prefix=ark:12345&limit=2", ours},
		{theReader, "/records?pointing=example.net", nil},
		{theStranger, "/records?pointing=example.net", []string{"ark:99999/y1"}},
		{theOutsider, "/records?pointing=example.net", nil},
		{theAdmin, "/records", everything},
		{theAdmin, "/records?limit=1", everything},
		{theAdmin, "/records?limit=3", everything},
		{theAdmin, "/records?after=ark:99999/y1", everything[6:]},
		{theAdmin, "/records?prefix=ark:", everything[:6]},
		{theAdmin, "/records?prefix=urn:&state=active", everything[7:]},
		{theAdmin, "/records?pointing=example.net", []string{"ark:99999/y1", "10.5072/B"}},
		{theAdmin, "/records?pointing=example.net&prefix=hdl:", []string{"10.5072/B"}},
		{theAdmin, "/users?limit=2", []string{"ann", "bob", "ed", "nemo", "rita", "root"}},
		{theAdmin, "/namespaces?limit=2", []string{"ark:", "ark:12345", "ark:12345/x5", "ark:99999", "hdl:", "ibi:", "lsid:", "purl:", "urn:"}},
		{theReader, "/namespaces?limit=1", []string{"ark:12345", "ark:12345/x5"}},
		{theStranger, "/namespaces", []string{"ark:99999"}},
		{theOutsider, "/namespaces", nil},
	} {
		if diff := cmp.Diff(tt.want, s.all(tt.who, tt.target)); diff != "" {
			t.Errorf("%s sees at %s (-want +got):\n%s", tt.who, tt.target, diff)
		}
	}
	for range 4 {
		s.ask(theEditor, "PATCH", records+"ark:12345/x1", `{"metadata":{"who":"`+fmt.Sprint(s.now().UnixNano())+`"}}`).want(t, 200)
	}
	for _, limit := range []string{"", "?limit=1", "?limit=2", "?limit=5"} {
		if diff := cmp.Diff([]string{"5", "4", "3", "2", "1"}, s.all("", "/history/ark:12345/x1"+limit)); diff != "" {
			t.Errorf("history%s: %s", limit, diff)
		}
	}
}

// TestListRights holds that only readers of a namespace list it, and that others get an
// error.
func TestListRights(t *testing.T) {
	s := newSite(t)
	for _, tt := range []struct {
		who, target string
		status      int
	}{
		{"", "/records?prefix=ark:12345", 401},
		{"", "/records?pointing=example.org", 401},
		{theOutsider, "/records?prefix=ark:12345", 403},
		{theOutsider, "/records", 403},
		{theOutsider, "/records?prefix=ark:", 403},
		{theOwner, "/records", 403},
		{theOwner, "/records?prefix=ark:", 403},
		{theOwner, "/records?prefix=ark:99999", 403},
		{theOwner, "/records?prefix=ark:12346", 403},
		{theOwner, "/records?prefix=ark:12345&pointing=example.org", 200},
		{theOwner, "/records?prefix=ark:99999&pointing=example.org", 403},
		{theOwner, "/records?prefix=ark:&pointing=example.org", 403},
		{theOwner, "/records?prefix=no+prefix", 400},
		{theOwner, "/records?prefix=", 403},
		{theOwner, "/records?prefix=ark:12345&limit=0", 400},
		{theOwner, "/records?prefix=ark:12345&limit=1001", 400},
		{theOwner, "/records?prefix=ark:12345&state=lost", 400},
		{theOwner, "/records?prefix=ark:12345&cursor=%21", 400},
		{theOwner, "/records?prefix=ark:12345&cursor=AA", 400},
		{theAdmin, "/records?cursor=bm9uc2Vuc2U", 400},
		{theAdmin, "/records?pointing=example.org&after=nonsense", 400},
	} {
		a := s.ask(tt.who, "GET", Root+tt.target, "")
		if a.StatusCode != tt.status {
			t.Errorf("%s as %q: %d, want %d: %s", tt.target, tt.who, a.StatusCode, tt.status, a.body)
		}
	}
}

// TestForgedCursors holds that a forged cursor shows a client nothing that it could not list
// without one.
func TestForgedCursors(t *testing.T) {
	s := newSite(t)
	for _, name := range []string{"ark:00000", "ark:99998/z", "ark:99999/y1", "urn:a", "~", "\xff", "a\x00"} {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(name))
		a := s.ask(theReader, "GET", Root+"/records?prefix=ark:12345&cursor="+cursor, "")
		if strings.Contains(a.body, "99999/y1\"") {
			t.Errorf("%q shows %s", name, a.body)
		}
		if a.StatusCode != 200 && a.StatusCode != 400 {
			t.Errorf("%q: %d", name, a.StatusCode)
		}
		for _, list := range []string{"/users", "/tokens", "/namespaces", "/history/ark:12345/x1"} {
			if a := s.ask(theReader, "GET", Root+list+"?cursor="+cursor, ""); a.StatusCode >= 500 {
				t.Errorf("%s with %q: %d", list, name, a.StatusCode)
			}
		}
	}
}

// TestPageBounds holds that a page ends before it is too large, or too much work.
func TestPageBounds(t *testing.T) {
	p := &page{limit: 1000}
	for n := range 1000 {
		if p.isFull() {
			if n < 8 || n > 9 {
				t.Errorf("a page has %d items of an eighth of a megabyte", n)
			}
			break
		}
		p.pass("x")
		p.add(make([]byte, 1<<17))
	}
	p = &page{limit: 1000}
	for n := 0; !p.isFull(); n++ {
		if p.pass("x"); n > maxScanned {
			t.Fatalf("%d records were looked at", n)
		}
	}
}
