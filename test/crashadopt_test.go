package test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/pebble"
)

// TestAdoptCrash kills the real program while it adopts a bundle, again and again, and lets it go on each time. Before the end no name
// is minted; in the end the heir has what the giver has, and goes on with names that the giver has not given.
func TestAdoptCrash(t *testing.T) {
	const records, mostKills = 60_000, 8
	folder := t.TempDir()
	program := stele(t)
	giver, heir := filepath.Join(folder, "giver"), filepath.Join(folder, "heir")
	run := func(args ...string) string {
		t.Helper()
		out, err := runIn(folder, program, args...)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	file := filepath.Join(folder, "records.jsonl")
	writeImport(t, file, records)
	run("--data", giver, "ns", "add", "ark:12345", "--minter", "noid", "--template", "m5.reedeedk")
	_, _ = runIn(folder, program, "--data", giver, "import", file) // it fails for the bad lines
	for range 3 {
		run("--data", giver, "update", "ark:12345/x0000001", "--title", strconv.Itoa(rand.Int()))
	}
	run("--data", giver, "redact", "ark:12345/x0000002", "--reason", "A court said so.")
	minted := run("--data", giver, "mint", "ark", "--naan", "12345", "-n", "50")
	run("--data", heir, "ns", "add", "urn:heir")
	run("--data", heir, "log", "key", "--origin", "heir.example.org/.log")
	key := strings.TrimSpace(run("--data", giver, "log", "key", "--origin", "giver.example.org/.log"))
	sealFor(t, giver, "heir.example.org/.log", "ark:12345")
	bundle := filepath.Join(folder, "bundle.tar")
	run("--data", giver, "bundle", "ark:12345", "-o", bundle)

	kills, done := 0, false
	for !done {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, program, "--data", heir, "adopt", bundle, "--key", key, "--yes", "--giver", "http://127.0.0.1:1", "--i-know")
		var failure bytes.Buffer
		cmd.Stderr, cmd.Env, cmd.Dir = &failure, environ(), folder
		if kills < mostKills { // the last one may end
			time.AfterFunc(time.Duration(300+rand.IntN(3000))*time.Millisecond, cancel)
		}
		err := cmd.Run()
		cancel()
		switch code := cmd.ProcessState.ExitCode(); {
		case err == nil:
			done = true
		case code == -1:
			kills++
			if out, err := runIn(folder, program, "--data", heir, "mint", "ark", "--naan", "12345"); err == nil && !strings.Contains(run("--data", heir, "adopt", bundle, "--yes", "--giver", "http://127.0.0.1:1", "--i-know"), "taken over") {
				t.Fatalf("%s is minted by a registry that has not adopted all", out)
			}
		default:
			t.Fatalf("exit %d: %s", code, failure.String())
		}
	}
	t.Logf("%d kills", kills)
	for _, what := range [][]string{{"export", "ark:12345"}, {"history", "ark:12345/x0000001"}, {"history", "ark:12345/x0000002"}} {
		got, want := run(append([]string{"--data", heir}, what...)...), run(append([]string{"--data", giver}, what...)...)
		if got = strings.ReplaceAll(got, " (import 1)", ""); strings.ReplaceAll(want, " (import 1)", "") != got {
			t.Errorf("%s: the heir has %d bytes, and the giver %d", what, len(got), len(want))
		}
	}
	for name := range strings.Lines(run("--data", heir, "mint", "ark", "--naan", "12345", "-n", "50")) {
		if strings.Contains(minted, name) {
			t.Errorf("%s was given before", name)
		}
	}
	if _, err := runIn(folder, program, "--data", giver, "mint", "ark", "--naan", "12345"); err == nil {
		t.Error("the giver still mints")
	}
	run("--data", heir, "verify")
}

// sealFor seals a namespace of a registry in a folder for an heir.
func sealFor(t *testing.T, folder, heir, prefix string) {
	t.Helper()
	store, err := pebble.Open(t.Context(), folder, pebble.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	r, ctx := registrar.New(store, schemes, registrar.Options{Now: time.Now}), auth.With(t.Context(), auth.Local())
	key := vocabulary.NamespaceKey{Scheme: strings.Split(prefix, ":")[0], Prefix: prefix}
	if _, err := r.OfferNamespace(ctx, key, heir, "https://heir.example.org/"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.SealNamespace(ctx, key); err != nil {
		t.Fatal(err)
	}
}
