package resolver

import (
	"testing"

	"github.com/stele-id/stele"
)

// The names of a server's IP address do not begin as the namespace of the server does, and
// belong to it by the settings of its minter. The registrar counts them there; the resolver
// must answer by the rules of the same namespace.
func TestNamespaceOfClaimedNames(t *testing.T) {
	r := newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20})
	const ibip = "8JMKD3MGP8W/34PGRBS"
	r.namespace(stele.Namespace{Scheme: "ibi", Prefix: "sid.inpe.br/mtc-m18", Owner: "ann", TTL: 77, Status: 307, Minter: stele.Minter{
		Kind: stele.MinterIBI, Host: "mtc-m18.sid.inpe.br", Port: 80, IP: "150.163.34.243", IPPort: 800, Granularity: "1s"}})
	r.to(ibip, page("https://example.org/1"))
	if res := r.resolve(Request{ID: r.id(ibip)}); res.Namespace == nil || res.Namespace.Prefix != "sid.inpe.br/mtc-m18" || res.TTL != 77 || res.Status != 307 {
		t.Errorf("%s is in %+v; TTL %d, status %d", ibip, res.Namespace, res.TTL, res.Status)
	}
	if ns, err := r.Namespace(t.Context(), r.id("8JMKD3MGP8W/34PGRBT")); err != nil || ns == nil || ns.Prefix != "sid.inpe.br/mtc-m18" {
		t.Errorf("a name that is not registered is in %+v, %v", ns, err)
	}
	r.put(stele.Record{ID: r.id("8JMKD3MGP8W/34PGRBU"), Readers: []string{"user:bob"}, Targets: []stele.Target{page("https://example.org/2")}})
	for who, want := range map[string]string{"user:ann": "https://example.org/2", "user:eve": "not found"} {
		if got := r.location("8JMKD3MGP8W/34PGRBU", who); got != want {
			t.Errorf("%s gets %s, want %s", who, got, want)
		}
	}
}

// The explanation of an ARK has the shoulder that is registered.
func TestExplain(t *testing.T) {
	r := newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20})
	shoulder := func() any {
		t.Helper()
		x, err := r.Explain(t.Context(), "ark:/12345/x5-4xz321")
		if err != nil || x.ID != r.id("ark:12345/x54xz321") {
			t.Fatal(x, err)
		}
		return x.Parts.Get("shoulder")
	}
	if got := shoulder(); got != "x5" {
		t.Errorf("by convention: %v", got)
	}
	r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345/x54"})
	r.namespace(stele.Namespace{Scheme: "ark", Prefix: "ark:12345"})
	if got := shoulder(); got != "x54" {
		t.Errorf("registered: %v", got)
	}
	if _, err := r.Explain(t.Context(), "ark:"); stele.KindOf(err) != stele.Invalid {
		t.Error(err)
	}
}
