package desk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/links/ask"
	"github.com/stele-id/stele/links/check"
	"github.com/stele-id/stele/registrar"
)

// linkSite is a site whose targets are checked. All of them move from old.example.org to new.example.org, and other hosts refuse.
type linkSite struct {
	*site
	checker *check.Checker
}

func newLinkSite(t *testing.T) *linkSite {
	t.Helper()
	s := &linkSite{}
	s.site = newSite(t, func(o *Options) {
		began := time.Now()
		s.checker = check.New(check.Options{Registrar: o.Registrar, Store: o.Store.(check.Store), Rules: must(links.UsualRules())(t), Rand: rand.Reader, Lease: time.Hour,
			Now: func() time.Time { // a second is more than a minute, so that politeness takes no time
				return o.Now().Add(100 * time.Since(began))
			},
			Ask: func(_ context.Context, address string, _ ask.Known) (*links.Answer, links.Report) {
				a := &links.Answer{URL: address, Final: address, Status: 403, Header: links.Header{}}
				if strings.Contains(address, "//old.") {
					a.Status, a.Final, a.Hops = 200, strings.Replace(address, "old.", "new.", 1), []links.Hop{{URL: address, Status: 301}}
					a.Header, a.Body = links.Header{"content-type": {"text/html"}}, []byte("<title>A map</title>"+strings.Repeat("of rivers ", 20))
				}
				return a, links.Report{}
			}})
		o.Links = s.checker
	})
	return s
}

// run checks what users ask for until the test ends.
func (s *linkSite) run() {
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); s.checker.RunAsked(ctx) }()
	s.t.Cleanup(func() { stop(); <-ended })
}

