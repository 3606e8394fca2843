package registrar

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/document"
)

// TestHandleSecrets: a record with a secret has a reference to it, in every version and in no clear
// form; the secret can be read by a server, also after the keys were rotated.
func TestHandleSecrets(t *testing.T) {
	old, next := testKey(t), testKey(t)
	f := newFixture(t)
	f.o.Secrets = ringOf(old)
	name := f.id("20.500.1/USER")
	f.space("20.500.1/", owner("ann"))
	write := func(secrets ...string) *stele.Record {
		t.Helper()
		var values []stele.HandleValue
		for i, s := range secrets {
			values = append(values, stele.HandleValue{Index: uint32(300 + i), Type: "HS_SECKEY", Data: []byte(s), TTL: 60, Permissions: stele.AdminRead | stele.AdminWrite})
		}
		rec, err := f.Update(as("ann"), name, 0, func(r *stele.Record) error { r.Values = values; return nil })
		if stele.KindOf(err) == stele.NotFound {
			rec, err = f.Register(as("ann"), &stele.Record{ID: name, Values: values})
		}
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	reads := func(rec *stele.Record, i int, want string) {
		t.Helper()
		got, err := f.HandleSecret(t.Context(), &rec.Values[i])
		if err != nil || string(got) != want {
			t.Errorf("the secret is %q (%v), want %q", got, err, want)
		}
	}
	first := write("open sesame")
	reads(first, 0, "open sesame")
	kept := string(first.Values[0].Data)
	if !isSecretReference(kept) {
		t.Fatalf("the record has %q", kept)
	}
	// What a client reads and writes back stays the same secret.
	second := write(kept, "another one")
	if string(second.Values[0].Data) != kept {
		t.Errorf("the reference became %q", second.Values[0].Data)
	}
	reads(second, 0, "open sesame")
	reads(second, 1, "another one")

	// Nothing that is stored has a secret in clear: no version, no cell, no audit entry.
	for rec, err := range f.History(f.admin, name) {
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range rec.Values {
			if !isSecretReference(string(v.Data)) {
				t.Errorf("version %d has %q", rec.Version, v.Data)
			}
		}
	}
	cells := 0
	for c, err := range f.store.Cells(f.admin, "", "") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(c.Name, HandleSecretCells) {
			cells++
		}
		if bytes.Contains(c.Value, []byte("sesame")) || bytes.Contains(c.Value, []byte("b3BlbiBzZXNhbWU")) {
			t.Errorf("the cell %q has the secret in clear", c.Name)
		}
	}
	if cells != 2 {
		t.Errorf("there are %d cells with secrets, want 2", cells)
	}

	// A rotation encrypts them anew.
	f.o.Secrets = ringOf(old, next)
	if _, err := f.RotateSecrets(f.admin, next.ID(), false, testCodec); err != nil {
		t.Fatal(err)
	}
	f.o.Secrets = ringOf(next)
	reads(second, 0, "open sesame")
}

// TestHandleSecretsRefused: what would keep a secret in clear is refused: an import, a proposal, a registry
// without a key; and so is a secret that is too long. A reference to nothing proves nothing.
func TestHandleSecretsRefused(t *testing.T) {
	f := newFixture(t)
	f.space("20.500.1/", owner("ann"))
	rec := func(data string) *stele.Record {
		return &stele.Record{ID: f.id("20.500.1/X"), State: stele.Active, Values: []stele.HandleValue{{Index: 300, Type: "hs_seckey.mine", Data: []byte(data), Permissions: stele.AdminRead}}}
	}
	errs, err := f.Ingest(as("ann"), []*stele.Record{rec("secret")}, ImportOptions{})
	if err != nil || stele.KindOf(errs[0]) != stele.Invalid || !strings.Contains(errs[0].Error(), "HS_SECKEY") {
		t.Errorf("an import gives %v, %v", errs, err)
	}
	f.o.Secrets = ringOf(testKey(t))
	if _, err := f.Register(as("ann"), rec(strings.Repeat("x", maxHandleSecret+1))); stele.KindOf(err) != stele.Invalid {
		t.Errorf("a long secret gives %v", err)
	}
	dangling := rec(secretReference + secretNames.EncodeToString(make([]byte, secretNameBytes)))
	if _, err := f.Register(as("ann"), dangling); err != nil {
		t.Fatal(err)
	}
	if _, err := f.HandleSecret(t.Context(), &dangling.Values[0]); stele.KindOf(err) != stele.NotFound {
		t.Errorf("a reference to nothing gives %v", err)
	}
}

