package registrar

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// reviewed returns a fixture with a namespace in which ed edits and olga approves.
func reviewed(t *testing.T) *fixture {
	f := newFixture(t)
	ns := &stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x5", Owner: "olga", Reviewed: true, Hosts: []string{"example.org"},
		Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".zeedk"}, Grants: []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}, {To: "user:eve", Role: stele.RoleEditor}, {To: "user:ruth", Role: stele.RoleReader}}}
	if _, err := f.AddNamespace(f.admin, ns); err != nil {
		t.Fatal(err)
	}
	return f
}

func target(url string) []stele.Target {
	return []stele.Target{{Service: stele.N2L, URL: url, Order: stele.DefaultOrder, Preference: stele.DefaultPreference}}
}

func wantKind(t *testing.T, what string, err error, kind stele.Kind) {
	t.Helper()
	if err == nil || stele.KindOf(err) != kind {
		t.Errorf("%s: %v, want the Kind %v", what, err, kind)
	}
}

// count returns how many proposals a user sees.
func (f *fixture) proposals(user string) (list []*Proposal) {
	f.t.Helper()
	for p, err := range f.Proposals(as(user)) {
		if err != nil {
			f.t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// TestReview: where changes are reviewed an editor writes nothing in any way, and an owner's
// approval writes what was proposed, once.
func TestReview(t *testing.T) {
	f := reviewed(t)
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	rec := &stele.Record{State: stele.Active, Targets: target("https://example.org/1"), Metadata: stele.Metadata{"what": "A map"}}

	_, err := f.MintAndRegister(as("ed"), rec, key)
	wantKind(t, "an editor mints", err, stele.Forbidden)
	_, err = f.MintBatch(as("ed"), nil, []stele.NamespaceKey{key}, 1, nil)
	wantKind(t, "an editor mints a name alone", err, stele.Forbidden)
	own := *rec
	own.ID = f.id("ark:12345/x5own")
	_, err = f.Register(as("ed"), &own)
	wantKind(t, "an editor registers", err, stele.Forbidden)
	if code, _ := stele.CodeOf(err); code != "user.may-only-propose" {
		t.Errorf("%v has the code %q", err, code)
	}
	_, err = f.Propose(as("ruth"), Proposal{Record: rec, Namespace: key})
	wantKind(t, "a reader proposes", err, stele.Forbidden)
	_, err = f.Propose(as("ed"), Proposal{Record: &stele.Record{State: stele.Active, Targets: target("https://elsewhere.example/")}, Namespace: key})
	wantKind(t, "a wrong record is proposed", err, stele.Invalid)

	// A new name: nothing is public before an owner approves.
	p, err := f.Propose(as("ed"), Proposal{Record: rec, Namespace: key, Note: "from the catalogue"})
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]int{"ed": 1, "olga": 1, "eve": 0, "ruth": 0, "": 0} {
		if n := len(f.proposals(user)); n != want {
			t.Errorf("%q sees %d proposals", user, n)
		}
	}
	for _, user := range []string{"ed", "eve"} {
		_, err = f.Approve(as(user), p.ID)
		if err == nil {
			t.Errorf("%s approved", user)
		}
	}
	made, err := f.Approve(as("olga"), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	if made.By != "olga" || made.Metadata["what"] != "A map" || made.Version != 1 {
		t.Errorf("%+v", made)
	}
	_, err = f.Approve(as("olga"), p.ID)
	wantKind(t, "a proposal is approved again", err, stele.NotFound)

	// A change, which another change overtakes.
	change := *made
	change.Metadata = stele.Metadata{"what": "A better map"}
	first, err := f.Propose(as("ed"), Proposal{Record: &change, Base: 1})
	if err != nil {
		t.Fatal(err)
	}
	gone := *made
	gone.State, gone.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: "A mistake", At: f.clock()}
	second, err := f.Propose(as("eve"), Proposal{Record: &gone, Base: 1})
	if err != nil {
		t.Fatal(err)
	}
	if now, err := f.Get(as("ruth"), made.ID); err != nil || now.Version != 1 || now.Metadata["what"] != "A map" {
		t.Errorf("%+v %v", now, err)
	}
	if _, err := f.Approve(as("olga"), first.ID); err != nil {
		t.Fatal(err)
	}
	_, err = f.Approve(as("olga"), second.ID)
	wantKind(t, "an overtaken change is approved", err, stele.Conflict)
	wantKind(t, "a proposal is declined without a reason", f.Decline(as("olga"), second.ID, " "), stele.Invalid)
	if err := f.Decline(as("olga"), second.ID, "It is in use"); err != nil {
		t.Fatal(err)
	}
	if mine := f.proposals("eve"); len(mine) != 1 || mine[0].Reason != "It is in use" || mine[0].Decliner != "olga" {
		t.Errorf("%+v", mine)
	}
	if n := len(f.proposals("olga")); n != 0 {
		t.Errorf("%d proposals are left to decide about", n)
	}
	if err := f.Decline(as("eve"), second.ID, ""); err != nil || len(f.proposals("eve")) != 0 {
		t.Errorf("taking back: %v", err)
	}
	_, err = f.Propose(as("ed"), Proposal{Record: made, Base: 1})
	wantKind(t, "a change of an old version is proposed", err, stele.Conflict)

	// The trail has all that was decided.
	var seen []string
	for e, err := range f.Audit(f.admin, AuditQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Entry.Operation)
	}
	for _, op := range []string{"propose", "approve proposal", "decline proposal", "take proposal back"} {
		if !slices.Contains(seen, op) {
			t.Errorf("the audit trail has no %q: %q", op, seen)
		}
	}
}

// TestApprovedOnce: of owners who approve at once one makes the name.
func TestApprovedOnce(t *testing.T) {
	f := reviewed(t)
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	p, err := f.Propose(as("ed"), Proposal{Record: &stele.Record{State: stele.Active, Targets: target("https://example.org/1")}, Namespace: key})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wait.Go(func() { _, results[i] = f.Approve(as("olga"), p.ID) })
	}
	wait.Wait()
	good := 0
	for _, err := range results {
		if err == nil {
			good++
		} else if k := stele.KindOf(err); k != stele.Conflict && k != stele.NotFound {
			t.Error(err)
		}
	}
	if n, err := f.store.Count(t.Context(), key); good != 1 || n != 1 || err != nil {
		t.Errorf("%d approvals, %d names, %v", good, n, err)
	}
}

