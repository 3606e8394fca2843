package usage

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/scheme/all"
	"github.com/stele-id/stele/store/mem"
)

const (
	firefox   = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	safari    = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15"
	googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	curl      = "curl/8.14.1"
)

// house is a registry whose use is counted, with a clock that a test sets.
type house struct {
	*testing.T
	now      time.Time
	store    stele.Store
	schemes  *stele.Schemes
	r        *registrar.Registrar
	counter  *Counter
	ann, bob netip.Addr
}

var noon = time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{T: t, now: noon, ann: netip.MustParseAddr("192.0.2.1"), bob: netip.MustParseAddr("2001:db8::2")}
	clock := h.clock
	h.store = mem.New(clock)
	var err error
	if h.schemes, err = all.New(all.Config{Now: clock}); err != nil {
		t.Fatal(err)
	}
	h.r = registrar.New(h.store, h.schemes, registrar.Options{Now: clock})
	h.counter = h.newCounter(h.r)
	return h
}

func (h *house) clock() time.Time { return h.now }

func (h *house) newCounter(store Store) *Counter {
	h.Helper()
	agents, err := NewAgents(nil)
	if err != nil {
		h.Fatal(err)
	}
	return New(Options{Store: store, Agents: agents, Schemes: h.schemes, Now: func() time.Time { return h.now }, Space: func(_ context.Context, id stele.ID) stele.NamespaceKey {
		if id.Scheme() != "ark" {
			return stele.NamespaceKey{}
		}
		prefix, _, _ := strings.Cut(id.String(), "/")
		return stele.NamespaceKey{Scheme: "ark", Prefix: prefix}
	}})
}

func (h *house) id(text string) stele.ID {
	h.Helper()
	id, err := h.schemes.Parse(text)
	if err != nil {
		h.Fatal(err)
	}
	return id
}

// at sets the clock to a time after noon, and has the counter look at it.
func (h *house) at(after time.Duration) *house {
	h.now = noon.Add(after)
	h.counter.drain(h.now)
	return h
}

// visit is a redirect for a reader.
func (h *house) visit(from netip.Addr, agent string) {
	h.Helper()
	h.counter.Redirected(h.id("ark:12345/x1"), from, agent, "")
	h.counter.drain(h.now)
}

// figures returns what is kept of a name in a month after all is written.
func (h *house) figures(text string) Counts {
	h.Helper()
	h.flush()
	return h.sum(recordCell(h.id(text), DateOf(h.now).number()))
}

func (h *house) flush() {
	h.Helper()
	h.counter.drain(h.now)
	h.counter.ctx = h.Context()
	h.counter.flush(h.now)
}

func (h *house) sum(cell string) Counts {
	h.Helper()
	value, err := h.r.UsageCell(auth.With(h.Context(), auth.Local()), cell)
	if err != nil {
		h.Fatal(err)
	}
	m, err := parseMonth(value)
	if err != nil {
		h.Fatal(err)
	}
	return m.Sum()
}

func (h *house) space() Counts {
	h.Helper()
	return h.sum(spaceCell(stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"}, DateOf(h.now).number()))
}

func (h *house) want(total, unique uint64) {
	h.Helper()
	if c := h.figures("ark:12345/x1"); c[Regulars] != total || c[RegularUnique] != unique {
		h.Errorf("%d resolutions, of them %d unique; should be %d and %d", c[Regulars], c[RegularUnique], total, unique)
	}
}
