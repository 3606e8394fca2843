package test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cutServer is a Stele server in a network namespace, which reaches the databases by one
// link and its clients by another.
type cutServer struct {
	*clusterServer
	t    *testing.T
	link string // to the databases, our end of it
}

// cutOff cuts a server off from its databases. It gives out the names that it has
// reserved, and no more; it answers from its cache, and denies no name that it does not
// know. When the link is back it goes on, and reads what happened meanwhile.
func cutOff(t *testing.T, c *cluster, l *clusterLoad) {
	s := startCut(t, c)
	warm := []int{1, 2, 3, dnsSeeds + 1, dnsSeeds + 2, dnsSeeds + 3}
	known := func(when string) {
		t.Helper()
		for _, i := range warm {
			if err := readHTTP(c.client, s.http, i); err != nil {
				t.Errorf("%s: %v", when, err)
			}
			if i < dnsSeeds {
				if err := readDNS(s.dns, i); err != nil {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
	}
	known("before it is cut off")
	// The first name comes with a block of a thousand.
	if a := mintSome(l, s.clusterServer, 1); a.status != 201 {
		t.Fatalf("%+v", a)
	}

	// A server that has just begun forgets answers once more, when it has read all names of the zone.
	misses, since := -1.0, time.Now()
	c.await("answers from memory alone", func() bool {
		known("before it is cut off")
		if now := s.misses(c); now != misses {
			misses, since = now, time.Now()
		}
		return time.Since(since) >= 3*time.Second
	})

	run(t, "ip", "link", "set", s.link, "down")
	given, a := 0, mintSome(l, s.clusterServer, 200)
	for ; a.status == 201; a = mintSome(l, s.clusterServer, 200) {
		given += 200
		if others := mintSome(l, c.servers[0], 200); others.status != 201 { // they go on meanwhile
			t.Errorf("%+v", others)
		}
	}
	t.Logf("cut off, it gave out %d names", given)
	if a.status != 503 || given == 0 || given > 999 {
		t.Errorf("cut off, it gave out %d names, and said then: %+v", given, a)
	}
	known("cut off")
	// Others register a name, and change one.
	if a := l.ask(c.servers[0], "PUT", "records/urn:x1:unheard-of", nil, `{"url":"https://example.org/new"}`); a.status != 201 {
		t.Fatalf("%+v", a)
	}
	if status := s.status(c, "urn:x1:unheard-of", ""); status != 503 {
		t.Errorf("of a name that it can't know it says %d", status)
	}
	url := "https://example.org/changed"
	a = l.ask(c.servers[0], "PATCH", "records/"+seedName(dnsSeeds+1), map[string]string{"Content-Type": "application/merge-patch+json"}, `{"targets":[{"url":"`+url+`"}]}`)
	if a.status != 200 {
		t.Fatalf("%+v", a)
	}
	known("cut off, when a name has changed") // which the server can't know here
	if status := s.status(c, seedName(1), a.version); status != 503 {
		t.Errorf("asked for a state that has version %s it says %d", a.version, status)
	}
	if a := mintSome(l, s.clusterServer, 1); a.status != 503 {
		t.Errorf("it gives out names again: %+v", a)
	}

	run(t, "ip", "link", "set", s.link, "up")
	c.await("server that is no longer cut off", func() bool { return mintSome(l, s.clusterServer, 1).status == 201 })
	c.await("server that knows of the change", func() bool {
		answer, err := c.client.Get(s.http + "/" + seedName(dnsSeeds+1))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.Header.Get("Location") == url
	})
	warm = append(warm[:3], warm[4:]...)
	known("when it is no longer cut off")
}

// misses returns how many questions of the DNS were not answered from memory.
func (s *cutServer) misses(c *cluster) float64 {
	s.t.Helper()
	answer, err := c.client.Get(s.metrics)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "stele_dns_misses_total "); ok {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return n
		}
	}
	s.t.Fatalf("no count of misses: %v", lines.Err())
	return 0
}

// status resolves a name and returns the status of the answer.
func (s *cutServer) status(c *cluster, name, version string) int {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), "GET", s.http+"/"+name, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if version != "" {
		request.Header.Set("Stele-Version", version)
	}
	answer, err := c.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// mintSome makes names through a server, and notes them.
func mintSome(l *clusterLoad, s *clusterServer, count int) clusterAnswer {
	l.t.Helper()
	a := l.ask(s, "POST", "mint", nil, fmt.Sprintf(`{"namespace":"ark:12345/x5","count":%d}`, count))
	if a.status != 201 {
		return a
	}
	var made struct{ Items []struct{ ID string } }
	if err := json.Unmarshal([]byte(a.text), &made); err != nil || len(made.Items) != count {
		l.t.Fatalf("%s: %v", a.text, err)
	}
	for _, item := range made.Items {
		l.acknowledged.give(l.t, item.ID)
	}
	return a
}

// startCut starts a server in a network namespace, with two links to it. The namespace
// has no name: it ends with the server, and takes the links along.
func startCut(t *testing.T, c *cluster) *cutServer {
	t.Helper()
	// 198.18.0.0/15 is for tests of networks (RFC 2544).
	net4 := fmt.Sprintf("198.18.%d.", rand.IntN(256))
	id := strconv.Itoa(os.Getpid())
	dbLink, clientLink := "sd"+id, "sc"+id
	web, name, metrics := net4+"6:8080", net4+"6:5353", net4+"6:9180"
	cmd := exec.Command("sh", "-c", `read go
ip link set lo up
ip addr add "$0"2/30 dev db && ip link set db up
ip addr add "$0"6/30 dev clients && ip link set clients up
read store
exec env STELE_STORE="$store" "$@"`, net4, stele(t), "serve", "--json", "--http", web, "--dns", name, "--metrics", metrics, "--api-rate", "0", "--dns-rate", "0")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin", "HOME=" + t.TempDir()}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said lockedBuffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("a network namespace takes root: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the server that was cut off: %s", &said)
		}
	})
	pid := strconv.Itoa(cmd.Process.Pid)
	for link, peer := range map[string][2]string{dbLink: {"db", net4 + "1/30"}, clientLink: {"clients", net4 + "5/30"}} {
		run(t, "ip", "link", "add", link, "type", "veth", "peer", "name", peer[0], "netns", pid)
		t.Cleanup(func() { _ = exec.Command("ip", "link", "del", link).Run() }) // it goes with the namespace, some time
		run(t, "ip", "addr", "add", peer[1], "dev", link)
		run(t, "ip", "link", "set", link, "up")
	}
	var ports []string
	for _, pg := range []string{"pg1", "pg2", "pg3"} {
		ports = append(ports, forward(t, net4+"1", "127.0.0.1:"+c.settings[pg]))
	}
	if _, err := fmt.Fprintf(in, "go\n%s\n", c.url(net4+"1", ports...)); err != nil {
		t.Fatal(err)
	}
	s := &cutServer{&clusterServer{number: "4", http: "http://" + web, dns: name, metrics: "http://" + metrics + "/metrics"}, t, dbLink}
	c.await("server in a network namespace", func() bool {
		answer, err := c.client.Get(s.http + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == 200
	})
	return s
}

// forward passes connections on to a port of this machine that listens on loopback alone,
// and returns the port of its own.
func forward(t *testing.T, host, to string) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			pass := func(a, b net.Conn) {
				_, _ = io.Copy(a, b)
				_ = a.Close()
				_ = b.Close()
			}
			go pass(from, onward)
			go pass(onward, from)
		}
	}()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// run runs a command that must succeed.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), serverProgram(name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
