package heir

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/outbound"
)

const giverName, heirName = "giver.example.org/.log", "heir.example.org/.log"

// pair are a giver that has sealed its namespace, and an heir that has the records.
func pair(t *testing.T) (giver, heir *place) {
	t.Helper()
	giver, heir = newPlace(t, giverName), newPlace(t, heirName)
	giver.fill()
	heir.fill()
	giver.seals(heirName, heir.server.URL+"/")
	return giver, heir
}

// refused makes sure that a forward is refused with a code, and that nothing changed.
func (p *place) refused(c *Checker, code string) {
	p.t.Helper()
	_, err := c.Forward(p.admin, theKey, false)
	if got, _ := stele.CodeOf(err); got != code || stele.KindOf(err) != stele.Conflict {
		p.t.Errorf("forward says %v (%s), want %s", err, got, code)
	}
	ns, err := p.Registrar.Namespace(p.admin, theKey)
	if err != nil || ns.HandOver.State == stele.Forwarded {
		p.t.Errorf("the state is %q, %v", ns.HandOver.State, err)
	}
	a, err := c.Check(p.admin, theKey)
	if err != nil || a.Ready || a.Code != code || a.Reason == "" {
		p.t.Errorf("check says %+v, %v", a, err)
	}
}

// Requests are redirected once the heir has adopted everything for writing and answers for the names, and not before.
func TestForward(t *testing.T) {
	giver, heir := pair(t)
	c := giver.checker()
	giver.refused(c, "hand-over.not-adopted")
	heir.adopts(giverName, func(a *stele.Adoption) { a.Reading = true })
	giver.refused(c, "hand-over.adopted-for-reading")
	heir.adopts("another.example.org/.log")
	giver.refused(c, "hand-over.adopted-from-another")
	heir.adopts(giverName, func(a *stele.Adoption) { a.To = "" })
	giver.refused(c, "hand-over.adopted-for-reading")
	heir.adopts(giverName, func(a *stele.Adoption) { a.Until = time.Now().Add(-time.Hour) })
	giver.refused(c, "hand-over.adopted-earlier")

	heir.adopts(giverName + "/g2") // the log of a giver that was restored once
	a, err := c.Check(giver.admin, theKey)
	if err != nil || !a.Ready || a.Asked != 20 || a.Answered != 20 || len(a.Namespaces) != 2 || a.Namespaces[0].Registry != heirName {
		t.Fatalf("%+v, %v", a, err)
	}
	before := location(t, giver.server.URL+"/ark:12345/x5b07")
	list, err := c.Forward(giver.admin, theKey, false)
	if err != nil || len(list) != 2 || list[1].HandOver.State != stele.Forwarded {
		t.Fatalf("%v, %v", list, err)
	}
	giver.Resolver.InvalidateAll()
	if after := location(t, giver.server.URL+"/ark:12345/x5b07"); before != "302 https://example.org/ark:12345/x5b07" || after != "301 "+heir.server.URL+"/ark:12345/x5b07" {
		t.Errorf("a name led to %q before, and leads to %q now", before, after)
	}
	if at := location(t, heir.server.URL+"/ark:12345/x5b07"); at != before {
		t.Errorf("at the heir it leads to %q", at)
	}
	heir.server.Close()
	if _, err := c.Forward(giver.admin, theKey, false); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func location(t *testing.T, where string) string {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(where)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return fmt.Sprintf("%d %s", resp.StatusCode, resp.Header.Get("Location"))
}

// An heir that is another registry, or that hands the names back, is not the heir.
func TestForwardElsewhere(t *testing.T) {
	giver, heir := pair(t)
	other := newPlace(t, "other.example.org/.log")
	other.fill()
	other.adopts(giverName, func(a *stele.Adoption) { a.To = heirName })
	c := giver.checker()
	to := func(address string) {
		giver.change(func(ns *stele.Namespace) { ns.HandOver.Address = address })
	}
	to(other.server.URL + "/")
	giver.refused(c, "hand-over.heir-differs")
	to(heir.server.URL + "/")
	heir.adopts(giverName)
	heir.change(func(ns *stele.Namespace) {
		ns.HandOver = stele.HandOver{State: stele.Forwarded, Heir: giverName, Address: giver.server.URL, Since: time.Now()}
	})
	giver.refused(c, "hand-over.heir-gives-back")
	heir.change(func(ns *stele.Namespace) { ns.HandOver = stele.HandOver{} })
	if a, err := c.Check(giver.admin, theKey); err != nil || !a.Ready {
		t.Errorf("%+v, %v", a, err)
	}
	// It has the records, and sends readers back.
	round := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			heir.server.Config.Handler.ServeHTTP(w, r)
			return
		}
		http.Redirect(w, r, giver.server.URL+r.URL.EscapedPath(), http.StatusMovedPermanently)
	}))
	defer round.Close()
	to(round.URL + "/")
	c.Own = func(host string) bool { return host == "127.0.0.1" }
	giver.refused(c, "hand-over.heir-lacks-name")
	if a, err := c.Check(giver.admin, theKey); err != nil || !strings.Contains(a.Reason, "back to this registry") {
		t.Errorf("%+v, %v", a, err)
	}
}

