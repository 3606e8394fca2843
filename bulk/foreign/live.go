package foreign

import (
	"bytes"
	"context"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/wire/hdl"
)

// Live is the format of a list of handles which are read from a server that runs.
const Live Format = "live"

// Server is a Handle server that is read while it serves.
type Server interface {
	// List yields the handles of a prefix, in any order. An error ends it.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]

	// Read returns all values of a handle. The error is of Kind Unavailable if the server gave no
	// answer, and of Kind Unauthenticated if it does not accept who asks.
	Read(ctx context.Context, handle string) ([]hdl.Value, error)
}

// LiveOptions say how a server is read.
type LiveOptions struct {
	Server   Server
	Parallel int             // requests at once; 1 if 0
	Pace     time.Duration   // between the beginnings of two requests; 0 for none
	Waits    []time.Duration // before a handle is asked for again to which no answer came
}

const (
	// maxSilent is after how many handles in a row without an answer the import ends: then it is the
	// server that does not answer, and not the handles that can't be read.
	maxSilent = 10

	liveRows = 16 // that are read together, for each request that may run at once
)

// livePart reads the handles of a list from a server.
type livePart struct {
	s   *Source
	o   LiveOptions
	ctx context.Context // of the import: [bulk.Rows] has none
	w   *window

	head   *ListHead
	held   []listed // the last that were asked for, if no answer came
	failed error
	begins <-chan time.Time // of requests
	stop   func()
	kept   atomic.Int64 // secrets that a server keeps to itself
}

// OpenLive returns the records of a server whose names a list has.
func OpenLive(ctx context.Context, list *bulk.File, live LiveOptions, o Options) (*Source, error) {
	s := &Source{o: o, system: SystemNamed("handle"), files: []*bulk.File{list}, kinds: []Format{Live}, seen: make(map[string]bool)}
	if o.Has == nil {
		s.o.Has = func(string) bool { return false }
	}
	live.Parallel = max(live.Parallel, 1)
	p := &livePart{s: s, o: live, ctx: ctx, w: newWindow(list), stop: func() {}}
	line, long, ok := p.w.nextLine()
	if err := p.w.failure(); err != nil {
		return nil, err
	}
	if !ok || long > 0 {
		return nil, notAList(list.Name)
	}
	var err error
	if p.head, err = parseListHead(list.Name, line); err != nil {
		return nil, err
	}
	if live.Pace > 0 {
		every := time.NewTicker(live.Pace)
		p.begins, p.stop = every.C, every.Stop
	}
	s.parts = []part{p}
	s.progress = p.w.offset
	return s, nil
}

func (p *livePart) close() error {
	p.stop()
	if n := p.kept.Swap(0); n > 0 {
		p.s.note("import.live-secrets-left-out", "{count} secrets (HS_SECKEY) are kept by the server, which sends a reference in their place; they were left out, so give these users new secrets", n)
	}
	return nil
}

// skip implements part.
func (p *livePart) skip(end int64, line int) error {
	p.prefixes() // they are told again
	return p.w.skipTo(end, line)
}

// prefixes returns the rows of namespaces.
func (p *livePart) prefixes() (rows []bulk.Row) {
	for _, prefix := range p.head.Prefixes {
		rows = append(rows, p.s.prefix(authorities+prefix, 1)...)
	}
	return rows
}

// listed is a handle of the list, and what the server says of it.
type listed struct {
	name     string
	optional bool
	line     int
	end      int64 // offset after it
	asked    bool
	values   []hdl.Value
	err      error
}

// next implements part.
func (p *livePart) next() (*bulk.Block, error) {
	b := &bulk.Block{Line: p.w.line}
	if p.w.line == 2 { // nothing was read yet
		b.Rows = p.prefixes()
	}
	for p.failed == nil {
		some, err := p.names()
		if err != nil {
			return nil, err
		}
		some = p.judge(some, p.read(some))
		for i := range some {
			one := &some[i]
			b.Next, b.End = one.line+1, one.end
			if row, ok := p.row(one); ok {
				b.Rows = append(b.Rows, row)
				b.Size += 64 + sizeOf(one.values)
			}
		}
		switch {
		case len(b.Rows) > 0 && b.End > 0:
			return b, nil
		case len(some) == 0 && len(p.held) == 0 && p.failed == nil:
			return nil, io.EOF
		}
	}
	return nil, p.failed
}

// names reads some names of the list.
func (p *livePart) names() (some []listed, err error) {
	some, p.held = p.held, nil
	most := len(some) + liveRows*p.o.Parallel
	for len(some) < most {
		line := p.w.line
		text, long, ok := p.w.nextLine()
		if !ok {
			return some, p.w.failure()
		}
		if len(bytes.TrimSpace(text)) == 0 && long == 0 {
			continue
		}
		one := listed{line: line, end: p.w.offset()}
		if one.name, one.optional, ok = parseListed(text); !ok || long > 0 {
			return nil, notAList(p.w.name)
		}
		some = append(some, one)
	}
	return some, nil
}

