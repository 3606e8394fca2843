package registrar

import (
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar/minting"
)

// TestRestoreAccess: a token that was revoked after a backup stays so, one that was
// made after it is good, and what only the backup knows stays.
func TestRestoreAccess(t *testing.T) {
	old, backup := newFixture(t), newFixture(t)
	for _, f := range []*fixture{old, backup} {
		must(f.AddUser(f.admin, auth.User{Name: "ann", Admin: true}))(t)
	}
	must(backup.AddUser(backup.admin, auth.User{Name: "bob"}))(t)
	credential, token, err := backup.CreateToken(backup.admin, auth.TokenRequest{User: "ann", Label: "laptop", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	// The registry that is replaced has the same token, revoked, and another one.
	name := auth.TokenCells + token.ID
	kept := must(backup.store.Cell(t.Context(), name))(t)
	if err := old.store.Apply(old.admin, &stele.Commit{Cells: []stele.CellChange{{Name: name, After: kept}}}); err != nil {
		t.Fatal(err)
	}
	must(old.RevokeToken(old.admin, token.ID))(t)
	later, _, err := old.CreateToken(old.admin, auth.TokenRequest{User: "ann", Label: "desk", Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	key := old.space("urn:uuid", minter(stele.Minter{Kind: stele.MinterUUID}))
	must(old.MintBatch(old.admin, &minting.IdempotencyKey{Key: "k"}, []stele.NamespaceKey{key}, 1, nil))(t)

	want(t, backup.RestoreAccess(as("bob"), old.store.Cells(old.admin, "", "")), stele.Forbidden)
	for range 2 { // the second time there is nothing left to do
		if err := backup.RestoreAccess(backup.admin, old.store.Cells(old.admin, "", "")); err != nil {
			t.Fatal(err)
		}
	}
	d := auth.NewDirectory(backup.store, time.Now)
	_, err = d.Authenticate(t.Context(), credential)
	want(t, err, stele.Unauthenticated, "revoked")
	if who := must(d.Authenticate(t.Context(), later))(t); who.Name != "ann" || !who.Admin {
		t.Errorf("got %+v", who)
	}
	must(backup.User(backup.admin, "bob"))(t)
	for cell, err := range backup.store.Cells(backup.admin, "", "") {
		if err == nil && !minting.IsRequest(cell) {
			continue
		}
		t.Errorf("an answer was taken over that names what is not there: %v, %v", cell, err)
	}
}

// TestIngestAgain: in an update a record that comes again is changed again, in order,
// and the bookmark comes with the last.
func TestIngestAgain(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	chunk := func() (list []*stele.Record) {
		for _, url := range []string{"a", "b", "b", "c"} {
			list = append(list, f.record("ark:12345/1", "https://example.org/"+url), f.record("ark:12345/"+url, "https://example.org/x"))
		}
		return list
	}
	list := chunk()
	errs := must(f.Ingest(as("ann"), list, ImportOptions{Update: true, Name: "x", Bookmark: []byte("7")}))(t)
	if got := strings.Join(kinds(errs), ","); got != ",,,,same,same,," {
		t.Errorf("got %s", got)
	}
	for i, version := range []uint64{1, 1, 2, 1, 2, 1, 3, 1} {
		if list[i].Version != version {
			t.Errorf("record %d has version %d, want %d", i, list[i].Version, version)
		}
	}
	if rec := must(f.Get(f.admin, f.id("ark:12345/1")))(t); rec.Version != 3 || rec.Targets[0].URL != "https://example.org/c" {
		t.Errorf("got %+v", rec)
	}
	if mark := must(f.Bookmark(as("ann"), "x"))(t); string(mark) != "7" {
		t.Errorf("the bookmark is %q", mark)
	}
	// Without an update the first counts, and an equal record is not an error.
	g := newFixture(t)
	g.space("ark:12345", owner("ann"))
	errs = must(g.Ingest(as("ann"), []*stele.Record{g.record("ark:12345/1", "https://example.org/a"), g.record("ark:12345/1", "https://example.org/a"), g.record("ark:12345/1", "https://example.org/b")}, ImportOptions{}))(t)
	if got := strings.Join(kinds(errs), ","); got != ",same,conflict" {
		t.Errorf("got %s", got)
	}
}

func TestIngestNamespace(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345", owner("ann"))
	read := func(text string) *stele.Namespace {
		t.Helper()
		l := must(ParseLine(f.schemes, []byte(text)))(t)
		if l.Record != nil || l.Namespace == nil {
			t.Fatalf("got %+v", l)
		}
		return l.Namespace
	}
	plain := read(` { "namespace" :{"scheme":"ark","prefix":"ark:12345/p","title":"P"}}`)
	counted := read(`{"namespace":{"scheme":"ark","prefix":"ark:12345/n","minter":{"kind":"noid","template":".zd"}}}`)
	if err := f.IngestNamespace(as("ann"), plain, ImportOptions{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.IngestNamespace(as("ann"), plain, ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.IngestNamespace(as("ann"), plain, ImportOptions{}); err != ErrUnchanged {
		t.Errorf("got %v", err)
	}
	plain.Title = "Q"
	want(t, f.IngestNamespace(as("ann"), plain, ImportOptions{}), stele.Conflict, "update")
	if err := f.IngestNamespace(as("ann"), plain, ImportOptions{Update: true}); err != nil {
		t.Fatal(err)
	}
	if ns := must(f.Namespace(f.admin, plain.Key()))(t); ns.Title != "Q" || ns.Version != 2 || ns.By != "ann" {
		t.Errorf("got %+v", ns)
	}
	line := string(AppendNamespaceLine(nil, must(f.Namespace(f.admin, plain.Key()))(t)))
	if line != `{"namespace":{"scheme":"ark","prefix":"ark:12345/p","title":"Q"}}`+"\n" {
		t.Errorf("got %s", line)
	}
	// A dry run checks rights, too.
	want(t, f.IngestNamespace(as("zoe"), read(`{"namespace":{"scheme":"ark","prefix":"ark:12345/z"}}`), ImportOptions{DryRun: true}), stele.Forbidden)
	want(t, f.IngestNamespace(as("ann"), counted, ImportOptions{DryRun: true}), stele.Forbidden, "administrator")
	// Names of a template may have been given where it comes from.
	want(t, f.IngestNamespace(as("ann"), counted, ImportOptions{}), stele.Forbidden, "administrator")
	if err := f.IngestNamespace(f.admin, counted, ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := f.Mint(f.admin, counted.Key(), 1)
	want(t, err, stele.Conflict, "skip it ahead")
	want(t, f.IngestNamespace(as("bob"), plain, ImportOptions{Update: true}), stele.Forbidden)
}

func TestParseLine(t *testing.T) {
	f := newFixture(t)
	if l := must(ParseLine(f.schemes, []byte(`{"id":"ark:12345/1","url":"https://example.org/"}`)))(t); l.Record == nil || l.Namespace != nil {
		t.Errorf("got %+v", l)
	}
	for _, bad := range []string{
		``, `nonsense`, `[]`, `{}`, `{"namespace":{}}`, `{"namespace":1}`, `{"namespace":{"scheme":"ark","prefix":"ark:1"}} {}`,
		`{"namespace":{"scheme":"ark","prefix":"ark:1"},"id":"ark:12345/1"}`, `{"namespace":{"scheme":"ark","prefix":"ark:1","x":1}}`, `{"namespace"`,
		`{"namespace":{"scheme":"ark","prefix":"ark:1"},"namespace":{"scheme":"ark","prefix":"ark:2"}}`,
		`{"namespace":{"scheme":"ark","prefix":"ark:1"},"NAMESPACE":{"scheme":"ark","prefix":"ark:2"}}`,
	} {
		_, err := ParseLine(f.schemes, []byte(bad))
		want(t, err, stele.Invalid)
	}
}
