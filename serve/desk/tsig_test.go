package desk

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestTSIG: an administrator makes a key, which is shown once in the words of three name servers, sees which zones use it, and
// retires it.
func TestTSIG(t *testing.T) {
	s, _ := newZonedSite(t)
	b := s.as("admin")
	b.get("/.desk/tsig").has(200, "TSIG keys", "hmac-sha512", "stele zone tsig add secondary1.example.org", "curl -X POST", "{&#34;name&#34;:&#34;secondary1.example.org&#34;}")
	b.post("/.desk/tsig", url.Values{"name": {"no name!"}, "algorithm": {"hmac-sha256"}}).has(422, `value="no name!"`, `aria-describedby="name-problem"`)
	b.post("/.desk/tsig", url.Values{"name": {"ns2.example.net"}, "algorithm": {"md5"}}).has(422, "is not an algorithm")
	p := b.post("/.desk/tsig", url.Values{"name": {" NS2.example.net "}, "algorithm": {"hmac-sha512"}}).has(200, "BIND", "Knot", "NSD", "ns2.example.net.", "secret &#34;", "It is not shown again")
	_, secret, _ := strings.Cut(p.text, "secret &#34;")
	if secret, _, _ = strings.Cut(secret, "&#34;"); len(secret) < 80 {
		t.Fatalf("the secret is %q", secret)
	}
	b.post("/.desk/tsig", url.Values{"name": {"ns2.example.net"}, "algorithm": {"hmac-sha256"}}).has(422, "there is a key ns2.example.net. already")
	p = b.get("/.desk/tsig").has(200, "ns2.example.net.", "in use", "no zone")
	if strings.Contains(p.text, secret) {
		t.Error("the secret is shown again")
	}
	b.post("/.desk/zone", zoneValues("1", "secondaries", "192.0.2.53 ns2.example.net. 192.0.2.53")).has(303)
	b.get(zonePage).has(200, `href="/.desk/tsig"`)
	b.get("/.desk/tsig").has(200, "can&#39;t copy these zones any more", `href="/.desk/zone?namespace=`)
	s.now = s.now.Add(11 * time.Minute)
	b.post("/.desk/tsig", url.Values{"name": {"ns3.example.net"}}).has(403, "Prove")
	b.post("/.desk/tsig/retire", url.Values{"name": {"ns2.example.net."}}).has(403, "Prove")
	b = s.as("admin")
	b.post("/.desk/tsig/retire", url.Values{"name": {"ns9.example.net."}}).has(404)
	b.follow(b.post("/.desk/tsig/retire", url.Values{"name": {"ns2.example.net."}})).has(200, "its secret is erased", "retired")
	b.post("/.desk/tsig", url.Values{"name": {"ns2.example.net"}, "algorithm": {"hmac-sha256"}}).has(422, "or was one")
}

// TestTSIGRights walks the forms with every role: the keys are for administrators.
func TestTSIGRights(t *testing.T) {
	s, z := newZonedSite(t)
	must(z.AddTSIGKey(s.admin, "ns2.example.net", "hmac-sha256"))(t)
	for _, user := range []string{"olga", "ed", "ruth", "sam"} {
		b := s.as(user)
		b.get("/.desk/tsig").has(403)
		b.post("/.desk/tsig", url.Values{"name": {"ns3.example.net"}, "algorithm": {"hmac-sha256"}}).has(403)
		b.post("/.desk/tsig/retire", url.Values{"name": {"ns2.example.net."}}).has(403)
	}
	if list := must(z.TSIGKeys(s.admin))(t); len(list) != 1 || !list[0].Retired.IsZero() {
		t.Errorf("the keys are %+v", list)
	}
	newSite(t).as("admin").get("/.desk/tsig").has(404)
}
