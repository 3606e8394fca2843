package test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stele-id/stele/store/postgres/postgrestest"
)

const handedPrefix = "ark:12345"

// handOverRounds is how many namespaces are handed over: 3, or as many as `make soak` asks for.
func handOverRounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("STELE_HANDOVER_ROUNDS")
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHandOver hands a namespace over between two servers, the real program, while clients mint, register and change names at both of
// them, and resolve all names that were acknowledged. Servers and commands are killed at random moments, and a step that was cut off is
// repeated. At the giver's address every name that was acknowledged leads to its target at all times, and no name is given by both.
func TestHandOver(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("STELE_HANDOVER_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("seed %d", seed)
	database := sync.OnceValue(func() *postgrestest.Server { return postgrestest.Start(t, postgrestest.Options{NoSync: true}) })
	for round := range handOverRounds(t) {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			h := &handOver{t: t, random: rand.New(rand.NewPCG(seed, uint64(round))), names: make(map[string]*handedName), given: make(map[string]string), over: make(chan struct{})}
			h.giver = newParty(t, "giver", nil)
			if round%3 == 1 {
				h.heir = newParty(t, "heir", database())
			} else {
				h.heir = newParty(t, "heir", nil)
			}
			h.giver.must("ns", "add", handedPrefix, "--minter", "noid", "--template", ".reeeedk")
			h.giver.start()
			h.heir.start()
			h.run(round%2 == 0)
		})
		if t.Failed() {
			t.Fatalf("in round %d of the seed %d", round, seed)
		}
	}
}

// party is one of the two registries, with a server that is killed, and started again at the same address.
type party struct {
	t      *testing.T
	origin string   // of its log
	folder string   // of files
	place  []string // flags that name the registry
	shared bool     // commands work beside the server: the registry is in a database
	at     string
	token  string
	key    string // of the log, the public one
	client *http.Client

	mu     sync.Mutex // held while the server is started or killed
	server *exec.Cmd
	said   *bytes.Buffer
}

// newParty makes a registry in a folder, or in a database.
func newParty(t *testing.T, name string, database *postgrestest.Server) *party {
	t.Helper()
	p := &party{t: t, origin: name + ".example.org/.log", folder: t.TempDir(), at: fmt.Sprintf("http://127.0.0.1:%d", freePort(t))}
	p.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p.place = []string{"--data", filepath.Join(p.folder, "data")}
	if database != nil {
		p.place, p.shared = []string{"--store", database.Database(t)}, true
		p.must("store", "migrate")
	}
	if code, said := p.attempt(0, "secret", "keygen", filepath.Join(p.folder, "secret.key")); code != 0 {
		t.Fatal(said)
	}
	p.must("user", "add", "root", "--admin")
	p.token = shownToken.FindString(p.must("token", "create", "root"))
	p.key = strings.TrimSpace(p.must("log", "key", "--origin", p.origin))
	t.Cleanup(func() {
		p.kill()
		p.client.CloseIdleConnections()
	})
	return p
}

func (p *party) environ() []string {
	return append(environ(), "HOME="+p.folder, "STELE_TOKEN="+p.token, "STELE_SECRET_KEY_FILE="+filepath.Join(p.folder, "secret.key"))
}

// command returns a command of the program.
func (p *party) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, stele(p.t), args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.environ(), p.folder, 10*time.Second
	return cmd
}

// must runs a command on the registry itself, which no server has.
func (p *party) must(args ...string) string {
	p.t.Helper()
	var failure bytes.Buffer
	cmd := p.command(p.t.Context(), append(args, p.place...)...)
	cmd.Stderr = &failure
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("stele %q: %v\n%s", args, err, failure.String())
	}
	return string(out)
}

