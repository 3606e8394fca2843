package client

import (
	"crypto"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/client/dnssec"
	"github.com/stele-id/stele/client/fetch"
	"github.com/stele-id/stele/client/internal/signtest"
	"github.com/stele-id/stele/proof"
)

// newKey makes a key that is a day old.
func newKey(t testing.TB, algorithm string) (crypto.Signer, stele.SigningKey) {
	t.Helper()
	private, err := proof.Generate(algorithm, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := proof.PublicKey(private, signtest.Now().Add(-24*time.Hour).Truncate(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

// txtOf is the record of a key, in a zone file.
func txtOf(k stele.SigningKey) string { return txtRecord(proof.TXT(k)) }

func txtRecord(text string) string {
	words := []string{"_n2s TXT"}
	for len(text) > 0 {
		n := min(len(text), 255)
		words = append(words, `"`+text[:n]+`"`)
		text = text[n:]
	}
	return strings.Join(words, " ") + "\n"
}

// keyTree is the root, urn.example., and zones with keys: paradisec.example. is signed,
// open.example. is not, and lone.example. has none. Rules for urn:led: stand in an
// unsigned zone, and lead to the signed one.
func keyTree(t testing.TB, o signtest.Options, keys string) (tree signtest.Tree, anchors *dnssec.Anchors) {
	t.Helper()
	const rule = ` NAPTR 100 10 "RES:https" "N2S:ED25519" "!.*!https://data.example/a.sig!" .` + "\n"
	paradisec := signtest.NewZone(t, "paradisec.example.", "a.001.ab1"+rule+"_n2s TXT \"hello\"\n_n2s TXT \"v=N2S1; k=none\"\n"+keys, o)
	lone := signtest.NewZone(t, "lone.example.", "n"+rule, o)
	urn := signtest.NewZone(t, "urn.example.", `
paradisec NAPTR 100 10 "" "" "!^urn:paradisec:([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63}):([-_a-z0-9]{1,63})$!\\3.\\2.\\1.paradisec.example.!i" .
paradisec NAPTR 200 10 "s" "thttp+N2L+N2C+N2R" "" _http._tcp.paradisec.example.
open NAPTR 100 10 "" "" "" n.open.example.
lone NAPTR 100 10 "" "" "" n.lone.example.
led NAPTR 100 10 "" "" "" led.open.example.
`, o)
	open := signtest.NewZone(t, "open.example.", "n"+rule+"led NAPTR 100 10 \"\" \"\" \"\" a.001.ab1.paradisec.example.\n"+keys, signtest.Options{Unsigned: true})
	example := signtest.NewZone(t, "example.", "paradisec NS ns.other.test.\nlone NS ns.other.test.\nurn NS ns.other.test.\nopen NS ns.other.test.\n"+
		paradisec.DS(dns.SHA256)+lone.DS(dns.SHA256)+urn.DS(dns.SHA256), signtest.Options{})
	root := signtest.NewZone(t, ".", "example. NS ns.other.test.\n"+example.DS(dns.SHA256), signtest.Options{})
	for _, z := range []*signtest.Zone{root, example, urn, paradisec, lone, open} {
		tree = append(tree, z.Sign())
	}
	anchors, err := dnssec.ParseAnchors(strings.NewReader(root.Anchor()))
	if err != nil {
		t.Fatal(err)
	}
	return tree, anchors
}

func TestKeys(t *testing.T) {
	_, one := newKey(t, stele.KeyED25519)
	_, two := newKey(t, stele.KeyRSA)
	_, within := newKey(t, stele.KeyED25519)
	_, beside := newKey(t, stele.KeyED25519)
	scoped := txtRecord(proof.ScopedTXT(within, "urn:paradisec:ab1")) + txtRecord(proof.ScopedTXT(beside, "urn:paradisec:ab2"))
	for _, denial := range []signtest.Denial{signtest.NSEC, signtest.NSEC3, signtest.Compact} {
		tree, anchors := keyTree(t, signtest.Options{Denial: denial}, txtOf(one)+txtOf(two)+scoped)
		d := newDNS(t, DNSOptions{DNSSEC: Validate, Anchors: anchors, Now: signtest.Now}, serveTree(t, tree, nil))
		for _, tt := range []struct {
			name string
			from string
			by   Voucher
			note string
			kind stele.Kind
		}{
			{"urn:paradisec:AB1:001:A", "_n2s.paradisec.example", ByDNSSEC, "", 0},
			{"urn:open:x", "_n2s.open.example", NotAuthenticated, "open.example. is not signed", 0},
			// An unsigned zone may lead to an attacker's keys, however well these are signed.
			{"urn:led:x", "_n2s.paradisec.example", NotAuthenticated, "open.example. is not signed", 0},
			{"urn:lone:x", "", "", "", stele.NotFound},
			// It is found by the resolver, and the zone of the rule is not the namespace's.
			{"urn:paradisec:AB1:001:A:B", "", "", "", stele.NotFound},
			{"urn:paradisec:AB1:001:C", "", "", "", stele.NotFound},
			{"urn:nowhere:x", "", "", "", stele.NotFound},
			{"10.5072/x", "", "", "", stele.NotFound},
			{"urn:lsid:example.org:specimens:4711", "", "", "", stele.NotFound},
			{"ark:12345/x1", "", "", "", stele.NotFound},
		} {
			keys, err := d.Keys(t.Context(), tt.name)
			if tt.from == "" {
				if err == nil || stele.KindOf(err) != tt.kind {
					t.Errorf("%d %s: %+v, %v, want %v", denial, tt.name, keys, err, tt.kind)
				}
				continue
			}
			if err != nil || keys.From != tt.from || keys.By != tt.by || !strings.Contains(keys.Note, tt.note) || (keys.Note == "") != (tt.note == "") {
				t.Errorf("%d %s: %+v, %v", denial, tt.name, keys, err)
			}
			found := make(map[string]bool)
			for _, k := range keys.List {
				found[k.ID] = true
			}
			// A key of a part of the archive is for the names of that part.
			if !found[one.ID] || !found[two.ID] || found[within.ID] != strings.HasPrefix(tt.name, "urn:paradisec:AB1:") || found[beside.ID] {
				t.Errorf("%d %s: %d keys", denial, tt.name, len(keys.List))
			}
		}
	}
}

// TestKeysChanged: an attacker on the network path who changes keys, or removes them, is
// detected; where validation is not required, the result says that the keys are unproven.
func TestKeysChanged(t *testing.T) {
	_, one := newKey(t, stele.KeyED25519)
	_, other := newKey(t, stele.KeyED25519)
	tree, anchors := keyTree(t, signtest.Options{}, txtOf(one))
	forged := parseZone(t, strings.Replace(txtOf(other), "_n2s", "_n2s.paradisec.example.", 1))[0]
	for about, change := range map[string]func(q dns.Question, m *dns.Msg){
		"another key": func(_ dns.Question, m *dns.Msg) { m.Answer[0] = forged },
		"no key":      func(_ dns.Question, m *dns.Msg) { m.Answer = nil },
		"no name":     func(_ dns.Question, m *dns.Msg) { m.Answer, m.Rcode = nil, dns.RcodeNameError },
	} {
		server := serveTree(t, tree, func(q dns.Question, m *dns.Msg) {
			if q.Name == "_n2s.paradisec.example." {
				change(q, m)
			}
		})
		d := newDNS(t, DNSOptions{DNSSEC: Validate, Anchors: anchors, Now: signtest.Now}, server)
		if keys, err := d.Keys(t.Context(), paradisec); !isBogus(err) || stele.KindOf(err) != stele.Conflict {
			t.Errorf("%s: %+v, %v", about, keys, err)
		}
	}
	plain := newNameServer(t, "")
	plain.misbehave(func(w dns.ResponseWriter, q *dns.Msg) bool { _ = w.WriteMsg(tree.Answer(q)); return true })
	keys, err := newDNS(t, DNSOptions{}, plain).Keys(t.Context(), paradisec)
	if err != nil || keys.By != NotAuthenticated || !strings.Contains(keys.Note, "were not validated") {
		t.Errorf("%+v, %v", keys, err)
	}
	plain.misbehave(func(w dns.ResponseWriter, q *dns.Msg) bool {
		m := new(dns.Msg).SetReply(q)
		m.Rcode = dns.RcodeServerFailure
		_ = w.WriteMsg(m)
		return true
	})
	if _, err := newDNS(t, DNSOptions{}, plain).Keys(t.Context(), paradisec); stele.KindOf(err) != stele.Unavailable {
		t.Errorf("%v", err)
	}
}

// TestKeysZone: a forged SOA record does not make the keys of the zone above those of a
// name, whatever is proven beside it.
func TestKeysZone(t *testing.T) {
	_, own := newKey(t, stele.KeyED25519)
	_, above := newKey(t, stele.KeyED25519)
	forged := parseZone(t, "example. SOA a. b. 1 1 1 1 60\n")[0]
	for _, denial := range []signtest.Denial{signtest.NSEC, signtest.NSEC3, signtest.Compact} {
		tree, anchors := keyTree(t, signtest.Options{Denial: denial}, txtOf(own))
		example := tree[1]
		example.Add(txtOf(above))
		example.Sign()
		for about, change := range map[string]func(m *dns.Msg){
			"nothing": func(*dns.Msg) {},
			"before":  func(m *dns.Msg) { m.Ns = append([]dns.RR{forged}, m.Ns...) },
			"instead": func(m *dns.Msg) {
				m.Ns = append([]dns.RR{forged}, slices.DeleteFunc(m.Ns, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeSOA })...)
			},
			"none": func(m *dns.Msg) {
				m.Ns = slices.DeleteFunc(m.Ns, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeSOA })
			},
		} {
			server := serveTree(t, tree, func(q dns.Question, m *dns.Msg) {
				if q.Qtype == dns.TypeSOA {
					change(m)
				}
			})
			d := newDNS(t, DNSOptions{DNSSEC: Validate, Anchors: anchors, Now: signtest.Now}, server)
			keys, err := d.Keys(t.Context(), paradisec)
			if err != nil || keys.By != ByDNSSEC || keys.From != "_n2s.paradisec.example" || len(keys.List) != 1 || keys.List[0].ID != own.ID {
				t.Errorf("%d, %s: %+v, %v", denial, about, keys, err)
			}
		}
	}
}

// TestKeyServer: only the resolver that rules name may tell keys, and only if all these
// rules are proven.
func TestKeyServer(t *testing.T) {
	const rules = `
uris NAPTR 100 10 "u" "thttp+N2S" "!.*!https://id.example!" .
srvs NAPTR 100 10 "s" "thttp+N2S" "" _https._tcp.urn.example.
_https._tcp SRV 0 0 8443 id.example.
led NAPTR 100 10 "s" "thttp+N2S" "" _https._tcp.open.example.
clear NAPTR 100 10 "s" "thttp+N2S" "" _http._tcp.urn.example.
_http._tcp SRV 0 0 8080 id.example.
host NAPTR 100 10 "a" "thttp+N2S" "" id.example.
target NAPTR 100 10 "RES:https" "N2S:ED25519" "!.*!https://id.example/a.sig!" .
uri NAPTR 100 10 "u" "https+N2S" "!.*!https://id.example/a.sig!" .
named NAPTR 100 10 "u" "thttp+N2S" "!.*!https://id.example/\\0!" .
other NAPTR 100 10 "" "" "" x.open.example.
`
	urn := signtest.NewZone(t, "urn.example.", rules, signtest.Options{})
	open := signtest.NewZone(t, "open.example.", "_https._tcp SRV 0 0 8443 id.example.\nx NAPTR 100 10 \"u\" \"thttp+N2S\" \"!.*!https://id.example!\" .\n", signtest.Options{Unsigned: true})
	example := signtest.NewZone(t, "example.", "urn NS ns.other.test.\nopen NS ns.other.test.\n"+urn.DS(dns.SHA256), signtest.Options{})
	root := signtest.NewZone(t, ".", "example. NS ns.other.test.\n"+example.DS(dns.SHA256), signtest.Options{})
	tree := signtest.Tree{root.Sign(), example.Sign(), urn.Sign(), open.Sign()}
	anchors, err := dnssec.ParseAnchors(strings.NewReader(root.Anchor()))
	if err != nil {
		t.Fatal(err)
	}
	server := serveTree(t, tree, nil)
	d := newDNS(t, DNSOptions{DNSSEC: Validate, Anchors: anchors, Now: signtest.Now}, server)
	for name, want := range map[string]string{
		"uris": "https://id.example", "srvs": "https://id.example:8443",
		"led": "", "clear": "", "host": "", "target": "", "uri": "", "named": "", "other": "", "none": "",
	} {
		got, err := d.KeyServer(t.Context(), "urn:"+name+":x")
		if got != want || (err == nil) != (want != "") || err != nil && stele.KindOf(err) != stele.NotFound {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	trusting := newNameServer(t, "")
	trusting.misbehave(func(w dns.ResponseWriter, q *dns.Msg) bool { _ = w.WriteMsg(tree.Answer(q)); return true })
	if got, err := newDNS(t, DNSOptions{}, trusting).KeyServer(t.Context(), "urn:uris:x"); err == nil || stele.KindOf(err) != stele.NotFound {
		t.Errorf("%q, %v", got, err)
	}
}

func TestJWKS(t *testing.T) {
	_, one := newKey(t, stele.KeyECDSA)
	set, err := proof.JWKS([]stele.SigningKey{one})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) }))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		switch r.URL.Path {
		case jwksPath + "urn:paradisec", jwksPath + "ark:13030/qt123":
			_, _ = w.Write(set)
		case jwksPath + "urn:clear":
			http.Redirect(w, r, plain.URL, http.StatusFound)
		case jwksPath + "urn:rubbish":
			_, _ = w.Write([]byte("<html>"))
		case jwksPath + "urn:long":
			_, _ = w.Write(make([]byte, maxDocument+1))
		case jwksPath + "urn:empty":
			_, _ = w.Write([]byte(`{"keys":[]}`))
		case jwksPath + "urn:down":
			w.WriteHeader(http.StatusBadGateway)
		default:
			http.NotFound(w, r)
		}
	}))
	defer secure.Close()
	f := fetch.New(fetch.Options{RootCAs: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	defer f.Close()
	for _, tt := range []struct {
		server string
		name   string
		by     Voucher
		kind   stele.Kind
	}{
		{secure.URL + "/uri-res/N2S?urn:paradisec:a:b:c", paradisec, ByHTTPS, 0},
		{plain.URL, paradisec, NotAuthenticated, 0},
		{secure.URL, "ark:13030/qt123", ByHTTPS, 0}, // its namespace may be ark:13030/qt, which only the server knows
		{secure.URL, "urn:clear:x", NotAuthenticated, 0},
		{secure.URL, "urn:rubbish:x", "", stele.Conflict},
		{secure.URL, "urn:long:x", "", stele.Conflict},
		{secure.URL, "urn:empty:x", "", stele.NotFound},
		{secure.URL, "urn:down:x", "", stele.Unavailable},
		{secure.URL, "urn:nobody:x", "", stele.NotFound},
		{"ftp://h/", paradisec, "", stele.NotFound},
	} {
		id, err := schemes(t).Parse(tt.name)
		if err != nil {
			t.Fatal(err)
		}
		asked = nil
		keys, err := JWKS(t.Context(), f, schemes(t), tt.server, id)
		if tt.by == "" {
			if err == nil || stele.KindOf(err) != tt.kind {
				t.Errorf("%s at %s: %+v, %v, want %v", tt.name, tt.server, keys, err, tt.kind)
			}
			continue
		}
		if err != nil || keys.By != tt.by || len(keys.List) != 1 || keys.List[0].ID != one.ID || (keys.Note != "") != (tt.by == NotAuthenticated) {
			t.Errorf("%s at %s: %+v, %v", tt.name, tt.server, keys, err)
		}
		if tt.name == paradisec && tt.by == ByHTTPS && asked[len(asked)-1] != jwksPath+"urn:paradisec" {
			t.Errorf("asked for %q", asked)
		}
	}
	stranger := fetch.New(fetch.Options{})
	defer stranger.Close()
	id, _ := schemes(t).Parse(paradisec)
	if keys, err := JWKS(t.Context(), stranger, schemes(t), secure.URL, id); err == nil || stele.KindOf(err) != stele.Conflict {
		t.Errorf("%+v, %v", keys, err)
	}
}
