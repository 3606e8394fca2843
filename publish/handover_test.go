package publish_test

import (
	"testing"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish/publishtest"
)

// Rules lead to this registry's zone until the namespace is forwarded, and then to the heir's resolver: also those at the apex of the zone,
// and for names that are not in it. The names that the zone has stay there, so that what a cache leads to does not vanish.
func TestHandedOver(t *testing.T) {
	p := publishtest.New(t)
	p.Paradisec()
	p.Namespace("urn:paradisec:sub", func(ns *stele.Namespace) { ns.Title = "Not published by itself" })
	p.Register("urn:paradisec:aa:bb:cc", "http://example.org/1")
	p.Register("urn:paradisec:sub:1:a", "http://example.org/2")
	key := current(p, "urn:paradisec").Key()
	const heir = "https://heir.example.org/names/"
	here := map[string]string{
		"urn:paradisec:aa:bb:cc": "RES:http http://example.org/1",
		"urn:paradisec:sub:1:a":  "RES:http http://example.org/2",
	}
	there := map[string]string{
		"urn:paradisec:aa:bb:cc":   "DIS:URL " + heir + "urn:paradisec:aa:bb:cc",
		"URN:paradisec:sub:1:a":    "DIS:URL " + heir + "URN:paradisec:sub:1:a",
		"urn:paradisec:made:there": "DIS:URL " + heir + "urn:paradisec:made:there",
	}
	walk := func(step string, want map[string]string) {
		t.Helper()
		for id, want := range want {
			for _, root := range []string{"urn.example.", "@paradisec.example."} {
				if got := p.Walk(root, id, stele.N2L); got != want {
					t.Errorf("%s: %s from %s: %s, want %s", step, id, root, got, want)
				}
			}
		}
		if n, _ := p.Lookup("cc.bb.aa.paradisec.example."); !n.Exists {
			t.Errorf("%s: the name is not in its zone", step)
		}
	}
	root, zone := p.Serial("urn.example."), p.Serial("paradisec.example.")
	do := func(list []*stele.Namespace, err error) {
		t.Helper()
		if err != nil || len(list) != 2 {
			t.Fatalf("%d namespaces, %v", len(list), err)
		}
	}
	walk("before", here)
	do(p.Registrar.OfferNamespace(p.Ctx, key, "heir.example.org/.log", heir))
	walk("offered", here)
	do(p.Registrar.SealNamespace(p.Ctx, key))
	walk("sealed", here)
	if p.Serial("urn.example.") != root || p.Serial("paradisec.example.") != zone {
		t.Error("a seal changes nothing in the DNS, and a serial is another one")
	}
	do(p.Registrar.ForwardNamespace(p.Ctx, key))
	walk("forwarded", there)
	if !stele.SerialAfter(p.Serial("urn.example."), root) || !stele.SerialAfter(p.Serial("paradisec.example."), zone) {
		t.Errorf("the rules are others, and the serials are %d and %d as before", root, zone)
	}
	do(p.Registrar.CancelHandOver(p.Ctx, key, true))
	walk("cancelled", here)
}
