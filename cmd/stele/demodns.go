package main

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stele-id/stele/scheme/all"
)

// demoQuery is something to try in the demo with the DNS.
type demoQuery struct {
	what    string
	command string // {stele}, {ip}, {port}, {dns} and {here}: see demoPlace
	shows   string // a part of what it prints, {site} as in demoRegistry
}

// demoQueries go on where demoSteps end. The first few are for dig, which not everybody
// has.
var demoQueries = []demoQuery{
	{"The DNS leads there too. At its root stands how to go on with names of urn:paradisec",
		"dig @{ip} -p {port} +short paradisec.urn.example NAPTR", `\\3.\\2.\\1.paradisec.example.`},
	{"and each name has rules of its own: where what is",
		"dig @{ip} -p {port} +short a.001.ab1.paradisec.example NAPTR", "{site}/paradisec/AB1/001/A.wav!i"},
	{"and what is promised of it",
		"dig @{ip} -p {port} +short a.001.ab1.paradisec.example TXT", "byte for byte"},
	{"The whole way from the name to the sound, through the DNS alone",
		"{stele} resolve urn:paradisec:AB1:001:A --accept audio/wav --dns {dns} --root urn.example. --trace", "=> {site}/paradisec/AB1/001/A.wav, N2L, audio/wav"},
	{"A name with one part too many for the DNS: the last step is made over HTTP",
		"{stele} resolve urn:paradisec:AB1:001:A:notes --dns {dns} --root urn.example. --trace", "=> {site}/paradisec/AB1/001/A-notes"},
	{"The sound itself, and whether it is what the archive signed. The zones of this demo are not signed, so the key is not authenticated",
		"{stele} get urn:paradisec:AB1:005:A --dns {dns} --root urn.example. --private-addresses allow --dnssec=off --verify --allow-unauthenticated-key --accept audio/wav -o " + demoFile, "SHA-256 and size match"},
	{"Do the DNS and the web say the same?",
		"{stele} resolve urn:paradisec:AB1:001:A --compare --dns {dns} --root urn.example. --server {here}", "they agree"},
}

// demoFile is what a query leaves behind.
const demoFile = "reef.wav"

// demoPlace is where the demo answers.
type demoPlace struct {
	here string // URL of the resolver
	site string // URL of the publisher's site
	dns  string // address and port of the name server; "" if there is none
	ip   string // the address alone
	port string // the port alone

	token string // of an administrator
}

func (s *server) demoPlace() demoPlace {
	at := demoPlace{here: s.http.url(), site: "http://" + s.site.local(), token: s.credential}
	if s.dns == nil {
		return at
	}
	dns := s.dns.Addr()
	if dns.Addr().IsUnspecified() {
		dns = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), dns.Port())
	}
	at.dns, at.ip, at.port = dns.String(), dns.Addr().String(), strconv.Itoa(int(dns.Port()))
	return at
}

// steps returns what can be tried there over the web.
func (d demoPlace) steps() []demoStep {
	steps := slices.Clone(demoSteps)
	for i := range steps {
		steps[i].header = strings.ReplaceAll(steps[i].header, "{token}", d.token)
	}
	return steps
}

// queries returns what can be tried there in the DNS.
func (d demoPlace) queries() []demoQuery {
	if d.dns == "" {
		return nil
	}
	return demoQueries
}

// plainWord is a word that means the same to every shell.
var plainWord = regexp.MustCompile(`^[-+./_A-Za-z0-9]+$`)

// fill puts the place into a command, or into what it shows.
func (d demoPlace) fill(text string) string {
	name := os.Args[0] // as this one was called, so that it is found
	if !plainWord.MatchString(name) {
		name = "stele"
	}
	return strings.NewReplacer("{here}", d.here, "{site}", d.site, "{dns}", d.dns, "{ip}", d.ip, "{port}", d.port, "{stele}", name).Replace(text)
}

// askDemo resolves names through the DNS, as the commands do that are printed, and
// shows how. What is for dig is left out.
func (s *server) askDemo(ctx context.Context) error {
	at := s.demoPlace()
	folder, err := os.MkdirTemp("", "stele-demo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is in a folder for what nobody needs
	for _, q := range at.queries() {
		rest, ours := strings.CutPrefix(q.command, "{stele} ")
		if !ours {
			continue
		}
		fmt.Fprintf(s.stdout, "\n# %s\n$ %s\n", q.what, at.fill(q.command))
		var out bytes.Buffer
		p := program{stdin: strings.NewReader(""), stdout: &out, stderr: &out, now: s.now, config: all.Config{Now: s.now}}
		words := strings.Fields(at.fill(rest))
		for i, word := range words {
			if word == demoFile {
				words[i] = filepath.Join(folder, demoFile)
			}
		}
		code := p.run(ctx, words)
		answer := strings.ReplaceAll(out.String(), folder+string(filepath.Separator), "")
		showLines(s.stdout, strings.Split(strings.TrimRight(answer, "\n"), "\n"), demoTraceShown)
		if want := at.fill(q.shows); code != exitOK || !strings.Contains(answer, want) {
			return fmt.Errorf("the demo is broken: there is no %q in this answer, and its exit code is %d", want, code)
		}
	}
	return nil
}
