package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// handOver is a hand-over between two registries, and what their clients were told.
type handOver struct {
	t           *testing.T
	random      *rand.Rand // of the operator alone
	giver, heir *party
	cut         int // how often something was killed

	sealed     atomic.Bool // the giver has acknowledged the seal
	adopting   atomic.Bool // the heir was given the bundle that was made after it
	forwarding atomic.Bool // the giver was asked to forward
	forwarded  atomic.Bool // the giver has acknowledged that
	asked      atomic.Int64

	mu    sync.Mutex
	names map[string]*handedName // that were acknowledged with a target
	list  []string               // the same, in their order
	given map[string]string      // names that were minted, and by which registry

	over    chan struct{}
	ending  sync.Once
	first   sync.Once // the heir has minted
	clients sync.WaitGroup
}

// handedName is a name that was acknowledged.
type handedName struct {
	by      *party
	targets []string // all that were ever written, perhaps, in their order
	acked   int      // place of the last one that was acknowledged
	kept    int      // of the last one that the giver acknowledged, which it answers with until it forwards
}

// load starts the clients.
func (h *handOver) load() {
	for _, p := range []*party{h.giver, h.heir} {
		h.client(20*time.Millisecond, func(n int) bool { return h.mint(p, n) })
		h.client(20*time.Millisecond, func(n int) bool { return h.register(p, n) })
		h.client(20*time.Millisecond, func(n int) bool { return h.change(p, n) })
	}
	for range 3 {
		h.client(2*time.Millisecond, func(int) bool {
			name := h.any()
			if name != "" {
				h.resolve(name)
			}
			return true
		})
	}
	h.client(5*time.Millisecond, h.peek)
}

// any returns one of the names that were acknowledged; "" if there is none.
func (h *handOver) any() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.list) == 0 {
		return ""
	}
	return h.list[rand.IntN(len(h.list))]
}

// peek asks the heir for a name before it has it, so that what the heir remembers of that is there when it has.
func (h *handOver) peek(int) bool {
	name := h.any()
	if name == "" || h.forwarding.Load() {
		return false
	}
	_, _, _, err := h.insist(h.heir, http.MethodGet, h.heir.at+"/"+name, "", "")
	return err == nil
}

// client repeats something with a pause, which is a longer one after something that was refused.
func (h *handOver) client(pause time.Duration, do func(n int) bool) {
	h.clients.Go(func() {
		for n := 0; !h.isOver() && !h.t.Failed(); n++ {
			wait := pause
			if !do(n) {
				wait *= 4
			}
			select {
			case <-h.over:
			case <-time.After(wait):
			}
		}
	})
}

func (h *handOver) isOver() bool {
	select {
	case <-h.over:
		return true
	default:
		return false
	}
}

// stop ends the clients. The servers run, so that each of them gets its last answer.
func (h *handOver) stop() {
	h.ending.Do(func() { close(h.over) })
	h.clients.Wait()
}

var errNoAnswer = errors.New("there is no answer")

