package test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestCluster starts what docs/cluster.md describes, on this machine, and takes away one
// part after the other while clients write and read through all servers. All acknowledged
// writes are there in the end, no name was given twice, no read was refused; the test
// prints how long no client could write.
func TestCluster(t *testing.T) {
	c := startCluster(t)
	l := newClusterLoad(t, c)
	r := newClusterReads(t, c)
	l.start()
	r.start()
	time.Sleep(2 * time.Second)

	l.event("kill -9 of PostgreSQL, the primary; Patroni lives", func() {
		old := c.primary()
		c.kill("postgres" + old)
		c.awaitPrimary(old)
	})
	c.awaitWhole()
	l.event("kill -9 of the machine of the primary: etcd, Patroni, PostgreSQL and Stele", func() {
		old := c.primary()
		c.down(old, true)
		c.kill("m" + old)
		c.awaitPrimary(old)
		l.awaitWrites()
		c.revive("m" + old)
		c.awaitStele(old)
		c.down(old, false)
	})
	c.awaitWhole()
	l.event("kill -9 of the synchronous standby", func() {
		n := c.member("sync_standby")
		c.kill("db" + n)
		l.awaitWrites()
		c.revive("db" + n)
	})
	l.event("kill -9 of a Stele server", func() {
		c.down("2", true)
		c.kill("stele2")
		l.awaitWrites()
		c.revive("stele2")
		c.awaitStele("2")
		c.down("2", false)
	})
	c.awaitWhole()
	l.event("kill -9 of both standbys, until they are back", func() {
		var standbys []string
		for _, n := range []string{"1", "2", "3"} {
			if n != c.primary() {
				standbys = append(standbys, "db"+n)
			}
		}
		c.kill(standbys...)
		l.nothingAcknowledged()
		c.revive(standbys...)
	})
	c.awaitWhole()
	l.event("nothing, to compare", l.awaitWrites)
	l.stop()
	r.stop()
	r.secondariesAgree()
	l.verify()
	l.serversAgree()
	if t.Failed() {
		return
	}
	cutOff(t, c, l)
	l.verify()
}

// cluster is what deploy/cluster/cluster.sh runs.
type cluster struct {
	t        *testing.T
	folder   string
	settings map[string]string // ports and passwords
	token    string            // of an administrator
	servers  []*clusterServer
	client   *http.Client
}

// clusterServer is one of its Stele servers.
type clusterServer struct {
	number, http, dns, metrics string
	down                       atomic.Bool // since the test killed it
}

// startCluster runs the script, which ends everything when its input ends: also if the test
// is killed.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	for try := 1; ; try++ {
		c, err := tryCluster(t)
		if err == nil {
			return c
		}
		if try == 2 { // another process may have taken a port meanwhile
			t.Fatal(err)
		}
		t.Logf("once more: %v", err)
	}
}