// awaitChecked waits until the targets of a name were checked.
func (s *linkSite) awaitChecked(id string) {
	s.t.Helper()
	for range 600 {
		list := must(s.checker.Show(s.admin, must(s.names.Parse(id))(s.t)))(s.t)
		if !list[0].Checked.IsZero() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.t.Fatalf("%s is not checked", id)
}

// tell registers a name, and keeps what was found at its target.
func (s *linkSite) tell(id string, f apijson.LinkFinding) {
	s.t.Helper()
	f.ID, f.Host = id, stele.Target{URL: f.URL}.Host()
	rec := &stele.Record{ID: must(s.names.Parse(id))(s.t), Metadata: stele.Metadata{"what": "Carta " + id[len(id)-2:]}, Targets: []stele.Target{{Service: stele.N2L, URL: f.URL, Order: 100, Preference: 10}}}
	must(s.r.Register(s.admin, rec))(s.t)
	s.cell("f ark\t"+id+"\t0", must(json.Marshal(f))(s.t))
}

func (s *linkSite) cell(name string, value []byte) {
	s.t.Helper()
	if err := s.r.KeepChecks(s.admin, stele.CellChange{Name: registrar.CheckCells + name, After: value}); err != nil {
		s.t.Fatal(err)
	}
}

const linksPage = "/.desk/links?namespace=ark%3A12345%2Fx5"

func TestLinks(t *testing.T) {
	s := newLinkSite(t)
	olga, ed, ruth, sam := s.as("olga"), s.as("ed"), s.as("ruth"), s.as("sam")
	ed.get(linksPage).has(200, "not checked", "An owner of the namespace can switch this on.")
	olga.get("/.desk/namespace?namespace=ark%3A12345%2Fx5").has(200, "Where names lead", "See how it works", linksPage)
	olga.follow(olga.post("/.desk/links", url.Values{"namespace": {"ark:12345/x5"}, "do": {"on"}})).has(200, "The checks are on.", "All that was checked works.", "Settings of the checks")
	olga.get("/.desk/namespace?namespace=ark%3A12345%2Fx5").has(200, "See what was found")
	sam.get(linksPage).has(404)

	day := func(d int) time.Time { return s.now.AddDate(0, 0, -d) }
	for i := range 7 {
		s.tell("ark:12345/x5b"+strconv.Itoa(i), apijson.LinkFinding{URL: "https://example.org/" + strconv.Itoa(i), State: "broken", Cause: "not-found", Status: 404, First: day(9), Since: day(2), Fails: 5, Checked: day(1), Good: day(30)})
	}
	s.tell("ark:12345/x5g0", apijson.LinkFinding{URL: "https://example.org/g", State: "gone", Cause: "says-gone", Status: 410, Since: day(2), Checked: day(1)})
	s.tell("ark:12345/x5m0", apijson.LinkFinding{URL: "https://old.example.org/m", State: "moved", Cause: "redirected", Status: 200, Final: "https://new.example.org/m", Since: day(2), Checked: day(1)})
	s.tell("ark:12345/x5d0", apijson.LinkFinding{URL: "https://example.org/d", State: "ok", Drift: "text-changed", Since: day(90), Checked: day(1)})
	s.tell("ark:12345/x5w0", apijson.LinkFinding{URL: "https://wall.example.org/w", State: "blocked", Cause: "wall", Wall: "Anubis", Status: 403, Since: day(200), Checked: day(1)})
	s.tell("ark:12345/x5f0", apijson.LinkFinding{URL: "https://dead.example.org/f", State: "failing", Cause: "timed-out", Since: day(9), Checked: day(1)})
	s.tell("ark:12345/x5f1", apijson.LinkFinding{URL: "https://dead.example.org/g", State: "failing", Cause: "timed-out", Since: day(9), Checked: day(1)})
	s.cell("h dead.example.org", must(json.Marshal(map[string]any{"host": "dead.example.org", "known": links.Host{Row: links.Row{First: day(12)}, Down: day(3), Cause: links.TimedOut}, "names": 9000, "share": 125}))(t))
	s.cell("d 0000000001 ark\tark:12345/x5b0\t0", []byte{})

	p := ruth.get(linksPage).has(200, "One target waits for its first check.", "Hosts that do not answer", "2 names lead there.", "since 4 November 2026", "12.5% of 9,000 names",
		"Carta b0", "the site says that there is no such page (404)", "5 failed checks in a row", "since 7 November 2026", "Show all of them", "the title and the text are others than before", "https://new.example.org/m", "can&#39;t be checked", "to be looked at")
	if strings.Contains(p.main(), "Carta w0") || strings.Contains(p.main(), "Carta f0") || strings.Contains(p.main(), "Carta b6") || strings.Contains(p.main(), "<button") {
		t.Error("a reader is shown names that are a number only, or buttons")
	}
	if strings.Index(p.text, "dead.example.org") > strings.Index(p.text, "Carta b0") {
		t.Error("whole hosts do not come first")
	}
	p = ed.get(linksPage).has(200, "I looked:", "It is gone", "Check now", "Take over the new address", "/.desk/withdraw?id=ark%3A12345%2Fx5b0", "/.desk/record?id=ark%3A12345%2Fx5m0&amp;take=0#target-0-url")
	if strings.Contains(p.main(), "Settings of the checks") {
		t.Error("an editor is offered the settings")
	}
	ed.get(linksPage+"&kind=broken").has(200, "Carta b6", "links.csv?host=&amp;kind=broken", "Show the overview")
	ed.get(linksPage+"&host=dead.example.org").has(200, "Carta f1", "failed lately", "there was no answer in time")
	ed.get(linksPage+"&kind=blocked").has(200, "Carta w0", "the site keeps programs out (Anubis)")
	ed.get(linksPage+"&kind=look").has(200, "Carta w0", "for half a year")
	ed.get(linksPage+"&kind=unsure").has(200, "There are none")
	ed.get(linksPage+"&kind=nonsense").has(400, "is not a kind of findings")
	csv := ed.get("/.desk/links.csv?namespace=ark%3A12345%2Fx5&kind=broken").has(200, "id,target,url,kind,state", "ark:12345/x5b0,1,https://example.org/0,broken,broken,not-found,404,the site says")
	if n := strings.Count(csv.text, "\n"); n != 8 {
		t.Errorf("the file has %d lines:\n%s", n, csv.text)
	}
	sam.get("/.desk/links.csv?namespace=ark%3A12345%2Fx5").has(404)
	ed.get("/.desk/").has(200, "8 names of Maps of Pará lead nowhere.", "A host to which names of Maps of Pará lead does not answer.", linksPage)
	if p := ruth.get("/.desk/").has(200); strings.Contains(p.text, "lead nowhere") {
		t.Error("a reader is asked to mend links")
	}
	// A filter with more findings than a page has goes on.
	for i := range pageRows {
		s.tell(fmt.Sprintf("ark:12345/x5p%02d", i), apijson.LinkFinding{URL: "https://example.org/p" + strconv.Itoa(i), State: "broken", Cause: "loop", Since: day(2), Checked: day(1)})
	}
	p = ed.get(linksPage+"&kind=broken").has(200, `rel="next"`)
	path := p.text[:strings.Index(p.text, `" rel="next"`)]
	path = strings.ReplaceAll(path[strings.LastIndex(path, `"`)+1:], "&amp;", "&")
	if p := ed.get(path).has(200, "Carta 49"); strings.Contains(p.main(), "Carta b0") {
		t.Error("the next page has what the first one has")
	}
}

// TestLinksAsked: a user has a name checked, opens its form with the new address, and says what they saw.
func TestLinksAsked(t *testing.T) {
	s := newLinkSite(t)
	s.run()
	ed := s.as("ed")
	moved := ed.make(url.Values{"target.0.url": {"https://old.example.org/m"}, "own": {"ark:12345/x5m1"}})
	ed.make(url.Values{"target.0.url": {"https://wall.example.org/w"}, "own": {"ark:12345/x5w1"}})
	for _, id := range []string{"ark:12345/x5m1", "ark:12345/x5w1"} {
		ed.post("/.desk/links/look", url.Values{"id": {id}, "do": {"check"}, "back": {linksPage}}).leads("/.desk/links?done=link-asked&namespace=")
		s.awaitChecked(id)
	}
	ed.get(linksPage).has(200, "https://new.example.org/m", "can&#39;t be checked")
	ed.get(moved+"&take=0").has(200, "The new address is filled in.", `value="https://new.example.org/m"`)
	// The page of the record says the same, and comes back to itself.
	p := ed.get(moved).has(200, "Where its targets lead", "it leads to a new address for good", "/.desk/record?id=ark%3A12345%2Fx5m1&amp;take=0#target-0-url", `name="back" value="/.desk/record?id=ark%3A12345%2Fx5m1"`)
	if strings.Contains(p.main(), "I looked:") {
		t.Error("a user is asked whether an address works that has moved")
	}
	ed.get("/.desk/record?id=ark:12345/x5w1").has(200, "can&#39;t be checked", "I looked:", "Check now")
	s.as("ruth").get(moved).has(200, "it leads to a new address for good").lacks("links/look")
	if p := s.as("sam").get(moved); strings.Contains(p.text, "it leads to a new address") {
		t.Error("a user without a role is told of links")
	}
	if p := ed.get(moved+"&take=1").has(200, `value="https://old.example.org/m"`); strings.Contains(p.text, "is filled in") {
		t.Error("a target that there is not was filled in")
	}
	ed.post("/.desk/record", url.Values{"id": {"ark:12345/x5m1"}, "version": {"1"}, "do": {"save"}, "target.0.url": {"https://new.example.org/m"}}).leads(moved)
	if p := ed.get(linksPage).has(200); strings.Contains(p.main(), "old.example.org") {
		t.Error("a finding about a target that was changed is shown")
	}
	answer := func() string {
		return must(s.checker.Show(s.admin, must(s.names.Parse("ark:12345/x5w1"))(t)))(t)[0].Answer
	}
	form := ed.get(linksPage + "&kind=blocked").fields("links/look")
	form.Set("do", "works")
	other := maps.Clone(form)
	other.Set("answer", "00000000")
	ed.post("/.desk/links/look", other).has(409, "is not what you have seen")
	ed.follow(ed.post("/.desk/links/look", form)).has(200, "That is remembered for this answer")
	if p := ed.get(linksPage).has(200); strings.Contains(p.main(), "wall.example.org") {
		t.Error("what a person found to work is told")
	}
	ed.post("/.desk/links/look", url.Values{"id": {"ark:12345/x5w1"}, "target": {"0"}, "do": {"gone"}, "answer": {answer()}, "back": {"https://evil.example/"}}).leads("/.desk/?done=link-looked")
	ed.get(linksPage).has(200, "a person looked, and it was gone")
	ed.post("/.desk/links/look", url.Values{"id": {"ark:12345/x5w1"}, "target": {"7"}, "do": {"gone"}}).has(404, "nothing is known of the target")
	ed.post("/.desk/links/look", url.Values{"id": {"ark:12345/x5w1"}, "target": {"x"}, "do": {"gone"}}).has(404)
}

// TestCopyProposed: the archived copy of a page that is gone is proposed as a further target, after all others, and saved by the user only.
func TestCopyProposed(t *testing.T) {
	s := newLinkSite(t)
	const archived = "https://archive.example.org/web/2015/https://example.org/b"
	s.tell("ark:12345/x5b0", apijson.LinkFinding{URL: "https://example.org/b", State: "broken", Cause: "not-found", Status: 404, Since: s.now, Checked: s.now, Copy: archived})
	known := links.Status{URL: links.Hash("https://example.org/b"), State: links.Broken, Cause: links.NotFound, Code: 404, Since: s.now, Checked: s.now, Next: s.now.AddDate(0, 0, 7)}
	cells, _ := check.StateCells([]check.Known{{ID: must(s.names.Parse("ark:12345/x5b0"))(t), Status: known}}, "", true)
	for _, c := range cells {
		s.cell(strings.TrimPrefix(c.Name, registrar.CheckCells), c.Value)
	}
	ed := s.as("ed")
	const form = "/.desk/record?id=ark%3A12345%2Fx5b0"
	ed.get(linksPage).has(200, "Add the archived copy", form+"&amp;copy=0#target-0-url")
	ed.get(form).has(200, "broken", "Add the archived copy").lacks("is filled in")
	p := ed.get(form+"&copy=0").has(200, "The archived copy is filled in as the last target.")
	f := p.fields("record")
	if f.Get("target.0.url") != "https://example.org/b" || f.Get("target.1.url") != archived || f.Get("target.1.order") != "200" || f.Get("target.1.service") != "N2L" {
		t.Errorf("the form has %v", f)
	}
	if rec := must(s.r.Get(s.admin, must(s.names.Parse("ark:12345/x5b0"))(t)))(t); rec.Version != 1 {
		t.Error("looking at the form changed the record")
	}
	ed.get(form + "&copy=1").has(200).lacks("is filled in")
	f.Set("do", "save")
	ed.follow(ed.post("/.desk/record", f)).has(200, "archive.example.org")
	ed.get(form + "&copy=0").has(200).lacks("is filled in") // it is there
}

// TestLinkSettings: all problems are told at once beside their fields, and nothing typed is lost.
func TestLinkSettings(t *testing.T) {
	s := newLinkSite(t)
	olga := s.as("olga")
	form := func(pairs ...string) url.Values {
		v := url.Values{"namespace": {"ark:12345/x5"}, "do": {"on"}, "quota": {""}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	olga.post("/.desk/links", form("quota", "many", "own-0-host", "", "own-0-gap", "", "own-1-host", "data.example.org", "own-1-gap", "often", "pauses-0-host", "old.example.org", "pauses-0-until", "soon", "pauses-1-host", "", "pauses-1-until", "2027-01-01")).
		has(422, `href="#quota"`, `href="#own-1-gap"`, `href="#pauses-0-until"`, `href="#pauses-1-host"`, `value="many"`, `value="data.example.org"`, `value="often"`)
	olga.post("/.desk/links", form("quota", "-1", "own-0-host", "", "own-0-gap", "", "own-1-host", "org", "own-1-gap", "0,5", "own-2-host", "data.example.org", "own-2-gap", "0.01", "pauses-0-host", "a b", "pauses-0-until", "2027-01-01")).
		has(422, `href="#quota"`, `href="#own-1-host"`, `href="#own-2-gap"`, `href="#pauses-0-host"`, "is not a domain of one owner")
	olga.follow(olga.post("/.desk/links", form("quota", "1000", "own-0-host", "Data.example.org", "own-0-gap", "0,5", "pauses-0-host", "*", "pauses-0-until", "2027-01-01"))).
		has(200, `value="1000"`, `value="data.example.org"`, `value="0.5"`, `value="*"`, `value="2027-01-01"`, `name="own-1-host"`)
	l := must(s.r.LinkChecks(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}))(t)
	if !l.On || l.Quota != 1000 || len(l.Own) != 1 || l.Own[0].Gap != 500*time.Millisecond || len(l.Pauses) != 1 || l.Pauses[0].Host != "" || l.By != "olga" {
		t.Errorf("got %+v", l)
	}
	olga.follow(olga.post("/.desk/links", form("quota", "1000", "fall-back", "yes", "own-0-host", "data.example.org", "own-0-gap", "0.5", "pauses-0-host", "*", "pauses-0-until", "2027-01-01"))).
		has(200, `name="fall-back" value="yes" checked="checked"`)
	if l := must(s.r.LinkChecks(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}))(t); !l.FallBack {
		t.Errorf("got %+v", l)
	}
	// Without the fields of the form the rest stays.
	olga.follow(olga.post("/.desk/links", url.Values{"namespace": {"ark:12345/x5"}, "do": {"off"}})).has(200, "The checks are off.", "Switch the checks on")
	if l := must(s.r.LinkChecks(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}))(t); l.On || l.Quota != 1000 {
		t.Errorf("got %+v", l)
	}
	// A namespace below has these settings until it has its own.
	must(s.r.SetLinkChecks(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, func(l *registrar.LinkChecks) { l.On = true }))(t)
	must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5k", Owner: "sam"}))(t)
	sam := s.as("sam")
	const below = "/.desk/links?namespace=ark%3A12345%2Fx5k"
	if p := sam.get(below).has(200, "The settings are those of", "ark:12345/x5"); strings.Contains(p.text, "data.example.org\"/") {
		t.Error("the settings of others are in the form")
	}
	sam.follow(sam.post("/.desk/links", url.Values{"namespace": {"ark:12345/x5k"}, "do": {"off"}})).has(200, "not checked")
}

