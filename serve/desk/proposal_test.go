package desk

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// TestReview: where changes are reviewed an editor proposes, and an owner decides.
func TestReview(t *testing.T) {
	s := newSite(t)
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	must(s.r.SetNamespace(s.admin, key, 0, func(ns *stele.Namespace) error { ns.Reviewed = true; return nil }))(t)
	ed, olga := s.as("ed"), s.as("olga")

	// A new name. "Save" is refused, since another namespace may have been chosen before.
	p := ed.get("/.desk/new?namespace=ark:12345/x5").has(200, `value="propose"`)
	if strings.Contains(p.text, `value="save"`) {
		t.Error("an editor sees the button that saves")
	}
	sent := p.fields("new")
	sent.Set("target.0.url", "https://example.org/1")
	sent.Set("what", "<b>A map")
	sent.Set("note", "<i>from the catalogue")
	sent.Set("do", "save")
	ed.post("/.desk/new", sent).has(http.StatusUnprocessableEntity, "propose this one at the desk")
	sent.Set("do", "propose")
	wrong := url.Values{}
	for name, list := range sent {
		wrong[name] = list
	}
	wrong.Set("target.0.url", "https://elsewhere.example/")
	ed.post("/.desk/new", wrong).has(http.StatusUnprocessableEntity, "There is one problem", "elsewhere.example")
	at := ed.post("/.desk/new", sent).leads("/.desk/proposal?id=").Header.Get("Location")
	id := must(url.Parse(at))(t).Query().Get("id")
	ed.get(at).has(200, "Proposed. An owner decides", "Take it back", "&lt;b&gt;A map")
	for _, user := range []string{"ruth", "sam"} {
		b := s.as(user)
		b.get(at).has(404)
		b.post("/.desk/proposal/approve", url.Values{"id": {id}}).has(404)
		b.post("/.desk/proposal/decline", url.Values{"id": {id}, "reason": {"no"}}).has(404)
		if p := b.get("/.desk/proposals").has(200); strings.Contains(p.text, "A map") {
			t.Errorf("%s sees the proposal", user)
		}
	}
	ed.post("/.desk/proposal/approve", url.Values{"id": {id}}).has(403)
	olga.get("/.desk/").has(200, "One proposal waits for your decision")
	olga.get("/.desk/proposals").has(200, "&lt;b&gt;A map", "new name")
	olga.get(at).has(200, "&lt;i&gt;from the catalogue", "https://example.org/1", "Approve")
	record := olga.post("/.desk/proposal/approve", url.Values{"id": {id}}).leads("/.desk/record?id=ark").Header.Get("Location")
	olga.post("/.desk/proposal/approve", url.Values{"id": {id}}).has(404)

	// A change that is overtaken, and declined.
	change := ed.get(record).has(200, `value="propose"`).fields("record")
	change.Set("what", "A better map")
	change.Set("do", "propose")
	at = ed.post("/.desk/record", change).leads("/.desk/proposal?id=").Header.Get("Location")
	id = must(url.Parse(at))(t).Query().Get("id")
	name := change.Get("id")
	own := olga.get(record).has(200, `value="save"`).fields("record")
	own.Set("who", "Costa, R.")
	own.Set("do", "save")
	olga.post("/.desk/record", own).leads("/.desk/record?id=")
	olga.get(at).has(200, "The record has changed since")
	olga.post("/.desk/proposal/approve", url.Values{"id": {id}}).has(http.StatusConflict, "The record has changed since")
	olga.post("/.desk/proposal/decline", url.Values{"id": {id}}).has(http.StatusUnprocessableEntity, "say why")
	olga.post("/.desk/proposal/decline", url.Values{"id": {id}, "reason": {"Look again"}}).leads("/.desk/proposals?done=declined")
	ed.get("/.desk/").has(200, "One of your proposals was declined")
	ed.get(at).has(200, "olga declined it", "Look again", "Remove it")
	ed.post("/.desk/proposal/decline", url.Values{"id": {id}}).leads("/.desk/proposals")
	ed.get(at).has(404)
	ed.post("/.desk/record", change).has(http.StatusConflict, "Costa, R.") // the form shows what the owner changed

	// A withdrawal.
	withdraw := url.Values{"id": {name}, "version": {"2"}, "reason": {"A mistake"}, "do": {"preview"}}
	ed.post("/.desk/withdraw", withdraw).has(200, "Propose to withdraw it")
	withdraw.Set("do", "withdraw")
	at = ed.post("/.desk/withdraw", withdraw).leads("/.desk/proposal?id=").Header.Get("Location")
	olga.get(at).has(200, "withdrawal", "A mistake")
	olga.post("/.desk/proposal/approve", url.Values{"id": {must(url.Parse(at))(t).Query().Get("id")}}).leads(recordURL(must(s.names.Parse(name))(t)))
	if rec := must(s.r.Get(s.admin, must(s.names.Parse(name))(t)))(t); rec.State != stele.Withdrawn || rec.Version != 3 || rec.By != "olga" {
		t.Errorf("%+v", rec)
	}
}
