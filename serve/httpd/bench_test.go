package httpd

import (
	"fmt"
	"net/http"
	"testing"
)

// quiet is a ResponseWriter that costs nothing.
type quiet struct {
	head   http.Header
	status int
	bytes  int
}

func (w *quiet) Header() http.Header { return w.head }

func (w *quiet) WriteHeader(status int) { w.status = status }

func (w *quiet) Write(b []byte) (int, error) {
	w.bytes += len(b)
	return len(b), nil
}

func (w *quiet) WriteString(s string) (int, error) {
	w.bytes += len(s)
	return len(s), nil
}

// redirects are the requests of which the benchmarks measure the cost: by address of the
// program's test, by a browser, in the handles' own spelling, with an observer.
func redirects(t testing.TB) map[string]func() *quiet {
	all := map[string]func() *quiet{}
	add := func(name, target string, watch bool, head http.Header) {
		s := newSpelled(t, func(o *Options) {
			if watch {
				o.Observe = func(Observation) {}
			}
		})
		r := &http.Request{Method: http.MethodGet, Host: "id.example.org", RequestURI: target, Header: head}
		w := &quiet{head: http.Header{}}
		all[name] = func() *quiet {
			clear(w.head)
			s.handler.ServeHTTP(w, r)
			return w
		}
	}
	add("ark", "/ark:12345/x1", false, http.Header{})
	add("browser", "/ark:12345/x1", false, http.Header{"Accept": {chrome}, "Accept-Language": {"de-DE,de;q=0.9,en;q=0.8"}})
	add("watched", "/ark:12345/x1", true, http.Header{"Accept": {"*/*"}})
	add("urn", "/urn:paradisec:AB1:001:A", false, http.Header{})
	add("handle", "/hdl/20.500.12345/A//B", false, http.Header{})
	add("bare handle", "/10.1000/182", false, http.Header{})
	add("purl", "/net/a//b", false, http.Header{})
	return all
}

func BenchmarkRedirect(b *testing.B) {
	for name, answer := range redirects(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w := answer(); w.status != http.StatusFound {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// A redirect costs few allocations: they are what most of its time goes to.
func TestRedirectAllocations(t *testing.T) {
	const most = 12
	for name, answer := range redirects(t) {
		if got := testing.AllocsPerRun(100, func() {
			if w := answer(); w.status != http.StatusFound {
				t.Fatal(fmt.Errorf("%s: %d", name, w.status))
			}
		}); got >= most {
			t.Errorf("%s: %v allocations, and %d are too many", name, got, most)
		}
	}
}
