package lsid_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/serve/httpd"
	"github.com/stele-id/stele/serve/httpd/lsid"
)

// A sealed registry answers what it can without a write, and refuses the rest without a word of the names or of the
// reason, which is the operator's.
func TestSealed(t *testing.T) {
	f := newFiles(t)
	f.put("/1", "a")
	a := newAuthority(t)
	a.space("urn:lsid:example.org:ns", func(ns *stele.Namespace) { ns.Minter.Kind = stele.MinterUUID })
	const two, three = "urn:lsid:example.org:ns:two", "urn:lsid:example.org:ns:three"
	gone := data(f.URL + "/1")
	gone.Status = http.StatusGone
	a.put(one, stele.Record{Targets: []stele.Target{data(f.URL + "/1")}})
	a.put(two, stele.Record{Targets: []stele.Target{gone}})
	a.put(three, stele.Record{Targets: []stele.Target{data(f.URL + "/1")}})
	if w := a.get("/authority/data?lsid=" + one); w.body != "a" {
		t.Fatal(w.body)
	}
	if err := a.store.Seal(t.Context(), "it moves to postgres://db.example.org/"); err != nil {
		t.Fatal(err)
	}
	busy := func(w answer) {
		t.Helper()
		w.fails(t, "500")
		if strings.Contains(w.body, "postgres") || !strings.Contains(w.body, "takes no changes at present") {
			t.Error(w.body)
		}
	}
	bearer := []string{"Authorization", "Bearer " + editorToken}
	assign := func(operation, arguments string) answer {
		t.Helper()
		return a.soap("/authority/assigning", operation, arguments, bearer...)
	}
	for _, name := range []string{one, two, three} {
		if w := a.get("/authority/?lsid=" + name); w.StatusCode != http.StatusOK || strings.Contains(w.body, "/authority/data") != (name != two) {
			t.Errorf("services of %s: %s %s", name, w.Status, w.body)
		}
	}
	if w := a.get("/authority/data?lsid=" + one); w.body != "a" {
		t.Error(w.body)
	}
	a.get("/authority/data?lsid="+two).fails(t, "300")
	busy(a.get("/authority/data?lsid=" + three))
	busy(a.soap("/authority/data", "getData", "<lsid>"+three+"</lsid>"))
	busy(a.get("/authority/notify?lsid="+one+"&authorityName=other.example", bearer...))
	busy(assign("assignLSID", "<authority>example.org</authority><namespace>ns</namespace>"))
	busy(assign("assignLSIDFromList", "<suggestedLSIDs><lsid>urn:lsid:example.org:ns:free</lsid></suggestedLSIDs>"))
	busy(assign("assignLSIDForNewRevision", "<previousLSID>"+one+"</previousLSID>"))
}

// away is a registry whose database can be read and not written to.
type away struct{ lsid.Data }

func (away) FixData(context.Context, *stele.Record, registrar.FixedData) (*registrar.FixedData, error) {
	return nil, &stele.Error{Op: "fix data", Kind: stele.Unavailable, Err: stele.Messagef("test.away", "the primary database is away")}
}

// While the database can't be written to, the services of a name are known, and that it has no data.
func TestPrimaryAway(t *testing.T) {
	a := newAuthority(t, func(_ *httpd.Options, o *lsid.Options) { o.Data = away{o.Data} })
	gone := data("https://example.org/")
	gone.Status = http.StatusGone
	a.put(one, stele.Record{Targets: []stele.Target{gone}})
	if w := a.get("/authority/?lsid=" + one); w.StatusCode != http.StatusOK {
		t.Errorf("%s %s", w.Status, w.body)
	}
	a.get("/authority/data?lsid="+one).fails(t, "300")
}

// Which bytes a name stands for is said by the registry whose name it is: not by the one that has handed it over, and not by one that has
// it for reading only. What was said before holds there, too.
func TestDataOfAnother(t *testing.T) {
	for what, change := range map[string]struct {
		change func(ns *stele.Namespace)
		says   string
	}{
		"sealed": {func(ns *stele.Namespace) {
			ns.HandOver = stele.HandOver{State: stele.Sealed, Heir: "heir.example.org/.log", Address: "https://heir.example.org/", Since: noon}
		}, "was handed over to another registry"},
		"for reading": {func(ns *stele.Namespace) {
			ns.Adoptions = []stele.Adoption{{From: "giver.example.org/.log", To: "heir.example.org/.log", Bundle: strings.Repeat("0f", 32), Change: 4, Until: noon, At: noon, Reading: true}}
		}, "for reading only"},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFiles(t)
			f.put("/1", "a")
			a := newAuthority(t)
			a.space("urn:lsid:example.org:ns", func(*stele.Namespace) {})
			const two, three = "urn:lsid:example.org:ns:two", "urn:lsid:example.org:ns:three"
			gone := data(f.URL + "/1")
			gone.Status = http.StatusGone
			a.put(one, stele.Record{Targets: []stele.Target{data(f.URL + "/1")}})
			a.put(two, stele.Record{Targets: []stele.Target{gone}})
			a.put(three, stele.Record{Targets: []stele.Target{data(f.URL + "/1")}})
			if w := a.get("/authority/data?lsid=" + one); w.body != "a" {
				t.Fatal(w.body)
			}
			ns, err := a.store.Namespace(t.Context(), stele.NamespaceKey{Scheme: "lsid", Prefix: "urn:lsid:example.org:ns"})
			if err != nil {
				t.Fatal(err)
			}
			change.change(ns)
			ns.Version++
			if err := a.store.Apply(t.Context(), &stele.Commit{Namespaces: []*stele.Namespace{ns}}); err != nil {
				t.Fatal(err)
			}
			if err := a.registrar.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.resolver.InvalidateAll()
			if w := a.get("/authority/data?lsid=" + one); w.body != "a" {
				t.Errorf("what it stands for already: %s %s", w.Status, w.body)
			}
			a.get("/authority/data?lsid="+two).fails(t, "300")
			w := a.get("/authority/data?lsid=" + three)
			w.fails(t, "500")
			if !strings.Contains(w.body, change.says) {
				t.Error(w.body)
			}
			for _, name := range []string{two, three} {
				if d, err := a.registrar.FixedData(a.ctx, a.id(name)); d != nil || err != nil {
					t.Errorf("%s stands for %+v, %v", name, d, err)
				}
			}
		})
	}
}
