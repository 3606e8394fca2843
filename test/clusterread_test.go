package test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// How many names clients read: some that are in the DNS, and in total too many to be in the
// cache of a server when the failures begin.
const (
	dnsSeeds = 1000
	allSeeds = 8000
)

const clusterZone = "names.example.org."

// clusterReads is clients that read through all servers of a cluster, over HTTP and DNS,
// and from the secondaries. Each answer must come, and be right.
type clusterReads struct {
	t           *testing.T
	c           *cluster
	secondaries []*nameServer

	stopped chan struct{}
	ended   sync.Once
	clients sync.WaitGroup

	mu      sync.Mutex
	count   map[string]int           // of answers, by the server that gave them
	slowest map[string]time.Duration // of them
}

// newClusterReads registers what is read.
func newClusterReads(t *testing.T, c *cluster) *clusterReads {
	t.Helper()
	r := &clusterReads{t: t, c: c, stopped: make(chan struct{}), count: make(map[string]int), slowest: make(map[string]time.Duration)}
	l := &clusterLoad{t: t, c: c}
	const batch = 1000
	for first := 0; first < allSeeds; first += batch {
		var list []string
		for i := first; i < first+batch; i++ {
			list = append(list, fmt.Sprintf(`{"id":%q,"url":%q}`, seedName(i), seedURL(i)))
		}
		a := l.ask(c.servers[first/batch%3], "POST", "records", nil, "["+strings.Join(list, ",")+"]")
		if a.status != 200 || !strings.Contains(a.text, fmt.Sprintf(`"created":%d`, batch)) {
			t.Fatalf("%d, %v: %.1000s", a.status, a.err, a.text)
		}
	}
	for _, name := range []string{"knot", "nsd"} {
		s := &nameServer{name, "127.0.0.1:" + c.settings[name], c.port(name)}
		r.secondaries = append(r.secondaries, s)
		r.settled(s, func() bool { return readDNS(s.addr, rand.IntN(dnsSeeds)) == nil })
	}
	return r
}

// settled waits until a server answers from a new zone only: for a moment a process of NSD
// still answers from the old one, and then drops its connections.
func (r *clusterReads) settled(s *nameServer, has func() bool) {
	r.t.Helper()
	inARow := 0
	r.c.await("zone in "+s.name+" as it is here", func() bool {
		if inARow++; !has() {
			inARow = 0
		}
		return inARow == 20
	})
}

// The first seeds are in the DNS, the others are not.
func seedLabel(i int) string { return fmt.Sprintf("seed-%d", i) }

func seedName(i int) string {
	if i < dnsSeeds {
		return "urn:example:" + seedLabel(i)
	}
	return "urn:x1:" + seedLabel(i)
}

func seedURL(i int) string { return fmt.Sprintf("https://example.org/seed/%d", i) }

// start has clients read.
func (r *clusterReads) start() {
	r.t.Cleanup(r.end)
	for _, s := range r.c.servers {
		for range 2 {
			r.loop("stele"+s.number+" over HTTP", s.down.Load, func() error { return readHTTP(r.c.client, s.http, rand.IntN(allSeeds)) })
		}
		r.loop("stele"+s.number+" over DNS", s.down.Load, func() error { return readDNS(s.dns, rand.IntN(dnsSeeds)) })
	}
	for _, s := range r.secondaries {
		r.loop(s.name, func() bool { return false }, func() error { return readDNS(s.addr, rand.IntN(dnsSeeds)) })
	}
}

// loop reads again and again, except while the server is down.
func (r *clusterReads) loop(who string, down func() bool, read func() error) {
	r.clients.Go(func() {
		for {
			select {
			case <-r.stopped:
				return
			case <-time.After(time.Duration(5+rand.IntN(20)) * time.Millisecond):
			}
			if down() {
				continue
			}
			began := time.Now()
			err := read()
			took := time.Since(began)
			if err != nil && !down() {
				r.t.Errorf("%s, after %v: %v", who, took, err)
			}
			r.mu.Lock()
			r.count[who]++
			r.slowest[who] = max(r.slowest[who], took)
			r.mu.Unlock()
		}
	})
}

