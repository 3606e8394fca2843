package test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// primary is our server, with an archive of which secondaries have copies.
type primary struct {
	*archive
	*nameServer
	key, secret string
	token       string
	metrics     string // where its counts are
}

// newPrimary runs our server, with a key for secondaries.
func newPrimary(t *testing.T, prepare func(a *archive)) *primary {
	t.Helper()
	p := &primary{archive: newArchive(t)}
	if prepare != nil {
		prepare(p.archive)
	}
	p.makeKeys()
	metrics := "127.0.0.1:" + strconv.Itoa(freePort(t))
	p.metrics = "http://" + metrics + "/metrics"
	p.nameServer = p.serve("--metrics", metrics, "--dns-identity", "ns1.example.org")
	return p
}

// makeKeys makes a key for secondaries, and a token of an administrator.
func (p *primary) makeKeys() {
	p.t.Helper()
	var made struct {
		Name   string
		Secret []byte
	}
	if err := json.Unmarshal(lineOfJSON(p.stele("zone", "tsig", "add", "secondaries.example.org", "--json")), &made); err != nil {
		p.t.Fatal(err)
	}
	p.key, p.secret = made.Name, base64.StdEncoding.EncodeToString(made.Secret)
	for _, zone := range []string{archiveZone, archiveRoot} {
		p.stele("zone", "secondary", "add", zone, "--network", "127.0.0.0/8", "--key", p.key)
	}
	p.stele("user", "add", "ann", "--admin")
	var token struct{ Credential string }
	if err := json.Unmarshal(lineOfJSON(p.stele("token", "create", "ann", "--json")), &token); err != nil {
		p.t.Fatal(err)
	}
	p.token = token.Credential
}

// fill puts the key and the address of the primary into a configuration.
func (p *primary) fill(s stockServer, config string) stockServer {
	fill := strings.NewReplacer("{key}", p.key, "{secret}", p.secret, "{primary}", strconv.Itoa(p.port)).Replace
	s.config, s.zone = fill(config), fill(s.zone)
	return s
}

// secondaries are stock servers, as secondaries of ours.
func (p *primary) secondaries() []stockServer {
	k, n, b := knot, nsd, bind
	k.zone = "  - domain: \"{zone}\"\n    master: primary\n    acl: [told, taken]\n    zonefile-sync: -1\n"
	n.zone = "zone:\n  name: \"{zone}\"\n  zonefile: \"{zone}zone\"\n  request-xfr: 127.0.0.1@{primary} {key}\n  allow-notify: 127.0.0.1 {key}\n  provide-xfr: 127.0.0.1 NOKEY\n"
	b.zone = "zone \"{zone}\" { type secondary; file \"{zone}zone\"; primaries port {primary} { 127.0.0.1 key \"{key}\"; }; allow-notify { key \"{key}\"; }; allow-transfer { 127.0.0.1; }; };\n"
	return []stockServer{
		p.fill(k, strings.Replace(k.config, "zone:\n", `key:
  - id: "{key}"
    algorithm: hmac-sha256
    secret: "{secret}"
remote:
  - id: primary
    address: 127.0.0.1@{primary}
    key: "{key}"
acl:
  - id: told
    address: 127.0.0.1
    key: "{key}"
    action: notify
  - id: taken
    address: 127.0.0.1
    action: transfer
zone:
`, 1)),
		p.fill(n, strings.Replace(n.config, "{zones}", "key:\n  name: \"{key}\"\n  algorithm: hmac-sha256\n  secret: \"{secret}\"\n{zones}", 1)),
		p.fill(b, strings.Replace(b.config, "{zones}", "key \"{key}\" { algorithm hmac-sha256; secret \"{secret}\"; };\n{zones}", 1)),
	}
}

