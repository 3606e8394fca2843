package frozen

import (
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/store/mem"
)

// A bundle says itself which versions of namespaces it lacks. One that lacks more than any registry has does not fill the memory.
func TestVersionsMissing(t *testing.T) {
	now := time.Date(2031, 5, 2, 10, 0, 0, 0, time.UTC)
	version := func(prefix string, n uint64) *bundle.NamespaceVersion {
		return &bundle.NamespaceVersion{Namespace: &stele.Namespace{Scheme: "ark", Prefix: prefix, Version: n, Created: now, Modified: now}, Current: true}
	}
	for name, list := range map[string][]*bundle.NamespaceVersion{
		"of one namespace": {version("ark:12345", maxUnkept+1)},
		"of several":       {version("ark:12345", maxUnkept/2), version("ark:12346", maxUnkept/2), version("ark:12347", maxUnkept/2)},
		"any number":       {version("ark:12345", 2), version("ark:12346", 1<<64-1)},
	} {
		t.Run(name, func(t *testing.T) {
			l := &loader{store: mem.New(time.Now), tree: newTree(t)}
			if err := l.namespaces(t.Context(), list); stele.KindOf(err) != stele.Invalid || !strings.Contains(err.Error(), "missing") {
				t.Errorf("the error is %v", err)
			}
		})
	}
	l := &loader{store: mem.New(time.Now), tree: newTree(t)}
	if err := l.namespaces(t.Context(), []*bundle.NamespaceVersion{version("ark:12345", 40), version("ark:12346", 1)}); err != nil {
		t.Error(err)
	}
	if ns, err := l.store.Namespace(t.Context(), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}); err != nil || ns.Version != 40 {
		t.Errorf("%+v, %v", ns, err)
	}
}
