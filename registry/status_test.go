package registry

import (
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

func TestStatus(t *testing.T) {
	schemes, err := all.New(all.Config{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	r := New(mem.New(time.Now), schemes, Options{Now: time.Now})
	defer r.Close()
	ctx := auth.With(t.Context(), auth.Local())
	if _, err := r.Registrar.AddNamespace(ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:12345"}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ark:12345/x1", "ark:12345/x2"} {
		id, err := schemes.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Registrar.Register(ctx, &stele.Record{ID: id, State: stele.Reserved}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Store.Seal(ctx, "moved"); err != nil {
		t.Fatal(err)
	}
	at := Place{Folder: "here"}
	s, err := at.Status(ctx, r.Store, false)
	if err != nil || s.Place != at.String() || s.Kind != at.Kind() || s.Changes != 3 || s.Namespaces != 1 || s.Records != nil || s.Sealed != "moved" || s.LastChange == nil || s.Generation.Number != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := at.Status(ctx, r.Store, true); err != nil || s.Records == nil || *s.Records != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}
