package auth

import (
	"context"
	"testing"
)

func TestContext(t *testing.T) {
	ctx := context.Background()
	if p := From(ctx); p.IsKnown() || p.Admin {
		t.Errorf("an empty context has %+v, want nobody", p)
	}
	if p := From(With(ctx, Local())); !p.IsKnown() || !p.Admin {
		t.Errorf("got %+v, want the local administrator", p)
	}
	// The later principal replaces the earlier one.
	if p := From(With(With(ctx, Local()), Principal{})); p.IsKnown() || p.Admin {
		t.Errorf("got %+v, want nobody", p)
	}
}
