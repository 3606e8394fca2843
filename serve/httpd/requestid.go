package httpd

import (
	"context"
	"net/http"

	"github.com/stele-id/stele/trace"
)

// Named returns a request that has an id in its context. If it has none yet, next makes it;
// nil: it gets none.
func Named(r *http.Request, next func() string) *http.Request {
	if next == nil || trace.Request(r.Context()) != "" {
		return r
	}
	return r.WithContext(trace.WithRequest(r.Context(), next()))
}

// named gives a request an id. That takes a copy of the request and an allocation for the
// context, which a redirect should not pay for: so a request for an identifier gets its id
// when something is logged or has failed, and all others before they are answered.
func (h *Handler) named(r *http.Request) *http.Request { return Named(r, h.o.RequestID) }

// caused returns a context with the id that a proxy gave to a request: in X-Request-Id, or
// that of the trace in traceparent; and with the proxy's span. Malformed values are ignored.
func caused(ctx context.Context, head http.Header) context.Context {
	parent, traced := trace.Parent{}, false
	if values := head[trace.ParentHeader]; len(values) == 1 {
		parent, traced = trace.ParseParent(values[0])
	}
	if traced {
		ctx = trace.WithParent(ctx, parent)
	}
	switch values := head[trace.Header]; {
	case len(values) == 1 && trace.IsRequest(values[0]):
		ctx = trace.WithRequest(ctx, values[0])
	case traced:
		ctx = trace.WithRequest(ctx, parent.Trace.String())
	}
	return ctx
}
