package test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// nameServer is a name server that runs on this machine.
type nameServer struct {
	name string // of the program
	addr string // for UDP and TCP
	port int
}

// zoneFile is a zone and the file that it is in.
type zoneFile struct{ zone, file string }

// stockServer is how a stock name server is run. In the texts, {port} and
// {folder} are its own, and {zones} is zone with {zone} and {file} for each zone.
type stockServer struct {
	name   string
	args   []string // the program first
	config string
	zone   string

	bad []zoneFile // zones that it should not load
}

var (
	bind = stockServer{
		name: "BIND", args: []string{"named", "-g", "-n", "1", "-c", "{folder}/conf"},
		config: `options {
	directory "{folder}"; pid-file none; session-keyfile none; lock-file none; managed-keys-directory "{folder}";
	listen-on port {port} { 127.0.0.1; }; listen-on-v6 { none; };
	recursion no; dnssec-validation no; notify no; empty-zones-enable no;
};
controls { };
{zones}`,
		zone: "zone \"{zone}\" { type primary; file \"{file}\"; };\n",
	}
	knot = stockServer{
		name: "Knot", args: []string{"knotd", "-c", "{folder}/conf"},
		config: `server:
  rundir: "{folder}"
  listen: 127.0.0.1@{port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
control:
  listen: "{folder}/control"
database:
  storage: "{folder}"
log:
  - target: stderr
    any: info
zone:
{zones}`,
		zone: "  - domain: \"{zone}\"\n    file: \"{file}\"\n    zonefile-sync: -1\n    journal-content: none\n",
	}
	nsd = stockServer{
		name: "NSD", args: []string{"nsd", "-d", "-c", "{folder}/conf"},
		config: `server:
  ip-address: 127.0.0.1@{port}
  do-ip6: no
  server-count: 1
  username: ""
  zonesdir: "{folder}"
  database: ""
  pidfile: ""
  xfrdfile: "{folder}/xfrd"
  xfrdir: "{folder}"
  zonelistfile: "{folder}/list"
  rrl-ratelimit: 0
remote-control:
  control-enable: no
{zones}`,
		zone: "zone:\n  name: \"{zone}\"\n  zonefile: \"{file}\"\n",
	}
	powerDNS = stockServer{
		name: "PowerDNS", args: []string{"pdns_server", "--config-dir={folder}", "--socket-dir={folder}", "--daemon=no", "--guardian=no", "--disable-syslog",
			"--launch=bind", "--bind-config={folder}/conf", "--local-address=127.0.0.1", "--local-port={port}", "--receiver-threads=1", "--distributor-threads=1"},
		config: "{zones}",
		zone:   "zone \"{zone}\" { type master; file \"{file}\"; };\n",
	}
)

// unboundFor is a recursive resolver that asks a name server for zones. It asks in
// mixed case, label by label, and believes only answers in the same case.
func unboundFor(authority *nameServer) stockServer {
	return stockServer{
		name: "unbound", args: []string{"unbound", "-d", "-p", "-c", "{folder}/conf"},
		config: `server:
  interface: 127.0.0.1
  port: {port}
  do-ip6: no
  num-threads: 1
  username: ""
  chroot: ""
  directory: "{folder}"
  use-syslog: no
  module-config: "iterator"
  do-not-query-localhost: no
  use-caps-for-id: yes
  qname-minimisation: yes
remote-control:
  control-enable: no
{zones}`,
		zone: "stub-zone:\n  name: \"{zone}\"\n  stub-addr: 127.0.0.1@" + strconv.Itoa(authority.port) + "\n",
	}
}