// insist asks until there is an answer: a server that was killed is started again. It ends when the test does.
func (h *handOver) insist(p *party, method, url, key, body string) (status int, header http.Header, text string, err error) {
	began := time.Now()
	for {
		status, header, text, err = p.ask(method, url, key, body)
		if err == nil && status != http.StatusServiceUnavailable {
			return status, header, text, nil
		}
		if time.Since(began) > 5*time.Minute || h.t.Failed() { // a loaded machine takes long to start a server
			h.t.Errorf("%s %s: %d %s, %v", method, url, status, text, err)
			return 0, nil, "", errNoAnswer
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// ask sends a request, once.
func (p *party) ask(method, url, key, body string) (int, http.Header, string, error) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	if method != http.MethodGet {
		r.Header.Set("Authorization", "Bearer "+p.token)
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
	}
	a, err := p.client.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	return a.StatusCode, a.Header, string(text), err
}

// write asks a server to write something, and reports whether it did. The giver writes nothing that it was first asked for after it
// acknowledged the seal, and the heir nothing before it was given the bundle.
func (h *handOver) write(p *party, method, path, key, body string) (text string, written bool) {
	late := h.sealed.Load()
	status, _, text, err := h.insist(p, method, p.at+"/api/v1/"+path, key, body)
	switch {
	case err != nil:
		return "", false
	case status == http.StatusOK || status == http.StatusCreated || status == http.StatusPreconditionRequired && method == http.MethodPut: // it is there since an attempt without an answer
		if p == h.giver && late {
			h.t.Errorf("the giver has sealed, and answers %s %s with %d %s", method, path, status, text)
		}
		if p == h.heir && !h.adopting.Load() {
			h.t.Errorf("the heir has not adopted, and answers %s %s with %d %s", method, path, status, text)
		}
		if p == h.heir {
			h.first.Do(h.hasAll)
		}
		return text, true
	case p == h.giver && !h.sealing() || status != http.StatusConflict && status != http.StatusNotFound:
		h.t.Errorf("%s answers %s %s with %d %s", p.origin, method, path, status, text)
	}
	return "", false
}

// sealing reports whether the giver may refuse to write.
func (h *handOver) sealing() bool {
	status, _, text, err := h.insist(h.giver, http.MethodGet, h.giver.at+"/api/v1/handover/"+handedPrefix, "", "")
	return err == nil && status == http.StatusOK && (strings.Contains(text, `"sealed"`) || strings.Contains(text, `"forwarded"`))
}

// isTaken reports whether the heir has begun to adopt the namespace.
func (h *handOver) isTaken() bool {
	status, _, text, err := h.insist(h.heir, http.MethodGet, h.heir.at+"/api/v1/handover/"+handedPrefix, "", "")
	return err == nil && status == http.StatusOK && strings.Contains(text, `"adoption"`)
}

// hasAll makes sure that the heir has all that the giver has acknowledged, as soon as it writes.
func (h *handOver) hasAll() {
	h.mu.Lock()
	list := slices.Clone(h.list)
	h.mu.Unlock()
	for _, name := range list {
		h.resolveAt(h.heir, name)
	}
}

// minted returns how many names the registries have given.
func (h *handOver) minted() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := map[string]int{}
	for _, by := range h.given {
		count[by]++
	}
	return count
}

// fewest is how many names each of the registries gives at least.
const fewest = 5

// isEnough reports whether the clients have done something.
func (h *handOver) isEnough() bool {
	minted := h.minted()
	return minted[h.giver.origin] >= fewest && minted[h.heir.origin] >= fewest && h.asked.Load() >= 100
}

// mint makes names, with records and without.
func (h *handOver) mint(p *party, n int) bool {
	key := fmt.Sprintf("%s-%d", strings.TrimSuffix(p.origin, "/.log"), n)
	target := "https://example.org/minted/" + key
	body := fmt.Sprintf(`{"namespace":%q,"count":%d,"record":{"url":%q}}`, handedPrefix, 1+n%4, target)
	if n%3 == 0 {
		body = fmt.Sprintf(`{"namespace":%q,"count":%d}`, handedPrefix, 1+n%4)
	}
	text, ok := h.write(p, http.MethodPost, "mint", key, body)
	if !ok {
		return false
	}
	var made struct{ Items []struct{ ID string } }
	if err := json.Unmarshal([]byte(text), &made); err != nil || len(made.Items) == 0 {
		h.t.Errorf("%s: %s, %v", key, text, err)
	}
	for _, item := range made.Items {
		h.mu.Lock()
		if by, twice := h.given[item.ID]; twice {
			h.t.Errorf("%s was given by %s, and is given by %s", item.ID, by, p.origin)
		}
		h.given[item.ID] = p.origin
		h.mu.Unlock()
		if n%3 != 0 {
			h.acknowledge(p, item.ID, target)
		}
	}
	return true
}

func (h *handOver) acknowledge(p *party, name, target string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if have := h.names[name]; have != nil {
		h.t.Errorf("%s is acknowledged by %s, and was by %s", name, p.origin, have.by.origin)
		return
	}
	h.names[name] = &handedName{by: p, targets: []string{target}}
	h.list = append(h.list, name)
}

// register registers a name. Both registries are asked for names of their own, or else it would not be known which one was first. Before
// the heir has the namespace its administrator could register names there, and it would refuse the bundle.
func (h *handOver) register(p *party, n int) bool {
	if p == h.heir && !h.isTaken() {
		return false
	}
	name := fmt.Sprintf("%s/put%.4s%d", handedPrefix, p.origin, n)
	target := "https://example.org/" + name
	if _, ok := h.write(p, http.MethodPut, "records/"+name, "", fmt.Sprintf(`{"url":%q}`, target)); !ok {
		return false
	}
	h.acknowledge(p, name, target)
	return true
}

// change gives a name another target. The heir also changes names that the giver made.
func (h *handOver) change(p *party, n int) bool {
	h.mu.Lock()
	if len(h.list) == 0 || p == h.heir && !h.adopting.Load() {
		h.mu.Unlock()
		return false
	}
	name := h.list[rand.IntN(len(h.list))]
	have := h.names[name]
	if p == h.giver && have.by != p {
		h.mu.Unlock()
		return false
	}
	target := fmt.Sprintf("https://example.org/changed/%.4s/%d", p.origin, n)
	place := len(have.targets)
	have.targets = append(have.targets, target)
	h.mu.Unlock()
	_, ok := h.write(p, http.MethodPatch, "records/"+name, "", fmt.Sprintf(`{"targets":[{"url":%q}]}`, target))
	h.mu.Lock()
	defer h.mu.Unlock()
	if ok {
		have.acked = max(have.acked, place)
	}
	if ok && p == h.giver {
		have.kept = max(have.kept, place)
	}
	return ok
}

// resolve asks for a name at the giver's address, or at that of the heir for one that the heir made before it was forwarded to.
func (h *handOver) resolve(name string) {
	h.mu.Lock()
	by := h.names[name].by
	h.mu.Unlock()
	if by == h.heir && !h.forwarded.Load() {
		h.resolveAt(h.heir, name)
		return
	}
	h.resolveAt(h.giver, name)
}

// resolveAt asks for a name, and follows a redirect to the heir.
func (h *handOver) resolveAt(p *party, name string) {
	h.mu.Lock()
	have := h.names[name]
	oldest, kept, done := have.acked, have.kept, h.forwarded.Load()
	h.mu.Unlock()
	status, header, text, err := h.insist(p, http.MethodGet, p.at+"/"+name, "", "")
	if err != nil {
		return
	}
	at := header.Get("Location")
	if there := strings.HasPrefix(at, h.heir.at+"/"); p == h.giver && there {
		if status != http.StatusMovedPermanently || !h.forwarding.Load() {
			h.t.Errorf("%s is redirected to the heir with %d, forwarded: %v", name, status, h.forwarding.Load())
		}
		if status, header, text, err = h.insist(h.heir, http.MethodGet, at, "", ""); err != nil {
			return
		}
		at = header.Get("Location")
	} else if p == h.giver {
		if oldest = kept; done {
			h.t.Errorf("%s is answered by the giver with %d %s", name, status, at)
		}
	}
	h.asked.Add(1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if status < 300 || status > 399 || slices.Index(have.targets, at) < oldest {
		h.t.Errorf("%s, acknowledged by %s, is answered at %s with %d %s, and has %q since %d: %s", name, have.by.origin, p.origin, status, at, have.targets, oldest, text)
	}
}
