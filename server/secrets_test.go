package server

import (
	mathrand "math/rand/v2"

	"github.com/stele-id/stele/secret"

	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/publish/zonekey"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
)

// oldSecrets writes a zone key and a TSIG key to a store as programs did before secrets
// were encrypted, and returns the bytes that must not be found any more.
func oldSecrets(t *testing.T, store stele.Store) [][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	scalar, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	shared := make([]byte, 32)
	_, _ = rand.Read(shared)
	b64 := base64.StdEncoding.EncodeToString
	zone := fmt.Sprintf(`{"role":"csk","algorithm":13,"public":%q,"private":%q,"published":"2026-01-01T00:00:00Z","active":"2026-01-01T00:00:00Z"}`, b64(point[1:]), b64(private))
	tsig := fmt.Sprintf(`{"algorithm":"hmac-sha256","secret":%q,"created":"2026-01-01T00:00:00Z"}`, b64(shared))
	if !json.Valid([]byte(zone)) || !json.Valid([]byte(tsig)) {
		t.Fatal("the cells are no JSON")
	}
	err = store.Apply(t.Context(), &stele.Commit{Cells: []stele.CellChange{
		{Name: "zonekey paradisec.example. 01234", After: []byte(zone)},
		{Name: "zonekey paradisec.example. signed", After: []byte(`"2026-01-01T00:00:00Z"`)},
		{Name: "tsig one.example.org.", After: []byte(tsig)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{scalar, shared, []byte(b64(private)), []byte(b64(shared))}
}

// inFiles counts the files below a folder that have one of the secrets.
func inFiles(t *testing.T, folder string, secrets [][]byte) (found int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, s := range secrets {
			if bytes.Contains(data, s) {
				found++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// opened returns a server with its registry in a folder, and a log.
func opened(t *testing.T, data string) (*server, *registry.Registry, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	ring := secret.NewRing(&secret.File{Path: data + ".key", Optional: true, Random: rand.Reader, OnMake: func(k secret.Key, path string) {
		fmt.Fprintf(&log, "made the secret key %s in %s\n", k.ID(), path)
	}})
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{log: slog.New(slog.NewTextHandler(&log, nil)), o: Options{Place: registry.Place{Folder: data}, MakeSecretKey: true}}
	r, err := registry.Open(t.Context(), s.o.Place, schemes, registry.OpenOptions{Options: registry.Options{Now: time.Now, Random: mathrand.IntN, Log: slog.New(slog.DiscardHandler), Secrets: ring}})
	if err != nil {
		t.Fatal(err)
	}
	return s, r, &log
}

// Secrets that an older program wrote in clear are encrypted when a server starts, and
// gone from all files.
func TestOldSecretsAreEncrypted(t *testing.T) {
	data := filepath.Join(t.TempDir(), "registry")
	store, err := pebble.Open(t.Context(), data, pebble.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	secrets := oldSecrets(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if inFiles(t, data, secrets) == 0 {
		t.Fatal("the old secrets are in no file; the search is broken")
	}
	s, r, log := opened(t, data)
	s.readySecrets(t.Context(), r)
	for _, want := range []string{"made the secret key", data + ".key", "stored in clear are encrypted now", "secrets=2"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
	if n := inFiles(t, data, secrets); n > 0 {
		t.Errorf("%d files have a secret in clear, while the store is open", n)
	}
	if err := r.Store.Backup(t.Context(), data+"-backup"); err != nil {
		t.Fatal(err)
	}
	log.Reset()
	s.readySecrets(t.Context(), r)
	if log.Len() > 0 {
		t.Errorf("the second time: %s", log)
	}
	checkOldSecrets(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{data, data + "-backup"} {
		if n := inFiles(t, folder, secrets); n > 0 {
			t.Errorf("%d files of %s have a secret in clear", n, folder)
		}
	}
}

// checkOldSecrets makes sure that the secrets are there, encrypted under one key that is at
// hand.
func checkOldSecrets(t *testing.T, r *registry.Registry) {
	t.Helper()
	ctx := auth.With(context.Background(), auth.Local())
	keys, err := r.Registrar.SecretKeys(ctx, zonekey.SealCell)
	if err != nil || len(keys) != 1 || !keys[0].Current || !keys[0].Present || keys[0].Secrets != 2 {
		t.Errorf("%+v, %v", keys, err)
	}
	list, err := (&zonekey.TSIGManager{Store: r.Registrar}).List(ctx)
	if err != nil || len(list) != 1 || list[0].Name != "one.example.org." {
		t.Errorf("%+v, %v", list, err)
	}
}

// Without its key file a server starts, makes no other key, and says which one is missing.
func TestMissingSecretKey(t *testing.T) {
	data := filepath.Join(t.TempDir(), "registry")
	store, err := pebble.Open(t.Context(), data, pebble.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	oldSecrets(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	s, r, _ := opened(t, data)
	s.readySecrets(t.Context(), r)
	keys, err := r.Secrets.Keys()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(data+".key", data+".key.away"); err != nil {
		t.Fatal(err)
	}
	s, r, log := opened(t, data)
	s.readySecrets(t.Context(), r)
	for _, want := range []string{"a secret key is missing", "key=" + keys[0].ID(), "secrets=2", data + ".key"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
	if _, err := os.Stat(data + ".key"); err == nil {
		t.Error("another key was made")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// A server warns of a data folder that other users may reach, and says what to do.
func TestWideFolderIsToldOf(t *testing.T) {
	for mode, told := range map[os.FileMode]bool{0o700: false, 0o750: true, 0o755: true} {
		data := filepath.Join(t.TempDir(), "registry")
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(data, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		s := &server{o: Options{Place: registry.Place{Folder: data}}, log: slog.New(slog.NewTextHandler(&log, nil))}
		s.warnWide()
		if strings.Contains(log.String(), "chmod 700 "+data) != told {
			t.Errorf("mode %04o: %q", mode, &log)
		}
	}
}
