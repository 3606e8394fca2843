package resolver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stele-id/stele"
)

// Names of a namespace that was handed over lead to the heir once the heir answers, registered or not, and not before.
func TestHandedOver(t *testing.T) {
	for _, state := range []stele.HandOverState{stele.Offered, stele.Sealed, stele.Forwarded} {
		t.Run(string(state), func(t *testing.T) {
			r := newRegistry(t, Options{Now: clock, CacheBytes: 1 << 20, RedirectBytes: 1 << 20})
			defer r.Close()
			r.namespace(stele.Namespace{Scheme: "urn", Prefix: "urn:example", Status: 303, HandOver: stele.HandOver{
				State: state, Heir: "heir.example.org/.log", Address: "https://heir.example.org/names/"}})
			r.elsewhere(r.written("urn:example:1", 1, "https://example.org/1"))
			other := r.written("urn:isan:1", 1, "https://example.org/2")
			other.Aliases = []stele.ID{r.id("urn:example:alias")}
			r.elsewhere(other)
			r.InvalidateAll()
			heir := "https://heir.example.org/names/"
			want := map[string]string{"urn:example:1": heir + "urn:example:1", "urn:example:2": heir + "urn:example:2", "urn:isan:1": "https://example.org/2",
				"urn:example:alias": "https://example.org/2"} // of which the heir knows nothing
			if state != stele.Forwarded {
				want["urn:example:1"], want["urn:example:2"] = "https://example.org/1", "none"
			}
			for name, url := range want {
				for range 2 {
					if got := r.where(name); got != url {
						t.Errorf("%s leads to %q, want %q", name, got, url)
					}
				}
			}
			if state != stele.Forwarded {
				return
			}
			res, err := r.Resolve(t.Context(), Request{ID: r.id("urn:example:1"), Trace: true})
			if err != nil || res.Kind != Delegation || res.Status != http.StatusMovedPermanently || res.Record != nil {
				t.Fatalf("%+v, %v", res, err)
			}
			told := ""
			for _, step := range res.Trace {
				told += step.Name + ": " + step.Result.Error() + "\n"
			}
			if !strings.Contains(told, "handed over to heir.example.org/.log") {
				t.Errorf("the trace is\n%s", told)
			}
		})
	}
}
