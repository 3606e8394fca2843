package test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// signedTree is zones from the root down, signed by BIND's tools or by servers, and a
// way in which they are asked: a resolver that passes on what their servers say, unless
// an attacker on the network path changes it.
type signedTree struct {
	t      *testing.T
	folder string
	zones  []zoneFile                       // that BIND serves
	root   string                           // DNSKEY record of the root
	mu     sync.Mutex                       // for routes, once it serves
	routes []route                          // the first that fits counts
	change func(q dns.Question, m *dns.Msg) // nil: unchanged
	addr   string
	port   int
}

// route says where names of a zone are asked for.
type route struct {
	zone   string
	server *nameServer
}

// How a zone is signed.
type signing struct {
	algorithm string   // ECDSAP256SHA256 if it is empty
	flags     []string // of dnssec-signzone, beside the usual
}

// sign signs a zone with a key of its own, and returns the key's DS record.
func (s *signedTree) sign(zone, records string, how signing) (ds string) {
	s.t.Helper()
	if how.algorithm == "" {
		how.algorithm = "ECDSAP256SHA256"
	}
	file := filepath.Join(s.folder, "zone"+zone)
	keys := file + ".keys"
	if err := os.MkdirAll(keys, 0o755); err != nil {
		s.t.Fatal(err)
	}
	writeFile(s.t, file, "$TTL 300\n@ SOA ns.other.test. mail.other.test. 1 3600 600 86400 60\n@ NS ns.other.test.\n"+records, 0o644)
	key := strings.TrimSpace(s.run("dnssec-keygen", "-q", "-K", keys, "-a", how.algorithm, "-f", "KSK", zone))
	args := []string{"-q", "-S", "-z", "-K", keys, "-d", keys, "-o", zone, "-f", file + ".signed"}
	s.run("dnssec-signzone", append(append(args, how.flags...), file)...)
	s.zones = append(s.zones, zoneFile{zone, file + ".signed"})
	if zone == "." {
		text, err := os.ReadFile(filepath.Join(keys, key+".key"))
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, ";") {
				s.root = strings.TrimSpace(line)
			}
		}
	}
	return s.run("dnssec-dsfromkey", "-2", filepath.Join(keys, key))
}

// leave adds an unsigned zone.
func (s *signedTree) leave(zone, records string) {
	s.t.Helper()
	file := filepath.Join(s.folder, "zone"+zone)
	writeFile(s.t, file, "$TTL 300\n@ SOA ns.other.test. mail.other.test. 1 3600 600 86400 60\n@ NS ns.other.test.\n"+records, 0o644)
	s.zones = append(s.zones, zoneFile{zone, file})
}

func (s *signedTree) run(name string, args ...string) string {
	s.t.Helper()
	out, err := exec.Command(serverProgram(name), args...).Output()
	if exit, ok := err.(*exec.ExitError); ok {
		s.t.Fatalf("%s %q: %v\n%s", name, args, err, exit.Stderr)
	} else if err != nil {
		s.t.Fatalf("%v; 'make needs' installs it", err)
	}
	return string(out)
}

// serve begins to answer: BIND has the zones, and answers what no route matches.
func (s *signedTree) serve() {
	s.t.Helper()
	s.routes = append(s.routes, route{".", bind.start(s.t, s.zones...)})
	var udp net.PacketConn
	var tcp net.Listener
	for range 20 {
		s.port = freePort(s.t)
		s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
		var err error
		if udp, err = net.ListenPacket("udp", s.addr); err != nil {
			continue
		}
		if tcp, err = net.Listen("tcp", s.addr); err == nil {
			break
		}
		_ = udp.Close()
	}
	if tcp == nil {
		s.t.Fatal("no port is free")
	}
	var running sync.WaitGroup
	s.t.Cleanup(running.Wait)
	for _, one := range []*dns.Server{{PacketConn: udp, Handler: s}, {Listener: tcp, Handler: s}} {
		begun := make(chan struct{})
		one.NotifyStartedFunc = func() { close(begun) }
		running.Go(func() { _ = one.ActivateAndServe() })
		<-begun
		s.t.Cleanup(func() { _ = one.Shutdown() })
	}
}

