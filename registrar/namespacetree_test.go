package registrar

import (
	"context"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

// A reader of the namespaces does not wait for a process that changes one, also if this process was not told yet what else others had written.
func TestViewWhileNamespacesChange(t *testing.T) {
	f := newFixture(t)
	f.space("ark:12345/")
	f.start() // nothing is read yet
	if err := f.acquire(f.admin); err != nil {
		t.Fatal(err)
	}
	defer f.unlock()
	if _, err := f.load(f.admin); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(f.admin, 5*time.Second)
	defer cancel()
	s, err := f.view(ctx)
	if err != nil {
		t.Fatalf("the reader waits: %v", err)
	}
	if s.Get(f.key("ark:12345/")) == nil || !s.told.Load() {
		t.Error("it is not what the store has, or nothing was told")
	}
	if _, err := f.Namespace(ctx, stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}); err != nil {
		t.Error(err)
	}
}
