package trace

import (
	"context"
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
)

// Options are how a Tracer works.
type Options struct {
	// Sample is the share of traces that are recorded, from 0 to 1, of those that no other
	// system has begun. Of others that system decides.
	Sample float64

	// Names says that spans may have the names that were asked for, and addresses of targets.
	Names bool

	IDs *IDs
	Now func() time.Time
}

// Limits of what is kept in memory.
const (
	maxWaiting = 2048 // spans that wait to be sent
	maxSpans   = 200  // spans of one trace: a bulk change has a commit for each block
)

// Tracer records spans. A nil Tracer records nothing. Many goroutines may use it at once.
type Tracer struct {
	o       Options
	below   uint64 // a trace is recorded if a random number is below it
	waiting chan *Span
	dropped atomic.Uint64
}

// NewTracer makes a Tracer. Its spans are to be taken from [Tracer.Waiting].
func NewTracer(o Options) *Tracer {
	t := &Tracer{o: o, waiting: make(chan *Span, maxWaiting), below: math.MaxUint64}
	if share := max(o.Sample, 0); share < 1 {
		t.below = uint64(share * (1 << 63) * 2)
	}
	return t
}

// Waiting returns the spans that have ended. A span for which there is no room is dropped:
// what is traced never waits.
func (t *Tracer) Waiting() <-chan *Span { return t.waiting }

// Dropped returns how many spans were dropped.
func (t *Tracer) Dropped() uint64 { return t.dropped.Load() }

// Kind says on which end of a request a span is, in the numbers of OTLP.
type Kind uint8

const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3
)

// Span is a piece of work, from its beginning to its end. All methods do nothing on a nil
// Span, so that callers need not know whether a trace is recorded. One goroutine uses it.
type Span struct {
	Trace        TraceID
	ID, Parent   SpanID
	Kind         Kind
	Name         string
	Began, Ended time.Time
	Attributes   []Attribute
	Failed       bool

	tracer *Tracer
	left   *atomic.Int32 // how many more spans the trace may have
}

// Attribute is a property of a span: a text, or a number if Text is empty.
type Attribute struct {
	Key    string
	Text   string
	Number int64
}

type (
	parentKey struct{}
	spanKey   struct{}
)

// WithParent returns a context with the span of another system that caused a request.
func WithParent(ctx context.Context, p Parent) context.Context {
	return context.WithValue(ctx, parentKey{}, p)
}

// Of returns the span in which something is done; nil if it is not recorded.
func Of(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

// Begin begins the first span here of what another system asks for, or of what the server
// does by itself. The span is nil if it is not recorded; the caller ends it otherwise.
func (t *Tracer) Begin(ctx context.Context, kind Kind, name string) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	parent, caused := ctx.Value(parentKey{}).(Parent)
	if caused && !parent.Sampled || !caused && !t.chosen() {
		return ctx, nil
	}
	s := &Span{Trace: parent.Trace, Parent: parent.Span, Kind: kind, Name: name, tracer: t, left: new(atomic.Int32)}
	if !caused {
		t.o.IDs.fill(s.Trace[:])
	}
	s.left.Store(maxSpans - 1)
	if id := Request(ctx); id != "" {
		s.Text("stele.request", id)
	}
	return s.begin(ctx)
}

// chosen decides whether a trace is recorded.
func (t *Tracer) chosen() bool {
	if t.below == math.MaxUint64 {
		return true
	}
	var b [8]byte
	t.o.IDs.fill(b[:])
	return binary.NativeEndian.Uint64(b[:]) < t.below
}

// Start begins a span inside the one that the context has. It is nil if there is none, or if
// the trace has too many.
func Start(ctx context.Context, name string) (context.Context, *Span) {
	outer := Of(ctx)
	if outer == nil {
		return ctx, nil
	}
	if outer.left.Add(-1) < 0 {
		outer.tracer.dropped.Add(1)
		return ctx, nil
	}
	s := &Span{Trace: outer.Trace, Parent: outer.ID, Kind: Internal, Name: name, tracer: outer.tracer, left: outer.left}
	return s.begin(ctx)
}

func (s *Span) begin(ctx context.Context) (context.Context, *Span) {
	s.tracer.o.IDs.fill(s.ID[:])
	s.Began = s.tracer.o.Now()
	return context.WithValue(ctx, spanKey{}, s), s
}

// Text adds a property that says nothing about a reader, nor which name was asked for.
func (s *Span) Text(key, value string) {
	if s != nil && value != "" {
		s.Attributes = append(s.Attributes, Attribute{Key: key, Text: value})
	}
}

// Number adds a property that is a number.
func (s *Span) Number(key string, value int64) {
	if s != nil {
		s.Attributes = append(s.Attributes, Attribute{Key: key, Number: value})
	}
}

// About adds which name or address the work was about, if the operator wants such.
func (s *Span) About(key, value string) {
	if s != nil && s.tracer.o.Names {
		s.Text(key, value)
	}
}

// Fail says that the server failed.
func (s *Span) Fail() {
	if s != nil {
		s.Failed = true
	}
}

// End ends the span. Of an error it keeps the kind and the code, since the text may have
// names. Only an error that the server is to blame for makes the span one that failed.
func (s *Span) End(err error) {
	if s == nil {
		return
	}
	if err != nil {
		kind := stele.KindOf(err)
		s.Text("error.type", kind.String())
		code, _ := stele.CodeOf(err)
		s.Text("stele.code", code)
		s.Failed = s.Failed || kind == stele.Internal || kind == stele.Unavailable
	}
	s.Ended = s.tracer.o.Now()
	select {
	case s.tracer.waiting <- s:
	default:
		s.tracer.dropped.Add(1)
	}
}