// TestLinkSettingsDamaged: an owner sets settings anew that can't be read.
func TestLinkSettingsDamaged(t *testing.T) {
	s := newLinkSite(t)
	s.cell("space ark\tark:12345/x5", []byte("{damaged"))
	olga := s.as("olga")
	olga.get(linksPage).has(200, "are damaged", "An owner can set them anew", `name="quota"`)
	olga.follow(olga.post("/.desk/links", url.Values{"namespace": {"ark:12345/x5"}, "do": {"save"}, "quota": {""}})).has(200, "Saved.")
	if p := olga.get(linksPage).has(200); strings.Contains(p.text, "are damaged") {
		t.Error("the settings are damaged still")
	}
}

// TestLinkRights walks the forms with every role.
func TestLinkRights(t *testing.T) {
	for user, may := range map[string][2]bool{"admin": {true, true}, "olga": {true, true}, "ed": {false, true}, "ruth": {false, false}, "sam": {false, false}} {
		s := newLinkSite(t)
		s.tell("ark:12345/x5b0", apijson.LinkFinding{URL: "https://example.org/1", State: "broken", Cause: "not-found", Status: 404, Since: s.now})
		b := s.as(user)
		check := func(path string, form url.Values, may bool) {
			t.Helper()
			p := b.post(path, form)
			if done := p.StatusCode == http.StatusSeeOther && strings.Contains(p.Header.Get("Location"), "done="); done != may {
				t.Errorf("%s, %s: %s %s\n%s", user, path, p.Status, p.Header.Get("Location"), p.main())
			}
		}
		for _, do := range []string{"on", "save", "off"} {
			check("/.desk/links", url.Values{"namespace": {"ark:12345/x5"}, "do": {do}, "quota": {"7"}}, may[0])
		}
		check("/.desk/links/look", url.Values{"id": {"ark:12345/x5b0"}, "do": {"check"}}, may[1])
		if p := b.post("/.desk/links/look", url.Values{"id": {"ark:12345/x5b0"}, "target": {"0"}, "do": {"works"}}); (p.StatusCode == http.StatusForbidden) == may[1] { // the target was not checked
			t.Errorf("%s looks: %s", user, p.Status)
		}
		if status := b.get(linksPage).StatusCode; (status == 200) != (user != "sam") {
			t.Errorf("%s sees the page: %d", user, status)
		}
	}
}

