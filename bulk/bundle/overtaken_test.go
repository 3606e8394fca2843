package bundle

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/registrar"
)

// overtaken is a store to which another server writes before the first commit of namespaces, which is refused for that.
type overtaken struct {
	stele.Store
	other func() // nil: it has written
}

func (o *overtaken) Apply(ctx context.Context, c *stele.Commit) error {
	if other := o.other; other != nil && len(c.Namespaces) > 0 {
		o.other = nil
		other()
	}
	return o.Store.Apply(ctx, c)
}

// An adoption whose commit is refused since another server changed the namespaces tries again, and does not wait for itself.
func TestAdoptWhileNamespacesChange(t *testing.T) {
	g := newGiver(t, 3)
	g.seal(heirOrigin, givenPrefixes...)
	data := g.bundle(g.job(givenPrefixes...))
	h := newHeir(t)
	common := h.store
	h.over(&overtaken{common, func() {
		elsewhere := registrar.New(common, h.schemes, registrar.Options{Now: h.clock})
		_, err := elsewhere.AddNamespace(h.ctx, &stele.Namespace{Scheme: "ark", Prefix: "ark:54321"})
		h.must(err)
	}})
	ctx, cancel := context.WithTimeout(h.ctx, 20*time.Second)
	defer cancel()
	_, err := h.adoption(g).Run(ctx, bytes.NewReader(data))
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatal("it waits for a lock that it holds itself")
	}
	h.must(err)
	if !isOpen(h) {
		t.Error("the namespaces are not open")
	}
}
