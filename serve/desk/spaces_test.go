package desk

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// tallied counts how often names are counted.
type tallied struct {
	Counter
	n int
}

func (c *tallied) Count(ctx context.Context, key stele.NamespaceKey) (uint64, error) {
	c.n++
	return c.Counter.Count(ctx, key)
}

// TestManyNamespaces: no page reads or shows more than its part of many namespaces.
func TestManyNamespaces(t *testing.T) {
	var counter *tallied
	s := newSite(t, func(o *Options) {
		counter = &tallied{Counter: o.Store}
		o.Store = counter
	})
	const many = 120
	for i := range many {
		must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "ark", Prefix: fmt.Sprintf("ark:54321/s%03d", i), Title: fmt.Sprintf("Shelf %d", i)}))(t)
	}
	b := s.as("admin")
	b.once = true // names are counted once
	for path, most := range map[string]int{"/.desk/": homeSpaces, "/.desk/namespaces": pageRows, "/.desk/names": 0, "/.desk/new": 0} {
		counter.n = 0
		p := b.get(path).has(200)
		if counter.n > most {
			t.Errorf("%s counts the names of %d namespaces", path, counter.n)
		}
		if n := len(p.text); n > 60<<10 {
			t.Errorf("%s has %d bytes", path, n)
		}
	}
	b.get("/.desk/").has(200, "More than 10 namespaces.", "All namespaces")
	b.get("/.desk/new?namespace=ark:54321/s111").has(200, `value="ark:54321/s111"`, `list="namespaces"`)
	b.get("/.desk/names?namespace=ark:54321/s111").has(200, `value="ark:54321/s111"`)

	seen := make(map[string]bool)
	pages := 0
	for at := "/.desk/namespaces"; at != "" && pages < 10; pages++ {
		p := b.get(at).has(200)
		for i := range many {
			if key := fmt.Sprintf("ark:54321/s%03d", i); strings.Contains(p.main(), key+"</bdi>") {
				if seen[key] {
					t.Errorf("%s is on two pages", key)
				}
				seen[key] = true
			}
		}
		_, next, ok := strings.Cut(p.text, `<a class="btn" href="/.desk/namespaces?`)
		next, _, _ = strings.Cut(next, `"`)
		if at = ""; ok {
			at = "/.desk/namespaces?" + html.UnescapeString(next)
		}
	}
	if len(seen) != many || pages != 3 {
		t.Errorf("%d pages show %d namespaces", pages, len(seen))
	}
	p := b.get("/.desk/namespaces?text="+url.QueryEscape("SHELF 77")).has(200, "ark:54321/s077")
	if strings.Contains(p.main(), "s078") {
		t.Error("the filter lets others pass")
	}
	b.get("/.desk/namespaces?text=nothing").has(200, "Nothing was found.")
	if p := s.as("ed").get("/.desk/namespaces").has(200, "Maps of Pará"); strings.Contains(p.main(), "Shelf") {
		t.Error("ed sees namespaces in which he has no role")
	}
	s.as("sam").get("/.desk/namespaces").has(200, "You have no role")
}

// TestQuota: the first page says which namespaces are nearly full.
func TestQuota(t *testing.T) {
	s := newSite(t)
	b := s.as("olga")
	must(s.r.SetNamespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0, func(ns *stele.Namespace) error { ns.Quota = 2; return nil }))(t)
	if p := b.get("/.desk/").has(200); strings.Contains(p.main(), "that it may have") {
		t.Error("an empty namespace is full")
	}
	for range 2 {
		b.make(url.Values{"target.0.url": {"https://example.org/1"}})
	}
	b.get("/.desk/").has(200, "ark:12345/x5 has 2 of the 2 names that it may have.")
}

// TestLongReserved: the first page counts the names that are reserved for long, and says so if there are more than it reads.
func TestLongReserved(t *testing.T) {
	s := newSite(t)
	reserve := func(n int) {
		must(s.r.Register(s.admin, &stele.Record{ID: must(s.names.Parse(fmt.Sprintf("ark:12345/x5r%d", n)))(t), State: stele.Reserved}))(t)
	}
	for n := range homeRows {
		reserve(n)
	}
	s.now = s.now.Add(longReserved + 48*time.Hour)
	says := fmt.Sprintf("%d names are reserved for more than 90 days.", homeRows)
	if p := s.as("ed").get("/.desk/").has(200, says); strings.Contains(p.main(), "At least") {
		t.Error("all were counted")
	}
	s.now = s.now.Add(-longReserved - 48*time.Hour)
	reserve(homeRows)
	s.now = s.now.Add(longReserved + 48*time.Hour)
	b := s.as("ed")
	b.get("/.desk/").has(200, "At least "+says)
	b.lang = "pt-BR"
	b.get("/.desk/").has(200, fmt.Sprintf("Pelo menos %d nomes estão reservados", homeRows))
}
