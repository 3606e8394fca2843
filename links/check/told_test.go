package check

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/links"
	"github.com/stele-id/stele/proof"
)

// tell registers a name, and keeps what was found at its target.
func (g *registry) tell(id string, f Finding) {
	g.t.Helper()
	f.ID, f.URL, f.Host = id, "https://a.example/1", "a.example"
	k := keyOf(g.register(id, f.URL), 0)
	value, err := json.Marshal(f)
	if err == nil {
		err = g.r.KeepChecks(g.admin, stele.CellChange{Name: k.found(), After: value})
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// The newest findings are told, and not those whose names come first.
func TestNewestFirst(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	now := g.clock()
	for i := range 12 {
		g.tell(fmt.Sprintf("ark:12345/x5%02d", i), Finding{State: "broken", Cause: "not-found", Since: now.Add(time.Duration(i/2) * time.Hour)})
	}
	g.tell("ark:12345/x5d0", Finding{State: "ok", Drift: "text-changed", Since: now, Drifted: now.Add(time.Hour)})
	g.tell("ark:12345/x5d1", Finding{State: "ok", Drift: "text-changed", Since: now.Add(time.Minute), Drifted: now.Add(2 * time.Hour)})
	o, err := c.Overview(g.as("ruth"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 3, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, f := range append(o.First["broken"], o.First["drifted"]...) {
		got += f.ID[len("ark:12345/x5"):] + " "
	}
	if got != "10 11 08 d1 d0 " || o.Counts["broken"] != 12 {
		t.Errorf("the newest are %s, %v", got, o.Counts)
	}
	n, err := c.Numbers(g.as("ruth"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 100)
	if err != nil || n.Counts["broken"] != 12 || n.Counts["drifted"] != 2 || len(n.First["broken"]) != 0 {
		t.Errorf("the numbers are %+v, %v", n, err)
	}
	if n, err := c.Numbers(g.as("ruth"), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 5); err != nil || n.Counts["broken"] > 5 || !n.Partial {
		t.Errorf("of five at most they are %+v, %v", n, err)
	}
}

// Content that differs is told with the day on which it began to, however long the target has worked.
func TestDriftIsDated(t *testing.T) {
	now := time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)
	s := links.Status{State: links.OK, Since: now.AddDate(-1, 0, 0), Drift: links.TextChanged, DriftSince: now}
	f := finding(keyOf(stele.StoredID("ark", "ark:12345/x5"), 0), "https://a.example/1", &s, nil)
	if !f.Told().Equal(now) || !f.Since.Equal(s.Since) {
		t.Errorf("got %+v", f)
	}
	s.State = links.Broken
	if f := finding(keyOf(stele.StoredID("ark", "ark:12345/x5"), 0), "https://a.example/1", &s, nil); !f.Told().Equal(s.Since) {
		t.Errorf("got %+v", f)
	}
}

// A list reads as many findings as it may, and says where it goes on.
func TestFindingsAreBounded(t *testing.T) {
	g := newRegistry(t)
	read := 0
	g.store = counting{g.store, &read}
	c := g.checker(time.Hour)
	c.o.Store = g.store
	for i := range 30 {
		state := "blocked"
		if i == 25 {
			state = "broken"
		}
		g.tell(fmt.Sprintf("ark:12345/x5%02d", i), Finding{State: state, Since: g.clock()})
	}
	key, after, pages, found := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, "", 0, ""
	for more := true; more; pages++ {
		more = false
		seen := 0
		for f, err := range c.FindingsOf(g.as("ruth"), key, apijson.LinkFilter{Kind: "broken", Most: 10}, after) {
			switch seen++; {
			case errors.Is(err, apijson.ErrLinksCut):
				more, after = true, fmt.Sprintf("%s\t%d", f.ID, f.Target)
			case err != nil:
				t.Fatal(err)
			default:
				found += f.ID
			}
		}
	}
	if pages != 3 || found != "ark:12345/x525" {
		t.Errorf("%d pages have %q", pages, found)
	}
}

// What a key signed that is revoked now is not a promise any more.
func TestRevokedKey(t *testing.T) {
	g := newRegistry(t)
	c := g.checker(time.Hour)
	private, err := proof.Generate(stele.KeyED25519, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := proof.PublicKey(private, g.clock())
	if err != nil {
		t.Fatal(err)
	}
	set := func(change func(ns *stele.Namespace)) {
		if _, err := g.r.SetNamespace(g.admin, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}, 0, func(ns *stele.Namespace) error { change(ns); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	set(func(ns *stele.Namespace) { ns.Keys = []stele.SigningKey{public} })
	id := g.register("ark:12345/x5a", "https://a.example/1")
	s, err := proof.Sign(private, id, stele.Signature{SHA256: sha256.Sum256([]byte("a map")), Size: 5, Date: g.clock()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.r.Update(g.admin, id, 0, func(rec *stele.Record) error {
		rec.Persistence.Level, rec.Signatures = stele.Unchanging, []stele.Signature{s}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for want := 1; want >= 0; want-- {
		found, ok, err := c.target(t.Context(), keyOf(id, 0))
		if err != nil || !ok || len(found.signed) != want || !found.unchanging {
			t.Errorf("%d are signed, want %d; %v", len(found.signed), want, err)
		}
		g.pass(time.Hour)
		if want == 1 {
			set(func(ns *stele.Namespace) { ns.Keys[0].Revoked = g.clock() })
		}
	}
}
