package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// archive is PARADISEC's registry: the demo's records, with targets on a host of
// their own, in a folder, and published in two zones.
type archive struct {
	t    *testing.T
	data string
	http int // port of its resolver
}

// Where its things are, and the zones. ns1 is also the host of its resolver.
const (
	archiveSite = "https://catalog.paradisec.example.org"
	archiveZone = "paradisec.example."
	archiveRoot = "urn.example."
)

func newArchive(t *testing.T) *archive {
	t.Helper()
	a := &archive{t: t, data: filepath.Join(t.TempDir(), "data"), http: freePort(t)}
	text, err := os.ReadFile(filepath.Join(root, "cmd/stele/demo/registry.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var records strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(string(text), "{site}", archiveSite)) {
		if strings.Contains(line, `"id":"urn:paradisec:`) {
			records.WriteString(line)
		}
	}
	file := filepath.Join(t.TempDir(), "archive.jsonl")
	writeFile(t, file, records.String(), 0o644)
	a.stele("import", "--update", file)
	a.stele("register", "urn:paradisec:AB1:004:A", "--to", archiveSite+"/lost", "--title", "A tape")
	a.stele("withdraw", "urn:paradisec:AB1:004:A", "--reason", "The tape is lost.")
	a.stele("register", "urn:paradisec:AB1:001:a%20b", "--to", archiveSite+"/space", "--title", "A name with a space")
	a.stele("zone", "add", "urn:paradisec", "--zone", archiveZone, "--layout", "names", "--parts", "3",
		"--ns", "ns1.paradisec.example=127.0.0.1", "--ns", "ns2.paradisec.example=127.0.0.1,::1",
		"--mailbox", "host.master@paradisec.example", "--resolver", "ns1.paradisec.example:"+strconv.Itoa(a.http))
	a.stele("zone", "add", "--root", archiveRoot, "--ns", "ns1.urn.example=127.0.0.1", "--ns", "ns.example.net", "--mailbox", "root@example.net")
	return a
}

// stele runs the program on the registry and returns what it prints.
func (a *archive) stele(args ...string) string {
	a.t.Helper()
	out, err := runStele(a.t, append(args, "--data", a.data)...)
	if err != nil {
		a.t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// lineOfJSON returns the line that a verb prints with --json, without what it says beside.
func lineOfJSON(out string) []byte {
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "{") {
			return []byte(line)
		}
	}
	return []byte(out)
}

// runStele runs the program and returns what it prints on both streams.
func runStele(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), stele(t), args...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("stele %q: %w", args, err)
	}
	return string(out), err
}

// export writes the zones into files, which name servers' own checkers take.
func (a *archive) export() (list []zoneFile) {
	a.t.Helper()
	folder := a.t.TempDir()
	for _, zone := range []string{archiveZone, archiveRoot} {
		z := zoneFile{zone, filepath.Join(folder, zone+"zone")}
		a.stele("zone", "export", zone, "-o", z.file)
		checkZone(a.t, z)
		list = append(list, z)
	}
	return list
}

// checkZone has the checkers of BIND, Knot and NSD look at a zone.
func checkZone(t *testing.T, z zoneFile) {
	t.Helper()
	mustRun(t, z.file, "named-checkzone", "-i", "local", z.zone, z.file)
	mustRun(t, z.file, "kzonecheck", "-o", z.zone, z.file)
	mustRun(t, z.file, "nsd-checkzone", z.zone, z.file)
}

// serve runs our own server on the registry until the test ends.
func (a *archive) serve(flags ...string) *nameServer {
	a.t.Helper()
	cmd := exec.Command(stele(a.t), append([]string{"serve", "--json", "--data", a.data, "--dns-rate", "0", "--notify-allow", "127.0.0.0/8", "--transfer-allow", "127.0.0.0/8",
		"--dns", "127.0.0.1:" + strconv.Itoa(freePort(a.t)), "--http", "127.0.0.1:" + strconv.Itoa(a.http)}, flags...)...)
	cmd.Env = []string{"HOME=" + a.t.TempDir()}
	read, write, err := os.Pipe()
	if err != nil {
		a.t.Fatal(err)
	}
	defer read.Close()
	cmd.Stdout = write
	said, _, err := runBeside(a.t, cmd)
	_ = write.Close() // the program has it
	if err != nil {
		a.t.Fatal(err)
	}
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		a.t.Fatalf("%v\n%s", err, said)
	}
	var at struct{ DNS string }
	if err := json.Unmarshal([]byte(line), &at); err != nil {
		a.t.Fatalf("%q: %v", line, err)
	}
	address, err := netip.ParseAddrPort(at.DNS)
	if err != nil {
		a.t.Fatal(err)
	}
	return &nameServer{"Stele", at.DNS, int(address.Port())}
}

