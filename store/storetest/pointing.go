package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stele-id/stele"
)

// wantPointing compares what points at a location, after an identifier.
func (s *session) wantPointing(l stele.Location, after stele.ID, want ...stele.ID) {
	s.Helper()
	if got := s.pointing(l, after); !slices.Equal(got, want) {
		s.Errorf("Pointing(%.80q, %.80q) = %.500q, want %.500q", l, after, got, want)
	}
}

// checkPointing: records are found by URL and by host, in order, once each.
func checkPointing(s *session) {
	const page = "https://Example.org:8443/a?b=c#d"
	put := func(id stele.ID, state stele.State, urls ...string) stele.ID {
		r := first(id, s.id("alias", id.String()))
		r.State, r.Targets = state, nil
		for _, u := range urls {
			r.Targets = append(r.Targets, at(u))
		}
		s.put(r)
		return r.ID
	}
	// One record has the URL three times, and more of the host.
	urn := put(s.id("urn", "urn:a1:1"), stele.Active, page, page, page, "https://example.org/other")
	b := put(s.ark("b"), stele.Withdrawn, page)
	a := put(s.ark("a"), stele.Reserved, page, "http://EXAMPLE.ORG/")
	c := put(s.ark("c"), stele.Active, "ftp://example.org/", "https://[2001:DB8::1]:80/x")
	d := put(s.ark("d"), stele.Active, "https://example.org.evil.example/", "https://sub.example.org/", "https://xexample.org/")
	e := put(s.ark("e"), stele.Active, "mailto:ana@example.org", "urn:a1:2", "http://%zz/", "", strings.ToLower(page))

	byURL, byHost := stele.Location{URL: page}, stele.Location{Host: "example.org"}
	s.wantPointing(byURL, stele.ID{}, a, b, urn)
	s.wantPointing(byHost, stele.ID{}, a, b, c, e, urn)
	s.wantPointing(stele.Location{URL: page, Host: "sub.example.org"}, stele.ID{}, a, b, urn) // a URL rules
	s.wantPointing(byURL, a, b, urn)
	s.wantPointing(byURL, s.ark("aa"), b, urn) // the cursor need not be among them
	s.wantPointing(byURL, urn)
	s.wantPointing(byHost, b, c, e, urn)
	s.wantPointing(byHost, s.id("zzz", "z"))
	s.wantPointing(byHost, s.id("a", "z"), a, b, c, e, urn)

	s.wantPointing(stele.Location{URL: strings.ToLower(page)}, stele.ID{}, e)
	s.wantPointing(stele.Location{URL: page + "e"}, stele.ID{})
	s.wantPointing(stele.Location{URL: strings.TrimSuffix(page, "d")}, stele.ID{})
	s.wantPointing(stele.Location{URL: "urn:a1:2"}, stele.ID{}, e)
	s.wantPointing(stele.Location{URL: "http://%zz/"}, stele.ID{}, e)
	s.wantPointing(stele.Location{Host: "sub.example.org"}, stele.ID{}, d)
	s.wantPointing(stele.Location{Host: "2001:db8::1"}, stele.ID{}, c)
	for _, host := range []string{"example", "org", "xample.org", "example.org:8443", "ana@example.org"} {
		s.wantPointing(stele.Location{Host: host}, stele.ID{})
	}
	for range s.Pointing(s.ctx, byHost, stele.ID{}) {
		break
	}
}

// checkPointingUpdates: only the current version's targets count.
func checkPointingUpdates(s *session) {
	url := func(n int) string { return fmt.Sprintf("https://h%d.example/%d", n, n) }
	r := first(s.ark("a"))
	r.Targets = []stele.Target{at(url(1)), at(url(2)), at(url(2) + "/x")}
	steady := first(s.ark("b"))
	steady.Targets = r.Targets
	s.put(r)
	s.put(steady)
	check := func(n int, pointing bool) {
		s.Helper()
		want := []stele.ID{steady.ID}
		if n > 2 {
			want = nil
		}
		if pointing {
			want = append([]stele.ID{r.ID}, want...)
		}
		s.wantPointing(stele.Location{URL: url(n)}, stele.ID{}, want...)
		s.wantPointing(stele.Location{Host: fmt.Sprintf("h%d.example", n)}, stele.ID{}, want...)
	}
	check(1, true)
	check(2, true)
	check(3, false)

	r = next(r, "moved")
	r.Targets = []stele.Target{at(url(2)), at(url(3))}
	s.put(r)
	check(1, false)
	check(2, true)
	check(3, true)

	r = next(r, "gone")
	r.State, r.Targets = stele.Withdrawn, nil
	s.put(r)
	for n := range 4 {
		check(max(n, 1), false)
	}

	r = next(r, "back again")
	r.Targets = []stele.Target{at(url(1))}
	s.put(r)
	check(1, true)
	check(2, false)

	// A host stays while one of its URLs goes.
	r = next(r, "another page of the host")
	r.Targets = []stele.Target{at(url(1) + "/x")}
	s.put(r)
	s.wantPointing(stele.Location{URL: url(1)}, stele.ID{}, steady.ID)
	s.wantPointing(stele.Location{URL: url(1) + "/x"}, stele.ID{}, r.ID)
	s.wantPointing(stele.Location{Host: "h1.example"}, stele.ID{}, r.ID, steady.ID)
}