// read asks the server for the handles, several at once. It ends early, and returns false, if the server does not answer
// any more.
func (p *livePart) read(some []listed) (all bool) {
	ctx, stop := context.WithCancel(p.ctx)
	defer stop()
	var silent atomic.Int64
	var next atomic.Int64
	var work sync.WaitGroup
	for range min(p.o.Parallel, len(some)) {
		work.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(some)); i = next.Add(1) - 1 {
				one := &some[i]
				if one.asked {
					continue
				}
				one.asked = true
				if one.err = p.mayRead(one); one.err != nil {
					continue
				}
				one.values, one.err = p.readOne(ctx, one.name)
				if !isSilence(one.err) {
					silent.Store(0)
				} else if silent.Add(1) >= maxSilent {
					stop()
				}
			}
		})
	}
	work.Wait()
	return ctx.Err() == nil
}

// isSilence reports whether an error says something of the server, and nothing of the handle.
func isSilence(err error) bool {
	switch stele.KindOf(err) {
	case stele.Unavailable, stele.Unauthenticated:
		return true
	}
	return err != nil && stele.KindOf(err) == stele.Internal // the context ended, or the network does not work
}

// mayRead refuses a name that the server should not have listed.
func (p *livePart) mayRead(one *listed) error {
	if one.optional {
		return nil
	}
	for _, prefix := range p.head.Prefixes {
		if strings.HasPrefix(upper(one.name), upper(prefix)+"/") {
			return nil
		}
	}
	return failf(stele.Invalid, "import.live-other-prefix", "the server lists {handle}, which does not belong to the prefixes that are imported", stele.Quote(one.name))
}

// readOne reads a handle. If no answer comes it asks again.
func (p *livePart) readOne(ctx context.Context, name string) ([]hdl.Value, error) {
	for try := 0; ; try++ {
		if p.begins != nil {
			select {
			case <-p.begins:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		values, err := p.o.Server.Read(ctx, name)
		if stele.KindOf(err) != stele.Unavailable || err == nil || try >= len(p.o.Waits) || ctx.Err() != nil {
			return values, err
		}
		again := time.NewTimer(p.o.Waits[try])
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return nil, err
		}
	}
}

// judge returns the handles up to the first of a run to which no answer came, if that run says that the server does not
// answer any more; then the import ends with an error, and continues at that handle when it is started again. A run at the
// end is judged with the handles that follow, if some do.
func (p *livePart) judge(some []listed, all bool) []listed {
	silent := 0
	for i := range some {
		one := &some[i]
		switch {
		case !isSilence(one.err):
			silent = 0
			continue
		case p.ctx.Err() != nil:
			p.failed = p.ctx.Err()
			return some[:i]
		}
		if silent++; silent >= maxSilent || !all {
			p.failed = failf(stele.Unavailable, "import.live-no-answer", "{server} did not answer for {count} handles one after the other, such as {handle}: {cause}; give the same command again to go on", p.head.Server, maxSilent, stele.Quote(one.name), stele.Reason(one.err))
			return some[:i+1-silent]
		}
	}
	if silent > 0 && !p.w.ended() {
		p.held = slices.Clone(some[len(some)-silent:])
		some = some[:len(some)-silent]
	}
	return some
}

// row makes the row of a handle; ok is false if there is none.
func (p *livePart) row(one *listed) (row bulk.Row, ok bool) {
	row.Line = one.line
	switch {
	case one.err != nil && one.optional:
		p.s.note("import.live-prefix-not-read", "{name} was not read from the server ({cause}); a prefix record is often kept by the registrar of the prefix", one.name, stele.Reason(one.err))
		return row, false
	case one.err != nil:
		row.Err = failf(stele.KindOf(one.err), "import.live-not-read", "{handle} can't be read: {cause}", stele.Quote(one.name), stele.Reason(one.err))
		return row, true
	}
	values, err := fromWire(one.values)
	if err != nil {
		row.Err = failf(stele.Invalid, "import.live-not-read", "{handle} can't be read: {cause}", stele.Quote(one.name), stele.Reason(err))
		return row, true
	}
	row.Record = &stele.Record{Spelling: one.name, Values: p.withoutReferences(values)}
	return row, true
}

// secretReference begins what a Stele server sends in the place of a secret, which never leaves it.
const secretReference = "stele-secret:"

// withoutReferences leaves out secrets that the server keeps to itself.
func (p *livePart) withoutReferences(values []stele.HandleValue) []stele.HandleValue {
	if !p.s.o.Secrets {
		return values // they are left out, and counted
	}
	out := values[:0]
	for _, v := range values {
		if isSecret(v.Type) && bytes.HasPrefix(v.Data, []byte(secretReference)) {
			p.kept.Add(1)
			continue
		}
		out = append(out, v)
	}
	return out
}

// parse implements part.
func (p *livePart) parse(row *bulk.Row) {
	rec := row.Record
	row.Record = nil
	p.s.build(row, rec.Spelling, rec.Values)
}

// sizeOf returns about how much memory values take.
func sizeOf(values []hdl.Value) (size int) {
	for i := range values {
		size += 64 + len(values[i].Data)
	}
	return size
}
