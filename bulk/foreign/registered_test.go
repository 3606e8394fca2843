package foreign_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/bulk/foreign"
	"github.com/stele-id/stele/registrar"
)

// killed is a registry whose answer to the first chunk with records does not arrive, although the chunk is written.
type killed struct {
	*registrar.Registrar
	asked bool
}

var errKilled = errors.New("killed")

func (k *killed) Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error) {
	errs, err := k.Registrar.Ingest(ctx, records, o)
	if err == nil && len(records) > 0 && !k.asked {
		k.asked = true
		return nil, errKilled
	}
	return errs, err
}

// batched imports a batch file into a registry, with handles that are registered there, and returns what became of it, and the
// file of rejected rows.
func batched(t *testing.T, r *registrar.Registrar, to bulk.Destination, ctx context.Context, path string, o foreign.Options, fo bulk.FileOptions) (bulk.Counts, string, error) {
	t.Helper()
	o.System, o.Schemes, o.Merges, o.Now = "handle", known, fo.Update && !fo.Replace, func() time.Time { return time.Unix(1_900_000_000, 0) }
	o.Registered = foreign.Registered{
		Get:     func(id stele.ID) (*stele.Record, error) { return r.Get(ctx, id) },
		History: func(id stele.ID) iter.Seq2[*stele.Record, error] { return r.History(ctx, id) },
	}
	f, err := bulk.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := foreign.Open([]*bulk.File{f}, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fo.MaxErrors, fo.ChunkRows, fo.MarkFirst, fo.KeepTypes = -1, 3, s.Changes(), o.LeftOut()
	im, err := bulk.NewRowsImport(ctx, to, s, f, s.Key(), fo)
	if err != nil {
		t.Fatal(err)
	}
	s.Continues(im.Mark.Import)
	if im.Mark.Done {
		t.Fatal("the import is done already")
	}
	err = im.Run(ctx, func() bulk.Progress { return ticks{} })
	text, _ := os.ReadFile(im.Rejects.Path)
	return im.Mark.Counts, string(text), err
}

// file writes a batch file.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// valuesOf returns the values of a record in one line, with its state.
func valuesOf(t *testing.T, r *registrar.Registrar, ctx context.Context, name string) string {
	t.Helper()
	id, err := known.Parse("hdl:" + name)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := r.Get(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s %d", rec.State, rec.Version)
	for _, v := range rec.Values {
		text += fmt.Sprintf(" %d=%s:%s", v.Index, v.Type, v.Data)
	}
	for _, target := range rec.Targets {
		text += " -> " + target.URL
	}
	if rec.Tombstone != nil {
		text += " (" + rec.Tombstone.Reason + ")"
	}
	return text
}

const first = `CREATE 20.500.1/A
3 EMAIL 86400 1110 UTF8 ann@example.org
1 URL 86400 1110 UTF8 https://example.org/a
5 NOTE 86400 1110 UTF8 five

CREATE 20.500.1/B
1 URL 86400 1110 UTF8 https://example.org/b
100 HS_ADMIN 86400 1110 ADMIN 300:110011111111:0.NA/20.500.1

CREATE 20.500.1/C
1 URL 86400 1110 UTF8 https://example.org/c

CREATE 20.500.1/D
1 URL 86400 1110 UTF8 https://example.org/d

CREATE 20.500.1/E
1 URL 86400 1110 UTF8 https://example.org/e
`

const second = `ADD 20.500.1/a
2 DESC 86400 1110 UTF8 two

MODIFY 20.500.1/A
1 URL 86400 1110 UTF8 https://example.org/a2
3 EMAIL 86400 1110 UTF8 ann@example.org

REMOVE 5:20.500.1/A

ADD 20.500.1/A
5 NOTE 86400 1110 UTF8 another five

REMOVE 100:20.500.1/B
ADD 20.500.1/B
1 URL 86400 1110 UTF8 https://example.org/twice

MODIFY 20.500.1/B
9 NOTE 86400 1110 UTF8 missing

REMOVE 8:20.500.1/B

DELETE 20.500.1/C
DELETE 20.500.1/D
CREATE 20.500.1/D
7 URL 86400 1110 UTF8 https://example.org/new

ADD 20.500.1/NONE
1 URL 86400 1110 UTF8 https://example.org/none

MODIFY 20.500.1/E
1 URL 86400 1110 UTF8 https://example.org/e
`

// A batch file changes handles that are registered and that it does not create: order and indexes stay, what can't be done is told
// with its line, a dry run writes nothing, and a run that is cut off continues without doing anything twice.
func TestBatchRegistered(t *testing.T) {
	for _, fo := range []bulk.FileOptions{{}, {Update: true}, {Update: true, Replace: true}} {
		t.Run(fmt.Sprintf("update=%t replace=%t", fo.Update, fo.Replace), func(t *testing.T) {
			r, ctx := registry(t)
			if got, bad, err := batched(t, r, r, ctx, file(t, "first.txt", first), foreign.Options{Admins: true}, fo); err != nil || got != (bulk.Counts{New: 5}) {
				t.Fatalf("%+v, %v\n%s", got, err, bad)
			}
			// Another part of the record is not the batch file's to change.
			id, _ := known.Parse("20.500.1/A")
			if _, err := r.Update(ctx, id, 0, func(rec *stele.Record) error {
				rec.Metadata = map[string]string{"who": "Lima, A."}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			path := file(t, "second.txt", second)
			dry := fo
			dry.DryRun, dry.Changed = true, func(*bulk.Row, []registrar.FieldChange) {}
			want := bulk.Counts{Updated: 3, Unchanged: 1, Rejected: 5}
			if got, bad, err := batched(t, r, r, ctx, path, foreign.Options{}, dry); err != nil || got != want {
				t.Fatalf("the dry run: %+v, %v\n%s", got, err, bad)
			}
			if got := valuesOf(t, r, ctx, "20.500.1/C"); !strings.HasPrefix(got, "active 1 ") {
				t.Errorf("the dry run made %s", got)
			}
			check := func() {
				t.Helper()
				for name, want := range map[string]string{
					"20.500.1/A": "active 3 3=EMAIL:ann@example.org 1=URL:https://example.org/a2 2=DESC:two 5=NOTE:another five -> https://example.org/a2",
					"20.500.1/C": "withdrawn 2 1=URL:https://example.org/c -> https://example.org/c (deleted by a batch file of the Handle System)",
					"20.500.1/D": "active 2 7=URL:https://example.org/new -> https://example.org/new",
					"20.500.1/E": "active 1 1=URL:https://example.org/e -> https://example.org/e",
				} {
					if got := valuesOf(t, r, ctx, name); got != want {
						t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
					}
				}
				if got := valuesOf(t, r, ctx, "20.500.1/B"); !strings.HasPrefix(got, "active 1 1=URL:https://example.org/b 100=HS_ADMIN") {
					t.Errorf("20.500.1/B: %s", got)
				}
				if rec, _ := r.Get(ctx, id); rec.Metadata["who"] != "Lima, A." || rec.Values[0].Timestamp != 0 || rec.Values[1].Timestamp != 1_900_000_000 {
					t.Errorf("20.500.1/A: %+v", rec)
				}
			}
			// The process is killed after the records are written, and before it knows of that.
			if _, _, err := batched(t, r, &killed{Registrar: r}, ctx, path, foreign.Options{}, fo); !errors.Is(err, errKilled) {
				t.Fatalf("killed: %v", err)
			}
			check()
			// Another user changes a record meanwhile; the import does not take that back.
			if _, err := r.Update(ctx, id, 0, func(rec *stele.Record) error {
				rec.Values[1].Data = []byte("https://example.org/a3")
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			got, bad, err := batched(t, r, r, ctx, path, foreign.Options{}, fo)
			if err != nil || got != (bulk.Counts{Unchanged: 4, Rejected: 5}) {
				t.Fatalf("continued: %+v, %v\n%s", got, err, bad)
			}
			for _, want := range []string{
				"# line 13: REMOVE 20.500.1/B: the value 100 has the type HS_ADMIN; import with --with-admins",
				"# line 14: ADD 20.500.1/B: the handle has a value 1 already",
				"# line 17: MODIFY 20.500.1/B: the handle has no value 9",
				"# line 20: REMOVE 20.500.1/B: the handle has no value 8",
				"# line 27: ADD 20.500.1/NONE: that handle is not registered",
			} {
				if !strings.Contains(bad, want) {
					t.Errorf("not told: %s\n%s", want, bad)
				}
			}
			if got := valuesOf(t, r, ctx, "20.500.1/A"); !strings.HasPrefix(got, "active 4 ") || !strings.Contains(got, "1=URL:https://example.org/a3") {
				t.Errorf("the change of another user became %s", got)
			}
		})
	}
}

// CREATE in an update brings back what a batch file or a client of the protocol deleted, and nothing that was withdrawn in another way.
func TestBatchCreatesAgain(t *testing.T) {
	r, ctx := registry(t)
	if _, _, err := batched(t, r, r, ctx, file(t, "first.txt", first), foreign.Options{}, bulk.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, _, err := batched(t, r, r, ctx, file(t, "delete.txt", "DELETE 20.500.1/C\n"), foreign.Options{}, bulk.FileOptions{}); err != nil || got != (bulk.Counts{Updated: 1}) {
		t.Fatalf("%+v, %v", got, err)
	}
	id, _ := known.Parse("20.500.1/D")
	if _, err := r.Withdraw(ctx, id, 0, "the archive says so", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	const again = "CREATE 20.500.1/C\n2 URL 86400 1110 UTF8 https://example.org/c2\n\nCREATE 20.500.1/D\n1 URL 86400 1110 UTF8 https://example.org/d\n"
	if got, bad, err := batched(t, r, r, ctx, file(t, "create.txt", again), foreign.Options{}, bulk.FileOptions{Update: true}); err != nil || got != (bulk.Counts{Updated: 1, Unchanged: 1}) {
		t.Fatalf("%+v, %v\n%s", got, err, bad)
	}
	for name, want := range map[string]string{
		"20.500.1/C": "active 3 2=URL:https://example.org/c2 -> https://example.org/c2",
		"20.500.1/D": "withdrawn 2 1=URL:https://example.org/d -> https://example.org/d (the archive says so)",
	} {
		if got := valuesOf(t, r, ctx, name); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}

// A record that another user changes between reading and writing is refused.
func TestBatchRegisteredRace(t *testing.T) {
	r, ctx := registry(t)
	if _, _, err := batched(t, r, r, ctx, file(t, "first.txt", first), foreign.Options{}, bulk.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	id, _ := known.Parse("20.500.1/C")
	slow := &changing{Registrar: r, change: func() {
		if _, err := r.Update(ctx, id, 0, func(rec *stele.Record) error {
			rec.Metadata = map[string]string{"what": "Lakes"}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}}
	got, bad, err := batched(t, r, slow, ctx, file(t, "third.txt", "DELETE 20.500.1/C\n"), foreign.Options{}, bulk.FileOptions{})
	if err != nil || got != (bulk.Counts{Rejected: 1}) || !strings.Contains(bad, "it has version 2, not 1; look at it again") {
		t.Errorf("%+v, %v\n%s", got, err, bad)
	}
}

// changing is a registry in which another user changes something before the first chunk is written.
type changing struct {
	*registrar.Registrar
	change func()
}

func (c *changing) BeginImport(ctx context.Context, label string) (uint64, error) {
	c.change()
	return c.Registrar.BeginImport(ctx, label)
}

// Rights and secrets of registered handles are changed on an explicit word only.
func TestBatchRegisteredRights(t *testing.T) {
	r, ctx := registry(t)
	if _, _, err := batched(t, r, r, ctx, file(t, "first.txt", first), foreign.Options{Admins: true}, bulk.FileOptions{}); err != nil {
		t.Fatal(err)
	}
	const grants = "MODIFY 20.500.1/B\n1 HS_ADMIN 86400 1110 ADMIN 300:110011111111:20.500.1/EVE\n\nADD 20.500.1/B\n101 HS_ADMIN 86400 1110 ADMIN 300:110011111111:20.500.1/EVE\n2 NOTE 86400 1110 UTF8 note\n"
	if got, bad, err := batched(t, r, r, ctx, file(t, "grants.txt", grants), foreign.Options{}, bulk.FileOptions{}); err != nil || got != (bulk.Counts{Updated: 1}) {
		t.Fatalf("%+v, %v\n%s", got, err, bad)
	}
	if got := valuesOf(t, r, ctx, "20.500.1/B"); strings.Contains(got, "EVE") || !strings.Contains(got, "1=URL:https://example.org/b 100=HS_ADMIN") || !strings.Contains(got, " 2=NOTE:note") {
		t.Errorf("without --with-admins: %s", got)
	}
	if got, bad, err := batched(t, r, r, ctx, file(t, "remove.txt", "REMOVE 100:20.500.1/B\n"), foreign.Options{Admins: true}, bulk.FileOptions{}); err != nil || got != (bulk.Counts{Updated: 1}) {
		t.Fatalf("%+v, %v\n%s", got, err, bad)
	}
	if got := valuesOf(t, r, ctx, "20.500.1/B"); strings.Contains(got, "HS_ADMIN") {
		t.Errorf("with --with-admins: %s", got)
	}
}