// readHTTP resolves a seed.
func readHTTP(client *http.Client, server string, i int) error {
	answer, err := client.Get(server + "/" + seedName(i))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusFound || answer.Header.Get("Location") != seedURL(i) {
		return fmt.Errorf("%s: %s to %q, %v\n%s", seedName(i), answer.Status, answer.Header.Get("Location"), err, text)
	}
	return nil
}

// readDNS asks for the rules of a seed, as resolvers do: it retries, since datagrams get
// lost, up to a limit.
func readDNS(server string, i int) (err error) {
	question := new(dns.Msg).SetQuestion(seedLabel(i)+"."+clusterZone, dns.TypeNAPTR).SetEdns0(1232, false)
	for range 3 {
		var answer *dns.Msg
		var took time.Duration
		client := &dns.Client{Timeout: 3 * time.Second}
		if answer, took, err = client.Exchange(question, server); err != nil {
			continue
		}
		// On a busy machine the name server answers SERVFAIL after two seconds, so that
		// resolvers retry. It must not do so at once.
		if answer.Rcode == dns.RcodeServerFailure && took > time.Second {
			err = fmt.Errorf("after %v: %v", took, answer)
			continue
		}
		if answer.Rcode != dns.RcodeSuccess || !strings.Contains(answer.String(), seedURL(i)) {
			return fmt.Errorf("%v", answer)
		}
		return nil
	}
	return err
}

func (r *clusterReads) end() {
	r.ended.Do(func() { close(r.stopped) })
	r.clients.Wait()
}

// stop ends reading.
func (r *clusterReads) stop() {
	r.end()
	for who, n := range r.count {
		r.t.Logf("%s: %d reads, the slowest took %v", who, n, r.slowest[who].Round(time.Millisecond))
		if n < 100 {
			r.t.Errorf("%s: only %d reads", who, n)
		}
	}
}

// secondariesAgree: all servers have the same serial, both secondaries reach it, and have
// the same records. After the first transfer they get deltas only.
func (r *clusterReads) secondariesAgree() {
	r.t.Helper()
	// No secondary is notified of a serial that grew without anything new in the zone.
	l := &clusterLoad{t: r.t, c: r.c}
	if a := l.ask(r.c.servers[0], "PUT", "records/urn:example:last", nil, `{"url":"https://example.org/last"}`); a.status != 201 {
		r.t.Fatalf("%+v", a)
	}
	var list []*nameServer
	for _, s := range r.c.servers {
		list = append(list, &nameServer{"stele" + s.number, s.dns, r.c.port("dns" + s.number)})
	}
	var serial uint32
	r.c.await("serial that all servers have", func() bool {
		serial = list[0].serial(clusterZone)
		return serial > 0 && list[1].serial(clusterZone) == serial && list[2].serial(clusterZone) == serial
	})
	questions := []question{{"last." + clusterZone, "NAPTR"}}
	for range 200 {
		questions = append(questions, question{seedLabel(rand.IntN(dnsSeeds)) + "." + clusterZone, "NAPTR"})
	}
	for i := range 50 {
		for s := range 3 {
			questions = append(questions, question{fmt.Sprintf("s%d-1-%d.%s", s, i, clusterZone), "NAPTR"})
		}
	}
	want := askLibrary(r.t, list[0], questions)
	for _, s := range append(list[1:], r.secondaries...) {
		r.settled(s, func() bool { return s.serial(clusterZone) == serial })
		sameReplies(r.t, s.name, askLibrary(r.t, s, questions), want)
	}
	text, err := os.ReadFile(filepath.Join(r.c.folder, "log", "knot"))
	if err != nil {
		r.t.Fatal(err)
	}
	whole, changes, broken := transfers(string(text), "AXFR"), transfers(string(text), "IXFR"), strings.Count(string(text), "'SERVFAIL'")
	r.t.Logf("Knot took the whole zone %d times, and changes %d times; %d times a database was killed while changes were read", whole, changes, broken)
	// A secondary that gets SERVFAIL may transfer the whole zone next.
	if whole > 1+broken || changes <= whole || strings.Contains(string(text), "failed to apply") {
		r.t.Error("changes should be taken as changes")
	}
}

// transfers counts transfers of a kind in Knot's log.
func transfers(log, kind string) (n int) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, kind+", incoming") && strings.Contains(line, ", finished") {
			n++
		}
	}
	return n
}
