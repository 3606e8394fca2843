package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/internal/disk"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/resolver"
	"github.com/stele-id/stele/serve/api"
	"github.com/stele-id/stele/store/pebble"
)

// swapPatience is how long requests under way have to end before the registry is
// replaced, and how long it is tried to open it.
const swapPatience = 30 * time.Second

// Restore checks what was unpacked and puts it in the place of the registry. Until the
// gate is shut the server goes on as ever; from then on it does not depend on whoever
// asked for it.
func (b *staging) Restore(ctx context.Context, step func(string)) (done api.Restored, err error) {
	step("checking the backup")
	if registry.IsFolderBackup(b.folder) != nil {
		return done, refuse("restore", stele.Invalid, "this is no backup of a registry: it has no manifest")
	}
	if err := disk.Sync(b.folder); err != nil {
		return done, refuse("restore", stele.Unavailable, "the backup can't be written here: %w", err)
	}
	staged, err := b.open(ctx)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, b.close(staged)) }()
	step("asking the secondaries of zones for their serials")
	answers, err := registry.AskSecondaries(ctx, *b.notify, staged.Store, b.shift.Load().registry.Store)
	if err != nil {
		return done, err
	}
	step("waiting for requests under way")
	old, open, err := b.pauseServer(ctx)
	if err != nil {
		return done, err
	}
	defer open()
	step("replacing the registry")
	ctx = auth.With(context.WithoutCancel(ctx), auth.Local())
	restore := &registry.Restore{OnDamaged: func(err error) {
		b.log.Error("the registry that is replaced is damaged, and nothing is known of it", "error", err.Error())
	}}
	report, err := restore.Inherit(ctx, staged, old.registry.Store, answers)
	if err != nil {
		return done, errors.Join(err, b.beginShift(old.registry))
	}
	done.Changes, done.Shut = report.Changes, report.Shut
	for _, z := range report.Zones {
		done.Zones = append(done.Zones, api.RestoredZone(z))
	}
	if err := b.close(staged); err != nil {
		return done, errors.Join(err, b.beginShift(old.registry))
	}
	done.Kept, err = b.replace(ctx, old)
	return done, err
}

// open opens what was unpacked, and makes sure that it is whole.
func (b *staging) open(ctx context.Context) (*registry.Registry, error) {
	p := *b.program
	p.data, p.brief = b.folder, true
	r, err := p.openRegistry(ctx, b.schemes, b.log, resolver.Options{})
	if err != nil {
		return nil, refuse("restore", stele.Invalid, "this backup can't be opened: %w", stele.Reason(err))
	}
	err = r.CheckBackup(auth.With(ctx, auth.Local()))
	if err != nil {
		return nil, errors.Join(err, r.Store.Close())
	}
	return r, nil
}

// close closes what was unpacked, if it is open.
func (b *staging) close(r *registry.Registry) error {
	if b.closed {
		return nil
	}
	b.closed = true
	return r.Store.Close()
}

// pauseServer lets all requests but this one end, and others wait, and ends what looks
// after the registry. Open lets them in again; a shift must have begun by then.
func (b *staging) pauseServer(ctx context.Context) (old *shift, open func(), err error) {
	b.life.Lock() // the server does not end meanwhile
	if b.ending.Load() {
		b.life.Unlock()
		return nil, nil, refuse("restore", stele.Unavailable, "the server is about to end; restore when it runs again")
	}
	old = b.shift.Load()
	close(old.ending)
	opened, err := b.gate.shut(ctx, swapPatience)
	b.endShift(context.WithoutCancel(ctx), old)
	if err != nil {
		err = errors.Join(err, b.beginShift(old.registry))
		b.life.Unlock()
		return nil, nil, err
	}
	return old, func() {
		opened()
		b.life.Unlock()
	}, nil
}

// replace puts the staged folder in the place of the registry, which it closes, and
// begins a shift. If it can't, the old registry goes on; if not even that is possible
// the server ends.
func (b *staging) replace(ctx context.Context, old *shift) (kept string, err error) {
	if err := b.leaveDNS(ctx); err != nil {
		b.log.Error("the name server did not end well", "error", err.Error())
	}
	if err := old.registry.Close(); err != nil {
		b.log.Error("the registry that is replaced was not closed well", "error", err.Error())
	}
	mark := b.now().UTC().Format("20060102T150405Z")
	restored := disk.FreeName(b.data + ".restored-" + mark)
	release, err := pebble.Hold(b.data, pebble.Options{Now: b.now, Log: b.log})
	if err == nil {
		// From here on this may be the old registry, which is never removed.
		if err = os.Rename(b.folder, restored); err == nil {
			kept, err = registry.ReplaceFolder(restored, b.data, mark)
		}
		err = errors.Join(err, release())
	}
	r, oerr := b.reopen(ctx)
	if oerr == nil {
		oerr = b.takeUp(r)
	}
	if oerr != nil {
		b.failed <- oerr
	}
	return kept, errors.Join(err, oerr)
}

// reopen opens the registry in the data folder. Another process may look at it just
// then, and is waited for.
func (s *server) reopen(ctx context.Context) (*registry.Registry, error) {
	ctx, cancel := context.WithTimeout(ctx, swapPatience)
	defer cancel()
	for {
		r, err := s.openRegistry(ctx, s.schemes, s.log, s.resolverOptions())
		if err == nil {
			s.readySecrets(ctx, r, s.log)
		}
		if err == nil || stele.KindOf(err) != stele.Unavailable || ctx.Err() != nil {
			return r, err
		}
		pause(ctx, 100*time.Millisecond)
	}
}