// TestProposalsEnd: one that was declined long ago is removed, and a redaction removes what
// proposals say of the record.
func TestProposalsEnd(t *testing.T) {
	f := reviewed(t)
	rec, err := f.Register(as("olga"), &stele.Record{ID: f.id("ark:12345/x5a"), State: stele.Active, Targets: target("https://example.org/1")})
	if err != nil {
		t.Fatal(err)
	}
	propose := func(what string) *Proposal {
		change := *rec
		change.Metadata = stele.Metadata{"what": what}
		p, err := f.Propose(as("ed"), Proposal{Record: &change, Base: 1})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if err := f.Decline(as("olga"), propose("libel").ID, "no"); err != nil {
		t.Fatal(err)
	}
	f.jump(declinedLife + time.Hour)
	propose("more libel")
	if n := len(f.proposals("ed")); n != 1 {
		t.Errorf("%d proposals", n)
	}
	if _, err := f.Redact(f.admin, rec.ID, 0, "court order"); err != nil {
		t.Fatal(err)
	}
	if n := len(f.proposals("ed")); n != 0 {
		t.Errorf("%d proposals after the redaction", n)
	}
}

// TestProposalsGrantNothing: what an editor may not do elsewhere, or in no way, can't be proposed.
func TestProposalsGrantNothing(t *testing.T) {
	f := reviewed(t)
	f.space("ark:12345/y6", owner("zoe"))
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	alias := []stele.ID{f.id("ark:12345/y6a")}
	fresh := &stele.Record{State: stele.Active, Aliases: alias, Targets: target("https://example.org/1")}
	_, err := f.Propose(as("ed"), Proposal{Record: fresh, Namespace: key})
	wantKind(t, "an alias of a new name in another namespace", err, stele.Forbidden)
	own := *fresh
	own.ID = f.id("ark:12345/x5own")
	_, err = f.Propose(as("ed"), Proposal{Record: &own})
	wantKind(t, "an alias of a given name in another namespace", err, stele.Forbidden)

	rec := must(f.Register(as("olga"), &stele.Record{ID: f.id("ark:12345/x5r"), State: stele.Reserved, Targets: target("https://example.org/1")}))(t)
	more := *rec
	more.Aliases = alias
	_, err = f.Propose(as("ed"), Proposal{Record: &more, Base: 1})
	wantKind(t, "an alias by a change", err, stele.Forbidden)
	gone := *rec
	gone.State, gone.Tombstone = stele.Withdrawn, &stele.Tombstone{Reason: "x", At: f.clock()}
	_, err = f.Propose(as("ed"), Proposal{Record: &gone, Base: 1})
	wantKind(t, "the withdrawal of a reserved name", err, stele.Conflict)
	active := *rec
	active.State = stele.Active
	p := must(f.Propose(as("ed"), Proposal{Record: &active, Base: 1}))(t)
	must(f.Approve(as("olga"), p.ID))(t)
	must(f.Withdraw(as("olga"), rec.ID, 0, "x", stele.ID{}))(t)
	now := must(f.Get(as("olga"), rec.ID))(t)
	now.Metadata = stele.Metadata{"what": "changed"}
	_, err = f.Propose(as("ed"), Proposal{Record: now, Base: now.Version})
	wantKind(t, "a change of a withdrawn record", err, stele.Gone)
}

// TestProposalsOfLimitedToken: a token for one namespace reads and ends no proposals elsewhere, not even
// those of its own user.
func TestProposalsOfLimitedToken(t *testing.T) {
	f := reviewed(t)
	f.user("ed")
	f.space("ark:12345/y6", owner("ed"))
	p := must(f.Propose(as("ed"), Proposal{Record: &stele.Record{ID: f.id("ark:12345/x5own"), State: stele.Active, Targets: target("https://example.org/1")}}))(t)
	for _, namespace := range []string{"ark:12345/y6", "ark:12345/x5"} {
		want := namespace == "ark:12345/x5"
		credential, _ := f.made(f.admin, auth.TokenRequest{User: "ed", Scopes: []auth.Scope{auth.ScopeWrite}, Namespaces: []string{namespace}})
		seen := 0
		for _, err := range f.Proposals(f.by(credential)) {
			if err != nil {
				t.Fatal(err)
			}
			seen++
		}
		if _, _, err := f.Proposal(f.by(credential), p.ID); (seen == 1) != want || (err == nil) != want {
			t.Errorf("a token for %s sees %d proposals, %v", namespace, seen, err)
		}
		if err := f.Decline(f.by(credential), p.ID, ""); (err == nil) != want {
			t.Errorf("a token for %s ends the proposal: %v", namespace, err)
		}
	}
}

// TestRestoreKeepsReview: a backup from before a namespace was reviewed does not let its editors write.
func TestRestoreKeepsReview(t *testing.T) {
	present, backup := reviewed(t), reviewed(t)
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	must(backup.SetNamespace(backup.admin, key, 0, func(ns *stele.Namespace) error { ns.Reviewed = false; return nil }))(t)
	if err := backup.Inherit(backup.admin, must(ReadLegacy(t.Context(), present.store, backup.store))(t)); err != nil {
		t.Fatal(err)
	}
	_, err := backup.Register(as("ed"), &stele.Record{ID: backup.id("ark:12345/x5a"), State: stele.Active})
	wantKind(t, "an editor writes after the restore", err, stele.Forbidden)
}
