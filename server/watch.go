package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/mail"
	"github.com/stele-id/stele/publish"
	"github.com/stele-id/stele/registry"
)

const (
	// surveyEvery is how often the server counts what takes time to count. It waits longer if
	// counting takes long: it is never busy with it for more than a twentieth of the time.
	surveyEvery = 15 * time.Second

	// askEvery is how often the secondaries of zones are asked for their serials.
	askEvery = time.Minute

	// maxLags is how many secondaries have metrics of their own. The others are counted by
	// their states only, so that a server of many zones does not flood Prometheus.
	maxLags = 200
)

// survey is what takes time to count, and is not counted when Prometheus asks.
type survey struct {
	names, namespaces uint64
	jobs              int // bulk changes that have not ended

	mailWaiting, mailGivenUp int
	mailOldest               time.Time // when the oldest letter came that waits; zero: none does

	zones       int
	secondaries map[stele.SecondaryState]int
	lags        []secondaryLag
}

// secondaryLag is how far a copy of a zone is behind the zone.
type secondaryLag struct {
	zone, at string
	serials  int64
	since    time.Time // it is behind; zero if it is not
}

// surveyor counts for one generation.
type surveyor struct {
	s     *server
	f     *generation
	last  atomic.Pointer[survey]
	asked time.Time               // when secondaries were asked
	since map[[2]string]time.Time // a copy of a zone is behind, by zone and address
}

func newSurveyor(s *server, f *generation) *surveyor {
	v := &surveyor{s: s, f: f}
	v.last.Store(&survey{})
	return v
}

// run counts until the context ends.
func (v *surveyor) run(ctx context.Context) {
	for ctx.Err() == nil {
		began := v.s.now()
		next := *v.last.Load()
		if err := v.count(ctx, &next); err != nil && ctx.Err() == nil {
			v.s.log.Debug("what metrics tell of the registry can't be counted", "error", err.Error())
		}
		v.last.Store(&next)
		if zones := Zones(v.f.registry); zones != nil && began.Sub(v.asked) >= askEvery {
			v.asked = began
			if err := v.ask(ctx, zones, &next); err != nil && ctx.Err() == nil {
				v.s.log.Debug("secondaries can't be asked for their serials", "error", err.Error())
			}
		}
		sleep(ctx, max(surveyEvery, 20*v.s.now().Sub(began)))
	}
}

// count counts what the registry has.
func (v *surveyor) count(ctx context.Context, to *survey) error {
	r := v.f.registry
	names, namespaces := uint64(0), uint64(0)
	for ns, err := range r.Store.Namespaces(ctx) {
		if err != nil {
			return err
		}
		n, err := r.Store.Count(ctx, ns.Key())
		if err != nil {
			return err
		}
		names, namespaces = names+n, namespaces+1
	}
	to.names, to.namespaces = names, namespaces
	if v.s.o.Frozen != nil {
		return nil // it has neither jobs nor mail
	}
	jobs, err := v.f.jobs.CountOpen(ctx)
	if err != nil {
		return err
	}
	to.jobs = jobs
	if v.f.mail == nil {
		return nil
	}
	letters, err := v.f.mail.List(ctx)
	if err != nil {
		return err
	}
	to.mailWaiting, to.mailGivenUp, to.mailOldest = 0, 0, time.Time{}
	for i := range letters { // the oldest come first
		switch {
		case letters[i].State == mail.GivenUp:
			to.mailGivenUp++
		default:
			if to.mailWaiting++; to.mailWaiting == 1 {
				to.mailOldest = letters[i].Created
			}
		}
	}
	return nil
}

// ask asks the secondaries of all zones for their serials, and shows the result at once.
func (v *surveyor) ask(ctx context.Context, zones *publish.Zones, last *survey) error {
	list, err := zones.List(ctx)
	if err != nil {
		return err
	}
	serials := make(map[string]uint32, len(list))
	for i := range list {
		serials[list[i].Zone] = list[i].Serial
	}
	next := *last
	next.zones = len(list)
	v.last.Store(&next)
	answers, err := registry.AskSecondaries(ctx, v.s.notify, v.f.registry.Store)
	if err != nil {
		return err
	}
	told := next
	told.secondaries, told.lags = make(map[stele.SecondaryState]int), nil
	since := make(map[[2]string]time.Time)
	for _, a := range answers {
		serial, published := serials[a.Zone]
		if published {
			a = a.Against(serial)
		}
		told.secondaries[a.State]++
		if !published || !a.HasSerial() {
			continue
		}
		lag := secondaryLag{zone: a.Zone, at: a.At}
		if a.State != stele.SecondarySame {
			lag.serials = int64(int32(serial - a.Serial))
			key := [2]string{a.Zone, a.At}
			if lag.since = v.since[key]; lag.since.IsZero() {
				lag.since = v.s.now()
			}
			since[key] = lag.since
		}
		if len(told.lags) < maxLags {
			told.lags = append(told.lags, lag)
		}
	}
	v.since = since
	v.last.Store(&told)
	return nil
}
