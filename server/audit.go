package server

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/audit"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registry"
)

const (
	auditPoll  = time.Second // how often sinks look for new entries
	auditTick  = 10 * time.Second
	auditBlock = 200              // entries that are sent at a time
	auditRetry = time.Minute      // the longest pause before a sink that is away is tried again
	sentOften  = 10 * time.Second // how often the position of a sink is stored
)

// keepAudit writes what was counted for the audit trail, and trims the trail, until the
// context ends.
func (s *server) keepAudit(ctx context.Context, r *registry.Registry) {
	tick := time.NewTicker(auditTick)
	defer tick.Stop()
	var trimmed time.Time
	for {
		if err := r.Registrar.FlushAudit(ctx, false); err != nil && ctx.Err() == nil && !errors.Is(err, stele.ErrSealed) {
			s.log.Error("the audit trail can't be written; what was counted is kept in memory", "error", err.Error())
		}
		if now := s.now(); s.AuditKeep > 0 && now.Sub(trimmed).Abs() >= time.Hour {
			trimmed = now
			n, err := r.Registrar.TrimAudit(ctx, now.Add(-s.AuditKeep))
			switch {
			case err != nil && ctx.Err() == nil && !errors.Is(err, stele.ErrSealed):
				s.log.Warn("the audit trail can't be trimmed", "error", err.Error())
			case n > 0:
				s.log.Info("the audit trail was trimmed", "entries", n)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// auditSink is where entries are sent to.
type auditSink interface {
	Send(ctx context.Context, list []*stele.AuditEntry) error
	Close() error
}

// auditExport sends the audit trail to a sink. Entries that the sink did not take stay in the
// store and are sent later, so that nothing piles up in memory.
type auditExport struct {
	s    *server
	r    *registry.Registry
	name string // for messages
	sink auditSink
	sent uint64 // the last entry that the sink has

	// keep keeps how far the sink is.
	keep func(ctx context.Context, number uint64) error
	kept uint64
	when time.Time
}

// exportAudit begins to send the trail to where the settings say.
func (s *server) exportAudit(ctx context.Context, f *generation) error {
	host, _ := os.Hostname() // "-" stands for one that is not known
	if s.AuditFile != "" {
		file, last, err := audit.OpenFile(s.AuditFile)
		if err != nil {
			return err
		}
		s.auditFile.Store(file)
		f.work.Go(func() { s.exportTo(ctx, f.registry, s.AuditFile, host+" file "+s.AuditFile, file, last) })
	}
	if s.AuditSyslog == "" {
		return nil
	}
	sink, err := audit.NewSyslog(s.AuditSyslog, host, strconv.Itoa(os.Getpid()))
	if err != nil {
		return err
	}
	f.work.Go(func() { s.exportTo(ctx, f.registry, s.AuditSyslog, host+" "+s.AuditSyslog, sink, 0) })
	return nil
}

// exportTo sends the trail to a sink, from where the sink is: last is the number of the
// last entry that it has, or 0 if it does not know. Then what the registry keeps about the
// place counts; a file, for example, is empty after logrotate.
func (s *server) exportTo(ctx context.Context, r *registry.Registry, name, place string, sink auditSink, last uint64) {
	if last == 0 {
		var err error
		if last, err = r.Registrar.AuditSent(ctx, place); err != nil && ctx.Err() == nil {
			s.log.Error("it is not known which audit entries were sent; all are sent again", "to", name, "error", err.Error())
		}
	}
	(&auditExport{s: s, r: r, name: name, sink: sink, sent: last, kept: last,
		keep: func(ctx context.Context, n uint64) error { return r.Registrar.NoteAuditSent(ctx, place, n) }}).run(ctx)
}

// run sends entries as they come, until the context ends.
func (x *auditExport) run(ctx context.Context) {
	defer func() { _ = x.sink.Close() }() // all that was sent was written
	pause, away := auditPoll, false
	for {
		err := x.send(ctx)
		switch {
		case ctx.Err() != nil:
			x.finish(context.WithoutCancel(ctx))
			return
		case err != nil && !away:
			away = true
			x.s.log.Error("audit entries can't be sent; they stay in the registry and are sent later", "to", x.name, "after", x.sent, "error", err.Error())
		case err == nil && away:
			away = false
			x.s.log.Info("audit entries are sent again", "to", x.name, "up to", x.sent)
		}
		if err == nil {
			pause = auditPoll
		} else {
			pause = min(2*pause, auditRetry)
		}
		x.keepSent(ctx, false)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// auditPatience is how long a server that ends waits for the sinks of the audit trail.
const auditPatience = 5 * time.Second

// finish sends what is left when the server ends, if the sink takes it at once.
func (x *auditExport) finish(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, auditPatience)
	defer cancel()
	if err := x.send(ctx); err != nil {
		x.s.log.Warn("audit entries are left to be sent after the next start", "to", x.name, "after", x.sent, "error", err.Error())
	}
	x.keepSent(ctx, true)
}

// send sends all entries that the sink does not have.
func (x *auditExport) send(ctx context.Context) error {
	first, last, err := x.r.Store.AuditRange(ctx)
	if err != nil || last == x.sent {
		return err
	}
	if last < x.sent {
		x.s.log.Warn("the audit trail is shorter than what was sent: it is another one, and is sent from its beginning", "to", x.name, "sent", x.sent, "last", last)
		x.sent = 0
	}
	if x.sent+1 < first && x.sent > 0 {
		x.s.log.Warn("audit entries were trimmed before they could be sent", "to", x.name, "from", x.sent+1, "to number", first-1)
	}
	block := make([]*stele.AuditEntry, 0, auditBlock)
	flush := func() error {
		if len(block) == 0 {
			return nil
		}
		if err := x.sink.Send(ctx, block); err != nil {
			return err
		}
		x.sent = block[len(block)-1].Number
		block = block[:0]
		return nil
	}
	for e, err := range x.r.Store.Audit(ctx, x.sent) {
		if err != nil {
			return err
		}
		if block = append(block, e); len(block) == auditBlock {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// keepSent keeps how far the sink is, now and then, and at the end.
func (x *auditExport) keepSent(ctx context.Context, end bool) {
	now := x.s.now()
	if x.sent == x.kept || !end && now.Sub(x.when).Abs() < sentOften {
		return
	}
	ctx, cancel := context.WithTimeout(auth.With(ctx, auth.Local()), auditPatience)
	defer cancel()
	if err := x.keep(ctx, x.sent); err != nil {
		return // some are sent twice after the next start
	}
	x.kept, x.when = x.sent, now
}
