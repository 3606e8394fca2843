package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// audited returns the entries after a number.
func (s *site) audited(after uint64) (list []*stele.AuditEntry) {
	s.t.Helper()
	for e, err := range s.store.Audit(context.Background(), after) {
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func (s *site) lastAudit() uint64 {
	s.t.Helper()
	_, last, err := s.store.AuditRange(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return last
}

// shutToken shuts a token of a user, as a restore does, and returns its ID.
func (s *site) shutToken(user string) (id string) {
	s.t.Helper()
	for t, err := range s.registry.Tokens(s.admin, user) {
		if err != nil {
			s.t.Fatal(err)
		}
		id = t.ID
	}
	cell := stele.Cell{Name: auth.TokenCells + id}
	var err error
	if cell.Value, err = s.store.Cell(s.admin, cell.Name); err != nil {
		s.t.Fatal(err)
	}
	token, err := auth.ReadToken(cell)
	if err != nil {
		s.t.Fatal(err)
	}
	token.Shut = true
	next, err := token.Cell()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.store.Apply(s.admin, &stele.Commit{Cells: []stele.CellChange{{Name: cell.Name, Before: cell.Value, After: next.Value}}}); err != nil {
		s.t.Fatal(err)
	}
	return id
}

// writesNothing are operations that are not a GET and change nothing, except when targets are asked. Log files change the registry when they are counted.
var writesNothing = []string{"verify", "checkNamespace", "tryNamespace", "testRules", "checkLinks", "beginUsageLog", "addUsageLog", "dropUsageLog", "planSeal", "checkHeir", "askWatched"}

// TestEveryWriteIsAudited sends a request to each operation that changes something, and wants
// an entry with its user. An operation that is added is found here.
func TestEveryWriteIsAudited(t *testing.T) {
	table := newSite(t).handler.table
	for i := range table {
		op := &table[i]
		if op.method == http.MethodGet || slices.Contains(writesNothing, op.name) || slices.Contains(unkept, op.name) {
			continue
		}
		t.Run(op.name, func(t *testing.T) {
			s := newSite(t)
			x := sampleOf(t, s, op, theAdmin)
			if op.name == "openToken" {
				x.target = "/tokens/" + s.shutToken(theOutsider)
			}
			before := s.lastAudit()
			if a := s.ask(theAdmin, op.method, Root+x.target, x.body, x.head...); a.StatusCode >= 300 {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
			if err := s.registry.FlushAudit(context.Background(), true); err != nil {
				t.Fatal(err)
			}
			list := s.audited(before)
			if len(list) == 0 {
				t.Fatal("the operation left no entry in the audit trail")
			}
			for _, e := range list {
				if e.By != theAdmin || e.Token == "" || e.Via != "api" || e.Outcome != stele.AuditDone || e.Address != "" {
					t.Errorf("entry %+v", e)
				}
			}
		})
	}
}

// TestBackupIsAudited: a backup has an entry before it begins and one when it has ended.
func TestBackupIsAudited(t *testing.T) {
	s := newSite(t)
	s = newSite(t, s.keep)
	before := s.lastAudit()
	s.ask(theAdmin, "GET", Root+"/backup", "").want(t, http.StatusOK)
	var got []string
	for _, e := range s.audited(before) {
		got = append(got, e.Operation+" "+e.Details)
	}
	if want := []string{"backup begin", "backup end"}; !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
}

// TestRefusalsAreAudited: refusals of users have entries, up to a number a minute; those
// of the public are counted.
func TestRefusalsAreAudited(t *testing.T) {
	s := newSite(t)
	before := s.lastAudit()
	const many = 100
	for range many {
		s.ask(theReader, "POST", Root+"/withdraw/ark:12345/x1", `{"reason":"x"}`).want(t, http.StatusForbidden)
	}
	list := s.audited(before)
	if len(list) == 0 || len(list) > 60 {
		t.Fatalf("%d refusals have %d entries", many, len(list))
	}
	if e := list[0]; e.By != theReader || e.Outcome != stele.AuditRefused || e.Kind != stele.Forbidden || e.Object != "ark:12345/x1" || e.Namespace.Prefix != "ark:12345" {
		t.Errorf("entry %+v", e)
	}
	middle := s.lastAudit()
	for range many {
		s.ask("", "GET", Root+"/users", "").want(t, http.StatusUnauthorized)
		s.tokens["wrong"] = "stele_0000_0000"
		s.ask("wrong", "GET", Root+"/users", "").want(t, http.StatusUnauthorized)
	}
	if n := len(s.audited(middle)); n != 0 {
		t.Errorf("refusals of the public have %d entries before they are counted", n)
	}
	s.pass(time.Minute)
	if err := s.registry.FlushAudit(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	counted := make(map[string]uint64)
	for _, e := range s.audited(before) {
		counted[e.By+" "+e.Operation] += max(e.Count, 1)
		if e.Address != "" {
			t.Errorf("an address is kept: %+v", e)
		}
	}
	for _, what := range []string{"rita withdrawRecord", " listUsers", " authenticate"} {
		if counted[what] != many {
			t.Errorf("%q was counted %d times, want %d", what, counted[what], many)
		}
	}
	if n := len(s.audited(middle)); n > 10 {
		t.Errorf("%d refusals were written as %d entries", 2*many, n)
	}
}

// TestAuditAddresses: addresses are kept only if the operator says so.
func TestAuditAddresses(t *testing.T) {
	s := newSite(t, func(o *Options) { o.Addresses = true })
	before := s.lastAudit()
	s.ask(theAdmin, "POST", Root+"/users", `{"name":"zoe"}`).want(t, http.StatusCreated)
	if e := s.audited(before)[0]; e.Address == "" {
		t.Errorf("no address: %+v", e)
	}
}

// TestAuditReaders: an administrator sees all, an owner what concerns their namespaces,
// and other users nothing.
func TestAuditReaders(t *testing.T) {
	s := newSite(t)
	s.ask(theEditor, "PUT", records+"ark:12345/new", `{"url":"https://example.org/"}`, "If-None-Match", "*").want(t, http.StatusCreated)
	read := func(who, query string) (list []audit.Document) {
		t.Helper()
		for after := "0"; ; {
			a := s.ask(who, "GET", Root+"/audit?limit=3&after="+after+query, "").want(t, http.StatusOK)
			var page audit.Page
			if err := json.Unmarshal([]byte(a.body), &page); err != nil {
				t.Fatal(err)
			}
			list = append(list, page.Items...)
			if page.Last {
				return list
			}
			n, _ := json.Marshal(page.After)
			after = string(n)
		}
	}
	all := read(theAdmin, "")
	if uint64(len(all)) != s.lastAudit() {
		t.Errorf("an administrator sees %d of %d entries", len(all), s.lastAudit())
	}
	own := read(theOwner, "")
	if len(own) == 0 || len(own) >= len(all) {
		t.Errorf("an owner sees %d of %d entries", len(own), len(all))
	}
	for _, e := range own {
		if !strings.HasPrefix(e.Namespace, "ark:12345") {
			t.Errorf("an owner sees %+v", e)
		}
	}
	if got := read(theAdmin, "&by=ed&operation=register&outcome=done&namespace=ark:12345"); len(got) != 1 || got[0].Object != "ark:12345/new" || got[0].Token == "" {
		t.Errorf("filtered: %+v", got)
	}
	if got := read(theAdmin, "&since=2999-01-01T00:00:00Z"); len(got) != 0 {
		t.Errorf("since a time to come: %+v", got)
	}
	if got := read(theAdmin, "&until=2000-01-01T00:00:00Z"); len(got) != 0 {
		t.Errorf("until a time long ago: %+v", got)
	}
	s.ask(theEditor, "GET", Root+"/audit", "").want(t, http.StatusForbidden)
	s.ask(theOutsider, "GET", Root+"/audit", "").want(t, http.StatusForbidden)
}

// mute is a store that takes no audit entries.
type mute struct {
	stele.Store
	on bool
}

var errMute = &stele.Error{Op: "commit", Kind: stele.Unavailable, Err: errors.New("no room for audit entries")}

func (m *mute) Apply(ctx context.Context, c *stele.Commit) error {
	if m.on && len(c.Audit) > 0 {
		return errMute
	}
	return m.Store.Apply(ctx, c)
}

// TestAuditFailsClosed: a change without an audit entry is not made.
func TestAuditFailsClosed(t *testing.T) {
	s := newSite(t)
	m := &mute{Store: s.store, on: true}
	s.registry = registrar.New(m, s.schemes, registrar.Options{Now: s.now})
	ctx := auth.With(context.Background(), auth.Local())
	if _, err := s.registry.AddUser(ctx, auth.User{Name: "zoe"}); !errors.Is(err, stele.Unavailable) {
		t.Errorf("AddUser: %v", err)
	}
	if _, err := s.registry.User(ctx, "zoe"); !errors.Is(err, stele.NotFound) {
		t.Errorf("the user is there: %v", err)
	}
	if _, _, err := s.registry.CreateToken(ctx, auth.TokenRequest{User: theOwner}); err == nil {
		t.Error("CreateToken: no error")
	}
	if err := s.registry.Witness(ctx, "backup", "", ""); !errors.Is(err, stele.Unavailable) {
		t.Errorf("Witness: %v", err)
	}
}
