package registrar

import (
	"context"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar/minting"
)

// A caller whose name is taken is told which record has it only if the caller may see
// that record. Here an editor of one namespace meets an alias of a record that is
// hidden in another one.
func TestTakenByWhatIsHidden(t *testing.T) {
	f := newFixture(t)
	pool := []stele.NamespaceKey{f.space("ark:12345", owner("ann"), minter(noid(".zd")))}
	f.space("ark:99999", owner("bob"), func(ns *stele.Namespace) { ns.Grants = []stele.Grant{{To: "user:zoe", Role: stele.RoleReader}} })
	f.space("ark:12345/x5", func(ns *stele.Namespace) { ns.Grants = []stele.Grant{{To: "user:zoe", Role: stele.RoleEditor}} })
	hidden := f.record("ark:99999/hidden", "https://example.org/1")
	hidden.State, hidden.Aliases = stele.Reserved, []stele.ID{f.id("ark:12345/x5taken")}
	must(f.Register(f.admin, hidden))(t)
	f.registered("ark:12345/x5own")

	taken := func() *stele.Record { return f.record("ark:12345/x5taken", "https://example.org/2") }
	aliased := func(id string) *stele.Record {
		rec := f.record(id, "https://example.org/2")
		rec.Aliases = []stele.ID{f.id("ark:12345/x5taken")}
		return rec
	}
	ingest := func(rec func() *stele.Record, o ImportOptions) func(context.Context) error {
		return func(ctx context.Context) error {
			errs, err := f.Ingest(ctx, []*stele.Record{rec(), f.record("ark:12345/x5other", "https://example.org/2")}, o)
			if err == nil {
				err = errs[0]
			}
			return err
		}
	}
	own := func() *stele.Record { return aliased("ark:12345/x5own") }
	fresh := func() *stele.Record { return aliased("ark:12345/x5new") }
	for name, do := range map[string]func(context.Context) error{
		"register": func(ctx context.Context) error {
			_, err := f.Register(ctx, taken())
			return err
		},
		"add an alias": func(ctx context.Context) error {
			_, err := f.AddAlias(ctx, f.id("ark:12345/x5own"), 0, f.id("ark:12345/x5taken"))
			return err
		},
		"add an alias to a version": func(ctx context.Context) error {
			_, err := f.AddAlias(ctx, f.id("ark:12345/x5own"), 1, f.id("ark:12345/x5taken"))
			return err
		},
		"import":                       ingest(taken, ImportOptions{}),
		"import an update":             ingest(taken, ImportOptions{Update: true}),
		"import with an alias":         ingest(fresh, ImportOptions{}),
		"import an update of an alias": ingest(own, ImportOptions{Update: true}),
		"rehearse":                     ingest(taken, ImportOptions{DryRun: true}),
		"rehearse an update":           ingest(taken, ImportOptions{DryRun: true, Update: true}),
		"rehearse with an alias":       ingest(fresh, ImportOptions{DryRun: true}),
	} {
		t.Run(name, func(t *testing.T) {
			err := do(as("zoe")) // a reader there
			want(t, err, stele.Conflict, "ark:99999/hidden")
			err = do(as("ann"))
			want(t, err, stele.Conflict, "ark:12345/x5taken")
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("what is hidden is told: %v", err)
			}
		})
	}
	for name, do := range map[string]func() error{
		"mint and register": func() error {
			_, err := f.MintAndRegister(as("ann"), aliased(""), pool...)
			return err
		},
		"mint batch": func() error {
			_, err := f.MintBatch(as("ann"), &minting.IdempotencyKey{Key: "k"}, pool, 1, aliased(""))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := do()
			want(t, err, stele.Conflict, "ark:12345/x5taken")
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("what is hidden is told: %v", err)
			}
		})
	}
}
