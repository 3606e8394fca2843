package publish_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/ddds"
	n2s "github.com/stele-id/stele/proof"
	"github.com/stele-id/stele/publish/publishtest"
)

// publishedKeys returns the keys at a name by their IDs, each with what it is confined to.
func publishedKeys(p *publishtest.Registry, name string) map[string]string {
	p.T.Helper()
	n, _ := p.Lookup(name)
	found := make(map[string]string)
	for _, rr := range n.Records {
		txt, ok := rr.(*dns.TXT)
		if !ok {
			continue
		}
		text := ""
		for _, part := range txt.Txt {
			plain, err := ddds.Unescape(part)
			if err != nil || len(plain) > 255 {
				p.T.Fatalf("%d bytes, %v", len(plain), err)
			}
			text += plain
		}
		k, prefix, err := n2s.ParseScopedTXT(text)
		if err != nil {
			p.T.Fatal(err)
		}
		found[k.ID] = prefix
	}
	return found
}

func TestSignaturesArePublished(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	ed, _ := p.AddKey("urn:paradisec", stele.KeyED25519)
	ec, _ := p.AddKey("urn:paradisec", stele.KeyECDSA)
	const name, owner = "urn:paradisec:a:b:c", "c.b.a.paradisec.example."
	p.Register(name, "N2L http://example.org/", "N2S http://example.org/old.sig")
	location := `100 10 "RES:http" "N2L" "!^urn:paradisec:a:b:c$!http://example.org/!i" .`
	wantRules(t, rulesAt(p, owner), location, `100 10 "RES:http" "N2S" "!^urn:paradisec:a:b:c$!http://example.org/old.sig!i" .`, further)
	p.Sign(name, ed)
	wantRules(t, rulesAt(p, owner), location, `100 10 "RES:http" "N2S:ED25519" "!^urn:paradisec:a:b:c$!http://id.example.org/uri-res/N2S?urn:paradisec:a:b:c!i" .`, further)
	p.Sign(name, ec)
	wantRules(t, rulesAt(p, owner), location, `100 10 "RES:http" "N2S:ED25519+N2S:ECDSA" "!^urn:paradisec:a:b:c$!http://id.example.org/uri-res/N2S?urn:paradisec:a:b:c!i" .`, further)

	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Resolver = "id.example.org:443" })
	if rules := rulesAt(p, owner); !slices.ContainsFunc(rules, func(r string) bool {
		return strings.Contains(r, `"RES:https" "N2S:ED25519+N2S:ECDSA"`) && strings.Contains(r, "https://id.example.org/uri-res/N2S?")
	}) {
		t.Errorf("over TLS: %q", rules)
	}
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Publication.Resolver = "" })
	if rules := rulesAt(p, owner); slices.ContainsFunc(rules, func(r string) bool { return strings.Contains(r, "N2S") }) {
		t.Errorf("without a resolver: %q", rules)
	}
	if _, err := p.Registrar.Withdraw(p.Ctx, p.ID(name), 0, "gone", stele.ID{}); err != nil {
		t.Fatal(err)
	}
	if rules := rulesAt(p, owner); slices.ContainsFunc(rules, func(r string) bool { return strings.Contains(r, "N2S") }) {
		t.Errorf("withdrawn: %q", rules)
	}
}

// TestPromisesArePublished checks that a rule leads to the promise at the resolver, or to
// the owner's own page about it.
func TestPromisesArePublished(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Register("urn:paradisec:a:b:c", "N2L http://example.org/")
	p.Register("urn:paradisec:a:b:d", "N2L http://example.org/", "N2P http://example.org/promise")
	leads := func(name, to string) bool {
		return slices.ContainsFunc(rulesAt(p, name), func(r string) bool { return strings.Contains(r, `"N2P" "!^urn:`) && strings.Contains(r, to) })
	}
	const own = "!http://id.example.org/uri-res/N2P?urn:paradisec:a:b:"
	if leads("c.b.a.paradisec.example.", own) {
		t.Error("nothing is promised, and a rule leads to it")
	}
	p.Namespace("urn:paradisec", func(ns *stele.Namespace) { ns.Persistence.Level = stele.Permanent })
	if !leads("c.b.a.paradisec.example.", own+"c!") {
		t.Errorf("%q", rulesAt(p, "c.b.a.paradisec.example."))
	}
	if leads("d.b.a.paradisec.example.", own) || !leads("d.b.a.paradisec.example.", "!http://example.org/promise!") {
		t.Errorf("%q", rulesAt(p, "d.b.a.paradisec.example."))
	}
}

func TestKeysArePublished(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	p.Publish("urn:paradisec:own", "own.example.", ":", 2)
	_, rsa := p.AddKey("urn:paradisec", stele.KeyRSA)
	_, root := p.AddKey("urn:", stele.KeyED25519)
	_, part := p.AddKey("urn:paradisec:part", stele.KeyECDSA)
	_, own := p.AddKey("urn:paradisec:own", stele.KeyED25519)
	p.AddKey("urn:paradiseclike", stele.KeyED25519)
	p.AddKey("ark:12345", stele.KeyED25519)
	want := map[string]string{rsa.ID: "", root.ID: "", part.ID: "urn:paradisec:part"}
	if diff := cmp.Diff(want, publishedKeys(p, "_n2s.paradisec.example.")); diff != "" {
		t.Error(diff)
	}
	want = map[string]string{own.ID: "", rsa.ID: "", root.ID: ""}
	if diff := cmp.Diff(want, publishedKeys(p, "_n2s.own.example.")); diff != "" {
		t.Error(diff)
	}
	if found := publishedKeys(p, "_n2s.paradisec.paradisec.example."); len(found) > 0 {
		t.Errorf("elsewhere: %v", found)
	}
	p.Namespace("urn:", func(ns *stele.Namespace) { ns.Keys = append(ns.Keys, rsa) })
	if n, _ := p.Lookup("_n2s.paradisec.example."); len(n.Records) != 3 {
		t.Errorf("a key of two namespaces: %v", n.Records)
	}
	// As many as there can be fit an answer, and the rest is told of.
	for i := range 4 {
		for range stele.MaxKeys {
			p.AddKey(fmt.Sprintf("urn:paradisec:part%d", i), stele.KeyED25519)
		}
	}
	n, _ := p.Lookup("_n2s.paradisec.example.")
	m := &dns.Msg{Answer: n.Records}
	if len(n.Records) != n2s.MaxKeys || m.Len() > 60_000 {
		t.Errorf("%d keys, %d bytes", len(n.Records), m.Len())
	}
	if text := p.Problems("paradisec.example."); !strings.Contains(text, "19 signing keys can't be published") {
		t.Errorf("check says\n%s", text)
	}
}

// TestKeysAreExported checks that zone files have keys and rules too, and that BIND reads
// them.
func TestKeysAreExported(t *testing.T) {
	p := publishtest.New(t)
	p.Publish("urn:paradisec", "paradisec.example.", ":", 3)
	key, k := p.AddKey("urn:paradisec", stele.KeyRSA)
	p.Register("urn:paradisec:a:b:c", "N2L http://example.org/")
	p.Sign("urn:paradisec:a:b:c", key)
	var b bytes.Buffer
	if err := p.Zones.Export(p.Ctx, &b, "paradisec.example.", nil); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"\n_n2s 3600 IN TXT \"v=N2S1; k=rsa; id=" + k.ID, `"N2S:RSA"`} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%s\nlacks %s", b.String(), part)
		}
	}
	file := filepath.Join(t.TempDir(), "zone")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("named-checkzone", "paradisec.example.", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, b.String())
	}
}
