package harvest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/harvest"
	"github.com/stele-id/stele/registrar"
)

// hosts are repositories without a network. Each has one record, whose name is the first label of its host.
type hosts struct {
	held map[string]chan struct{} // a host answers when its channel is closed

	mu    sync.Mutex
	asked map[string]int
}

func (h *hosts) Do(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.asked[r.URL.Path]++
	h.mu.Unlock()
	if held := h.held[r.URL.Host]; held != nil {
		<-held
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	body := page("", record(name, "2026-06-01", "<dc><identifier>"+name+"</identifier><identifier>https://a.example/</identifier></dc>"))
	if r.URL.Query().Get("verb") == "Identify" {
		body = identify
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/xml"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

// were returns how often the path was asked for.
func (h *hosts) were(path string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[path]
}

// ending tells which harvests have ended.
type ending struct {
	harvest.Schedule
	ended chan string
}

func (e *ending) ChangeHarvest(ctx context.Context, name string, change func(*registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error)) error {
	ended := false
	err := e.Schedule.ChangeHarvest(ctx, name, func(before *registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
		after, err := change(before)
		ended = err == nil && after != nil && after.Server == "" && !after.Ended.IsZero()
		return after, err
	})
	if ended {
		e.ended <- name
	}
	return err
}

// TestSeveralAtOnce: a repository that is slow does not hold up the harvests of others. Of one host, and into one namespace, there is one
// harvest at a time, and not more than four of all.
func TestSeveralAtOnce(t *testing.T) {
	to := newRegistry(t)
	held := make(chan struct{})
	h := &hosts{held: map[string]chan struct{}{"slow.example": held, "b.example": held, "c.example": held}, asked: make(map[string]int)}
	for _, one := range []struct{ name, host, space string }{
		{"h1", "slow.example", "x1"}, {"h2", "slow.example", "x2"}, {"h3", "other.example", "x1"}, {"h4", "quick.example", "x3"},
		{"h5", "b.example", "x4"}, {"h6", "c.example", "x5"}, {"h7", "d.example", "x6"},
	} {
		key := stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345/" + one.space}
		if one.name != "h3" {
			to.space(key, false)
		}
		at := "https://" + one.host + "/ark:12345/" + one.space + one.name
		if err := to.ChangeHarvest(to.ctx, one.name, func(*registrar.ScheduledHarvest) (*registrar.ScheduledHarvest, error) {
			return &registrar.ScheduledHarvest{URL: at, Scheme: key.Scheme, Prefix: key.Prefix, Format: string(harvest.Dublin), Every: 24 * time.Hour, Limit: harvest.UsualLimit}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	w := to.runner("one")
	schedule := &ending{Schedule: to.Registrar, ended: make(chan string, 100)}
	w.Schedule = schedule
	w.Client = func() *harvest.Client {
		return &harvest.Client{HTTP: h, Now: func() time.Time { return to.now }, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	}
	done := make(chan error)
	go func() { done <- w.Look(to.ctx) }()
	if got := <-schedule.ended; got != "h4" {
		t.Errorf("%s has ended before h4", got)
	}
	for _, path := range []string{"/ark:12345/x2h2", "/ark:12345/x1h3", "/ark:12345/x6h7"} { // the host, the namespace, and the places are taken
		if n := h.were(path); n != 0 {
			t.Errorf("%s was asked for %d times", path, n)
		}
	}
	close(held)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x1h1", "x2h2", "x1h3", "x3h4", "x4h5", "x5h6", "x6h7"} {
		if got := to.leads("ark:12345/" + name); got != "active https://a.example/ 10" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestBusyOnSchedule: a scheduled harvest waits for a busy repository for an hour or two and not for days. It goes on soon if it got on,
// and later and later if it did not.
func TestBusyOnSchedule(t *testing.T) {
	to := newRegistry(t)
	to.space(x5, false)
	n, served, most := 0, 0, 0
	at := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch n++; {
		case r.URL.Query().Get("verb") == "Identify":
			fmt.Fprint(w, identify)
		case n%2 == 0 || served == most:
			w.Header().Set("Retry-After", "1800")
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			name := fmt.Sprintf("ark:12345/x5a%02d", served)
			served++
			fmt.Fprint(w, page(fmt.Sprint("t", served), record(name, "2026-06-01", "<dc><identifier>"+name+"</identifier><identifier>https://a.example/</identifier></dc>")))
		}
	})
	to.mustSchedule("daily", at)
	w := to.runner("one")
	for i, tt := range []struct {
		pages, failures int
		retry           time.Duration
	}{{100, 1, 5 * time.Minute}, {100, 1, 5 * time.Minute}, {100, 1, 5 * time.Minute}, {0, 2, 10 * time.Minute}, {0, 3, 20 * time.Minute}, {100, 1, 5 * time.Minute}} {
		most = served + tt.pages
		begun, before := to.now, served
		to.look(w)
		h := to.scheduled()
		if h.Failures != tt.failures || h.Next.Sub(h.Ended) != tt.retry || !strings.Contains(h.Said, "too slow") || to.now.Sub(begun) > 2*time.Hour || (served > before) != (tt.pages > 0) {
			t.Errorf("%d: %+v after %s, %d pages", i, h, to.now.Sub(begun), served-before)
		}
		to.now = h.Next
	}
}
