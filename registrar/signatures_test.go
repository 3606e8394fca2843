package registrar

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/proof"
)

// signer makes a key, and adds its public part to a namespace.
func (f *fixture) signer(prefix string) (crypto.Signer, stele.SigningKey) {
	f.t.Helper()
	key, err := proof.Generate(stele.KeyED25519, rand.Reader)
	if err != nil {
		f.t.Fatal(err)
	}
	k, err := proof.PublicKey(key, f.clock())
	if err != nil {
		f.t.Fatal(err)
	}
	f.setKeys(prefix, func(keys []stele.SigningKey) []stele.SigningKey { return append(keys, k) })
	return key, k
}

func (f *fixture) setKeys(prefix string, change func([]stele.SigningKey) []stele.SigningKey) {
	f.t.Helper()
	if err := f.tryKeys(f.admin, prefix, change); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) tryKeys(ctx context.Context, prefix string, change func([]stele.SigningKey) []stele.SigningKey) error {
	_, err := f.SetNamespace(ctx, f.key(prefix), 0, func(ns *stele.Namespace) error {
		ns.Keys = change(ns.Keys)
		return nil
	})
	return err
}

// signed returns a signature of some bytes for a name.
func (f *fixture) signed(key crypto.Signer, name, content string) stele.Signature {
	f.t.Helper()
	s, err := proof.Sign(key, f.id(name), stele.Signature{SHA256: sha256.Sum256([]byte(content)), Size: uint64(len(content)), Date: f.clock()})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// addSignature registers a signature.
func (f *fixture) addSignature(ctx context.Context, name string, s stele.Signature) (*stele.Record, error) {
	return f.Update(ctx, f.id(name), 0, func(r *stele.Record) error {
		r.Signatures = append(r.Signatures, s)
		return nil
	})
}

func TestSignatures(t *testing.T) {
	f := newFixture(t)
	f.space("urn:example", owner("user:ana"))
	f.space("urn:example:sub", owner("user:bea"))
	f.space("urn:other")
	f.registered("urn:example:sub:a")
	key, k := f.signer("urn:example")
	stranger, _ := f.signer("urn:other")
	const name = "urn:example:sub:a"

	// The key of the namespace above signs, and an editor registers the signature.
	bea := as("user:bea")
	rec, err := f.addSignature(bea, name, f.signed(key, name, "hello"))
	if err != nil || len(rec.Signatures) != 1 || rec.Version != 2 {
		t.Fatalf("%v, %v", rec, err)
	}
	forged := f.signed(key, name, "forged")
	forged.SHA256[0] ^= 1
	for what, s := range map[string]stele.Signature{
		"of another namespace's key": f.signed(stranger, name, "x"),
		"for another name":           f.signed(key, "urn:example:sub:b", "x"),
		"of another digest":          forged,
	} {
		if _, err := f.addSignature(bea, name, s); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), "signatures[1]: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := f.addSignature(as("user:eve"), name, f.signed(key, name, "x")); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("somebody else: %v", err)
	}
	// A change of targets leaves it; the history tells when it came.
	rec, err = f.Update(bea, f.id(name), 0, func(r *stele.Record) error {
		r.Targets[0].URL = "https://example.org/elsewhere"
		return nil
	})
	if err != nil || len(rec.Signatures) != 1 {
		t.Fatalf("%v, %v", rec, err)
	}
	var had []int
	for v, err := range f.History(bea, f.id(name)) {
		if err != nil {
			t.Fatal(err)
		}
		had = append(had, len(v.Signatures))
	}
	if !slices.Equal(had, []int{1, 1, 0}) {
		t.Errorf("signatures in the history: %v", had)
	}
	if got, err := proof.Verify([]stele.SigningKey{k}, rec.ID, rec.Signatures[0], f.clock()); err != nil || got.ID != k.ID {
		t.Errorf("%v, %v", got, err)
	}
	// A new record may bring one.
	fresh := f.record("urn:example:c", "https://example.org/c")
	fresh.Signatures = []stele.Signature{f.signed(key, "urn:example:c", "c")}
	if _, err := f.Register(f.admin, fresh); err != nil {
		t.Error(err)
	}
	f.audited()
}

// audited fails if an audit finds anything.
func (f *fixture) audited() {
	f.t.Helper()
	if err := f.Verify(f.admin, func(problem *stele.Message) { f.t.Error(problem) }); err != nil {
		f.t.Fatal(err)
	}
}

