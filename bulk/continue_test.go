package bulk_test

import (
	"bytes"
	"context"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
)

// whole is a registry at hand, as an export reads it.
type whole struct{ *registrar.Registrar }

func (w whole) Export(ctx context.Context, key stele.NamespaceKey, _ bool) iter.Seq2[*stele.Record, error] {
	return w.Scan(ctx, key, "")
}

// exportWhole returns an export with namespaces.
func exportWhole(t *testing.T, r *registrar.Registrar, ctx context.Context, keys ...stele.NamespaceKey) string {
	t.Helper()
	var out bytes.Buffer
	if err := bulk.Export(ctx, whole{r}, keys, &out, bulk.ExportOptions{Namespaces: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// importWhole imports the lines of an export into a registry, and returns the errors of the rows.
func importWhole(t *testing.T, schemes *stele.Schemes, r *registrar.Registrar, ctx context.Context, lines string) (refused []error) {
	t.Helper()
	parser := bulk.NewLineParser(schemes, 1<<20, false)
	for row, err := range bulk.All(parser.Rows(bulk.NewLines(strings.NewReader(lines), 0, 1<<20))) {
		if err == nil {
			err = row.Err
		}
		switch {
		case err != nil:
		case row.Namespace != nil:
			err = r.IngestNamespace(ctx, row.Namespace, registrar.ImportOptions{Progress: row.Progress})
		default:
			if err = bulk.Ingest(ctx, r, []*bulk.Row{row}, registrar.ImportOptions{Keep: true}); err == nil {
				err = row.Err
			}
		}
		if err != nil {
			refused = append(refused, err)
		}
	}
	return refused
}

// A registry that imports an export with namespaces continues it: it makes no name again, neither by the template, nor by an earlier
// one, nor of a date, and it takes no other bytes for a name whose bytes never change.
func TestExportContinues(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	from, ctx := newRegistry(schemes)
	add := func(scheme, prefix string, m stele.Minter) *stele.Namespace {
		ns, err := from.AddNamespace(ctx, &stele.Namespace{Scheme: scheme, Prefix: prefix, Minter: m})
		if err != nil {
			t.Fatal(err)
		}
		return ns
	}
	made := make(map[stele.ID]bool)
	mint := func(r *registrar.Registrar, ns *stele.Namespace, n int) {
		t.Helper()
		labels, err := r.Mint(ctx, ns.Key(), n)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range labels {
			if made[l.ID] {
				t.Errorf("%s is made twice", l.ID)
			}
			made[l.ID] = true
		}
	}
	first, second := stele.Minter{Kind: stele.MinterNOID, Template: ".zd"}, stele.Minter{Kind: stele.MinterNOID, Template: ".rdd"}
	ark := add("ark", "ark:12345/x", first)
	ibi := add("ibi", "sid.inpe.br/mtc-m18", stele.Minter{Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, Granularity: "1us"})
	mint(from, ark, 7)
	set := func(r *registrar.Registrar, m stele.Minter) {
		t.Helper()
		if ark, err = r.SetNamespace(ctx, ark.Key(), 0, func(ns *stele.Namespace) error { ns.Minter = m; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	set(from, second)
	mint(from, ark, 3)
	mint(from, ibi, 20)
	id, err := schemes.Parse("urn:lsid:example.org:ns:1")
	if err != nil {
		t.Fatal(err)
	}
	rec, err := from.Register(ctx, &stele.Record{ID: id, State: stele.Active})
	if err != nil {
		t.Fatal(err)
	}
	digest := strings.Repeat("ab", 32)
	kept, err := from.FixData(ctx, rec, registrar.FixedData{SHA256: digest, Size: 7})
	if err != nil {
		t.Fatal(err)
	}
	keys := []stele.NamespaceKey{{Scheme: "ark"}, {Scheme: "ibi"}, {Scheme: "lsid"}}
	lines := exportWhole(t, from, ctx, keys...)

	to, _ := newRegistry(schemes)
	if refused := importWhole(t, schemes, to, ctx, lines); refused != nil {
		t.Fatalf("%v\n%s", refused, lines)
	}
	// The template is shut, and an administrator who opens it where it is gets the name after the last one.
	if s, err := to.MinterStatus(ctx, ark.Key()); err != nil || !s.Shut || s.Given < 3 {
		t.Fatalf("%+v, %v", s, err)
	} else if err := to.SkipCounter(ctx, ark.Key(), s.Given); err != nil {
		t.Fatal(err)
	}
	mint(to, ark, 5)
	mint(to, ibi, 20)
	set(to, first)
	if _, err := to.Mint(ctx, ark.Key(), 1); stele.KindOf(err) != stele.Conflict {
		t.Errorf("the earlier template is not shut: %v", err)
	}
	if err := to.SkipCounter(ctx, ark.Key(), 6); stele.KindOf(err) != stele.Conflict {
		t.Errorf("the earlier template is set back: %v", err)
	}
	if d, err := to.FixedData(ctx, id); err != nil || d == nil || *d != *kept {
		t.Errorf("%+v, %v; want %+v", d, err, kept)
	}
	// Again it changes nothing, and other bytes are refused.
	records := lines[strings.Index(lines, `{"id"`):]
	for _, err := range importWhole(t, schemes, to, ctx, records) {
		if err != bulk.ErrUnchanged {
			t.Errorf("again: %v", err)
		}
	}
	other := strings.Replace(records, digest, strings.Repeat("cd", 32), 1)
	if refused := importWhole(t, schemes, to, ctx, other); len(refused) == 0 || stele.KindOf(refused[len(refused)-1]) != stele.Conflict {
		t.Errorf("other bytes: %v", refused)
	}
	for _, bad := range []string{`7`, `{}`, `{"sha256":"AB"}`, `{"absent":true,"sha256":"` + digest + `"}`, `{"absent":true,"more":1}`} {
		refused := importWhole(t, schemes, to, ctx, `{"id":"urn:lsid:example.org:ns:2","fixed":`+bad+"}\n")
		if len(refused) != 1 || stele.KindOf(refused[0]) != stele.Invalid {
			t.Errorf("%s: %v", bad, refused)
		}
	}
	late := `{"namespace":{"scheme":"ibi","prefix":"sid.inpe.br/late","minter":{"kind":"ibi","host":"late.sid.inpe.br","port":800}},"progress":{"last":"` + time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339) + `"}}` + "\n"
	if refused := importWhole(t, schemes, to, ctx, late); len(refused) != 1 || stele.KindOf(refused[0]) != stele.Invalid {
		t.Errorf("a minter in the future: %v", refused)
	}
}
