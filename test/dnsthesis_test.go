package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	vocabulary "github.com/stele-id/stele"
	"github.com/stele-id/stele/client"
	"github.com/stele-id/stele/ddds"
)

// The thesis's zone, as it prints it, is served by NSD, and leads to its places for
// clients that are told to read it so.
func TestThesisZone(t *testing.T) {
	t.Parallel()
	z := zoneFile{archiveZone, filepath.Join(root, "test/testdata/thesis.zone")}
	server := nsd.start(t, z)
	const where, name = "@urn." + archiveZone, "urn:paradisec:AB1:001:A"
	way := clientOf(t, server, where, archiveZone)
	for _, w := range []wanted{
		{service: "N2L", at: "http://dataserv.unisyd.example/ab1/001/a.html"},
		{service: "N2L", accept: "text/html", at: "http://dataserv.unisyd.example/ab1/001/a.html"},
		{service: "N2L", accept: "audio/wav", at: "http://store.anu.example/ab1/001/a.wav"},
		{service: "N2L", accept: "audio/mpeg", at: "http://store.anu.example/ab1/001/a.wav"}, // the thesis's own case, 7.4.2
		{service: "N2C", at: "http://dataserv.unisyd.example/ab1/001/a.xml"},
		{service: "N2S", at: "http://store.anu.example/ab1/001/a.rsa"},
		{service: "N2P", at: "ftp://store.anu.example/ab1/001/a.txt"},
	} {
		w.name = name
		if out, code := resolveWith(t, w, "--dns", server.addr, "--root", where, "--compat"); code != 0 || out != w.at+"\n" {
			t.Errorf("%+v: exit %d, %s", w, code, out)
		}
		q := client.Request{Name: w.name, Service: w.service, Trace: true}
		if w.accept != "" {
			q.Accept = []ddds.Preference{{Range: w.accept, Q: 1000}}
		}
		if res, err := way.Resolve(t.Context(), q); err != nil || res.Location != w.at {
			t.Errorf("%+v: %v, %v\n%s", w, &res, err, res.Trace)
		}
	}

	// A client does not read rules so without being told to.
	w := wanted{name: name, service: "N2L"}
	if out, code := resolveWith(t, w, "--dns", server.addr, "--root", where); code != 3 {
		t.Errorf("without --compat: exit %d, %s", code, out)
	}
	if res, err := clientOf(t, server, where, "other.example.").Resolve(t.Context(), client.Request{Name: name}); vocabulary.KindOf(err) != vocabulary.NotFound {
		t.Errorf("in zones that are not named: %v, %v", &res, err)
	}
}

// BIND refuses the thesis's zone, since a pattern alone is not an expression. That is why
// we write other rules.
func TestThesisZoneBIND(t *testing.T) {
	t.Parallel()
	z := zoneFile{archiveZone, filepath.Join(root, "test/testdata/thesis.zone")}
	text, err := os.ReadFile(z.file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(serverProgram("named-checkzone"), z.zone, z.file).CombinedOutput()
	rules, refused := strings.Count(string(text), " NAPTR "), strings.Count(string(out), ": syntax error\n")
	if err == nil || refused < rules { // and once more, for the whole
		t.Errorf("%d of %d rules are refused: %v\n%s", refused, rules, err, out)
	}
	good := zoneFile{"good.example.", filepath.Join(t.TempDir(), "good.zone")}
	writeFile(t, good.file, "@ 60 SOA ns hostmaster 1 2 3 4 5\n@ 60 NS ns\nns 60 A 127.0.0.1\n", 0o644)
	server := bind
	server.bad = []zoneFile{z}
	for _, r := range askDig(t, server.start(t, good), []question{{archiveZone, "SOA"}, {"torres." + archiveZone, "NAPTR"}}) {
		if r.status != "SERVFAIL" {
			t.Errorf("BIND answers: %v", r)
		}
	}
}
