package sheet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// cutOff is a registry that ends, as it were, before it registers the rows that have
// names.
type cutOff struct {
	Registry
	ended error
}

func (c *cutOff) Ingest(ctx context.Context, records []*stele.Record, o registrar.ImportOptions) ([]error, error) {
	if !o.DryRun && c.ended != nil {
		return nil, c.ended
	}
	return c.Registry.Ingest(ctx, records, o)
}

type silent struct{}

func (silent) Add(int) {}
func (silent) End()    {}

// A run that ends between writing names down and registering them continues with the
// same names, and a row that has a name keeps it.
func TestRunGoesOn(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	store := mem.New(time.Now)
	defer store.Close()
	r := registrar.New(store, schemes, registrar.Options{Now: time.Now})
	ctx := auth.With(t.Context(), auth.Local())
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/x5"}
	if _, err := r.AddNamespace(ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".reedeedk"}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rows.csv")
	const rows = "url,what\nhttps://example.org/1,one\nhttps://example.org/2,two\n"
	if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	registry := &cutOff{r, errors.New("the power is off")}
	run := func() (Result, error) {
		s, err := Open(Options{From: file, Column: "id", Encoding: bulk.Auto, MaxErrors: -1, OnEncoding: func(*bulk.Reader, *bulk.File) {}})
		if err != nil {
			t.Fatal(err)
		}
		n := &Namer{Sheet: s, Registry: registry, Schemes: schemes, Now: time.Now, Pool: []stele.NamespaceKey{key},
			OnResume: func(int, string) {}, Progress: func(int64, func() int64) Progress { return silent{} }}
		return n.Run(ctx)
	}
	if _, err := run(); !errors.Is(err, registry.ended) {
		t.Fatalf("the first run: %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != rows {
		t.Errorf("the file is %q, %v", text, err)
	}
	promised, err := os.ReadFile(file + ".names")
	if err != nil {
		t.Fatal(err)
	}
	registry.ended = nil
	done, err := run()
	if err != nil || done.Named != 2 || done.Column != "id" {
		t.Fatalf("the second run: %+v, %v", done, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		name := line[strings.LastIndex(line, ",")+1:]
		id, err := schemes.Parse(name)
		if err != nil || !strings.Contains(string(promised), `"`+name+`"`) {
			t.Errorf("row %d got %q, %v, and should have got one of\n%s", i+1, name, err, promised)
			continue
		}
		if rec, err := r.Get(ctx, id); err != nil || !strings.HasPrefix(line, rec.Targets[0].URL+",") {
			t.Errorf("%s: %+v, %v", name, rec, err)
		}
	}
	if _, err := os.Stat(file + ".names"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the journal stays: %v", err)
	}
	if done, err := run(); err != nil || done.Kept != 2 || done.Named != 0 {
		t.Errorf("the third run: %+v, %v", done, err)
	}
}
