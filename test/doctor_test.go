package test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Addresses of this machine, one for each name server: a delegation has no ports, so
// that all of them are at the same. (BIND listens where interfaces have an address, and
// nowhere else.)
const (
	parentAddress    = "127.0.0.1"
	primaryAddress   = "127.0.0.3"
	secondaryAddress = "127.0.0.4"
)

// startAt runs a name server at an address and port until the test ends or stop is
// called.
func (s stockServer) startAt(t *testing.T, address string, port int, z zoneFile) (stop func()) {
	t.Helper()
	folder, err := os.MkdirTemp("", "ns")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	fill := strings.NewReplacer("127.0.0.1", address, "{folder}", folder, "{port}", strconv.Itoa(port), "{zones}", s.zones([]zoneFile{z})).Replace
	writeFile(t, filepath.Join(folder, "conf"), fill(s.config), 0o644)
	program, err := copyProgram(folder, s.args[0])
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	for _, arg := range s.args[1:] {
		cmd.Args = append(cmd.Args, fill(arg))
	}
	said, ended, err := runBeside(t, cmd)
	if err != nil {
		t.Fatal(err)
	}
	server := &nameServer{s.name, net.JoinHostPort(address, strconv.Itoa(port)), port}
	if err := server.await(z.zone, ended); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	}
}

// parentZone returns the zone above with a delegation to some name servers.
func parentZone(t *testing.T, servers ...string) zoneFile {
	t.Helper()
	text := "$TTL 60\n@ SOA ns.example. hostmaster.example. 1 3600 600 86400 60\n@ NS ns.example.\nns A " + parentAddress + "\n"
	for _, name := range servers {
		text += "paradisec NS " + name + "\n"
	}
	if len(servers) > 0 {
		text += "ns1.paradisec A " + primaryAddress + "\nns2.paradisec A " + secondaryAddress + "\nns3 A " + secondaryAddress + "\n"
	}
	z := zoneFile{"example.", filepath.Join(t.TempDir(), "example.zone")}
	writeFile(t, z.file, text, 0o644)
	return z
}

// TestDoctorDelegation: doctor checks whether resolvers can find a zone, with BIND
// above it and Knot as its secondary.
func TestDoctorDelegation(t *testing.T) {
	a := newArchive(t)
	port := freePort(t)
	a.stele("zone", "add", "urn:paradisec", "--ns", "ns1.paradisec.example="+primaryAddress, "--ns", "ns2.paradisec.example="+secondaryAddress)
	a.stele("user", "add", "ann", "--admin")
	lines := strings.Split(strings.TrimSpace(a.stele("token", "create", "ann")), "\n")
	token := strings.TrimSpace(lines[0])
	exported := zoneFile{archiveZone, filepath.Join(t.TempDir(), "zone")}
	a.stele("zone", "export", archiveZone, "-o", exported.file)
	late := zoneFile{archiveZone, filepath.Join(t.TempDir(), "zone")}
	a.stele("register", "urn:paradisec:AB1:009:A", "--to", archiveSite+"/late")
	a.stele("zone", "export", archiveZone, "-o", late.file)

	cmd := exec.Command(stele(t), "serve", "--data", a.data, "--http", "127.0.0.1:"+strconv.Itoa(a.http), "--dns", net.JoinHostPort(primaryAddress, strconv.Itoa(port)), "--dns-rate", "0", "--notify-allow", "127.0.0.0/8", "--transfer-allow", "127.0.0.0/8")
	cmd.Env = []string{"HOME=" + t.TempDir()}
	said, ended, err := runBeside(t, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&nameServer{"Stele", net.JoinHostPort(primaryAddress, strconv.Itoa(port)), port}).await(archiveZone, ended); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	both := []string{"ns1.paradisec.example.", "ns2.paradisec.example."}
	for _, tt := range []struct {
		name      string
		parent    []string // the servers that it names
		secondary *zoneFile
		state     string
		text      string
	}{
		{"all is well", both, &late, "ok", "example. leads to paradisec.example., and its 2 servers agree"},
		{"no delegation", nil, &late, "problem", "example. knows nothing of paradisec.example., so resolvers can't find it; tell who runs the zone above which name servers it has: " + strings.Join(both, " ")},
		{"one is missing", both[:1], &late, "warning", "for paradisec.example., example. names the servers ns1.paradisec.example., and the zone itself " + strings.Join(both, " ")},
		{"another is named", append(both[:1:1], "ns3.example."), &late, "warning", "names the servers ns1.paradisec.example. ns3.example., and"},
		{"the secondary is down", both, nil, "problem", "ns2.paradisec.example. at 127.0.0.4 does not answer for paradisec.example.: over UDP: "},
		{"the secondary is late", both, &exported, "warning", "ns2.paradisec.example. at 127.0.0.4 has serial"},
		{"the secondary has another zone", both, &zoneFile{"other.example.", parentZone(t).file}, "problem", "does not answer for paradisec.example.: over UDP: it answers REFUSED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stop := bind.startAt(t, parentAddress, port, parentZone(t, tt.parent...))
			defer stop()
			if tt.secondary != nil {
				defer knot.startAt(t, secondaryAddress, port, *tt.secondary)()
			}
			found := runDoctor(t, token, "--server", "http://127.0.0.1:"+strconv.Itoa(a.http), "--dns", net.JoinHostPort(parentAddress, strconv.Itoa(port)))
			for _, line := range found {
				if strings.HasPrefix(line, tt.state+" delegation: ") && strings.Contains(line, tt.text) {
					return
				}
			}
			t.Errorf("no %s %q in\n%s", tt.state, tt.text, strings.Join(found, "\n"))
		})
	}
}

// runDoctor returns what doctor finds, a line each.
func runDoctor(t *testing.T, token string, args ...string) (found []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), stele(t), append([]string{"doctor", "--json"}, args...)...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "STELE_TOKEN=" + token}
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.Output()
	if len(out) == 0 {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		var f struct{ Check, State, What, Do string }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprintf("%s %s: %s; %s", f.State, f.Check, f.What, f.Do))
	}
	return found
}
