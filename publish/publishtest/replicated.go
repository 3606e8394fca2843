package publishtest

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/publish"
)

// Replicated is a store with a copy that lags, which is read while the store is away.
type Replicated struct {
	stele.Store
	copied stele.Store

	sync.Mutex // of the fields below
	Away       bool
	Mute       bool      // it does not tell when it lags
	since      time.Time // it went
	when       func(call string)
}

// Lose has a copy read.
func (s *Replicated) Lose(copied stele.Store) {
	s.Away, s.copied, s.since = true, copied, s.since.Add(time.Second)
}

// Over puts a replicated store between a registry and its zones.
func (s *Replicated) Over(o *publish.ZonesOptions) { s.Store, o.Store = o.Store.(stele.Store), s }

// of returns what is read for a call.
func (s *Replicated) of(call string) stele.Store {
	s.Lock()
	defer s.Unlock()
	if s.when != nil {
		s.when(call)
	}
	if s.Away {
		return s.copied
	}
	return s.Store
}

// On has something done before each call.
func (s *Replicated) On(do func(call string)) {
	s.Lock()
	defer s.Unlock()
	s.when, s.Away = do, false
}

func (s *Replicated) Lagging() (time.Time, bool) {
	s.Lock()
	defer s.Unlock()
	if s.Mute {
		return time.Time{}, false
	}
	return s.since, s.Away
}

func (s *Replicated) LastChange(ctx context.Context) (uint64, error) {
	return s.of("last").LastChange(ctx)
}

func (s *Replicated) Changes(ctx context.Context, after uint64) iter.Seq2[stele.Change, error] {
	return s.of("changes").Changes(ctx, after)
}

func (s *Replicated) Namespaces(ctx context.Context) iter.Seq2[*stele.Namespace, error] {
	return s.of("namespaces").Namespaces(ctx)
}

func (s *Replicated) Record(ctx context.Context, name stele.ID) (*stele.Record, error) {
	return s.of("record").Record(ctx, name)
}

func (s *Replicated) History(ctx context.Context, id stele.ID) iter.Seq2[*stele.Record, error] {
	return s.of("history").History(ctx, id)
}

func (s *Replicated) Scan(ctx context.Context, scheme, prefix, after string) iter.Seq2[*stele.Record, error] {
	return func(yield func(*stele.Record, error) bool) {
		for r, err := range s.of("scan").Scan(ctx, scheme, prefix, after) {
			if !yield(r, err) {
				return
			}
		}
		s.of("scanned")
	}
}