// A key that signs no more signs nothing, even if the date says otherwise; what it
// signed before stays.
func TestRetiredKeys(t *testing.T) {
	const name = "urn:example:a"
	for what, tt := range map[string]struct {
		end  func(k *stele.SigningKey, now time.Time)
		want string
	}{
		"retired":     {func(k *stele.SigningKey, now time.Time) { k.Expires = now }, "expired"},
		"revoked":     {func(k *stele.SigningKey, now time.Time) { k.Revoked = now }, "revoked"},
		"to retire":   {func(k *stele.SigningKey, now time.Time) { k.Expires = now.Add(time.Minute) }, "expired"},
		"not yet one": {func(*stele.SigningKey, time.Time) {}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t)
			f.space("urn:example")
			f.registered(name)
			key, _ := f.signer("urn:example")
			early := f.signed(key, name, "early")
			f.jump(time.Hour)
			if _, err := f.addSignature(f.admin, name, f.signed(key, name, "hello")); err != nil {
				t.Fatal(err)
			}
			f.setKeys("urn:example", func(keys []stele.SigningKey) []stele.SigningKey {
				tt.end(&keys[0], f.clock().UTC().Truncate(time.Second))
				return keys
			})
			f.jump(time.Hour)
			_, err := f.addSignature(f.admin, name, early)
			if tt.want == "" && err != nil || tt.want != "" && (stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("dated back: %v", err)
			}
			if tt.want == "" {
				return
			}
			rec, err := f.Update(f.admin, f.id(name), 0, func(r *stele.Record) error {
				r.Metadata = stele.Metadata{stele.What: "changed"}
				return nil
			})
			if err != nil || len(rec.Signatures) != 1 {
				t.Errorf("what was signed before: %v, %v", rec, err)
			}
			f.audited()
			// Another registry takes over both as they are.
			other := newFixture(t)
			ns, err := f.Namespace(f.admin, f.key("urn:example"))
			if err != nil {
				t.Fatal(err)
			}
			if err := other.IngestNamespace(other.admin, ns, ImportOptions{}); err != nil {
				t.Fatal(err)
			}
			if errs, err := other.Ingest(other.admin, []*stele.Record{clone(rec)}, ImportOptions{Keep: true}); err != nil || errs[0] != nil {
				t.Errorf("taken over: %v, %v", errs, err)
			}
			other.audited()
			rec.ID, rec.Version = f.id("urn:example:b"), 0
			if errs, err := other.Ingest(other.admin, []*stele.Record{clone(rec)}, ImportOptions{Keep: true}); err != nil || stele.KindOf(errs[0]) != stele.Invalid {
				t.Errorf("taken over under another name: %v, %v", errs, err)
			}
		})
	}
}

func TestKeysStay(t *testing.T) {
	f := newFixture(t)
	f.space("urn:example", owner("user:ana"), func(ns *stele.Namespace) {
		ns.Grants = []stele.Grant{{To: "user:ed", Role: stele.RoleEditor}}
	})
	_, first := f.signer("urn:example")
	_, second := f.signer("urn:example")
	now := f.clock().UTC().Truncate(time.Second)
	ana := as("user:ana")
	if err := f.tryKeys(ana, "urn:example", func(keys []stele.SigningKey) []stele.SigningKey {
		keys[0].Expires, keys[1].Revoked, keys[0].Note = now, now, "old"
		return keys
	}); err != nil {
		t.Fatal(err)
	}
	f.jump(time.Minute)
	for what, tt := range map[string]struct {
		change func(keys []stele.SigningKey) []stele.SigningKey
		want   string
	}{
		"removed":       {func(keys []stele.SigningKey) []stele.SigningKey { return keys[1:] }, first.ID + " is missing"},
		"comes back":    {func(keys []stele.SigningKey) []stele.SigningKey { keys[0].Expires = time.Time{}; return keys }, "does not come back"},
		"goes on":       {func(keys []stele.SigningKey) []stele.SigningKey { keys[0].Expires = now.Add(time.Hour); return keys }, "does not come back"},
		"is good again": {func(keys []stele.SigningKey) []stele.SigningKey { keys[1].Revoked = time.Time{}; return keys }, "stays so"},
		"revoked later": {func(keys []stele.SigningKey) []stele.SigningKey {
			keys[1].Revoked = keys[1].Revoked.Add(time.Second)
			return keys
		}, "stays so"},
		"some day":         {func(keys []stele.SigningKey) []stele.SigningKey { keys[0].Revoked = now.Add(time.Hour); return keys }, "in the future"},
		"is older now":     {func(keys []stele.SigningKey) []stele.SigningKey { keys[0].Created = now.Add(-time.Hour); return keys }, "never change"},
		"has other bytes":  {func(keys []stele.SigningKey) []stele.SigningKey { keys[0].Public = second.Public; return keys }, "thumbprint"},
		"of another kind":  {func(keys []stele.SigningKey) []stele.SigningKey { keys[0].Algorithm = stele.KeyRSA; return keys }, "is of"},
		"no key":           {func(keys []stele.SigningKey) []stele.SigningKey { keys[0].Public = []byte("secret"); return keys }, "not a public key"},
		"ends still later": {func(keys []stele.SigningKey) []stele.SigningKey { keys[0].Expires = now.Add(time.Second); return keys }, "does not come back"},
	} {
		err := f.tryKeys(ana, "urn:example", tt.change)
		if stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("a key that %s: %v", what, err)
		}
	}
	if err := f.tryKeys(as("ed"), "urn:example", func(keys []stele.SigningKey) []stele.SigningKey {
		keys[0].Note = "mine"
		return keys
	}); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("an editor: %v", err)
	}
	// An import that knows nothing of them removes none.
	ns, err := f.Namespace(f.admin, f.key("urn:example"))
	if err != nil {
		t.Fatal(err)
	}
	ns.Keys, ns.Title = nil, "changed"
	if err := f.IngestNamespace(f.admin, ns, ImportOptions{Update: true}); err != nil {
		t.Fatal(err)
	}
	if ns, err = f.Namespace(f.admin, f.key("urn:example")); err != nil || len(ns.Keys) != 2 || ns.Title != "changed" {
		t.Errorf("%+v, %v", ns, err)
	}
	f.audited()
}