func tryCluster(t *testing.T) (*cluster, error) {
	t.Helper()
	// PostgreSQL's user must get there, and paths of sockets must be short.
	folder, err := os.MkdirTemp("", "cluster")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, err
	}
	c := &cluster{t: t, folder: folder, settings: make(map[string]string),
		client: &http.Client{
			Timeout:       time.Minute,
			Transport:     &http.Transport{MaxIdleConnsPerHost: 64},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	began := time.Now()
	cmd := c.script(context.WithoutCancel(t.Context()), "run")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the test
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var said lockedBuffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ready := false
	for lines := bufio.NewScanner(out); !ready && lines.Scan(); {
		ready = lines.Text() == "ready"
	}
	end := func() {
		c.client.CloseIdleConnections()
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil && ready {
			t.Errorf("the script: %v\n%s", err, &said)
		}
		if t.Failed() || !ready {
			c.tellLogs()
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	}
	if !ready {
		end()
		return nil, fmt.Errorf("the cluster does not start: %s", &said)
	}
	t.Cleanup(end)
	t.Logf("the cluster was started in %v", time.Since(began).Round(100*time.Millisecond))
	return c, c.read()
}

// read reads what the script wrote down.
func (c *cluster) read() error {
	text, err := os.ReadFile(filepath.Join(c.folder, "settings"))
	if err != nil {
		return err
	}
	for _, word := range strings.Fields(string(text)) {
		name, value, _ := strings.Cut(word, "=")
		c.settings[name] = value
	}
	token, err := os.ReadFile(filepath.Join(c.folder, "token"))
	if err != nil {
		return err
	}
	c.token = strings.TrimSpace(string(token))
	for _, n := range []string{"1", "2", "3"} {
		c.servers = append(c.servers, &clusterServer{number: n,
			http: "http://127.0.0.1:" + c.settings["http"+n], dns: "127.0.0.1:" + c.settings["dns"+n],
			metrics: "http://127.0.0.1:" + c.settings["metrics"+n] + "/metrics"})
	}
	return nil
}

func (c *cluster) script(ctx context.Context, command string, nodes ...string) *exec.Cmd {
	args := append([]string{filepath.Join(root, "deploy/cluster/cluster.sh"), command, c.folder}, nodes...)
	cmd := exec.CommandContext(ctx, "bash", args...)
	cmd.Env = append(environ(), "STELE="+stele(c.t))
	return cmd
}

// tellLogs prints the end of each log.
func (c *cluster) tellLogs() {
	files, _ := filepath.Glob(filepath.Join(c.folder, "log", "*")) // the pattern is right
	for _, file := range files {
		text, err := os.ReadFile(file)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		lines = lines[max(0, len(lines)-20):]
		for i, line := range lines {
			lines[i] = fmt.Sprintf("%.300s", line)
		}
		c.t.Logf("%s: %v\n%s", filepath.Base(file), err, strings.Join(lines, "\n"))
	}
}

func (c *cluster) kill(nodes ...string)   { c.t.Helper(); c.do("kill", nodes...) }
func (c *cluster) revive(nodes ...string) { c.t.Helper(); c.do("revive", nodes...) }

func (c *cluster) do(command string, nodes ...string) {
	c.t.Helper()
	// A process that it starts must not hold a pipe of ours, or this would wait for it.
	log, err := os.Create(filepath.Join(c.folder, "said"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer log.Close()
	cmd := c.script(c.t.Context(), command, nodes...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		c.t.Fatalf("%s %v: %v\n%s", command, nodes, err, text)
	}
}

// down notes whether clients can expect answers from a server.
func (c *cluster) down(number string, yes bool) {
	for _, s := range c.servers {
		if s.number == number {
			s.down.Store(yes)
		}
	}
}

// member returns the number of a PostgreSQL server by its role, as Patroni has it; "" if
// there is none now.
func (c *cluster) member(role string) string {
	for _, m := range c.members() {
		if m.Role == role && m.State != "stopped" {
			return strings.TrimPrefix(m.Name, "db")
		}
	}
	return ""
}

type clusterMember struct{ Name, Role, State string }

// members asks each Patroni for what it knows, until one answers.
func (c *cluster) members() []clusterMember {
	for _, n := range []string{"1", "2", "3"} {
		ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
		var got struct{ Members []clusterMember }
		err := c.get(ctx, "http://127.0.0.1:"+c.settings["rest"+n]+"/cluster", &got)
		cancel()
		if err == nil {
			return got.Members
		}
	}
	return nil
}

func (c *cluster) get(ctx context.Context, url string, into any) error {
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return err
	}
	answer, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != 200 {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// primary returns the number of the primary; the test fails if there is none.
func (c *cluster) primary() string {
	c.t.Helper()
	var number string
	c.await("a primary", func() bool { number = c.member("leader"); return number != "" })
	return number
}

// awaitPrimary waits until another is the primary.
func (c *cluster) awaitPrimary(old string) {
	c.t.Helper()
	c.await("another primary", func() bool { n := c.member("leader"); return n != "" && n != old })
}

// awaitWhole waits until all three PostgreSQL servers have all, one of them as the
// synchronous standby.
func (c *cluster) awaitWhole() {
	c.t.Helper()
	c.await("three PostgreSQL servers", func() bool {
		running := 0
		for _, m := range c.members() {
			if m.State == "running" || m.State == "streaming" {
				running++
			}
		}
		return running == 3 && c.member("leader") != "" && c.member("sync_standby") != ""
	})
}

// awaitStele waits until a Stele server is ready.
func (c *cluster) awaitStele(number string) {
	c.t.Helper()
	c.await("Stele server "+number, func() bool {
		answer, err := c.client.Get("http://127.0.0.1:" + c.settings["http"+number] + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == 200
	})
}

func (c *cluster) await(what string, is func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("there is no %s after 90 seconds", what)
		}
	}
}

// url is the store's URL for a server that reaches the PostgreSQL servers at a host and
// these ports.
func (c *cluster) url(host string, ports ...string) string {
	var hosts []string
	for _, port := range ports {
		hosts = append(hosts, host+":"+port)
	}
	return "postgres://stele:" + c.settings["stelepass"] + "@" + strings.Join(hosts, ",") + "/stele"
}

func (c *cluster) port(name string) int {
	port, err := strconv.Atoi(c.settings[name])
	if err != nil {
		c.t.Fatal(err)
	}
	return port
}
