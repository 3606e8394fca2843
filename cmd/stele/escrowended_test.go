package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/scheme/all"
)

// journey runs verbs of the program in this process, at any time.
type journey struct {
	*testing.T
	now time.Time
}

// run runs a verb, and returns what it printed and its exit code.
func (j *journey) run(args ...string) (string, int) {
	j.Helper()
	var out bytes.Buffer
	clock := func() time.Time {
		j.now = j.now.Add(time.Millisecond)
		return j.now
	}
	p := &program{stdin: strings.NewReader(""), stdout: &out, stderr: &out, now: clock, config: all.Config{Now: clock}}
	code := p.run(context.Background(), args)
	return out.String(), code
}

// must runs a verb that succeeds.
func (j *journey) must(args ...string) string {
	j.Helper()
	out, code := j.run(args...)
	if code != 0 {
		j.Fatalf("stele %s: %s", strings.Join(args, " "), out)
	}
	return out
}

// refused runs a verb that is refused, and says why.
func (j *journey) refused(want string, args ...string) {
	j.Helper()
	if out, code := j.run(args...); code == 0 || !strings.Contains(out, want) {
		j.Fatalf("stele %s: exit %d, %s; want %s", strings.Join(args, " "), code, out, want)
	}
}

// silent makes a registry in a folder have counted so many silent days of one that it watches, and saw before them.
func (j *journey) silent(data, origin string, days int) {
	j.Helper()
	p := &program{stderr: io.Discard, now: func() time.Time { return j.now }, data: data}
	schemes, err := all.New(all.Config{Now: p.now})
	if err != nil {
		j.Fatal(err)
	}
	r, err := p.openRegistry(j.Context(), schemes, slog.New(slog.DiscardHandler), resolver.Options{})
	if err != nil {
		j.Fatal(err)
	}
	err = r.Registrar.NoteWatch(auth.With(j.Context(), auth.Local()), origin, func(w *registrar.WatchedGiver) (*registrar.WatchedGiver, error) {
		next := *w
		next.Silent, next.Seen = days, j.now.AddDate(0, 0, -days)
		return &next, nil
	})
	if err := errors.Join(err, r.Close()); err != nil {
		j.Fatal(err)
	}
}

// TestEscrowEnded: an heir takes over after silence, says that the giver has ended, and makes no name that the giver made after its last bundle.
func TestEscrowEnded(t *testing.T) {
	plainEnvironment(t)
	j := &journey{T: t, now: time.Date(2031, 5, 2, 10, 0, 0, 0, time.UTC)}
	folder := t.TempDir()
	giver, heir, key, file := filepath.Join(folder, "giver"), filepath.Join(folder, "heir"), filepath.Join(folder, "giver.txt"), filepath.Join(folder, "ark.tar")
	j.must("ns", "add", "ark:12345", "--minter", "noid", "--template", ".rdd", "--data", giver)
	j.must("escrow", "heir", "add", "ark:12345", "--to", "heir.example.org/.log", "--address", "https://heir.example.org/", "--after", "30d", "--data", giver)
	out := j.must("log", "key", "--origin", "giver.example.org/.log", "--data", giver)
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "giver.example.org/.log+") {
			if err := os.WriteFile(key, []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	j.must("mint", "ark", "--naan", "12345", "--data", giver)
	j.must("bundle", "ark:12345", "-o", file, "--data", giver)
	late := strings.TrimSpace(j.must("mint", "ark", "--naan", "12345", "--data", giver)) // no log has it

	j.must("ns", "add", "urn:heir", "--data", heir)
	j.must("log", "key", "--origin", "heir.example.org/.log", "--data", heir)
	j.must("escrow", "watch", "add", "giver.example.org/.log", "--url", "http://127.0.0.1:1", "--key", key, "--data", heir)
	// Another registry answers, so that the fault is not on the side of the heir.
	other := filepath.Join(folder, "other.txt")
	j.must("ns", "add", "urn:other", "--data", filepath.Join(folder, "other"))
	out = j.must("log", "key", "--origin", "other.example.org/.log", "--data", filepath.Join(folder, "other"))
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "other.example.org/.log+") {
			if err := os.WriteFile(other, []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	j.must("escrow", "watch", "add", "other.example.org/.log", "--url", "http://127.0.0.1:1", "--key", other, "--data", heir)
	j.now = j.now.Add(31 * 24 * time.Hour)
	j.silent(heir, "giver.example.org/.log", 30)
	j.silent(heir, "other.example.org/.log", 0)
	j.must("adopt", file, "--key", key, "--silent", "--yes", "--allow", "127.0.0.0/8", "--data", heir)
	j.refused("fell silent", "mint", "ark", "--naan", "12345", "--data", heir)
	j.refused("--i-know", "escrow", "ended", "ark:12345", "--data", heir)
	j.refused("can't be known whether", "escrow", "ended", "ark:12345", "--i-know", "--data", heir) // the address is not allowed
	out = j.must("escrow", "ended", "ark:12345", "--i-know", "--allow", "127.0.0.0/8", "--data", heir)
	if !strings.Contains(out, "ark:12345 is minted and changed here from now on; giver.example.org/.log has ended\nnext:\n  stele ns skip ark:12345 +N ") {
		t.Error(out)
	}
	j.refused("skip it ahead first", "mint", "ark", "--naan", "12345", "--data", heir)
	j.must("ns", "skip", "ark:12345", "+10", "--data", heir)
	if made := j.must("mint", "ark", "--naan", "12345", "-n", "50", "--data", heir); strings.Contains(made, late) {
		t.Errorf("%s was made again:\n%s", late, made)
	}
}