// TestLinkCardSaysWhatIsChecked: the page of a record with many targets says that not all of them are checked.
func TestLinkCardSaysWhatIsChecked(t *testing.T) {
	s := newLinkSite(t)
	rec := &stele.Record{ID: must(s.names.Parse("ark:12345/x5many"))(t)}
	target := func(url string) {
		rec.Targets = append(rec.Targets, stele.Target{Service: stele.N2L, URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference})
	}
	for i := range 8 {
		target(fmt.Sprintf("https://example.org/%d", i))
	}
	target("rsync://example.org/maps") // which is not checked
	must(s.r.SetNamespace(s.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0, func(ns *stele.Namespace) error {
		ns.Protocols = []string{"https", "rsync"}
		return nil
	}))(t)
	must(s.r.Register(s.admin, rec))(t)
	const page = "/.desk/record?id=ark:12345/x5many"
	s.as("ed").get(page).has(200, "Where its targets lead").lacks("Only the first")
	must(s.r.Update(s.admin, rec.ID, 0, func(r *stele.Record) error {
		target("https://example.org/8")
		r.Targets = rec.Targets
		return nil
	}))(t)
	s.as("ed").get(page).has(200, "Only the first 8 targets are checked.")
}

// TestLinkCardKeepsEdits: a page whose form has what is not saved has no button beside it that would lose that.
func TestLinkCardKeepsEdits(t *testing.T) {
	s := newLinkSite(t)
	s.run()
	b := s.as("ed")
	b.make(url.Values{"target.0.url": {"https://wall.example.org/w"}, "own": {"ark:12345/x5b1"}})
	b.make(url.Values{"target.0.url": {"https://old.example.org/m"}, "own": {"ark:12345/x5m1"}})
	for _, id := range []string{"ark:12345/x5b1", "ark:12345/x5m1"} {
		b.post("/.desk/links/look", url.Values{"id": {id}, "do": {"check"}, "back": {linksPage}}).leads("/.desk/links?done=link-asked&namespace=")
		s.awaitChecked(id)
	}
	const page = "/.desk/record?id=ark%3A12345%2Fx5b1"
	b.get(page).has(200, "can&#39;t be checked", `action="/.desk/links/look"`)
	form := b.get(page).fields("record")
	form.Set("what", "Typed and not saved")
	for do, status := range map[string]int{"add-target": 200, "add-field": 200, "save": 422} {
		form.Set("do", do)
		form.Set("target.0.url", "https://example.org/2")
		if do == "save" {
			form.Set("target.0.url", "nonsense")
		}
		b.post("/.desk/record", form).has(status, "Typed and not saved", "can&#39;t be checked").lacks("/.desk/links/look")
	}
	form.Set("do", "save")
	form.Set("version", "99")
	form.Set("target.0.url", "https://example.org/2")
	b.post("/.desk/record", form).has(409, "Typed and not saved").lacks("/.desk/links/look")
	const moved = "/.desk/record?id=ark%3A12345%2Fx5m1"
	b.get(moved).has(200, "/.desk/links/look", "take=0")
	b.get(moved+"&take=0").has(200, "The new address is filled in.").lacks("/.desk/links/look", "take=0#")
}
