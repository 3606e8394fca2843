package bulk_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

// prose is what people write, and what spreadsheets trip over.
var prose = rapid.OneOf(
	rapid.SampledFrom([]string{"", "=1+1", "+49", "-5", "@x", "\ttab", "\nline", "'quoted'", "''", "'", "'=x", "'Tis", "[1]", "{}", "#x", " x ", "a,b;c", `"`, `""`, "é漢", "true", "01"}),
	rapid.StringMatching(`[-=+@'"#,;\[\]{}a-zé \n\t]{0,12}`),
)

func maybe[T any](t *rapid.T, g *rapid.Generator[T], label string) (v T) {
	if rapid.Bool().Draw(t, "has "+label) {
		return g.Draw(t, label)
	}
	return v
}

var anyTarget = rapid.Custom(func(t *rapid.T) stele.Target {
	return stele.Target{
		Service:  rapid.SampledFrom([]stele.Service{stele.N2L, stele.N2C, stele.N2S, stele.N2P}).Draw(t, "service"),
		URL:      "https://example.org/" + rapid.StringMatching(`[a-z=+,;'-]{0,8}`).Draw(t, "path"),
		Type:     rapid.SampledFrom([]string{"", "text/html", "application/pdf"}).Draw(t, "type"),
		Language: rapid.SampledFrom([]string{"", "en", "pt-BR"}).Draw(t, "language"),
		Order:    rapid.SampledFrom([]uint16{0, 1, stele.DefaultOrder, 65535}).Draw(t, "order"), Preference: rapid.SampledFrom([]uint16{0, stele.DefaultPreference, 65535}).Draw(t, "preference"),
		TTL: rapid.SampledFrom([]uint32{0, 60}).Draw(t, "ttl"), Status: rapid.SampledFrom([]int{0, 301, 410}).Draw(t, "status"), Partial: rapid.Bool().Draw(t, "partial"),
	}
})

var anyValue = rapid.Custom(func(t *rapid.T) stele.HandleValue {
	return stele.HandleValue{
		Type: rapid.SampledFrom([]string{"EMAIL", "X Y"}).Draw(t, "type"), Data: rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "data"),
		TTL: rapid.Uint32().Draw(t, "ttl"), TTLAbsolute: rapid.Bool().Draw(t, "absolute"), Timestamp: rapid.Uint32().Draw(t, "timestamp"),
		Permissions: stele.Permission(rapid.IntRange(0, 15).Draw(t, "permissions")),
		References:  rapid.SliceOfN(rapid.Just(stele.HandleReference{Handle: "10.5072/x", Index: 3}), 0, 2).Draw(t, "references"),
	}
})

// anyRecord is a record that a registry takes, number i of some.
func anyRecord(t *rapid.T, schemes *stele.Schemes, i int) *stele.Record {
	parse := func(text string) stele.ID {
		id, err := schemes.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	moment := rapid.Map(rapid.Int64Range(1e9, 2e9), func(s int64) time.Time { return time.Unix(s, s%1e9).UTC() })
	r := &stele.Record{
		ID: parse(fmt.Sprintf("ark:12345/r%d", i)), State: rapid.SampledFrom([]stele.State{stele.Active, stele.Reserved, stele.Withdrawn}).Draw(t, "state"),
		Targets:  rapid.SliceOfN(anyTarget, 0, 3).Draw(t, "targets"),
		Metadata: rapid.MapOfN(rapid.OneOf(rapid.SampledFrom([]string{"who", "what", "when", "where"}), rapid.StringMatching(`[a-z][a-z0-9._-]{0,6}`)), prose, 0, 4).Draw(t, "metadata"),
		Persistence: stele.Persistence{Level: maybe(t, rapid.Just(stele.Stable), "level"),
			Until: maybe(t, rapid.Just("2040-01-01"), "until"), Statement: maybe(t, prose, "statement")},
		Values:  rapid.SliceOfN(anyValue, 0, 2).Draw(t, "values"),
		Readers: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"user:ana", "group:staff", "user:maria da silva", "group:-x"}), 0, 3, rapid.ID[string]).Draw(t, "readers"),
		Created: moment.Draw(t, "created"), By: rapid.SampledFrom([]string{"ana", "=ana", "'x"}).Draw(t, "by"),
	}
	r.Modified = r.Created.Add(time.Second)
	for k := range r.Values {
		r.Values[k].Index = uint32(k + 1)
	}
	if len(r.Metadata) == 0 {
		r.Metadata = nil
	}
	if rapid.Bool().Draw(t, "spelled") {
		r.Spelling = fmt.Sprintf("ark:/12345/r%d", i)
	}
	for k := range rapid.IntRange(0, 2).Draw(t, "aliases") {
		r.Aliases = append(r.Aliases, parse(fmt.Sprintf("10.5072/a b%d.%d", i, k)))
	}
	if r.State == stele.Withdrawn {
		r.Tombstone = &stele.Tombstone{Reason: "because" + prose.Draw(t, "reason"), At: r.Modified, Replacement: maybe(t, rapid.Just(parse("ark:12345/other")), "replacement")}
	}
	return r
}