// start starts the server, and waits until it answers.
func (p *party) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		return
	}
	cmd := p.command(p.t.Context(), append([]string{"serve", "--json", "--http", strings.TrimPrefix(p.at, "http://"), "--dns", "", "--api-rate", "0", "--handover-allow", "127.0.0.0/8", "--log-interval", "1s"}, p.place...)...)
	p.said = new(bytes.Buffer)
	cmd.Stderr = p.said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		p.t.Errorf("%s: %v", p.origin, err)
		return
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "{") {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		p.t.Errorf("the server of %s says %q, %v\n%s", p.origin, line, err, p.said)
		return
	}
	p.server = cmd
}

// kill ends the server at once.
func (p *party) kill() { p.end(os.Kill) }

func (p *party) end(how os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return
	}
	_ = p.server.Process.Signal(how) // if it ended before, Wait tells
	err := p.server.Wait()
	if code := p.server.ProcessState.ExitCode(); how == os.Kill && code != -1 || how != os.Kill && code != 0 {
		p.t.Errorf("the server of %s ended with %d: %v\n%s", p.origin, code, err, p.said)
	}
	p.server = nil
}

// attempt runs a command, kills it after a time if that is not 0, and returns its exit code, -1 for one that was killed.
func (p *party) attempt(life time.Duration, args ...string) (code int, said string) {
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	cmd := p.command(ctx, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if life > 0 {
		timer := time.AfterFunc(life, cancel)
		defer timer.Stop()
	}
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return -1, fmt.Sprint(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// moment returns how long something goes on before it is killed: most often not long.
func (h *handOver) moment() time.Duration {
	return time.Millisecond + time.Duration(h.random.Float64()*h.random.Float64()*float64(500*time.Millisecond))
}

// mostKills is how often a step is cut off.
const mostKills = 2

// remotely does a step through the server of a party. It, or one of the servers, is killed meanwhile.
func (h *handOver) remotely(p *party, args ...string) string {
	h.t.Helper()
	args = append(args, "--server", p.at)
	for kills := 0; ; kills++ {
		life, victim := time.Duration(0), (*party)(nil)
		if kills < mostKills {
			switch h.random.IntN(4) {
			case 0:
				life = h.moment()
			case 1, 2:
				victim = p
			case 3:
				victim = h.heir
			}
		}
		code, said := h.beside(victim, func() (int, string) { return p.attempt(life, args...) })
		switch {
		case code == 0:
			return said
		case victim == nil && life == 0 || h.t.Failed():
			h.t.Fatalf("stele %q: exit %d\n%s", args, code, said)
		}
		h.cut++
	}
}

// beside runs a command, and kills a server at a random moment of it, which is started again at once.
func (h *handOver) beside(victim *party, run func() (int, string)) (code int, said string) {
	var killing sync.WaitGroup
	if victim != nil {
		after := h.moment()
		killing.Go(func() {
			time.Sleep(after)
			victim.kill()
			victim.start()
		})
		h.cut++
	}
	code, said = run()
	killing.Wait()
	return code, said
}

// locally does a step on the registry of a party itself. The server of one in a folder is stopped for it, and started before the step is
// repeated, so that clients go on in between.
func (h *handOver) locally(p *party, args ...string) string {
	h.t.Helper()
	args = append(args, p.place...)
	for kills := 0; ; kills++ {
		life, victim := time.Duration(0), (*party)(nil)
		if kills < mostKills {
			if life = h.moment() * 2; p.shared && h.random.IntN(2) == 0 {
				life, victim = 0, p
			}
		}
		if !p.shared {
			if h.random.IntN(2) == 0 {
				p.kill()
			} else {
				p.end(syscall.SIGTERM)
			}
		}
		code, said := h.beside(victim, func() (int, string) { return p.attempt(life, args...) })
		p.start()
		switch {
		case code == 0:
			return said
		case life == 0 || h.t.Failed():
			h.t.Fatalf("stele %q: exit %d\n%s", args, code, said)
		}
		h.cut++
		h.work()
	}
}

// work lets the clients go on for a moment, in which a server may be killed.
func (h *handOver) work() {
	time.Sleep(h.moment())
	if victim := []*party{h.giver, h.heir, nil}[h.random.IntN(3)]; victim != nil {
		victim.kill()
		h.cut++
		victim.start()
		time.Sleep(h.moment() / 2)
	}
	if h.t.Failed() {
		h.t.FailNow()
	}
}

// workUntil lets the clients go on until they have done something, however busy the machine is.
func (h *handOver) workUntil(done func() bool) {
	for deadline := time.Now().Add(10 * time.Minute); !done(); h.work() {
		if time.Now().After(deadline) {
			h.t.Fatalf("the servers do next to nothing: names given: %v; %d were resolved", h.minted(), h.asked.Load())
		}
	}
}

// run hands the namespace over, with a bundle for reading before if that is wanted.
func (h *handOver) run(readFirst bool) {
	h.load()
	defer h.stop()
	h.work()
	h.workUntil(func() bool { return h.minted()[h.giver.origin] >= fewest })
	if readFirst {
		file := filepath.Join(h.giver.folder, "first.tar")
		h.locally(h.giver, "bundle", handedPrefix, "-o", file)
		h.locally(h.heir, "adopt", file, "--key", h.giver.key)
		h.work()
	}
	h.remotely(h.giver, "handover", "offer", handedPrefix, "--to", h.heir.origin, "--address", h.heir.at+"/")
	h.work()
	h.remotely(h.giver, "handover", "seal", handedPrefix, "--yes")
	h.sealed.Store(true)
	h.work()
	file := filepath.Join(h.giver.folder, "sealed.tgz")
	h.locally(h.giver, "bundle", handedPrefix, "-o", file)
	h.adopting.Store(true)
	if said := h.locally(h.heir, "adopt", file, "--key", h.giver.key, "--yes", "--giver", h.giver.at, "--allow", "127.0.0.0/8", "--i-know"); !strings.Contains(said, "minted and changed here from now on") {
		h.t.Fatalf("adopt says\n%s", said)
	}
	h.work()
	h.forwarding.Store(true)
	h.remotely(h.giver, "handover", "forward", handedPrefix)
	h.forwarded.Store(true)
	h.work()
	h.workUntil(h.isEnough)
	h.stop()
	h.finish()
}

// finish checks what is left of it all.
func (h *handOver) finish() {
	t := h.t
	for _, name := range h.list {
		h.resolve(name)
	}
	h.agree()
	for _, p := range []*party{h.giver, h.heir} {
		p.kill()
		p.must("verify")
	}
	t.Logf("%d kills, %d names resolve; names given: %v; %d were resolved on the way", h.cut, len(h.list), h.minted(), h.asked.Load())
}

// agree makes sure that both registries say the same of the hand-over.
func (h *handOver) agree() {
	h.t.Helper()
	type side struct {
		State, Heir, Address string
		Adoption             *struct {
			From, To string
			Reading  bool
		}
	}
	ask := func(p *party) (s side) {
		code, said := p.attempt(0, "handover", "status", handedPrefix, "--json", "--server", p.at)
		if err := json.Unmarshal([]byte(said), &s); err != nil || code != 0 {
			h.t.Fatalf("%s: exit %d, %v\n%s", p.origin, code, err, said)
		}
		return s
	}
	giver, heir := ask(h.giver), ask(h.heir)
	if giver.State != "forwarded" || giver.Heir != h.heir.origin || giver.Address != h.heir.at+"/" || giver.Adoption != nil {
		h.t.Errorf("the giver says %+v", giver)
	}
	if a := heir.Adoption; heir.State != "" || a == nil || a.From != h.giver.origin || a.To != h.heir.origin || a.Reading {
		h.t.Errorf("the heir says %+v, %+v", heir, heir.Adoption)
	}
	if code, said := h.giver.attempt(0, "handover", "status", handedPrefix, "--check", "--server", h.giver.at); code != 0 || !strings.Contains(said, "has adopted it for writing") {
		h.t.Errorf("the check: exit %d\n%s", code, said)
	}
}
