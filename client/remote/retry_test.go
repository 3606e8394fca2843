package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// lossy lets the server do what it is asked for, and loses its first answer to a
// request of that method and path.
type lossy struct {
	method, path string
	lost         atomic.Int64
	all          atomic.Int64
}

func (l *lossy) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != l.method || !strings.HasPrefix(r.URL.Path, "/api/v1/"+l.path) || l.all.Add(1) > 1 {
			next.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(httptest.NewRecorder(), r)
		l.lost.Add(1)
		panic(http.ErrAbortHandler) // the connection ends
	})
}

// TestLostAnswers loses the answer to a request that was done. The request must take effect
// once, and the client report success.
func TestLostAnswers(t *testing.T) {
	key := stele.NamespaceKey{Scheme: "urn", Prefix: "urn:x1"}
	for _, tt := range []struct {
		method, path string
		do           func(s *script) (string, error)
		want         string
	}{
		{"PUT", "records", func(s *script) (string, error) {
			rec, err := s.Register(s.ctx, s.record(`{"id":"ark:12345/x2","url":"https://example.org/2"}`))
			return version(rec), err
		}, "1"},
		{"PUT", "records", func(s *script) (string, error) {
			rec, err := s.Update(s.ctx, s.id("ark:12345/x1"), 0, setTitle)
			return version(rec), err
		}, "2"},
		{"PUT", "records", func(s *script) (string, error) {
			rec, err := s.Update(s.ctx, s.id("ark:12345/x1"), 1, setTitle)
			return version(rec), err
		}, "2"},
		{"POST", "withdraw", func(s *script) (string, error) {
			rec, err := s.Withdraw(s.ctx, s.id("ark:12345/x1"), 0, "Gone.", stele.ID{})
			return version(rec), err
		}, "2"},
		{"PUT", "namespaces", func(s *script) (string, error) {
			ns, err := s.AddNamespace(s.ctx, &stele.Namespace{Scheme: "urn", Prefix: "urn:x2"})
			return fmt.Sprint(ns.Version), err
		}, "1"},
		{"PUT", "namespaces", func(s *script) (string, error) {
			ns, err := s.SetNamespace(s.ctx, key, 1, func(n *stele.Namespace) error { n.TTL = 60; return nil })
			return fmt.Sprint(ns.Version), err
		}, "2"},
		{"POST", "mint", func(s *script) (string, error) {
			labels, err := s.Mint(s.ctx, key, 3)
			if err != nil {
				return "", err
			}
			status, err := s.MinterStatus(s.ctx, key)
			return fmt.Sprint(labels[0].ID, labels[2].ID, status.Given >= 3), err
		}, "urn:x1:0 urn:x1:2 true"},
		{"POST", "mint", func(s *script) (string, error) {
			rec, err := s.MintAndRegister(s.ctx, s.record(`{"url":"https://example.org/m"}`), key)
			if err != nil {
				return "", err
			}
			labels, err := s.Mint(s.ctx, key, 1)
			return fmt.Sprint(rec.ID, labels[0].ID), err
		}, "urn:x1:0 urn:x1:1"},
		{"POST", "import", func(s *script) (string, error) {
			errs, err := s.Ingest(s.ctx, []*stele.Record{s.record(`{"id":"ark:12345/x3","url":"https://example.org/3"}`)}, registrar.ImportOptions{})
			return fmt.Sprint(errs), err
		}, "[it is registered like this already]"},
		{"POST", "skip", func(s *script) (string, error) {
			return "", s.SkipCounter(s.ctx, key, 5)
		}, ""},
		{"GET", "records", func(s *script) (string, error) {
			rec, err := s.Get(s.ctx, s.id("ark:12345/x1"))
			return version(rec), err
		}, "1"},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			o := newTestServer(t)
			l := &lossy{method: tt.method, path: tt.path}
			s := &script{registry: o.registrar, t: t, ctx: o.root, schemes: o.schemes}
			if _, err := s.Register(s.ctx, s.record(`{"id":"ark:12345/x1","url":"https://example.org/1"}`)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.AddNamespace(s.ctx, &stele.Namespace{Scheme: key.Scheme, Prefix: key.Prefix, Minter: stele.Minter{Kind: stele.MinterNOID, Template: ".zd"}}); err != nil {
				t.Fatal(err)
			}
			s.registry, s.ctx = o.open(o.token, l.wrap), t.Context()
			got, err := tt.do(s)
			if err != nil || got != tt.want {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
			if l.lost.Load() != 1 {
				t.Errorf("%d answers got lost", l.lost.Load())
			}
		})
	}
}

func version(rec *stele.Record) string {
	if rec == nil {
		return ""
	}
	return fmt.Sprint(rec.Version)
}

func setTitle(r *stele.Record) error {
	r.Metadata = stele.Metadata{"what": "Another"}
	return nil
}

