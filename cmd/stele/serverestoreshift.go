package main

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/dnsd"
)

// shift is all that works on one open registry: what answers from it, and what looks
// after it. When another registry takes its place another shift takes over.
type shift struct {
	registry *registry.Registry
	handler  http.Handler  // answers the public
	dns      *dnsd.Server  // nil if nobody asked for it
	ending   chan struct{} // closed when it is about to end: streams end then

	stop func() // ends what looks after the registry
	work sync.WaitGroup
}

// beginShift makes a registry the one that is answered from, and begins to look after
// it.
func (s *server) beginShift(r *registry.Registry) error {
	ctx, stop := context.WithCancel(auth.With(s.running, auth.Local()))
	f := &shift{registry: r, dns: s.dns, ending: make(chan struct{}), stop: stop}
	var err error
	if f.handler, err = s.answers(f); err != nil {
		stop()
		return err
	}
	f.work.Go(func() { s.keepUsesOften(ctx, r) })
	f.work.Go(func() { s.forgetRequests(ctx, r.Registrar) })
	f.work.Go(func() { s.keepSigned(ctx, r) })
	f.work.Go(func() { s.keepAudit(ctx, r) })
	if err := s.exportAudit(ctx, f); err != nil {
		stop()
		f.work.Wait()
		return err
	}
	f.work.Go(func() { s.learnRedirects(ctx, r) })
	if r.Follower != nil {
		f.work.Go(func() { s.learnHostsOften(ctx, r) })
		f.work.Go(func() { r.Follower.Run(ctx, s.Follow) })
	}
	if f.dns != nil {
		f.work.Go(func() { f.dns.NotifySecondaries(ctx) })
		f.work.Go(func() { f.dns.Tap(ctx) })
	}
	s.shift.Store(f)
	s.noteAddress(r)
	return nil
}

// answering returns the handler that answers now.
func (s *server) answering() http.Handler { return s.shift.Load().handler }

// endShift ends what looks after the registry, and keeps what it knows.
func (s *server) endShift(ctx context.Context, f *shift) {
	f.stop()
	f.work.Wait()
	s.keepUses(ctx, f.registry)
}

// closeLast closes the registry that is open at the end; that is the first one unless
// another took its place.
func (s *server) closeLast(first *registry.Registry) error {
	f := s.shift.Load()
	if f == nil {
		return first.Close()
	}
	s.endShift(auth.With(context.Background(), auth.Local()), f)
	return f.registry.Close()
}

// leaveDNS ends the name server, so that its registry can be closed.
func (s *server) leaveDNS(ctx context.Context) error {
	if s.dns == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, swapPatience)
	defer cancel()
	return s.endDNS(ctx)
}

// takeUp begins a shift after another one, and the name server where it was.
func (s *server) takeUp(r *registry.Registry) error {
	var err error
	if s.dns != nil {
		err = s.startDNS(r)
	}
	return errors.Join(err, s.beginShift(r))
}