// TestIngestSecrets: an administrator's import encrypts secrets, also where records are not committed
// like others. What is imported twice is the same, and makes no further cells.
func TestIngestSecrets(t *testing.T) {
	f := newFixture(t)
	f.o.Secrets = ringOf(testKey(t))
	f.space("20.500.1/", owner("ann"))
	chunk := func(n int, clear string) (list []*stele.Record) {
		for i := range n {
			rec := &stele.Record{ID: f.id(fmt.Sprintf("20.500.1/X%d", i)), State: stele.Active}
			if i%2 == 0 {
				rec.Values = []stele.HandleValue{{Index: 300, Type: "HS_SECKEY", Data: []byte(clear), Permissions: stele.AdminRead}}
			}
			list = append(list, rec)
		}
		return list
	}
	cells := func() (n int) {
		for _, err := range f.store.Cells(f.admin, HandleSecretCells, "") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	ingest := func(list []*stele.Record, o ImportOptions, want func(error) bool) {
		t.Helper()
		errs, err := f.Ingest(f.admin, list, o)
		if err != nil {
			t.Fatal(err)
		}
		for i, err := range errs {
			if !want(err) {
				t.Fatalf("record %d: %v", i, err)
			}
		}
	}
	good := func(err error) bool { return err == nil }
	same := func(err error) bool { return errors.Is(err, ErrUnchanged) }
	if _, err := f.Ingest(as("ann"), chunk(1, "open sesame"), ImportOptions{Secrets: true}); stele.KindOf(err) != stele.Forbidden {
		t.Errorf("the owner of the namespace gets %v", err)
	}
	const many = few + 2
	ingest(chunk(many, "open sesame"), ImportOptions{Secrets: true, DryRun: true}, good)
	if n := cells(); n != 0 {
		t.Errorf("a dry run made %d cells", n)
	}
	ingest(chunk(many, "open sesame"), ImportOptions{Secrets: true}, good)
	ingest(chunk(many, "open sesame"), ImportOptions{Secrets: true}, same)
	ingest(chunk(many, "open sesame"), ImportOptions{Secrets: true, Update: true}, same)
	if n := cells(); n != many/2 {
		t.Errorf("there are %d cells, want %d", n, many/2)
	}
	ingest(chunk(1, "another"), ImportOptions{Secrets: true}, func(err error) bool { return stele.KindOf(err) == stele.Conflict && !same(err) })
	if n := cells(); n != many/2 {
		t.Errorf("a refused record made a cell: there are %d", n)
	}
	ingest(chunk(1, "another"), ImportOptions{Secrets: true, Update: true}, good)
	ingest(chunk(1, strings.Repeat("x", maxHandleSecret+1)), ImportOptions{Secrets: true, Update: true}, func(err error) bool { return stele.KindOf(err) == stele.Invalid })
	rec, err := f.Registrar.store.Record(f.admin, f.id("20.500.1/X0"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := f.HandleSecret(f.admin, &rec.Values[0]); err != nil || string(got) != "another" {
		t.Errorf("the secret is %q, %v", got, err)
	}
}

// TestIngestKeepsTypes: a registered record keeps the values of types that an update leaves out, in their
// places, whether the update says all or is merged.
func TestIngestKeepsTypes(t *testing.T) {
	f := newFixture(t)
	f.o.Secrets = ringOf(testKey(t))
	f.space("20.500.1/", owner("ann"))
	value := func(index uint32, kind, data string) stele.HandleValue {
		return stele.HandleValue{Index: index, Type: kind, Data: []byte(data), TTL: 60, Permissions: stele.AdminRead | stele.AdminWrite}
	}
	rec := func(values ...stele.HandleValue) *stele.Record {
		return &stele.Record{ID: f.id("20.500.1/X"), State: stele.Active, Values: values}
	}
	admin := value(100, "HS_ADMIN", "x")
	if _, err := f.Ingest(f.admin, []*stele.Record{rec(value(1, "A", "a"), admin, value(2, "B", "b"), value(300, "HS_SECKEY", "open sesame"))}, ImportOptions{Secrets: true}); err != nil {
		t.Fatal(err)
	}
	shape := func() (s string) {
		have, err := f.Registrar.store.Record(f.admin, f.id("20.500.1/X"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range have.Values {
			v := &have.Values[i]
			data, err := f.HandleSecret(f.admin, v)
			if err != nil {
				t.Fatal(err)
			}
			s += fmt.Sprintf("%d %s %s; ", v.Index, v.Type, data)
		}
		return s
	}
	update := func(next *stele.Record, merge bool) error {
		o := ImportOptions{Update: true, KeepTypes: []string{"HS_ADMIN", "HS_SECKEY"}}
		if merge {
			o.Lines = [][]byte{document.AppendRecord(nil, next)}
		}
		errs, err := f.Ingest(f.admin, []*stele.Record{next}, o)
		if err != nil {
			t.Fatal(err)
		}
		return errs[0]
	}
	if err := update(rec(value(1, "A", "a"), value(2, "B", "b")), false); !errors.Is(err, ErrUnchanged) {
		t.Errorf("the same values: %v", err)
	}
	for _, merge := range []bool{false, true} {
		if err := update(rec(value(1, "A", "a2"), value(2, "B", "b"), value(3, "C", fmt.Sprint(merge))), merge); err != nil {
			t.Fatal(err)
		}
		if got, want := shape(), fmt.Sprintf("1 A a2; 100 HS_ADMIN x; 2 B b; 300 HS_SECKEY open sesame; 3 C %t; ", merge); got != want {
			t.Errorf("merge %t:\ngot  %s\nwant %s", merge, got, want)
		}
		if err := update(rec(value(100, "C", "c")), merge); stele.KindOf(err) != stele.Conflict || !strings.Contains(err.Error(), "its value 100 has the type HS_ADMIN") {
			t.Errorf("a value in the place of a kept one: %v", err)
		}
	}
}

// TestSecretChanges: what a dry run shows has no secret in clear.
func TestSecretChanges(t *testing.T) {
	f := newFixture(t)
	f.o.Secrets = ringOf(testKey(t))
	f.space("20.500.1/", owner("ann"))
	chunk := func(clear string) []*stele.Record {
		return []*stele.Record{{ID: f.id("20.500.1/X"), State: stele.Active, Values: []stele.HandleValue{{Index: 300, Type: "HS_SECKEY", Data: []byte(clear), Permissions: stele.AdminRead}}}}
	}
	if _, err := f.Ingest(f.admin, chunk("open sesame"), ImportOptions{Secrets: true}); err != nil {
		t.Fatal(err)
	}
	var shown []FieldChange
	o := ImportOptions{Secrets: true, Update: true, DryRun: true, Changed: func(_ int, fields []FieldChange) { shown = fields }}
	if _, err := f.Ingest(f.admin, chunk("another"), o); err != nil {
		t.Fatal(err)
	}
	if len(shown) != 1 || shown[0].Path != "values[0].data" || shown[0].New != "(new secret)" {
		t.Errorf("a dry run shows %+v", shown)
	}
}
