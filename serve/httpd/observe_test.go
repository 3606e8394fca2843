package httpd

import (
	"net/http"
	"testing"
	"time"

	"github.com/stele-id/stele/trace"
)

// TestSpan: a span has the id of its request, and the path only of requests for identifiers: that of a link by which a curator signs in is a
// secret.
func TestSpan(t *testing.T) {
	tracer := trace.NewTracer(trace.Options{Sample: 1, Names: true, IDs: trace.NewIDs([32]byte{7}), Now: time.Now})
	s := newSpelled(t, func(o *Options) {
		o.Tracer, o.RequestID = tracer, func() string { return "made" }
		o.Desk = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	})
	for path, want := range map[string]bool{
		"/ark:12345/x1": true, "//ark:12345/x1": true, "/.info/ark:12345/x1": true, "/ark:12345/unknown": true,
		"/.desk/link/secret": false, "//.desk/link/secret": false, "/%2edesk/link/secret": false, "/%2E%64esk/link/secret": false, "///%2edesk/link/secret": false, "/.unused/secret": false, "/api/secret": false,
	} {
		s.get(path)
		seen := 0
		for len(tracer.Waiting()) > 0 {
			span := <-tracer.Waiting()
			if span.Kind != trace.Server {
				continue
			}
			seen++
			told := make(map[string]string)
			for _, a := range span.Attributes {
				told[a.Key] = a.Text
			}
			if told["stele.request"] != "made" {
				t.Errorf("%s: the span has the id %q", path, told["stele.request"])
			}
			if told["url.path"] != path && want || told["url.path"] != "" && !want {
				t.Errorf("%s: the span %q has the path %q", path, span.Name, told["url.path"])
			}
		}
		if seen == 0 {
			t.Errorf("%s: there is no span", path)
		}
	}
}
