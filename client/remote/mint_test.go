package remote

import (
	"context"
	"testing"

	"github.com/stele-id/stele"
)

// TestMintRecords registers as many records as there may be, each under a name of its
// own, and then says why there are no more.
func TestMintRecords(t *testing.T) {
	o := newTestServer(t)
	key := stele.NamespaceKey{Scheme: "urn", Prefix: "urn:x1"}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Quota: 300, Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".zd"}}
	if _, err := o.registrar.AddNamespace(o.root, ns); err != nil {
		t.Fatal(err)
	}
	r := o.open(o.token)
	model := &stele.Record{State: stele.Active, Targets: []stele.Target{{Service: stele.N2L, URL: "https://example.org/", Order: 100, Preference: 10}}}
	seen := make(map[stele.ID]bool)
	var failed error
	for rec, err := range r.MintRecords(t.Context(), model, []stele.NamespaceKey{key}, 1000) {
		if err != nil {
			failed = err
			continue
		}
		if seen[rec.ID] || rec.Version != 1 {
			t.Errorf("%s, version %d", rec.ID, rec.Version)
		}
		seen[rec.ID] = true
	}
	if len(seen) != 300 || stele.KindOf(failed) != stele.Exhausted {
		t.Errorf("%d records, %v", len(seen), failed)
	}
	if count, err := r.Count(t.Context(), key); err != nil || count != 300 {
		t.Error(count, err)
	}
}

// TestMintEnds: MintRecords stops when the context ends, and yields what was made until then.
func TestMintEnds(t *testing.T) {
	o := newTestServer(t)
	key := stele.NamespaceKey{Scheme: "urn", Prefix: "urn:x1"}
	ns := &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".zd"}}
	if _, err := o.registrar.AddNamespace(o.root, ns); err != nil {
		t.Fatal(err)
	}
	r := o.open(o.token)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	count := uint64(0)
	for _, err := range r.MintRecords(ctx, &stele.Record{State: stele.Reserved}, []stele.NamespaceKey{key}, 1_000_000) {
		if err != nil {
			t.Fatal(err)
		}
		if count++; count == 100 {
			cancel()
		}
	}
	if there, err := r.Count(t.Context(), key); err != nil || there != count || count < 100 {
		t.Errorf("%d of %d were told, %v", count, there, err)
	}
}