// What servers must agree on: names with such records, names without, and no names.
var (
	archiveFound = []question{
		{archiveZone, "SOA"}, {archiveZone, "NS"}, {archiveZone, "NAPTR"},
		{"ns1.paradisec.example.", "A"}, {"ns2.paradisec.example.", "A"}, {"ns2.paradisec.example.", "AAAA"},
		{"_http._tcp.paradisec.example.", "SRV"},
		{archiveRoot, "SOA"}, {archiveRoot, "NS"}, {"ns1.urn.example.", "A"}, {"paradisec.urn.example.", "NAPTR"},
		{"a.001.ab1.paradisec.example.", "NAPTR"}, {"a.001.ab1.paradisec.example.", "URI"}, {"a.001.ab1.paradisec.example.", "TXT"},
		{"b.001.ab1.paradisec.example.", "NAPTR"}, {"b.001.ab1.paradisec.example.", "URI"},
		{"a.002.ab1.paradisec.example.", "NAPTR"}, {"a.002.ab1.paradisec.example.", "URI"},
		// Withdrawn: a tombstone.
		{"a.004.ab1.paradisec.example.", "NAPTR"}, {"a.004.ab1.paradisec.example.", "TXT"},
	}
	archiveEmpty = []question{
		{archiveZone, "TXT"}, {archiveZone, "A"}, {archiveZone, "DS"}, {"ns1.paradisec.example.", "AAAA"},
		{archiveRoot, "NAPTR"}, {"paradisec.urn.example.", "TXT"},
		{"a.001.ab1.paradisec.example.", "SRV"}, {"a.001.ab1.paradisec.example.", "A"},
		{"b.001.ab1.paradisec.example.", "TXT"}, {"a.004.ab1.paradisec.example.", "URI"},
		// Names with nothing but names below them.
		{"_tcp.paradisec.example.", "SRV"}, {"ab1.paradisec.example.", "NAPTR"},
		{"001.ab1.paradisec.example.", "NAPTR"}, {"001.ab1.paradisec.example.", "SOA"},
	}
	archiveNone = []question{
		{"other.urn.example.", "NAPTR"}, {"x.001.ab1.paradisec.example.", "NAPTR"},
		{"x.a.001.ab1.paradisec.example.", "NAPTR"}, {"xab1.paradisec.example.", "A"},
		// Reserved, with the name above it; not public.
		{"a.003.ab1.paradisec.example.", "NAPTR"}, {"003.ab1.paradisec.example.", "NAPTR"},
		{"c.001.ab1.paradisec.example.", "NAPTR"}, {"c.001.ab1.paradisec.example.", "TXT"},
	}
	archiveQuestions = slices.Concat(archiveFound, archiveEmpty, archiveNone)
)

// The same registry, served by us and by stock name servers from our zone files,
// gives the same answers to all clients, and leads to the same places.
func TestDNS(t *testing.T) {
	a := newArchive(t)
	zones := a.export()
	ours := a.serve()
	want := askDig(t, ours, archiveQuestions)
	checkArchive(t, want)
	for _, ask := range askers()[1:] {
		sameReplies(t, ask.name+" of Stele", ask.ask(t, ours, archiveQuestions), want)
	}
	for _, stock := range stockServers() {
		t.Run(stock.name, func(t *testing.T) {
			t.Parallel()
			server := stock.start(t, zones...)
			for _, ask := range askers() {
				sameReplies(t, ask.name, ask.ask(t, server, archiveQuestions), want)
			}
			sameRefusals(t, server, ours)
			sameCase(t, server)
			resolvesArchive(t, server)
		})
	}
	t.Run("unbound", func(t *testing.T) {
		t.Parallel()
		server := unboundFor(ours).start(t, zones...)
		// For a DS record it asks the parent zone's servers, of which there are none here.
		questions := slices.DeleteFunc(slices.Clone(archiveQuestions), func(q question) bool { return q.kind == "DS" })
		for _, ask := range askers() {
			sameReplies(t, ask.name, remembered(ask.ask(t, server, questions)), remembered(askDig(t, ours, questions)))
		}
		resolvesArchive(t, server)
	})
	t.Run("Stele", func(t *testing.T) {
		t.Parallel()
		sameCase(t, ours)
		resolvesArchive(t, ours)
	})
}

// checkArchive makes sure that the replies have answers.
func checkArchive(t *testing.T, replies []reply) {
	t.Helper()
	for _, r := range replies {
		status, some := "NOERROR", slices.Contains(archiveFound, r.question)
		if slices.Contains(archiveNone, r.question) {
			status = "NXDOMAIN"
		}
		if r.status != status || len(r.records) > 0 != some || len(r.soa) > 0 == some || !r.aa {
			t.Errorf("this should be %s, with records: %t:\n%v", status, some, r)
		}
	}
}

// sameReplies fails where replies differ.
func sameReplies(t *testing.T, about string, got, want []reply) {
	t.Helper()
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("%s: got\n%v\nwant\n%v", about, got[i], want[i])
		}
	}
}

// sameRefusals: no server answers for a name outside of its zones.
func sameRefusals(t *testing.T, servers ...*nameServer) {
	t.Helper()
	for _, s := range servers {
		for _, r := range askDig(t, s, []question{{"example.", "SOA"}, {"paradisec.example.org.", "NAPTR"}, {".", "NS"}}) {
			if r.status != "REFUSED" || len(r.records)+len(r.soa) > 0 {
				t.Errorf("%s: %v", s.name, r)
			}
		}
	}
}