// ServeDNS asks the server that has the name, and passes the answer on.
func (s *signedTree) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	if len(q.Question) != 1 {
		return
	}
	name, kind := dns.CanonicalName(q.Question[0].Name), q.Question[0].Qtype
	var at *nameServer
	s.mu.Lock()
	routes := slices.Clone(s.routes)
	s.mu.Unlock()
	for _, r := range routes {
		if dns.IsSubDomain(r.zone, name) && (kind != dns.TypeDS || r.zone != name || name == ".") {
			at = r.server
			break
		}
	}
	ask := q.Copy()
	ask.Extra = nil
	do := q.IsEdns0() != nil && q.IsEdns0().Do()
	ask.SetEdns0(4096, do)
	m, _, err := (&dns.Client{Net: "tcp", Timeout: 10 * time.Second}).Exchange(ask, at.addr)
	if err != nil {
		return
	}
	m.Authoritative, m.RecursionAvailable, m.Question, m.Extra = false, true, q.Question, nil
	if q.IsEdns0() != nil {
		m.SetEdns0(1232, do)
	}
	if s.change != nil {
		s.change(dns.Question{Name: name, Qtype: kind}, m)
	}
	if w.LocalAddr().Network() == "udp" {
		size := dns.MinMsgSize
		if opt := q.IsEdns0(); opt != nil {
			size = max(size, int(opt.UDPSize()))
		}
		m.Compress = true
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

// anchors writes the root's key to a file, as zone files have it.
func (s *signedTree) anchors() string {
	s.t.Helper()
	file := filepath.Join(s.folder, "anchors")
	writeFile(s.t, file, s.root+"\n", 0o644)
	return file
}

// delv asks with BIND's validator. It is asked for one name at a time.
func (s *signedTree) delv(name, kind string) string {
	s.t.Helper()
	file := filepath.Join(s.folder, "anchors.bind")
	key := strings.Fields(s.root) // . IN DNSKEY 257 3 13 ...
	i := slices.Index(key, "DNSKEY")
	writeFile(s.t, file, `trust-anchors { "." static-key `+strings.Join(key[i+1:i+4], " ")+` "`+strings.Join(key[i+4:], "")+`"; };`+"\n", 0o644)
	cmd := exec.CommandContext(s.t.Context(), "delv", "-a", file, "+root=.", "@127.0.0.1", "-p", strconv.Itoa(s.port), name, kind)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	text := out.String()
	switch {
	case strings.Contains(text, "unsigned answer"), strings.Contains(text, "negative response, unsigned"):
		return "insecure" // of an alias, which may be signed, or of what it leads to
	case strings.Contains(text, "fully validated"):
		return "secure"
	case strings.Contains(text, "resolution failed"), strings.Contains(text, "broken trust chain"), strings.Contains(text, "no valid"), strings.Contains(text, "insecurity proof failed"):
		return "bogus"
	}
	return text + " " + errorText(err)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// validatingUnbound runs unbound, which asks the tree for everything, and validates.
func (s *signedTree) validatingUnbound() *nameServer {
	s.t.Helper()
	return s.unbound().start(s.t, zoneFile{zone: "."})
}

func (s *signedTree) unbound() stockServer {
	s.t.Helper()
	u := unboundFor(&nameServer{port: s.port})
	u.config = strings.NewReplacer(
		`module-config: "iterator"`, `module-config: "validator iterator"`+"\n  trust-anchor-file: \""+s.anchors()+"\"\n  ede: yes",
		"use-caps-for-id: yes", "use-caps-for-id: no",
		"qname-minimisation: yes", "qname-minimisation: no",
	).Replace(u.config)
	u.zone = strings.NewReplacer("stub-zone", "forward-zone", "stub-addr", "forward-addr").Replace(u.zone)
	return u
}

// unboundVerdict asks unbound.
func unboundVerdict(t *testing.T, at *nameServer, name string, kind uint16) string {
	t.Helper()
	q := new(dns.Msg).SetQuestion(name, kind)
	q.AuthenticatedData = true
	m, _, err := (&dns.Client{Timeout: 20 * time.Second}).Exchange(q, at.addr)
	switch {
	case err != nil:
		return err.Error()
	case m.Rcode == dns.RcodeServerFailure:
		return "bogus"
	case m.AuthenticatedData:
		return "secure"
	}
	return "insecure"
}
