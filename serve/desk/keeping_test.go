package desk

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// TestKeeping names and removes heirs at the desk, and shows what is promised and how far the log is.
func TestKeeping(t *testing.T) {
	const page = "/.desk/keeping?namespace=ark%3A12345%2Fx5"
	s := newSite(t)
	olga, ed, sam := s.as("olga"), s.as("ed"), s.as("sam")
	form := func(pairs ...string) url.Values {
		v := url.Values{"namespace": {"ark:12345/x5"}, "version": {between(olga.get(page).text, `name="version" value="`, `"`)}}
		for i := 0; i < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	good := []string{"registry", "heir.example.org/.log", "address", "https://heir.example.org/", "days", "180"}
	olga.get(page).has(200, "Promises and heirs", "No heir is named", "Name an heir", `value="180"`)
	olga.get("/.desk/namespace?namespace=ark%3A12345%2Fx5").has(200, "/.desk/keeping?namespace=ark%3A12345%2Fx5")
	if p := ed.get(page).has(200, "No heir is named"); strings.Contains(p.text, "Name an heir") {
		t.Error("an editor is offered what an owner may do")
	}
	sam.get(page).has(404)
	ed.post("/.desk/keeping/add", form(good...)).has(403)
	olga.get("/.desk/keeping?namespace=ark:").has(404)

	for says, wrong := range map[string][]string{
		`href="#registry"`:                      {"registry", "two words"},
		`href="#address"`:                       {"address", "javascript:alert(1)"},
		"for 30 to 36500 days of silence":       {"days", "29"},
		"&#34;soon&#34; is not a number of day": {"days", "soon"},
	} {
		olga.post("/.desk/keeping/add", form(append(good, wrong...)...)).has(422, says, `value="`+form(append(good, wrong...)...).Get("registry")+`"`)
	}
	olga.post("/.desk/keeping/add", form(append(good, "version", "99")...)).has(409, "changed meanwhile", `value="heir.example.org/.log"`)
	olga.follow(olga.post("/.desk/keeping/add", form(good...))).has(200, "The heir is named.", "heir.example.org/.log", "180 days", "Remove")
	olga.post("/.desk/keeping/add", form(good...)).has(422)
	olga.get("/.desk/namespace?namespace=ark%3A12345%2Fx5").has(200, "may take it over after 180 days of silence")
	ed.post("/.desk/keeping/remove", form("heir", "heir.example.org/.log")).has(403)
	olga.post("/.desk/keeping/remove", form("heir", "other.example.org/.log")).has(422, "does not name other.example.org/.log as an heir")
	olga.follow(olga.post("/.desk/keeping/remove", form("heir", "heir.example.org/.log"))).has(200, "The heir is removed.", "No heir is named")
}

// TestKeepingLog shows how far the log is.
func TestKeepingLog(t *testing.T) {
	s := newSite(t)
	log := apijson.Log{Size: 7, Behind: 2, Origin: "names.example.org/.log"}
	s.handler.o.Keeping.Log = func(context.Context) (apijson.Log, error) { return log, nil }
	const page = "/.desk/keeping?namespace=ark%3A12345%2Fx5"
	olga := s.as("olga")
	olga.get(page).has(200, "The public log has 7 entries.", "2 changes are not in it yet.", "It is not signed yet.")
	log.Checkpoint = &apijson.LogCheckpoint{At: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Cosignatures: make([]apijson.LogCosignature, 2)}
	olga.get(page).has(200, "It was signed", "2026-05-04T03:02:01Z", "2 witnesses have seen it.", "/.log/")
	log.Origin = ""
	olga.get(page).has(200, "The log has no name yet")
}

// TestKeepingDeposits shows owners the copies elsewhere that have their names, and lets them take a bundle.
func TestKeepingDeposits(t *testing.T) {
	const page = "/.desk/keeping?namespace=ark%3A12345%2Fx5"
	s := newSite(t, func(o *Options) {
		o.Bundle = func(context.Context, *registrar.Bundling) (*bundle.Job, error) {
			return nil, errors.New("not asked for")
		}
	})
	olga, ed := s.as("olga"), s.as("ed")
	olga.get(page).has(200, "No copies are made.", "No bundle of this namespace was taken yet.", "Take everything with you", "/.desk/bundle.tgz?prefix=ark%3A12345%2Fx5")
	keep := func(d registrar.ScheduledDeposit) {
		t.Helper()
		if err := s.r.ChangeDeposit(s.admin, d.Name, func(*registrar.ScheduledDeposit) (*registrar.ScheduledDeposit, error) { return &d, nil }); err != nil {
			t.Fatal(err)
		}
	}
	keep(registrar.ScheduledDeposit{Name: "vault", Place: "sftp://secret.example.org/", Deposited: s.now.Add(-time.Hour), Change: 41, Checked: s.now.Add(-time.Minute)})
	keep(registrar.ScheduledDeposit{Name: "broken", Prefixes: []string{"ark:12345"}, Failures: 2, Said: "no route to secret.example.org"})
	keep(registrar.ScheduledDeposit{Name: "others", Prefixes: []string{"ark:99999"}})
	p := olga.get(page).has(200, "vault", "up to change 41", "broken", "no copy yet", "never checked", "The last attempt failed.")
	if strings.Contains(p.text, "secret.example.org") || strings.Contains(p.text, "others") {
		t.Error("the page tells too much:", p.text)
	}
	for _, prefix := range []string{"ark:12345/x5b", "ark:12345", "ark:123456", "ark:99999"} {
		must(s.r.AddNamespace(s.admin, &stele.Namespace{Scheme: "ark", Prefix: prefix, Owner: "olga"}))(t)
	}
	keep(registrar.ScheduledDeposit{Name: "spelled", Prefixes: []string{"ark:/99999", "ark:/12345/x5"}})
	keep(registrar.ScheduledDeposit{Name: "unreadable", Prefixes: []string{"two words"}})
	for key, want := range map[string]string{"ark:12345": "broken vault", "ark:12345/x5": "broken spelled vault", "ark:12345/x5b": "broken spelled vault", "ark:123456": "vault", "ark:99999": "others spelled vault"} {
		p := olga.get("/.desk/keeping?namespace=" + url.QueryEscape(key)).has(200)
		var shown []string
		for _, name := range []string{"broken", "others", "spelled", "unreadable", "vault"} {
			if strings.Contains(p.text, "<bdi>"+name+"</bdi>") {
				shown = append(shown, name)
			}
		}
		if got := strings.Join(shown, " "); got != want {
			t.Errorf("the names of %s are in %s, not %s:\n%s", key, got, want, p.main())
		}
	}
	if p := ed.get(page).has(200); strings.Contains(p.text, "vault") || strings.Contains(p.text, "bundle.tgz") {
		t.Error("an editor sees what an owner may see")
	}
}
