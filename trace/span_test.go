package trace

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stele-id/stele"
)

func newTestTracer(sample float64, names bool) *Tracer {
	now := time.Unix(1_800_000_000, 0)
	return NewTracer(Options{Sample: sample, Names: names, IDs: NewIDs([32]byte{7}), Now: func() time.Time {
		now = now.Add(time.Millisecond)
		return now
	}})
}

// ended returns the spans that wait.
func (t *Tracer) ended() (list []*Span) {
	for len(t.waiting) > 0 {
		list = append(list, <-t.waiting)
	}
	return list
}

func TestSpans(t *testing.T) {
	tracer := newTestTracer(1, false)
	ctx, outer := tracer.Begin(WithRequest(t.Context(), "req-1"), Server, "http")
	inner, span := Start(ctx, "store read")
	if Of(inner) != span || Of(ctx) != outer {
		t.Error("the context has another span")
	}
	span.About("stele.name", "ark:12345/secret")
	span.Number("n", 0)
	span.End(&stele.Error{Kind: stele.Unavailable, Err: stele.Messagef("store.away", "the disk of {who} is gone", "ann")})
	_, found := Start(ctx, "registrar show")
	found.End(&stele.Error{Kind: stele.NotFound, Err: errors.New("no")})
	outer.End(nil)
	all := tracer.ended()
	if len(all) != 3 || all[0] != span || all[2] != outer {
		t.Fatalf("%v", all)
	}
	if span.Trace != outer.Trace || span.Parent != outer.ID || outer.Parent != (SpanID{}) || span.ID == outer.ID || outer.Trace == (TraceID{}) || !span.Ended.After(span.Began) {
		t.Errorf("%+v\n%+v", span, outer)
	}
	if !span.Failed || found.Failed || outer.Failed || len(span.Attributes) != 3 || span.Attributes[2] != (Attribute{Key: "stele.code", Text: "store.away"}) {
		t.Errorf("%+v\n%+v", span, found)
	}
	if outer.Attributes[0] != (Attribute{Key: "stele.request", Text: "req-1"}) {
		t.Errorf("%+v", outer)
	}
	_, named := newTestTracer(1, true).Begin(t.Context(), Server, "http")
	if named.About("stele.name", "ark:12345/x1"); len(named.Attributes) != 1 {
		t.Errorf("%+v", named)
	}
}

// TestOff: without a tracer, or where a trace is not recorded, nothing happens.
func TestOff(t *testing.T) {
	for _, tracer := range []*Tracer{nil, newTestTracer(0, true)} {
		ctx, span := tracer.Begin(t.Context(), Server, "http")
		_, inner := Start(ctx, "store read")
		if span != nil || inner != nil || ctx != t.Context() {
			t.Fatal("it is recorded")
		}
		span.Text("a", "b")
		span.Number("a", 1)
		span.About("a", "b")
		span.Fail()
		span.End(errors.New("x"))
	}
	if n := testing.AllocsPerRun(100, func() { _, s := Start(t.Context(), "x"); s.End(nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSampling: a share is recorded, and of what another system has begun that system decides.
func TestSampling(t *testing.T) {
	tracer, recorded := newTestTracer(0.25, false), 0
	for range 4000 {
		if _, span := tracer.Begin(t.Context(), Server, "http"); span != nil {
			recorded++
		}
	}
	if recorded < 800 || recorded > 1200 {
		t.Errorf("%d of 4000 are recorded", recorded)
	}
	parent, _ := ParseParent(aParent)
	_, span := newTestTracer(0, false).Begin(WithParent(t.Context(), parent), Server, "http")
	if span == nil || span.Trace != parent.Trace || span.Parent != parent.Span {
		t.Errorf("%+v", span)
	}
	parent.Sampled = false
	if _, span := newTestTracer(1, false).Begin(WithParent(t.Context(), parent), Server, "http"); span != nil {
		t.Error("the other system did not record it")
	}
}

// TestBounds: neither many spans nor a collector that is away fill the memory, or make anything wait.
func TestBounds(t *testing.T) {
	tracer := newTestTracer(1, false)
	ctx, outer := tracer.Begin(t.Context(), Server, "http")
	for range 2 * maxSpans {
		_, span := Start(ctx, "store commit")
		span.End(nil)
	}
	outer.End(nil)
	if n, dropped := len(tracer.ended()), tracer.Dropped(); n != maxSpans || dropped != maxSpans+1 {
		t.Errorf("%d spans of one trace, %d dropped", n, dropped)
	}
	tracer = newTestTracer(1, false)
	for range maxWaiting + 10 {
		_, span := tracer.Begin(context.Background(), Server, "http")
		span.End(nil)
	}
	if n, dropped := len(tracer.ended()), tracer.Dropped(); n != maxWaiting || dropped != 10 {
		t.Errorf("%d spans wait, %d dropped", n, dropped)
	}
}