func TestImportKeepsSignatures(t *testing.T) {
	f := newFixture(t)
	f.space("urn:example")
	f.registered("urn:example:a")
	key, _ := f.signer("urn:example")
	if _, err := f.addSignature(f.admin, "urn:example:a", f.signed(key, "urn:example:a", "hello")); err != nil {
		t.Fatal(err)
	}
	errs, err := f.Ingest(f.admin, []*stele.Record{f.record("urn:example:a", "https://example.org/2")}, ImportOptions{Update: true})
	if err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	rec, err := f.Get(f.admin, f.id("urn:example:a"))
	if err != nil || len(rec.Signatures) != 1 || rec.Targets[0].URL != "https://example.org/2" {
		t.Errorf("%+v, %v", rec, err)
	}
	// A retired key's signature comes in only where all is taken over.
	early := f.record("urn:example:b", "https://example.org/b")
	early.Signatures = []stele.Signature{f.signed(key, "urn:example:b", "b")}
	f.setKeys("urn:example", func(keys []stele.SigningKey) []stele.SigningKey {
		keys[0].Expires = f.clock().UTC().Truncate(time.Second).Add(time.Second)
		return keys
	})
	f.jump(time.Minute)
	if errs, err := f.Ingest(f.admin, []*stele.Record{clone(early)}, ImportOptions{}); err != nil || stele.KindOf(errs[0]) != stele.Invalid {
		t.Errorf("%v, %v", errs, err)
	}
	if errs, err := f.Ingest(f.admin, []*stele.Record{clone(early)}, ImportOptions{Keep: true}); err != nil || errs[0] != nil {
		t.Errorf("%v, %v", errs, err)
	}
}

func TestRedactSignatures(t *testing.T) {
	f := newFixture(t)
	f.space("urn:example")
	f.registered("urn:example:a")
	key, _ := f.signer("urn:example")
	if _, err := f.addSignature(f.admin, "urn:example:a", f.signed(key, "urn:example:a", "hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Redact(f.admin, f.id("urn:example:a"), 0, "order"); err != nil {
		t.Fatal(err)
	}
	for v, err := range f.History(f.admin, f.id("urn:example:a")) {
		if err != nil || len(v.Signatures) > 0 {
			t.Errorf("%+v, %v", v, err)
		}
	}
	f.audited()
}

// Verify reports signatures that no key made: another program wrote into the store.
func TestVerifySignatures(t *testing.T) {
	f := newFixture(t)
	f.space("urn:example")
	rec := f.registered("urn:example:a")
	key, _ := f.signer("urn:example")
	s := f.signed(key, "urn:example:a", "hello")
	s.SHA256[0] ^= 1
	rec.Signatures, rec.Version = []stele.Signature{s}, 2
	if err := f.store.Apply(context.Background(), &stele.Commit{Records: []*stele.Record{rec}}); err != nil {
		t.Fatal(err)
	}
	var told []string
	if err := f.Verify(f.admin, func(problem *stele.Message) { told = append(told, problem.Error()) }); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "signature of the record urn:example:a") {
		t.Errorf("%q", told)
	}
}