// newRegistry returns an empty registry, and the context of an administrator.
func newRegistry(schemes *stele.Schemes) (*registrar.Registrar, context.Context) {
	r := registrar.New(mem.New(time.Now), schemes, registrar.Options{Now: time.Now})
	return r, auth.With(context.Background(), auth.Principal{Name: "root", Admin: true})
}

func fill(t *rapid.T, r *registrar.Registrar, ctx context.Context, list []*stele.Record) {
	errs, err := r.Ingest(ctx, list, registrar.ImportOptions{Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, err := range errs {
		if err != nil {
			t.Fatalf("%s: %v", document.AppendRecord(nil, list[i]), err)
		}
	}
}

// export returns all records of a registry, and their lines.
func export(t *rapid.T, r *registrar.Registrar, ctx context.Context) (list []*stele.Record, lines []byte) {
	for rec, err := range r.Scan(ctx, stele.NamespaceKey{Scheme: "ark"}, "") {
		if err != nil {
			t.Fatal(err)
		}
		rec.Version, rec.Import, rec.Withheld = 0, 0, stele.Withheld{}
		list, lines = append(list, rec), append(document.AppendRecord(lines, rec), '\n')
	}
	return list, lines
}

// What is exported as CSV and imported into an empty registry is exported from there the
// same, byte for byte; and no cell of the file is one that a spreadsheet runs.
func TestRoundTrip(t *testing.T) {
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		near, ctx := newRegistry(schemes)
		var made []*stele.Record
		for i := range rapid.IntRange(1, 4).Draw(t, "records") {
			made = append(made, anyRecord(t, schemes, i))
		}
		fill(t, near, ctx, made)
		list, want := export(t, near, ctx)

		var columns bulk.Columns
		for _, rec := range list {
			columns.Add(rec)
		}
		header := columns.Header()
		text := append(bulk.AppendRow(nil, header, ','), '\n')
		for _, rec := range list {
			cells, err := header.Cells(rec)
			if err != nil {
				t.Fatal(err)
			}
			for _, cell := range cells {
				if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
					t.Fatalf("the cell %q is a formula", cell)
				}
			}
			text = append(bulk.AppendRow(text, cells, ','), '\n')
		}

		again := read(t, schemes, text)
		far, ctx := newRegistry(schemes)
		fill(t, far, ctx, again)
		if _, got := export(t, far, ctx); !bytes.Equal(got, want) {
			t.Fatalf("exported:\n%s\nwant:\n%s\nCSV:\n%s", got, want, text)
		}
		// An update with the same file changes nothing.
		var lines [][]byte
		for _, row := range rows(t, text)[1:] {
			doc, err := header.Document(row, bulk.RowOptions{Merges: true})
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, doc)
		}
		errs, err := far.Ingest(ctx, read(t, schemes, text), registrar.ImportOptions{Keep: true, Update: true, Lines: lines})
		if err != nil || slices.ContainsFunc(errs, func(err error) bool { return err != registrar.ErrUnchanged }) {
			t.Fatalf("an update with what is registered gives %v, %v", errs, err)
		}
	})
}

func rows(t *rapid.T, text []byte) (all [][]string) {
	for len(text) > 0 {
		n := bulk.RowEnd(text, ',')
		cells, err := bulk.SplitRow(bulk.TrimEnd(text[:n]), ',', nil)
		if err != nil {
			t.Fatal(err)
		}
		all, text = append(all, cells), text[n:]
	}
	return all
}

// read reads a CSV file as an import does.
func read(t *rapid.T, schemes *stele.Schemes, text []byte) (list []*stele.Record) {
	table := rows(t, text)
	header, err := bulk.NewHeader(table[0], bulk.HeaderOptions{Need: []string{"id", "url"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table[1:] {
		doc, err := header.Document(row, bulk.RowOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := document.DecodeRecord(schemes, doc)
		if err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		list = append(list, rec)
	}
	return list
}

// A cell that is neutralised is restored, whatever it is.
func TestFormula(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.OneOf(prose, rapid.String()).Draw(t, "cell")
		if got := bulk.Restore(bulk.Neutralise(cell)); got != cell {
			t.Fatalf("%q becomes %q", cell, got)
		}
	})
}

// TestTable checks that a spreadsheet takes no cell of a table for a formula.
func TestTable(t *testing.T) {
	rows := slices.Values([][]string{{"name", "count"}, {"=1+1", "-2"}, {"a,b", `"`}})
	if got, want := string(bulk.AppendTable(nil, rows)), "name,count\n'=1+1,'-2\n\"a,b\",\"\"\"\"\n"; got != want {
		t.Errorf("%q", got)
	}
}