// ask sends a request to the API, about a version if that is not 0.
func (p *primary) ask(method, path string, version int, body string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, "http://127.0.0.1:"+strconv.Itoa(p.http)+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	request.Header.Set("Content-Type", "application/json")
	if version > 0 {
		request.Header.Set("If-Match", fmt.Sprintf("\"v%d\"", version))
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode/100 != 2 {
		p.t.Fatalf("%s %s: %s, %v\n%s", method, path, answer.Status, err, text)
	}
}

// put registers a name, or changes where it leads if it has a version.
func (p *primary) put(id string, version int, url string) {
	p.t.Helper()
	p.ask("PUT", "records/"+id, version, fmt.Sprintf(`{"id":%q,"targets":[{"service":"N2L","url":%q}]}`, id, url))
}

// notified has the server notify secondaries. The server runs, so the test uses HTTP.
func (p *primary) notified(list []*nameServer) {
	p.t.Helper()
	for _, zone := range []string{archiveZone, archiveRoot} {
		p.copiedBy(zone, list)
	}
}

// copiedBy lets secondaries transfer a zone, and has the server notify them.
func (p *primary) copiedBy(zone string, list []*nameServer) {
	p.t.Helper()
	args := []string{"zone", "secondary", "add", zone, "--network", "127.0.0.0/8", "--key", p.key}
	for _, s := range list {
		args = append(args, "--notify", s.addr)
	}
	p.change(args...)
}

// change runs the program against the server.
func (p *primary) change(args ...string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), stele(p.t), append(args, "--server", "http://127.0.0.1:"+strconv.Itoa(p.http))...)
	cmd.Env = []string{"HOME=" + p.t.TempDir(), "PATH=" + os.Getenv("PATH"), "STELE_TOKEN=" + p.token}
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

// count returns a count of the server.
func (p *primary) count(name string) (n int) {
	p.t.Helper()
	answer, err := http.Get(p.metrics)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "stele_dns_"+name+"_total "); ok {
			if n, err = strconv.Atoi(strings.TrimSpace(rest)); err == nil {
				return n
			}
		}
	}
	p.t.Fatalf("there is no count %s", name)
	return 0
}

// serial returns the serial of a zone; 0 if the server does not know it.
func (s *nameServer) serial(zone string) uint32 {
	client := &dns.Client{Timeout: 2 * time.Second}
	answer, _, err := client.Exchange(new(dns.Msg).SetQuestion(zone, dns.TypeSOA), s.addr)
	if err != nil || len(answer.Answer) == 0 {
		return 0
	}
	soa, ok := answer.Answer[0].(*dns.SOA)
	if !ok {
		return 0
	}
	return soa.Serial
}

