package server

import (
	"context"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/config"
	"github.com/stele-id/stele/serve/httpd/translog"
)

// Frozen is what a server knows of a frozen archive: a sealed registry with the names that another one had at a time.
type Frozen struct {
	Origin string // of the other registry's log
	At     time.Time
	Log    translog.Log   // of the other registry
	Keys   []translog.Key // of that log
}

// frozen returns the error by which what changes something is refused; nil if the registry is not an archive.
func (s *server) frozen() error {
	if s.o.Frozen == nil {
		return nil
	}
	return stele.Frozen(s.o.Frozen.Origin, s.o.Frozen.At)
}

// frozenSettings returns the settings for an archive: nothing is counted, logged in the registry, signed or sent.
func frozenSettings(c *config.Config) *config.Config {
	f := *c
	f.Usage, f.Log, f.AuditFile, f.AuditSyslog, f.DNS, f.DNSTLS = false, false, "", "", nil, nil
	return &f
}

// givenLog makes the handler that serves the log of the registry that the archive is of. It is as the bundle has it, and its checkpoint is marked: an heir of
// that registry does not take it for a sign of life.
func (s *server) givenLog() *translog.Handler {
	return translog.New(translog.Options{
		Log: s.o.Frozen.Log, Now: s.now, Frozen: s.o.Frozen.At,
		Keys:        func(context.Context) ([]translog.Key, error) { return s.o.Frozen.Keys, nil },
		Generations: func(context.Context) (string, error) { return "", nil },
	})
}
