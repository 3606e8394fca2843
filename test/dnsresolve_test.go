package test

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/ddds"
	"github.com/stele-id/stele/scheme/all"
)

// wanted is something that is asked for by its name, and the expected result.
type wanted struct {
	name    string
	service vocabulary.Service
	accept  string          // one media type, or none
	at      string          // location below archiveSite
	kind    vocabulary.Kind // of the error, if there is none
}

var archiveWanted = []wanted{
	{name: "urn:paradisec:AB1:001:A", service: "N2L", at: "/paradisec/AB1/001/A"},
	{name: "urn:paradisec:AB1:001:A", service: "N2L", accept: "text/html", at: "/paradisec/AB1/001/A"},
	{name: "urn:paradisec:AB1:001:A", service: "N2L", accept: "audio/wav", at: "/paradisec/AB1/001/A.wav"},
	{name: "urn:paradisec:AB1:001:A", service: "N2L", accept: "audio/mpeg", at: "/paradisec/AB1/001/A.mp3"},
	{name: "urn:paradisec:AB1:001:A", service: "N2L", accept: "audio/ogg", at: "/paradisec/AB1/001/A.wav"}, // the next best
	{name: "urn:paradisec:AB1:001:A", service: "N2C", at: "/paradisec/AB1/001/A.json"},
	{name: "urn:paradisec:AB1:001:A", service: "N2S", at: "/paradisec/AB1/001/A.sig"},
	{name: "urn:paradisec:AB1:001:A", service: "N2P", at: "/paradisec/persistence"},
	{name: "URN:Paradisec:ab1:001:b", service: "N2L", accept: "audio/mpeg", at: "/paradisec/AB1/001/B.wav"},
	// Not for the DNS: the last step is made over HTTP.
	{name: "urn:paradisec:AB1:001:a%20b", service: "N2L", at: "/space"},
	// Withdrawn; reserved; not public; never registered; another namespace.
	{name: "urn:paradisec:AB1:004:A", service: "N2L", kind: vocabulary.Gone},
	{name: "urn:paradisec:AB1:003:A", service: "N2L", kind: vocabulary.NotFound},
	{name: "urn:paradisec:AB1:001:C", service: "N2L", kind: vocabulary.NotFound},
	{name: "urn:paradisec:AB1:001:D", service: "N2L", kind: vocabulary.NotFound},
	{name: "urn:other:1", service: "N2L", kind: vocabulary.NotFound},
}

// resolvesArchive finds everything through a name server, with the program and with
// the package.
func resolvesArchive(t *testing.T, server *nameServer) {
	t.Helper()
	way := clientOf(t, server, archiveRoot)
	for _, w := range archiveWanted {
		code := map[vocabulary.Kind]int{vocabulary.NotFound: 3, vocabulary.Gone: 4}[w.kind]
		out, got := resolveWith(t, w, "--dns", server.addr, "--root", archiveRoot)
		if got != code || code == 0 && out != archiveSite+w.at+"\n" {
			t.Errorf("stele resolve through %s: %+v: exit %d, %s", server.name, w, got, out)
		}
	}
	resolvesAll(t, server.name, way)
}

// resolvesAll finds everything with the package.
func resolvesAll(t *testing.T, about string, way client.Way) {
	t.Helper()
	for _, w := range archiveWanted {
		q := client.Request{Name: w.name, Service: w.service, Trace: true}
		if w.accept != "" {
			q.Accept = []ddds.Preference{{Range: w.accept, Q: 1000}}
		}
		res, err := way.Resolve(t.Context(), q)
		switch {
		case w.at == "" && err != nil && vocabulary.KindOf(err) == w.kind:
		case w.at == "" || err != nil || res.Found != client.FoundLocation || res.Location != archiveSite+w.at:
			t.Errorf("the client through %s: %+v: %v, %v\n%s", about, w, &res, err, res.Trace)
		}
	}
}

// resolveWith runs stele resolve for something, and returns what it prints and its
// exit status.
func resolveWith(t *testing.T, w wanted, flags ...string) (string, int) {
	t.Helper()
	args := append([]string{"resolve", w.name, "--service", string(w.service)}, flags...)
	if w.accept != "" {
		args = append(args, "--accept", w.accept)
	}
	out, err := runStele(t, args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out, exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, 0
}

// clientOf returns a client that asks a name server.
func clientOf(t *testing.T, server *nameServer, root string, thesis ...string) *client.DNS {
	t.Helper()
	schemes, err := all.New(all.Config{})
	if err != nil {
		t.Fatal(err)
	}
	address, err := netip.ParseAddrPort(server.addr)
	if err != nil {
		t.Fatal(err)
	}
	way, err := client.NewDNS(client.DNSOptions{
		Schemes: schemes, Servers: []client.NameServer{client.PlainServer(address)}, Roots: map[string]string{"urn": root}, ThesisZones: thesis,
		Now: time.Now, Random: rand.IntN, TryTimeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return way
}

// sameCase: a question comes back as it was written, and the answer does not depend
// on it (draft-vixie-dnsext-dns0x20).
func sameCase(t *testing.T, server *nameServer) {
	t.Helper()
	udp := &dns.Client{Timeout: 10 * time.Second}
	ask := func(name string, kind uint16) *dns.Msg {
		answer, _, err := udp.Exchange(new(dns.Msg).SetQuestion(name, kind).SetEdns0(1232, false), server.addr)
		if err != nil || answer.Truncated {
			t.Fatalf("%s: %s: %v, %v", server.name, name, answer, err)
		}
		return answer
	}
	for _, q := range archiveQuestions {
		kind := dns.StringToType[q.kind]
		mixed := mixCase(q.name)
		want, got := ask(q.name, kind), ask(mixed, kind)
		if len(got.Question) != 1 || got.Question[0].Name != mixed {
			t.Errorf("%s: asked for %s, and the question is %v", server.name, mixed, got.Question)
		}
		if a, b := inLowerCase(got), inLowerCase(want); a != b {
			t.Errorf("%s: %s\n%s\n%s\n%s", server.name, mixed, a, q.name, b)
		}
	}
}

// mixCase writes every other letter in upper case.
func mixCase(name string) string {
	b := []byte(name)
	for i := range b {
		if i%2 == 0 {
			b[i] = strings.ToUpper(string(b[i]))[0]
		}
	}
	return string(b)
}

// inLowerCase returns the records of an answer as text, which is the same for the
// same records. Names in it may come back in the case of the question.
func inLowerCase(m *dns.Msg) string {
	var list []string
	for _, rr := range m.Answer {
		list = append(list, strings.ToLower(rr.String()))
	}
	slices.Sort(list)
	return dns.RcodeToString[m.Rcode] + "\n" + strings.Join(list, "\n")
}