// awaitSerial waits until a secondary has a zone as it is now. It polls once an hour only,
// so it was notified.
func (s *nameServer) awaitSerial(t *testing.T, zone string, serial uint32) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for have := s.serial(zone); int32(have-serial) < 0; have = s.serial(zone) {
		if time.Now().After(deadline) {
			t.Fatalf("%s has %s with serial %d, and not %d", s.name, zone, have, serial)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// content transfers a zone from a server, and returns its records in order, the SOA record
// once.
func (s *nameServer) content(t *testing.T, zone string) []string {
	t.Helper()
	in, err := new(dns.Transfer).In(new(dns.Msg).SetAxfr(zone), s.addr)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for e := range in {
		if e.Error != nil {
			t.Fatalf("%s: %v", s.name, e.Error)
		}
		for _, rr := range e.RR {
			list = append(list, rr.String())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// verified has other programs verify the signatures of a zone as a server has it.
func (s *nameServer) verified(t *testing.T, zone string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zone")
	writeFile(t, file, strings.Join(s.content(t, zone), "\n")+"\n", 0o644)
	mustRun(t, file, "ldns-verify-zone", file)
	mustRun(t, file, "dnssec-verify", "-z", "-o", zone, file)
}

// TestSecondaries has BIND, Knot and NSD transfer zones from us, notifies them of changes,
// and compares their answers with ours: of unsigned zones, and of zones that are
// transferred with signatures.
func TestSecondaries(t *testing.T) {
	for _, signed := range []bool{false, true} {
		t.Run(fmt.Sprint("signed=", signed), func(t *testing.T) {
			p := newPrimary(t, func(a *archive) {
				if signed {
					a.stele("zone", "sign", archiveZone, "--mode", "transfer")
				}
			})
			zones := []zoneFile{{zone: archiveZone}, {zone: archiveRoot}}
			var list []*nameServer
			for _, s := range p.secondaries() {
				list = append(list, s.start(t, zones...))
			}
			p.agree(t, list, signed, "at first")
			p.notified(list)
			p.agree(t, list, signed, "after a change of settings")
			whole := p.count("transfers")

			for i := range 5 {
				p.put("urn:paradisec:AB1:009:A", i, fmt.Sprintf("https://example.org/%d", i))
			}
			p.put("urn:paradisec:AB1:009:B", 0, "https://example.org/b")
			p.put("urn:paradisec:NEW:1:A", 0, "https://example.org/new")
			p.agree(t, list, signed, "after changes")
			p.ask("POST", "withdraw/urn:paradisec:NEW:1:A", 1, `{"reason":"It is lost."}`)
			p.put("urn:paradisec:AB1:009:A", 5, "https://example.org/again")
			p.agree(t, list, signed, "after more changes")
			p.change("zone", "record", "add", archiveZone, "@", "300", "MX", "10 www."+archiveZone)
			p.change("zone", "record", "add", archiveZone, "www", "300", "A", "192.0.2.80")
			p.change("zone", "record", "add", archiveZone, "blog", "300", "CNAME", "www."+archiveZone)
			p.agree(t, list, signed, "after records of the owner")
			p.change("zone", "record", "rm", archiveZone, "www", "A")
			p.agree(t, list, signed, "after one of them is gone")
			if n := p.count("transfers"); n != whole {
				t.Errorf("%d whole zones were sent for some changes", n-whole)
			}
			if n := p.count("differences"); n < len(list) {
				t.Errorf("changes were sent %d times", n)
			}
			if sent, confirmed := p.count("notices"), p.count("notices_confirmed"); confirmed < len(list) || sent < confirmed {
				t.Errorf("%d notices, of which %d were confirmed", sent, confirmed)
			}
			if n := p.count("wrong_signatures") + p.count("transfers_failed"); n > 0 {
				t.Errorf("%d wrong signatures or failed transfers", n)
			}
		})
	}
}

// agree waits until secondaries have our serial, and compares them with us.
func (p *primary) agree(t *testing.T, list []*nameServer, signed bool, when string) {
	t.Helper()
	questions := []question{{"a.009.ab1." + archiveZone, "NAPTR"}, {"b.009.ab1." + archiveZone, "URI"}, {"a.1.new." + archiveZone, "NAPTR"},
		{archiveZone, "MX"}, {"www." + archiveZone, "A"}, {"blog." + archiveZone, "CNAME"}, {"blog." + archiveZone, "A"}, {"blog." + archiveZone, "AAAA"}}
	for _, q := range archiveQuestions {
		// The serial of the root grows with ours, but nothing is new in it, so the server
		// notifies no secondary.
		if strings.HasSuffix(q.name, archiveZone) {
			questions = append(questions, q)
		}
	}
	serial := p.serial(archiveZone)
	want := askLibrary(t, p.nameServer, questions)
	for _, s := range list {
		s.awaitSerial(t, archiveZone, serial)
		if got := s.serial(archiveZone); got != serial {
			t.Fatalf("%s, %s: serial %d, and we have %d", when, s.name, got, serial)
		}
		got := askLibrary(t, s, questions)
		for i := range want {
			if want[i].String() != got[i].String() {
				t.Errorf("%s, %s: %v\n%v\nand we say\n%v", when, s.name, questions[i], got[i], want[i])
			}
		}
		if signed {
			s.verified(t, archiveZone)
		}
	}
}

// A client that is not a secondary of the zone gets nothing, by any way.
func TestTransferRefused(t *testing.T) {
	p := newPrimary(t, nil)
	out, err := exec.CommandContext(t.Context(), "dig", "@127.0.0.1", "-p", strconv.Itoa(p.port), archiveZone, "AXFR").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Transfer failed") {
		t.Errorf("without a key: %v\n%s", err, out)
	}
	key := "hmac-sha256:" + p.key + ":"
	for secret, want := range map[string]string{p.secret: "XFR size:", base64.StdEncoding.EncodeToString([]byte("some other secret")): "BADSIG"} {
		out, err := exec.CommandContext(t.Context(), "dig", "@127.0.0.1", "-p", strconv.Itoa(p.port), "-y", key+secret, archiveZone, "AXFR").CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %s\n%s", err, want, out)
		}
	}
	// What BIND's tools ask for beside it they understand.
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"-y", key + p.secret, "+expire", "+nsid", archiveZone, "SOA"}, []string{"status: NOERROR", "NSID: 6e 73 31", "; EXPIRE: 1209600 ("}},
		{[]string{"-y", key + p.secret, "+expire", "+nsid", archiveZone, "AXFR"}, []string{"XFR size:"}},
		{[]string{"CH", "TXT", "id.server"}, []string{"\"ns1.example.org\""}},
		{[]string{"CH", "TXT", "version.bind"}, []string{"status: REFUSED", "EDE: 21"}},
		{[]string{"elsewhere.example", "SOA"}, []string{"status: REFUSED", "EDE: 20 (Not Authoritative)"}},
		{[]string{"+tcp", "-y", key + p.secret, "elsewhere.example", "SOA"}, []string{"status: REFUSED"}},
	} {
		out, err := exec.CommandContext(t.Context(), "dig", append([]string{"+norec", "@127.0.0.1", "-p", strconv.Itoa(p.port)}, test.args...)...).CombinedOutput()
		for _, want := range test.want {
			if err != nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "WARNING") || strings.Contains(string(out), "TSIG could not be validated") {
				t.Errorf("dig %s: %v, want %s\n%s", test.args, err, want, out)
			}
		}
	}
	update := exec.CommandContext(t.Context(), "nsupdate", "-y", key+p.secret)
	update.Stdin = strings.NewReader("server 127.0.0.1 " + strconv.Itoa(p.port) + "\nzone " + archiveZone + "\nupdate add x." + archiveZone + " 60 A 192.0.2.1\nsend\n")
	if out, err = update.CombinedOutput(); err == nil || strings.TrimSpace(string(out)) != "update failed: REFUSED" {
		t.Errorf("a signed update: %v\n%s", err, out)
	}
	host, _, err := net.SplitHostPort(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	out, err = exec.CommandContext(t.Context(), "kdig", "@"+host, "-p", strconv.Itoa(p.port), "-y", key+p.secret, archiveZone, "IXFR=1").CombinedOutput()
	if err != nil || strings.Count(string(out), "\tSOA\t") != 2 {
		t.Errorf("from a serial that nobody knows: %v\n%s", err, out)
	}
}

