package registrar

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// problems returns what Verify reports.
func (f *fixture) problems() (list []string) {
	f.t.Helper()
	if err := f.Verify(f.admin, func(problem *stele.Message) { list = append(list, problem.Error()) }); err != nil {
		f.t.Fatal(err)
	}
	return list
}

// setState puts a state in the place of what the store has for a minter.
func (f *fixture) setState(name, after string) {
	f.t.Helper()
	before := must(f.store.MinterState(f.admin, name))(f.t)
	c := &stele.Commit{Minters: []stele.MinterState{{Name: name, Before: before, After: []byte(after)}}}
	if err := f.store.Apply(f.admin, c); err != nil {
		f.t.Fatal(err)
	}
}

func TestVerify(t *testing.T) {
	f := newFixture(t)
	dated := f.space("sid.inpe.br/mtc-m18", minter(ibi("1us")))
	pilin := f.space("102.100.272/", minter(stele.Minter{Kind: stele.MinterPILIN}))
	counted := f.space("ark:12345/x5", minter(noid(".sd")))
	for _, key := range []stele.NamespaceKey{dated, pilin, counted} {
		must(f.MintAndRegister(f.admin, f.record("", "https://example.org/1"), key))(t)
	}
	f.registered("urn:example:1")
	// A name with a future date, made by hand, is not a problem.
	f.registered("102.100.272/ZZZZZZZZ0")
	must(f.Redact(f.admin, f.id("urn:example:1"), 0, "an order"))(t)
	must(f.FixData(f.admin, f.registered("urn:example:5"), FixedData{Absent: true}))(t)
	must(f.FixData(f.admin, f.registered("urn:example:6"), FixedData{SHA256: strings.Repeat("0a", 32), Size: 1}))(t)
	if err := f.AddForeignAuthority(f.admin, f.id("urn:example:5"), "example.org"); err != nil {
		t.Fatal(err)
	}
	if got := f.problems(); got != nil {
		t.Fatalf("nothing is wrong, but: %q", got)
	}

	has := func(words string) {
		t.Helper()
		if got := f.problems(); !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, words) }) {
			t.Errorf("no %q in %q", words, got)
		}
	}
	f.jump(time.Hour)
	late := must(f.MintAndRegister(f.admin, f.record("", "https://example.org/2"), pilin))(t)
	f.jump(-time.Hour)
	if got := f.problems(); got != nil {
		t.Fatalf("the minter is ahead of the clock, and of what it issued; but: %q", got)
	}
	kept := string(must(f.store.MinterState(f.admin, "hdl 102.100.272/"))(t))
	f.setState("hdl 102.100.272/", "date 1000000000 0 102.100.272/")
	has(late.ID.String() + " was issued at ")
	f.setState("hdl 102.100.272/", "date none 102.100.272/")
	has(late.ID.String() + " was issued at ")
	f.setState("hdl 102.100.272/", "date none ")
	has("102.100.272/ makes names below 102.100.272/, and does not hold that prefix")
	f.setState("hdl 102.100.272/", kept)
	f.setState("hdl 10.5072/", "date none 102.100.272/")
	has("The dates of 10.5072/ belong to the namespace 102.100.272/, whose minter makes no names there")
	f.setState("hdl 10.5072/", "date none ")
	f.setState("ark ark:12345/x5", "noid\n11 0 .sd")
	has("The counter of ark:12345/x5 is at 11, and its template .sd has 10 names")
	f.setState("ark ark:12345/x5", "noid\n1 0 .s?")
	has("can't be read")
	f.setState("ark ark:12345/x5", "nonsense")
	has("is damaged")
	f.setState("ark ark:12345/x5", "noid\n1 0 .sd")
	if got := f.problems(); got != nil {
		t.Fatalf("all is well again, but: %q", got)
	}

	damage := func(cell, value, words string) {
		t.Helper()
		if err := f.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: cell, After: []byte(value)}}}); err != nil {
			t.Fatal(err)
		}
		has(words)
		if err := f.store.Apply(f.admin, &stele.Commit{Cells: []stele.CellChange{{Name: cell, Before: []byte(value)}}}); err != nil {
			t.Fatal(err)
		}
	}
	const proposed = `{"id":"p1","scheme":"ark","prefix":"ark:12345/x5","record":{"id":"ark:12345/x5q","url":"https://example.org/1"},"by":"ed","at":"2026-01-01T00:00:00Z"`
	damage("proposal p1", "{", "A proposal can't be read")
	damage("proposal p2", proposed+"}", `The cell "proposal p2" has the proposal p1`)
	damage("proposal p1", strings.ReplaceAll(proposed, "ark:12345/x5\"", "ark:12345/y5\"")+"}", "The proposal p1 is one of the namespace ark:12345/y5, which is not there")
	damage("proposal p1", proposed+`,"base":3}`, "The proposal p1 changes version 3 of ark:12345/x5q, which is not there")
	fixed, knows := cellOf(fixedDataCells, f.id("urn:example:1")), cellOf(foreignCells, f.id("urn:example:1"))
	damage(fixed, "{", `The cell "`+fixed+`" can't be read`)
	damage(fixed, `{"id":"urn:example:1"}`, "neither a SHA-256 digest nor")
	damage(fixed, `{"id":"urn:example:1","sha256":"x"}`, "neither a SHA-256 digest nor")
	damage(fixed, `{"id":"urn:example:9","absent":true}`, `The cell "`+fixed+`" is not that of "urn:example:9"`)
	damage(knows, "[]", `The cell "`+knows+`" can't be read`)
	damage(knows, `{"id":"urn:example:9"}`, `The cell "`+knows+`" is not that of "urn:example:9"`)
	damage(auth.IdentityCells+"x", "{", "a linked account or a password can't be read")
	if got := f.problems(); got != nil {
		t.Fatalf("all is well again, but: %q", got)
	}

	apply := func(rec *stele.Record) {
		t.Helper()
		if err := f.store.Apply(f.admin, &stele.Commit{Records: []*stele.Record{rec}}); err != nil {
			t.Fatal(err)
		}
	}
	odd, err := stele.NewID("ark", "ark:/12345/odd-one")
	if err != nil {
		t.Fatal(err)
	}
	now := f.clock()
	apply(&stele.Record{ID: odd, State: stele.Active, Version: 1, Created: now, Modified: now})
	has("is not in canonical form")
	bad := f.record("urn:example:2", "javascript:x")
	bad.State, bad.Version = stele.Active, 1
	apply(bad)
	has("The record urn:example:2 is not valid: ")
	said := f.record("urn:example:3", "https://example.org/")
	said.State, said.Version, said.Redacted = stele.Active, 1, true
	apply(said)
	has("The record urn:example:3 is redacted, and has content")
	wrong := &stele.Namespace{Scheme: "ark", Prefix: "ark:/99999", Version: 1}
	if err := f.store.Apply(f.admin, &stele.Commit{Namespaces: []*stele.Namespace{wrong}}); err != nil {
		t.Fatal(err)
	}
	has("The namespace ark:/99999 is not valid")
}