// Names that the heir lacks, or has in an earlier version, are told.
func TestForwardNames(t *testing.T) {
	giver, heir := newPlace(t, giverName), newPlace(t, heirName)
	giver.fill()
	heir.fill()
	id := giver.id("ark:12345/a%2Fb")
	if _, err := giver.Registrar.Update(giver.admin, id, 0, func(r *stele.Record) error { r.Metadata = stele.Metadata{stele.What: "x"}; return nil }); err != nil {
		t.Fatal(err)
	}
	giver.seals(heirName, heir.server.URL)
	heir.adopts(giverName)
	c := giver.checker()
	giver.refused(c, "hand-over.heir-lacks-name")
	a, err := c.Check(giver.admin, theKey)
	if err != nil || a.Answered != a.Asked-1 || !strings.Contains(a.Reason, "version 1 there, and 2 here") {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := heir.Registrar.Withdraw(heir.admin, id, 0, "gone since", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Check(giver.admin, theKey); err != nil || !a.Ready {
		t.Errorf("a name that the heir has withdrawn since: %+v, %v", a, err)
	}
	giver.change(func(ns *stele.Namespace) { ns.HandOver.State = stele.Offered })
	giver.register("ark:12345/new")
	giver.change(func(ns *stele.Namespace) { ns.HandOver.State = stele.Sealed })
	giver.refused(c, "hand-over.heir-lacks-name")
	if list, err := c.Forward(giver.admin, theKey, true); err != nil || list[0].HandOver.State != stele.Forwarded {
		t.Errorf("%v, %v", list, err)
	}
}

// What is not a registry, or answers badly, is refused; so is an address that the operator does not allow.
func TestForwardBadly(t *testing.T) {
	giver := newPlace(t, giverName)
	giver.fill()
	answer := func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cookie") != "" {
			t.Error("a credential was sent")
		}
		answer(w, r)
	}))
	defer server.Close()
	giver.seals(heirName, server.URL+"/names/")
	c := giver.checker()
	giver.refused(c, "hand-over.heir-refuses")
	answer = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
	}
	giver.refused(c, "hand-over.heir-refuses")
	for _, body := range []string{"", "<html>", "[]", "{}", `{"items":7}`, `{"items":[{"since":"yesterday"}]}`, strings.Repeat("[", 100_000)} {
		answer = func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, body) }
		giver.refused(c, "hand-over.heir-unreadable")
	}
	answer = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"items":[`)
		for range MaxAnswer / 1024 {
			_, _ = io.WriteString(w, strings.Repeat(" ", 1024))
		}
		_, _ = io.WriteString(w, `]}`)
	}
	giver.refused(c, "hand-over.heir-unreachable")
	answer = func(w http.ResponseWriter, r *http.Request) { // it never ends
		_, _ = io.WriteString(w, `{"items":[{"scheme":"ark","prefix":"ark:1"}],"next":"x"}`)
	}
	asked = 0
	giver.refused(c, "hand-over.not-adopted")
	if asked != 2*maxPages {
		t.Errorf("it was asked %d times", asked)
	}
	c.HTTP = outbound.NewClient(outbound.Rule{}, Patience, MaxAnswer)
	asked = 0
	giver.refused(c, "hand-over.heir-unreachable")
	if a, _ := c.Check(giver.admin, theKey); asked != 0 || !strings.Contains(a.Reason, "not an address of the public Internet") {
		t.Errorf("asked %d times: %+v", asked, a)
	}
	server.Close()
	giver.refused(giver.checker(), "hand-over.heir-unreachable")
}

// The heir is not asked for callers who are not administrators, for namespaces that are not offered, or by a registry without a name.
func TestCheckRefused(t *testing.T) {
	giver := newPlace(t, giverName)
	giver.fill()
	c := giver.checker()
	c.HTTP = never{t}
	if _, err := c.Check(giver.admin, theKey); stele.KindOf(err) != stele.Conflict {
		t.Errorf("not offered: %v", err)
	}
	if _, err := c.Forward(giver.admin, theKey, false); stele.KindOf(err) != stele.Conflict {
		t.Errorf("not offered: %v", err)
	}
	giver.seals(heirName, "https://heir.example.org/")
	ana := auth.With(t.Context(), auth.Principal{Name: "ana"})
	if _, err := c.Check(ana, theKey); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("as a user: %v", err)
	}
	for _, sure := range []bool{false, true} {
		if _, err := c.Forward(ana, theKey, sure); stele.KindOf(err) != stele.Forbidden {
			t.Errorf("as a user: %v", err)
		}
	}
}

// A registry whose log has no name has made no bundle.
func TestCheckUnnamed(t *testing.T) {
	giver := newPlace(t, "")
	giver.fill()
	giver.seals(heirName, "https://heir.example.org/")
	c := giver.checker()
	c.HTTP = never{t}
	giver.refused(c, "hand-over.giver-unnamed")
}

// A seal is not cancelled if the heir says that it gives the names, whatever the operator believes. An heir that can't be asked, or that has
// the names for reading only, does not hinder it.
func TestCancel(t *testing.T) {
	giver, heir := pair(t)
	c := giver.checker()
	state := func() stele.HandOverState {
		ns, err := giver.Registrar.Namespace(giver.admin, theKey)
		if err != nil {
			t.Fatal(err)
		}
		return ns.HandOver.State
	}
	refused := func(sure bool, code string) {
		t.Helper()
		_, err := c.Cancel(giver.admin, theKey, sure)
		if got, _ := stele.CodeOf(err); got != code || stele.KindOf(err) != stele.Conflict || state() != stele.Sealed {
			t.Errorf("cancel says %v (%s), want %s; the state is %q", err, got, code, state())
		}
	}
	refused(false, "hand-over.sealed-not-cancelled")
	heir.adopts(giverName)
	refused(false, "hand-over.sealed-not-cancelled")
	refused(true, "hand-over.heir-gives-names")
	if _, err := c.Cancel(auth.With(t.Context(), auth.Principal{Name: "ana"}), theKey, true); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("as a user: %v", err)
	}
	// What it has for reading is of the bundle of the seal: it is about to open it.
	heir.adopts(giverName, func(a *stele.Adoption) { a.Reading = true })
	refused(true, "hand-over.heir-adopts-now")
	// A bundle that was made before the seal, or for another registry, opens nothing.
	for what, change := range map[string]func(a *stele.Adoption){
		"before the seal":      func(a *stele.Adoption) { a.Until = a.Until.Add(-time.Hour) },
		"for another registry": func(a *stele.Adoption) { a.To = "third.example.org/.log" },
		"for none":             func(a *stele.Adoption) { a.To = "" },
	} {
		heir.adopts(giverName, func(a *stele.Adoption) { a.Reading = true }, change)
		if _, err := c.Cancel(giver.admin, theKey, true); err != nil || state() != stele.NotHandedOver {
			t.Errorf("adopted for reading, %s: %v, %q", what, err, state())
		}
		giver.seals(heirName, heir.server.URL+"/")
	}
	heir.adopts(giverName)
	refused(true, "hand-over.heir-gives-names")
	heir.server.Close()
	if _, err := c.Cancel(giver.admin, theKey, true); err != nil || state() != stele.NotHandedOver {
		t.Errorf("an heir that can't be asked: %v, %q", err, state())
	}
	// An offer is cancelled without asking.
	c.HTTP = never{t}
	if _, err := giver.Registrar.OfferNamespace(giver.admin, theKey, heirName, heir.server.URL+"/"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cancel(giver.admin, theKey, false); err != nil || state() != stele.NotHandedOver {
		t.Errorf("an offer: %v, %q", err, state())
	}
}

// never is a client that must not be used.
type never struct{ t *testing.T }

func (n never) Do(r *http.Request) (*http.Response, error) {
	n.t.Errorf("%s was asked", r.URL)
	return nil, http.ErrHandlerTimeout
}

// slow is a client whose answers never come.
type slow struct{}

func (slow) Do(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// An heir that does not answer is not waited for longer than two minutes, by a client without a limit of its own, too.
func TestCheckSlow(t *testing.T) {
	giver := newPlace(t, giverName)
	giver.fill()
	giver.seals(heirName, "https://heir.example.org/")
	giver.server.Close()
	c := giver.checker()
	c.HTTP = slow{}
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		a, err := c.Check(giver.admin, theKey)
		if took := time.Since(begin); err != nil || a.Ready || a.Code != "hand-over.heir-unreachable" || took != wholeTime {
			t.Errorf("%+v, %v after %v", a, err, took)
		}
	})
}

// FuzzReadPage reads any answer of an heir without a fault, and finds nothing in it that it does not have.
func FuzzReadPage(f *testing.F) {
	for _, seed := range []string{
		`{"items":[]}`, `{"items":[{"registry":"heir.example.org/.log","scheme":"ark","prefix":"ark:12345","adoption":{"from":"giver.example.org/.log","to":"heir.example.org/.log","bundle":"0f","change":7,"until":"2031-05-02T10:00:00Z","at":"2031-05-02T10:00:00Z"}}],"next":"x"}`,
		`{"items":[{"state":"forwarded","since":"2031-05-02T10:00:00Z","heir":"a"}]}`, `{}`, `null`, `[`, `{"items":[null]}`, `{"id":"ark:12345/x","version":3}`, `{"version":18446744073709551616}`,
	} {
		f.Add([]byte(seed))
	}
	r := &run{giver: giverName, heir: heirName, base: "https://heir.example.org"}
	ns := &stele.Namespace{Scheme: "ark", Prefix: "ark:12345", HandOver: stele.HandOver{State: stele.Sealed, Since: time.Unix(2e9, 0)}}
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := ReadPage(data)
		if err == nil && page.Items == nil {
			t.Error("a page without items")
		}
		for i := range page.Items {
			d := &page.Items[i]
			if r.judge(ns, d) == nil && (d.Adoption == nil || d.Adoption.Reading || !strings.HasPrefix(d.Adoption.From, giverName) || !strings.HasPrefix(d.Registry, heirName)) {
				t.Errorf("%+v is enough", d)
			}
			_ = d.Namespace().HandOver
		}
		if id, _, err := ReadRecord(data); err == nil && id != "" && !strings.Contains(string(data), `"`) {
			t.Errorf("the identifier %q is in %q", id, data)
		}
	})
}
