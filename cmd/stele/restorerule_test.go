package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/registrar/minting"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/postgres"
	"github.com/stele-id/stele/store/postgres/postgrestest"
)

// story is what happens to a registry before and after its backup, for the table of what
// a restore keeps. Each row of the table in docs/bad-day.md has a check here.
type story struct {
	t       *testing.T
	schemes *stele.Schemes
	admin   context.Context

	credential, revoked string // of root, and of ann, which is revoked
	disabled            string // of bob, who is disabled
	names               map[stele.ID]bool
	before              stele.Position

	secondary *fakeSecondary // of the zone of storyZone, which holds a serial above all others
}

const (
	storyZone       = "names.example.org."
	secondarySerial = 5000
)

func newStory(t *testing.T) *story {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	return &story{
		t: t, schemes: schemes, admin: auth.With(t.Context(), auth.Local()), names: make(map[stele.ID]bool),
		secondary: newFakeSecondary(t, secondarySerial),
	}
}

// in opens the registry at a place for a while.
func (s *story) in(at registry.Place, do func(r *registry.Registry)) {
	s.t.Helper()
	p := &program{stderr: io.Discard, now: time.Now, store: at.URL, data: at.Folder, brief: true, create: true}
	r, err := p.openRegistry(s.t.Context(), s.schemes, slog.New(slog.DiscardHandler), resolver.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	do(r)
	if err := r.Close(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

var storyKey = stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}

// begin makes what the backup has.
func (s *story) begin(r *registry.Registry) {
	s.t.Helper()
	for _, name := range []string{"root", "ann", "bob"} {
		_, err := r.Registrar.AddUser(s.admin, auth.User{Name: name, Admin: name != "ann"})
		s.ok(err)
		credential, _, err := r.Registrar.CreateToken(s.admin, auth.TokenRequest{User: name})
		s.ok(err)
		switch name {
		case "root":
			s.credential = credential
		case "ann":
			s.revoked = credential
		case "bob":
			s.disabled = credential
		}
	}
	key, err := proof.PublicKey(ed25519.NewKeyFromSeed(make([]byte, 32)).Public(), time.Now())
	s.ok(err)
	_, err = r.Registrar.AddNamespace(s.admin, &stele.Namespace{
		Scheme: storyKey.Scheme, Prefix: storyKey.Prefix, Owner: "ann", Keys: []stele.SigningKey{key},
		Grants: []stele.Grant{{To: "user:bob", Role: stele.RoleEditor}},
		Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".sdddd"},
	})
	s.ok(err)
	_, err = r.Registrar.AddNamespace(s.admin, &stele.Namespace{Scheme: "urn", Prefix: "urn:example", Publication: stele.Publication{
		Zone: storyZone, Layout: stele.LayoutNames, Parts: 1, Separator: ":", Servers: []stele.NameServer{{Name: "ns1.example.net."}},
		Secondaries: []stele.Secondary{{Network: "127.0.0.0/8", Notify: []string{s.secondary.at}}},
	}})
	s.ok(err)
	_, err = r.Registrar.Register(s.admin, s.record("ark:12345/court"))
	s.ok(err)
	s.mint(r, "first")
}

func (s *story) record(name string) *stele.Record {
	s.t.Helper()
	id, err := s.schemes.Parse(name)
	s.ok(err)
	return &stele.Record{ID: id, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/" + name, Order: 100, Preference: 10}}}
}

func (s *story) mint(r *registry.Registry, key string) {
	s.t.Helper()
	made, err := r.Registrar.MintBatch(s.admin, &minting.IdempotencyKey{Key: key}, []stele.NamespaceKey{storyKey}, 3, nil)
	s.ok(err)
	for _, label := range made.Labels {
		if s.names[label.ID] {
			s.t.Errorf("%s was given twice", label.ID)
		}
		s.names[label.ID] = true
	}
}

// goOn makes what was decided after the backup.
func (s *story) goOn(r *registry.Registry) {
	s.t.Helper()
	c, err := auth.ParseCredential(s.revoked)
	s.ok(err)
	_, err = r.Registrar.RevokeToken(s.admin, c.ID())
	s.ok(err)
	_, err = r.Registrar.SetUser(s.admin, "bob", func(u *auth.User) error { u.Disabled = true; return nil })
	s.ok(err)
	_, err = r.Registrar.SetNamespace(s.admin, storyKey, 0, func(ns *stele.Namespace) error {
		ns.Owner, ns.Grants, ns.Keys[0].Revoked = "root", nil, time.Now().UTC().Truncate(time.Second)
		return nil
	})
	s.ok(err)
	id := s.record("ark:12345/court").ID
	_, err = r.Registrar.Redact(s.admin, id, 0, "Removed by order of a court")
	s.ok(err)
	s.mint(r, "since")
	_, err = r.Registrar.AddHosts(s.admin, "purl.since.example")
	s.ok(err)
	s.before, err = r.Store.Position(s.admin)
	s.ok(err)
}

// check makes sure that all of that survived.
func (s *story) check(r *registry.Registry) {
	s.t.Helper()
	if _, err := r.Directory.Authenticate(s.admin, s.credential); err != nil {
		s.t.Errorf("a good token: %v", err)
	}
	if _, err := r.Directory.Authenticate(s.admin, s.revoked); stele.KindOf(err) != stele.Unauthenticated {
		s.t.Errorf("a token that was revoked came back: %v", err)
	}
	if _, err := r.Directory.Authenticate(s.admin, s.disabled); stele.KindOf(err) == stele.NotFound || err == nil {
		s.t.Errorf("a user who was disabled came back: %v", err)
	}
	ns, err := r.Registrar.Namespace(s.admin, storyKey)
	s.ok(err)
	if len(ns.Grants) != 0 || ns.Owner != "root" {
		s.t.Errorf("roles that were taken away came back: %q, %+v", ns.Owner, ns.Grants)
	}
	if len(ns.Keys) != 1 || ns.Keys[0].Revoked.IsZero() {
		s.t.Errorf("a signing key that was revoked came back: %+v", ns.Keys)
	}
	rec, err := r.Registrar.Get(s.admin, s.record("ark:12345/court").ID)
	s.ok(err)
	if !rec.Redacted || len(rec.Targets) != 0 || rec.Tombstone == nil {
		s.t.Errorf("a record that was redacted came back: %+v", rec)
	}
	list, err := r.Store.Generations(s.admin)
	s.ok(err)
	last := list.Last()
	if len(list) != 2 || last.Number != 2 || last.Replaced != s.before || last.Restored.Generation != s.before.Generation || last.Restored.Change >= s.before.Change {
		s.t.Errorf("the generations are %+v; the registry was at %v", list, s.before)
	}
	if err := list.Judge("the version token", s.before); !errors.Is(err, stele.ErrRestored) {
		s.t.Errorf("a version token from before: %v", err)
	}
	for _, key := range []string{"first", "since"} {
		if _, err := r.Registrar.MintBatch(s.admin, &minting.IdempotencyKey{Key: key}, []stele.NamespaceKey{storyKey}, 3, nil); !errors.Is(err, stele.ErrRestored) {
			s.t.Errorf("the idempotency key %q from before: %v", key, err)
		}
	}
	hosts, err := r.Store.Cell(s.admin, "hosts purl")
	s.ok(err)
	if !strings.Contains(string(hosts), `"purl.since.example"`) {
		s.t.Errorf("a PURL host that was added since the backup is lost: %s", hosts)
	}
	s.checkZone(r)
	status, err := r.Registrar.MinterStatus(s.admin, storyKey)
	s.ok(err)
	if !status.Shut || status.Given < 6 {
		s.t.Errorf("the minter is at %+v; 6 names were given", status)
	}
	s.ok(r.Registrar.SkipCounter(s.admin, storyKey, status.Given))
	s.mint(r, "again")
	if err := r.Inspect(s.admin, registry.Inspection{Problem: func(problem *stele.Message) { s.t.Error(problem) }}); err != nil {
		s.t.Error(err)
	}
}

// checkZone makes sure that the zone is above what its secondary has, and open.
func (s *story) checkZone(r *registry.Registry) {
	s.t.Helper()
	z, err := r.Store.ZoneState(s.admin, storyZone)
	s.ok(err)
	if z.Serial() != secondarySerial+1 || z.Shut {
		s.t.Errorf("the secondary has serial %d, and the zone %d; shut: %v", secondarySerial, z.Serial(), z.Shut)
	}
}

// checkUnknown makes sure that a restore without a present registry assumes nothing.
func (s *story) checkUnknown(r *registry.Registry, said string, accepted bool) {
	s.t.Helper()
	s.checkZone(r)
	_, err := r.Directory.Authenticate(s.admin, s.credential)
	for _, part := range []string{storyZone + " the secondary " + s.secondary.at + " has serial 5000, and takes the whole zone", storyZone + " has serial 5001 now", "tokens that were revoked", "users who were disabled", "roles that were taken away", "signing keys that were revoked", "records that were redacted"} {
		if !strings.Contains(said, part) {
			s.t.Errorf("%q is not said: %s", part, said)
		}
	}
	if accepted {
		if err != nil || strings.Contains(said, "are shut") {
			s.t.Errorf("a token, though they are accepted: %v; %s", err, said)
		}
		return
	}
	if code, _ := stele.CodeOf(err); stele.KindOf(err) != stele.Unauthenticated || code != "token.shut" || !strings.Contains(said, "all tokens are shut") {
		s.t.Errorf("a token of which it is unknown whether it was revoked: %v; %s", err, said)
	}
	c, err := auth.ParseCredential(s.credential)
	s.ok(err)
	for range 2 {
		_, err = r.Registrar.OpenToken(s.admin, c.ID())
		s.ok(err)
	}
	if _, err := r.Directory.Authenticate(s.admin, s.credential); err != nil {
		s.t.Errorf("a token that was opened: %v", err)
	}
	if _, err := r.Directory.Authenticate(s.admin, s.revoked); err == nil {
		s.t.Error("a token that was not opened is good")
	}
	fresh, _, err := r.Registrar.CreateToken(s.admin, auth.TokenRequest{User: "root"})
	s.ok(err)
	if _, err := r.Directory.Authenticate(s.admin, fresh); err != nil {
		s.t.Errorf("a new token: %v", err)
	}
}

// write makes the registry at a place, with a backup of its first half.
func (s *story) write(at registry.Place) (backup string) {
	s.t.Helper()
	backup = filepath.Join(s.t.TempDir(), "backup")
	s.in(at, s.begin)
	s.in(at, func(r *registry.Registry) { s.ok(r.Store.Backup(s.admin, backup)) })
	s.in(at, s.goOn)
	return backup
}

// TestRestoreRuleFolder: what was decided since the backup survives a restore of a folder.
func TestRestoreRuleFolder(t *testing.T) {
	s := newStory(t)
	data := filepath.Join(t.TempDir(), "registry")
	backup := s.write(registry.Place{Folder: data})
	if said := runStele(t, "restore", backup, "--data", data, "--notify-allow", "127.0.0.1"); strings.Contains(said, "nothing is known") {
		t.Errorf("it says %s", said)
	}
	s.in(registry.Place{Folder: data}, s.check)
	for name, accept := range map[string]bool{"new": false, "accepted": true} {
		fresh := filepath.Join(t.TempDir(), name)
		args := []string{"restore", backup, "--data", fresh, "--notify-allow", "127.0.0.1"}
		if accept {
			args = append(args, "--accept-tokens")
		}
		said := runStele(t, args...)
		s.in(registry.Place{Folder: fresh}, func(r *registry.Registry) { s.checkUnknown(r, said, accept) })
	}
}

// TestRestoreRuleServer: the same while a server goes on.
func TestRestoreRuleServer(t *testing.T) {
	s := newStory(t)
	data := filepath.Join(t.TempDir(), "registry")
	backup := s.write(registry.Place{Folder: data})
	p := startServe(t, "--data", data, "--http", "127.0.0.1:0", "--api-rate", "0", "--notify-allow", "127.0.0.1")
	token := filepath.Join(t.TempDir(), "token")
	s.ok(os.WriteFile(token, []byte(s.credential), 0o600))
	said := runStele(t, "restore", backup, "--server", p.http, "--confirm", "registry", "--token-file", token)
	if !strings.Contains(said, storyZone+" the secondary "+s.secondary.at+" has serial 5000, and takes the whole zone\n"+storyZone+" has serial 5001 now\n") {
		t.Errorf("it says %s", said)
	}
	if code := p.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d\n%s", code, p.stderr)
	}
	s.in(registry.Place{Folder: data}, s.check)
}

// TestRestoreRuleDatabase: the same into another database, where the one that it replaces
// is named, and is sealed; and where it is not.
func TestRestoreRuleDatabase(t *testing.T) {
	server := postgrestest.Start(t, postgrestest.Options{NoSync: true})
	database := func() registry.Place {
		url := server.Database(t)
		if err := postgres.Migrate(t.Context(), url, postgres.Options{Now: time.Now}, nil); err != nil {
			t.Fatal(err)
		}
		return registry.Place{URL: url}
	}
	s, present, next := newStory(t), database(), database()
	backup := s.write(present)
	if said := runStele(t, "restore", backup, "--store", next.URL, "--present", present.URL, "--notify-allow", "127.0.0.1"); strings.Contains(said, "nothing is known") {
		t.Errorf("it says %s", said)
	}
	s.in(next, s.check)
	s.in(present, func(r *registry.Registry) {
		if err := r.Store.Ready(s.admin); !errors.Is(err, stele.ErrSealed) {
			t.Errorf("the database that was replaced takes writes: %v", err)
		}
	})
	for _, accept := range []bool{false, true} {
		fresh := database()
		args := []string{"restore", backup, "--store", fresh.URL, "--notify-allow", "127.0.0.1"}
		if accept {
			args = append(args, "--accept-tokens")
		}
		said := runStele(t, args...)
		s.in(fresh, func(r *registry.Registry) { s.checkUnknown(r, said, accept) })
	}
}