// TestNotSentAgain loses the answer to a request that must not be sent twice.
func TestNotSentAgain(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		do           func(s *script) error
	}{
		{"POST", "redact", func(s *script) error {
			_, err := s.Redact(s.ctx, s.id("ark:12345/x1"), 0, "An order.")
			return err
		}},
		{"POST", "reinstate", func(s *script) error {
			_, err := s.Reinstate(s.ctx, s.id("ark:12345/x1"), 0)
			return err
		}},
		{"POST", "tokens", func(s *script) error {
			_, _, err := s.CreateToken(s.ctx, auth.TokenRequest{User: "ann", Never: true})
			return err
		}},
		{"POST", "users", func(s *script) error {
			_, err := s.AddUser(s.ctx, auth.User{Name: "bia"})
			return err
		}},
	} {
		t.Run(tt.path, func(t *testing.T) {
			o := newTestServer(t)
			l := &lossy{method: tt.method, path: tt.path}
			s := &script{registry: o.registrar, t: t, ctx: o.root, schemes: o.schemes}
			if _, err := s.Register(s.ctx, s.record(`{"id":"ark:12345/x1","url":"https://example.org/1"}`)); err != nil {
				t.Fatal(err)
			}
			s.registry, s.ctx = o.open(o.token, l.wrap), t.Context()
			if err := tt.do(s); stele.KindOf(err) != stele.Unavailable {
				t.Errorf("error %v", err)
			}
			if l.all.Load() != 1 {
				t.Errorf("it was sent %d times", l.all.Load())
			}
		})
	}
}

// busyServer answers some times that it is busy.
func busyServer(times int64, status int, after string) (func(http.Handler) http.Handler, *atomic.Int64) {
	var asked atomic.Int64
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) > times {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/problem+json")
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(status)
			kind := map[int]string{429: "exhausted", 503: "unavailable"}[status]
			fmt.Fprintf(w, `{"type":"/api/v1#%s","status":%d,"detail":"not now"}`, kind, status)
		})
	}, &asked
}

// TestRetryAfter waits as a busy server asks, within bounds.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		times  int64
		status int
		after  string
		asked  int64
		kind   stele.Kind // 0: it works in the end
	}{
		{1, 429, "1", 2, 0},
		{1, 503, "1", 2, 0},
		{1, 503, "", 2, 0},
		{1, 429, "", 1, stele.Exhausted},        // it does not say when: nothing flows in
		{1, 429, "60", 1, stele.Exhausted},      // longer than the client waits
		{1, 503, "86400", 1, stele.Unavailable}, //
		{99, 503, "1", 3, stele.Unavailable},    // the server stays busy
	} {
		t.Run(fmt.Sprint(tt.times, tt.status, tt.after), func(t *testing.T) {
			t.Parallel()
			o := newTestServer(t)
			wrap, asked := busyServer(tt.times, tt.status, tt.after)
			r := o.open(o.token, wrap)
			r.o.Patience = 2500 * time.Millisecond
			_, err := r.Namespace(t.Context(), stele.NamespaceKey{Scheme: "ark", Prefix: "ark:12345"})
			switch {
			case tt.kind == 0 && err != nil:
				t.Error(err)
			case tt.kind != 0 && (stele.KindOf(err) != tt.kind || !strings.Contains(err.Error(), "not now")):
				t.Errorf("error %v", err)
			}
			if asked.Load() != tt.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), tt.asked)
			}
		})
	}
}

// TestServerIsDown wants an error that says so, of a kind that says to try again.
func TestServerIsDown(t *testing.T) {
	o := newTestServer(t)
	server := httptest.NewServer(o.handler)
	r := openRegistry(t, o.schemes, server.URL, o.token)
	r.o.Patience = -1
	server.Close()
	_, err := r.Me(t.Context())
	if stele.KindOf(err) != stele.Unavailable || !strings.Contains(err.Error(), "refused") || !strings.HasSuffix(err.Error(), "; try again") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Me(ctx); stele.KindOf(err) != stele.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestUpdatesMeet changes one record from many goroutines at a time: each change is there
// in the end.
func TestUpdatesMeet(t *testing.T) {
	const writers, changes = 8, 5
	o := newTestServer(t)
	r := o.open(o.token)
	s := &script{registry: r, t: t, ctx: t.Context(), schemes: o.schemes}
	if _, err := s.Register(s.ctx, s.record(`{"id":"ark:12345/x1","url":"https://example.org/1"}`)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for c := range changes {
				_, err := r.Update(s.ctx, s.id("ark:12345/x1"), 0, func(rec *stele.Record) error {
					if rec.Metadata == nil {
						rec.Metadata = make(stele.Metadata)
					}
					rec.Metadata[fmt.Sprintf("w%d-%d", w, c)] = "x"
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	rec, err := r.Get(s.ctx, s.id("ark:12345/x1"))
	if err != nil || rec.Version != writers*changes+1 || len(rec.Metadata) != writers*changes {
		t.Errorf("%v, %v", rec, err)
	}
}
