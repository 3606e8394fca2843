package registry

import (
	"testing"

	"github.com/stele-id/stele"
)

// TestFollowBeforeWriting: a server finds out by a commit that was refused, or when it mints, that another one changed the namespaces. It
// knows then all else that was written before, too: a client that may write in a namespace that was handed over does not get the answer that its
// names are not registered.
func TestFollowBeforeWriting(t *testing.T) {
	key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:99999"}
	for name, write := range map[string]func(b *peer) error{
		"registers": func(b *peer) error {
			_, err := b.Registrar.Register(b.admin, &stele.Record{ID: b.id("urn:example:2"), Targets: []stele.Target{{Service: stele.N2L, URL: urlBefore}}})
			return err
		},
		"mints": func(b *peer) error {
			_, err := b.Registrar.Mint(b.admin, stele.NamespaceKey{Scheme: "urn", Prefix: "urn:other"}, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			peers := newPeers(t, 2, false)
			a, b := peers[0], peers[1]
			a.namespace("urn:example", func(*stele.Namespace) {})
			a.namespace("ark:99999", func(*stele.Namespace) {})
			a.namespace("urn:other", func(ns *stele.Namespace) { ns.Minter = stele.Minter{Kind: stele.MinterUUID} })
			a.register("urn:example:old", urlBefore)
			b.follow()
			if new, old := b.where("urn:example:new"), b.where("urn:example:old"); new != "not found" || old != urlBefore {
				t.Fatalf("before: %s, %s", new, old)
			}
			a.register("urn:example:new", urlAfter)
			a.update("urn:example:old", urlAfter)
			if _, err := a.Registrar.OfferNamespace(a.admin, key, "heir.example.org/.log", "https://heir.example.org/"); err != nil {
				t.Fatal(err)
			}
			if _, err := a.Registrar.SealNamespace(a.admin, key); err != nil {
				t.Fatal(err)
			}
			if new, old := b.where("urn:example:new"), b.where("urn:example:old"); new != "not found" || old != urlBefore {
				t.Fatalf("it follows already: %s, %s", new, old)
			}
			if err := write(b); err != nil {
				t.Fatal(err)
			}
			if new, old := b.where("urn:example:new"), b.where("urn:example:old"); new != urlAfter || old != urlAfter {
				t.Errorf("after it wrote: %s, %s; want %s for both", new, old, urlAfter)
			}
		})
	}
}
