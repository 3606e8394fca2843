package registrar

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/secret"
)

// testCodec is for cells that are a secret and nothing else.
func testCodec(c stele.Cell, seal func(place string, v *secret.Value) (bool, error)) ([]byte, error) {
	var v secret.Value
	if err := json.Unmarshal(c.Value, &v); err != nil {
		return nil, &stele.Error{Op: "read", Kind: stele.Internal, Err: err}
	}
	changed, err := seal(c.Name, &v)
	if err != nil || !changed {
		return nil, err
	}
	return json.Marshal(v)
}

func testKey(t *testing.T) secret.Key { return must(secret.NewKey(rand.Reader))(t) }

func ringOf(keys ...secret.Key) *secret.Ring {
	var text []string
	for _, k := range keys {
		text = append(text, k.Text())
	}
	return secret.NewRing(secret.Text{Keep: strings.Join(text, "\n"), Name: "the test's ring"})
}

// addSecret makes a key of a secondary whose cell is a secret.
func (f *fixture) addSecret(t *testing.T, name, text string) error {
	t.Helper()
	return f.SetTSIGKey(f.admin, name, func([]byte) ([]byte, error) {
		v := secret.NewValue([]byte(text))
		if err := f.SealSecret(f.admin, zonekey.TSIGCellPrefix+name, &v); err != nil {
			return nil, err
		}
		return json.Marshal(v)
	})
}

// readSecrets opens all secrets.
func (f *fixture) readSecrets(t *testing.T, ring *secret.Ring) (texts []string) {
	t.Helper()
	for c, err := range f.store.Cells(f.admin, zonekey.TSIGCellPrefix, "") {
		if err != nil {
			t.Fatal(err)
		}
		var v secret.Value
		if err := json.Unmarshal(c.Value, &v); err != nil {
			t.Fatal(err)
		}
		if err := v.Open(ring, c.Name); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		texts = append(texts, string(v.Clear()))
	}
	return texts
}

func TestNoSecretWithoutKey(t *testing.T) {
	f := newFixture(t)
	err := f.addSecret(t, "a.example.", "hello")
	if !errors.Is(err, stele.Conflict) || !IsKeyless(err) || !strings.Contains(err.Error(), "stele secret keygen") {
		t.Errorf("got %v", err)
	}
}

// All servers of a registry use one key: one with another key says which is missing.
func TestOneKeyForAll(t *testing.T) {
	one, two := testKey(t), testKey(t)
	f := newFixture(t, func(o *Options) { o.Secrets = ringOf(one) })
	if err := f.addSecret(t, "a.example.", "hello"); err != nil {
		t.Fatal(err)
	}
	other := &fixture{Registrar: New(f.store, f.schemes, Options{Now: f.o.Now, Secrets: ringOf(two)}), admin: f.admin, store: f.store}
	err := other.addSecret(t, "b.example.", "hello")
	if !errors.Is(err, stele.Conflict) || !strings.Contains(err.Error(), one.ID()) || !strings.Contains(err.Error(), "the test's ring") {
		t.Errorf("got %v", err)
	}
	keys := must(other.SecretKeys(f.admin, testCodec))(t)
	want := map[string]SecretKey{one.ID(): {one.ID(), true, false, 1}, two.ID(): {two.ID(), false, true, 0}}
	if len(keys) != 2 || keys[0] != want[keys[0].ID] || keys[1] != want[keys[1].ID] {
		t.Errorf("got %+v", keys)
	}
	for who, kind := range map[string]stele.Kind{"": stele.Unauthenticated, "ann": stele.Forbidden} {
		if _, err := f.SecretKeys(as(who), testCodec); !errors.Is(err, kind) {
			t.Errorf("%q: %v", who, err)
		}
		if _, err := f.RotateSecrets(as(who), "", false, testCodec); !errors.Is(err, kind) {
			t.Errorf("%q: %v", who, err)
		}
		if _, err := f.EncryptSecrets(as(who), testCodec); !errors.Is(err, kind) {
			t.Errorf("%q: %v", who, err)
		}
	}
}

// A rotation moves all secrets, also those that are made while it runs, and continues
// where it was interrupted.
func TestRotateSecrets(t *testing.T) {
	one, two := testKey(t), testKey(t)
	f := newFixture(t, func(o *Options) { o.Secrets = ringOf(one) })
	for i := range 20 {
		if err := f.addSecret(t, fmt.Sprintf("k%d.example.", i), "hello"); err != nil {
			t.Fatal(err)
		}
	}
	f.o.Secrets = ringOf(one, two)
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for n := range 10 {
				if err := f.addSecret(t, fmt.Sprintf("w%d-%d.example.", i, n), "hello"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done, err := f.RotateSecrets(f.admin, "", false, testCodec)
	if err != nil || done.Key != two.ID() || done.Moved < 20 {
		t.Errorf("%+v, %v", done, err)
	}
	writers.Wait()
	if texts := f.readSecrets(t, ringOf(two)); len(texts) != 60 {
		t.Errorf("%d secrets", len(texts))
	}

	// One that was cut off after it changed the current key.
	three := testKey(t)
	f.o.Secrets = ringOf(one, two, three)
	if err := f.useSecretKey(f.admin, "test", three.ID()); err != nil {
		t.Fatal(err)
	}
	done, err = f.RotateSecrets(f.admin, "", false, testCodec)
	if err != nil || done.Key != three.ID() || done.Moved != 60 {
		t.Errorf("%+v, %v", done, err)
	}
	f.readSecrets(t, ringOf(three))

	// A key that is missing stops it, unless it is said to be lost.
	four := testKey(t)
	f.o.Secrets = ringOf(four)
	done, err = f.RotateSecrets(f.admin, "", false, testCodec)
	if !errors.Is(err, stele.Conflict) || !strings.Contains(err.Error(), three.ID()) {
		t.Errorf("%+v, %v", done, err)
	}
	if done, err = f.RotateSecrets(f.admin, "", true, testCodec); err != nil || done.Lost[three.ID()] != 60 || done.Moved != 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if err := f.addSecret(t, "new.example.", "hello"); err != nil {
		t.Error(err)
	}
	f.readSecrets(t, ringOf(three, four))
	if _, err := f.RotateSecrets(f.admin, "", true, testCodec); !errors.Is(err, stele.Conflict) || !strings.Contains(err.Error(), "no other key") {
		t.Errorf("without another key: %v", err)
	}
}

// What an older program wrote in clear is encrypted once.
func TestEncryptSecrets(t *testing.T) {
	f := newFixture(t)
	if done, err := f.EncryptSecrets(f.admin, testCodec); err != nil || done.Clear != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, name := range []string{"a.example.", "b.example."} {
		if err := f.SetTSIGKey(f.admin, name, func([]byte) ([]byte, error) { return []byte(`"aGVsbG8="`), nil }); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := f.EncryptSecrets(f.admin, testCodec); !IsKeyless(err) || done.Clear != 0 {
		t.Errorf("without a key: %+v, %v", done, err)
	}
	key := testKey(t)
	f.o.Secrets = ringOf(key)
	if done, err := f.EncryptSecrets(f.admin, testCodec); err != nil || done.Clear != 2 || done.Key != key.ID() {
		t.Errorf("%+v, %v", done, err)
	}
	if texts := f.readSecrets(t, ringOf(key)); len(texts) != 2 || texts[0] != "hello" {
		t.Errorf("%q", texts)
	}
	if done, err := f.EncryptSecrets(f.admin, testCodec); err != nil || done.Clear != 0 {
		t.Errorf("again: %+v, %v", done, err)
	}
}
