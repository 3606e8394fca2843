package desk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// TestHomeCountsBeyondBlocked: however many names come first whose sites keep programs out, the first page tells of what is broken.
func TestHomeCountsBeyondBlocked(t *testing.T) {
	s := newLinkSite(t)
	must(s.r.SetLinkChecks(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, func(l *registrar.LinkChecks) { l.On = true }))(t)
	for i := range 250 {
		s.tell(fmt.Sprintf("ark:12345/x5a%03d", i), apijson.LinkFinding{URL: "https://wall.example.org/w", State: "blocked", Cause: "wall", Status: 403, Since: s.now, Checked: s.now})
	}
	s.tell("ark:12345/x5z", apijson.LinkFinding{URL: "https://example.org/z", State: "broken", Cause: "not-found", Status: 404, Since: s.now, Checked: s.now})
	s.as("ed").get("/.desk/").has(200, "A name of Maps of Pará leads nowhere.")
}

// overviews counts how often links are counted.
type overviews struct {
	Links
	apijson.LinkOverview
	asked int
}

func (o *overviews) Numbers(context.Context, stele.NamespaceKey, int) (*apijson.LinkOverview, error) {
	o.asked++
	return &o.LinkOverview, nil
}

// TestHomeCountsRest: the numbers of the first page are counted once in a minute for a user. They are called the least ones if not all was read, and then
// once in a quarter of an hour.
func TestHomeCountsRest(t *testing.T) {
	counted := &overviews{LinkOverview: apijson.LinkOverview{Counts: map[string]int{"broken": 2, "gone": 1}, Hosts: []*apijson.LinkHost{{Host: "dead.example.org", Down: time.Unix(1, 0)}}, Partial: true}}
	s := newSite(t, func(o *Options) { o.Links = counted })
	must(s.r.SetLinkChecks(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, func(l *registrar.LinkChecks) { l.On = true }))(t)
	ed, olga := s.as("ed"), s.as("olga")
	const least = "At least 3 names of Maps of Pará lead nowhere."
	for range 3 {
		ed.get("/.desk/").has(200, least, "At least one host to which names of Maps of Pará lead does not answer.")
	}
	if counted.asked != 1 {
		t.Errorf("they were counted %d times", counted.asked)
	}
	olga.get("/.desk/").has(200, least)
	counted.Partial, counted.Counts["gone"] = false, 0
	ed.get("/.desk/").has(200, least)
	s.now = s.now.Add(countsLife)
	if ed.get("/.desk/").has(200, least); counted.asked != 2 {
		t.Errorf("after a minute the least numbers were counted %d times", counted.asked)
	}
	s.now = s.now.Add(partialLife - countsLife)
	if p := ed.get("/.desk/").has(200, "2 names of Maps of Pará lead nowhere."); strings.Contains(p.text, "At least") || counted.asked != 3 {
		t.Errorf("after a quarter of an hour they were counted %d times:\n%s", counted.asked, p.main())
	}
	s.now = s.now.Add(countsLife)
	if ed.get("/.desk/").has(200); counted.asked != 4 {
		t.Errorf("numbers that are a minute old were counted %d times", counted.asked)
	}
}

// TestCountsOnce: requests at the same time share one count, except if it fails, and a count that was forgotten meanwhile is not kept.
func TestCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l linkCounts
		of, now := countsOf{user: "ed"}, time.Now()
		var counted atomic.Int32
		var failed error
		run := func() (results []error) {
			goOn, errs := make(chan struct{}), make(chan error)
			for range 5 {
				go func() {
					n, err := l.get(t.Context(), of, now, func() (brokenCounts, error) {
						counted.Add(1)
						<-goOn
						return brokenCounts{names: 7, at: now}, failed
					})
					if err == nil && n.names != 7 {
						err = fmt.Errorf("got %+v", n)
					}
					errs <- err
				}()
			}
			synctest.Wait()
			if n := counted.Load(); n != 1 {
				t.Errorf("%d requests count", n)
			}
			l.forget("ed")
			close(goOn)
			for range 5 {
				results = append(results, <-errs)
			}
			return results
		}
		for _, err := range run() {
			if err != nil {
				t.Error(err)
			}
		}
		if len(l.kept) != 0 || len(l.under) != 0 {
			t.Errorf("numbers that were forgotten are kept: %v", l.kept)
		}
		counted.Store(0)
		failed = errors.New("the client left")
		for _, err := range run() {
			if err != failed {
				t.Errorf("got %v", err)
			}
		}
		if n := counted.Load(); n != 5 {
			t.Errorf("after a failure there were %d counts", n)
		}
	})
}