// start runs the server until the test ends, and returns when it answers.
func (s stockServer) start(t *testing.T, zones ...zoneFile) *nameServer {
	t.Helper()
	for try := 1; ; try++ {
		server, err := s.tryStart(t, zones)
		if err == nil {
			return server
		}
		// Another process may have taken the port meanwhile.
		if try == 3 || !errors.Is(err, errPortTaken) {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
}

var errPortTaken = errors.New("the port is taken")

func (s stockServer) tryStart(t *testing.T, zones []zoneFile) (*nameServer, error) {
	t.Helper()
	// Paths of sockets must be short, so it is not the test's own folder.
	folder, err := os.MkdirTemp("", "ns")
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	port := freePort(t)
	fill := strings.NewReplacer("{folder}", folder, "{port}", strconv.Itoa(port), "{zones}", s.zones(slices.Concat(zones, s.bad))).Replace
	writeFile(t, filepath.Join(folder, "conf"), fill(s.config), 0o644)
	program, err := copyProgram(folder, s.args[0])
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	for _, arg := range s.args[1:] {
		cmd.Args = append(cmd.Args, fill(arg))
	}
	said, ended, err := runBeside(t, cmd)
	if err != nil {
		return nil, err
	}
	server := &nameServer{s.name, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), port}
	for _, z := range zones {
		if err := server.await(z.zone, ended); err != nil {
			err = fmt.Errorf("%s: %w\n%s", z.zone, err, said)
			if strings.Contains(said.String(), "ddress already in use") || strings.Contains(said.String(), "address in use") {
				err = errors.Join(errPortTaken, err)
			}
			return nil, err
		}
	}
	return server, nil
}

// zones writes down zones as the configuration has them.
func (s stockServer) zones(list []zoneFile) string {
	var b strings.Builder
	for _, z := range list {
		b.WriteString(strings.NewReplacer("{zone}", z.zone, "{file}", z.file).Replace(s.zone))
	}
	return b.String()
}

// serverProgram returns the path of a program. Those of servers stand in sbin, which
// is not on every user's path.
func serverProgram(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return filepath.Join("/usr/sbin", name)
}

// copyProgram copies a server's program into a folder: some systems (AppArmor) forbid
// the one that is installed to read anything but its own folders.
func copyProgram(folder, name string) (string, error) {
	path := filepath.Join(folder, name)
	if err := copyExecutable(serverProgram(name), path); err != nil {
		return "", fmt.Errorf("%w; 'make needs' installs it", err)
	}
	return path, nil
}

// copyExecutable copies a program. Another program does it: what another test starts in
// this moment would hold a file that we write open, and a file that is open for writing
// can't be run ("text file busy").
func copyExecutable(from, to string) error {
	out, err := exec.Command("cp", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// runBeside starts a program that ends with the test, with all its children. It
// returns what the program says, and a channel that is closed when it ends.
func runBeside(t testing.TB, cmd *exec.Cmd) (said *lockedBuffer, ended chan struct{}, err error) {
	t.Helper()
	said, ended = &lockedBuffer{}, make(chan struct{})
	cmd.Stderr = said
	if cmd.Stdout == nil {
		cmd.Stdout = said
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	go func() {
		_ = cmd.Wait() // killed, if all goes well
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of it
		<-ended
	})
	return said, ended, nil
}

// await returns when the server answers for a zone.
func (s *nameServer) await(zone string, ended <-chan struct{}) error {
	client := &dns.Client{Timeout: time.Second}
	question := new(dns.Msg).SetQuestion(zone, dns.TypeSOA)
	deadline := time.After(2 * time.Minute)
	for {
		answer, _, err := client.Exchange(question, s.addr)
		if err == nil && answer.Rcode == dns.RcodeSuccess && len(answer.Answer) > 0 {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended")
		case <-deadline:
			return fmt.Errorf("it does not answer: %v, %v", answer, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	port, err := findPort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// findPort returns a port that no process uses, neither with UDP nor with TCP. It is none
// of those that systems give to clients: name servers let others share their port
// (SO_REUSEPORT), and so does dig, which would ask itself once in a while.
func findPort() (port int, err error) {
	for range 1000 {
		port = 12000 + rand.IntN(20000)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		var udp net.PacketConn
		if udp, err = net.ListenPacket("udp", address); err != nil {
			continue
		}
		var tcp net.Listener
		tcp, err = net.Listen("tcp", address)
		_ = udp.Close()
		if err == nil {
			return port, tcp.Close()
		}
	}
	return 0, err
}

// lockedBuffer is a buffer that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// stockServers are the authoritative servers that load our zones.
func stockServers() []stockServer { return []stockServer{bind, knot, nsd, powerDNS} }
