package desk

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
)

const acceptPage = "/.desk/links/accept?host=old.example.org&namespace=ark%3A12345%2Fx5"

// move tells of a target that has moved.
func (s *linkSite) move(id, path string) {
	s.t.Helper()
	s.tell(id, apijson.LinkFinding{URL: "https://old.example.org/" + path, State: "moved", Cause: "redirected", Status: 200, Final: "https://new.example.org/" + path, Since: s.now})
}

// acceptForm returns the form of the page as it is.
func (p page) acceptForm() url.Values { p.t.Helper(); return p.fields("links/accept") }

// TestAccept: an editor looks at new addresses of a host and accepts them; a job writes them, once, and can be undone.
func TestAccept(t *testing.T) {
	s := newLinkSite(t)
	s.runJobs()
	ed, ruth, sam := s.as("ed"), s.as("ruth"), s.as("sam")
	s.move("ark:12345/x5m1", "1")
	s.move("ark:12345/x5m2", "2")
	s.tell("ark:12345/x5m3", apijson.LinkFinding{URL: "https://old.example.org/3", State: "moved", Cause: "redirected", Final: "https://elsewhere.example.net/3", Since: s.now})
	ed.get(linksPage).has(200, "3 names have new addresses.", "links/accept?host=old.example.org")
	p := ed.get(acceptPage).has(200, "3 names have new addresses", "https://new.example.org/2", "Accept 2 new addresses", "stele links accept ark:12345/x5 old.example.org --digest ", "elsewhere.example.net")
	form := p.acceptForm()
	wrong := url.Values{"namespace": form["namespace"], "host": form["host"], "digest": {"0"}, "once": form["once"]}
	ed.post("/.desk/links/accept", wrong).has(409, "The findings have changed")
	s.move("ark:12345/x5m4", "4") // which the user has not seen
	ed.post("/.desk/links/accept", form).has(409, "The findings have changed", "Accept 3 new addresses")
	form = ed.get(acceptPage).acceptForm()
	started := ed.post("/.desk/links/accept", form).leads("/.desk/jobs/")
	ed.post("/.desk/links/accept", form).leads(started.location())
	ed.awaitJob(started.location()).has(200, "Accept the new addresses of old.example.org", "4 of 4", "3</b> <span>names changed", "ark:12345/x5m3")
	ed.get("/.desk/record?id=ark:12345/x5m2").has(200, `value="https://new.example.org/2"`)
	rec := must(s.r.Get(s.admin, must(s.names.Parse("ark:12345/x5m2"))(t)))(t)
	if rec.Version != 2 || rec.By != "ed" || rec.Import == 0 {
		t.Errorf("got %+v", rec)
	}
	ed.get(acceptPage).has(200, "One name has a new address", "There is nothing to write.")
	ed.get(started.location()+"/undo").has(200, "3 names get their former content")
	undone := ed.post(started.location()+"/undo", nil).leads("/.desk/jobs/")
	ed.awaitJob(undone.location()).has(200, "3</b> <span>undone")
	ed.get("/.desk/record?id=ark:12345/x5m2").has(200, `value="https://old.example.org/2"`)

	// Who may not write is told so, and nothing changes.
	ruth.get(acceptPage).has(200, "can&#39;t be changed")
	ruth.post("/.desk/links/accept", ruth.get(acceptPage).acceptForm()).has(409)
	sam.get(acceptPage).has(404)
	ed.get("/.desk/links/accept?namespace=ark%3A12345%2Fx5").has(400, "give the host from which the targets have moved")
	must(s.r.SetNamespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0, func(ns *stele.Namespace) error { ns.Reviewed = true; return nil }))(t)
	ed.post("/.desk/links/accept", ed.get(acceptPage).has(200, "propose").acceptForm()).has(409)
}

// TestAcceptMany: a great change needs its number typed.
func TestAcceptMany(t *testing.T) {
	s := newLinkSite(t)
	s.runJobs()
	for i := range great + 1 {
		s.move(fmt.Sprintf("ark:12345/x5m%03d", i), fmt.Sprint(i))
	}
	ed := s.as("ed")
	form := ed.get(acceptPage).has(200, "type how many names change: 101").acceptForm()
	ed.post("/.desk/links/accept", form).has(422, `href="#number"`)
	form.Set("number", "101")
	started := ed.post("/.desk/links/accept", form).leads("/.desk/jobs/")
	ed.awaitJob(started.location()).has(200, "101 of 101", "101</b> <span>names changed")
}

// farLinks are findings of which none is a move, however many are read.
type farLinks struct {
	Links
	asked int
}

func (l *farLinks) FindingsOf(context.Context, stele.NamespaceKey, apijson.LinkFilter, string) iter.Seq2[apijson.LinkFinding, error] {
	l.asked++
	return func(yield func(apijson.LinkFinding, error) bool) {
		yield(apijson.LinkFinding{ID: fmt.Sprint("ark:12345/x5p", l.asked)}, apijson.ErrLinksCut)
	}
}

// TestAcceptFar: the page reads a part of the findings only, and shows the command that reads the others.
func TestAcceptFar(t *testing.T) {
	far := &farLinks{}
	s := newSite(t, func(o *Options) { o.Links = far })
	s.as("ed").get(acceptPage).has(200, "the command below reads the others", "stele links accept ark:12345/x5 old.example.org --dry-run")
	if far.asked != 2 { // get opens the page in two languages
		t.Errorf("%d parts were read", far.asked)
	}
}