// A zone is for one address, and a proxy, which kdig plays, asks for it: what counts is
// the address of the proxy's client.
func TestTransferProxied(t *testing.T) {
	a := newArchive(t)
	a.stele("zone", "secondary", "add", archiveZone, "--network", "198.51.100.7")
	s := a.serve("--transfer-allow", "198.51.100.0/24", "--dns-proxies", "127.0.0.1")
	for client, given := range map[string]bool{"198.51.100.7": true, "198.51.100.8": false} {
		for _, way := range []string{"AXFR", "IXFR=1"} {
			out, err := exec.CommandContext(t.Context(), "kdig", "@127.0.0.1", "-p", strconv.Itoa(s.port), "+timeout=20", "+retry=0", "+proxy="+client+"#4000-127.0.0.1#53", archiveZone, way).CombinedOutput()
			if got := strings.Contains(string(out), "\tSOA\t"); got != given || given && err != nil {
				t.Errorf("%s for %s: %v\n%s", way, client, err, out)
			}
		}
	}
	if out, _ := exec.CommandContext(t.Context(), "kdig", "@127.0.0.1", "-p", strconv.Itoa(s.port), "+timeout=1", "+retry=0", archiveZone, "SOA").CombinedOutput(); strings.Contains(string(out), "\tSOA\t") {
		t.Errorf("a proxy that names no client is answered:\n%s", out)
	}
}
