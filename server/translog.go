package server

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/heir"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registrar"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/serve/httpd/translog"
	"github.com/stele-id/stele/transparency"
	"github.com/stele-id/stele/transparency/witness"
)

// maxWitnessAnswer bounds the answers of witnesses.
const maxWitnessAnswer = 1 << 20

// openWitnesses reads the settings of the transparency log, and where heirs of namespaces may be.
func (s *server) openWitnesses() error {
	if len(s.LogWitnesses) > witness.MaxTargets {
		return refuse("serve", stele.Invalid, "config.log-witnesses-many", "log-witnesses has {count} witnesses, and may have {most}", len(s.LogWitnesses), witness.MaxTargets)
	}
	for _, text := range s.LogWitnesses {
		t, err := witness.ParseTarget(text)
		if err != nil {
			return err
		}
		s.witnesses = append(s.witnesses, t)
	}
	var err error
	if s.witnessRule, err = outbound.ParseRule(s.LogAllow); err == nil {
		s.heirRule, err = outbound.ParseRule(s.HandOverAllow)
	}
	if err != nil {
		return refuse("serve", stele.Invalid, "", "{cause}", err)
	}
	return nil
}

// heirs returns what asks the registries that take over namespaces.
func (s *server) heirs(r *registry.Registry) *heir.Checker {
	return &heir.Checker{Registrar: r.Registrar, Schemes: s.schemes, HTTP: outbound.NewClient(s.heirRule, heir.Patience, heir.MaxAnswer), Agent: linkAgent(s.o.Version, s.Base), Own: s.isOwnSite}
}

// isOwnSite reports whether a host is a name of this server, or that of its public address.
func (s *server) isOwnSite(host string) bool {
	base, err := url.Parse(s.Base)
	return s.isOwnName(host) || err == nil && host != "" && strings.EqualFold(base.Hostname(), host)
}

// keepLog keeps the transparency log up to date, has it signed, and collects co-signatures, until the context ends.
func (s *server) keepLog(ctx context.Context, f *generation) {
	r := f.registry
	c := &witness.Collector{
		Log: r.Log, Targets: s.witnesses, HTTP: &outbound.NewClient(s.witnessRule, witness.Patience, maxWitnessAnswer).Client,
		Every: s.LogInterval, Agent: linkAgent(s.o.Version, s.Base), Logs: s.log,
	}
	if len(s.witnesses) > 0 {
		f.work.Go(func() { c.Run(ctx) })
	}
	warned := ""
	r.Log.Run(ctx, transparency.Signing{
		Interval:  s.LogInterval,
		Published: func(context.Context, transparency.Published) { c.Notify() },
		Keys: func(ctx context.Context) (*transparency.Keys, error) {
			keys, err := s.logKeys(ctx, r)
			if registrar.IsKeyless(err) || keys == nil && err == nil {
				if warned == "" {
					warned = s.warnUnsigned(err)
				}
				return nil, nil
			}
			return keys, err
		},
	})
}

// warnUnsigned says once why the log is not signed.
func (s *server) warnUnsigned(err error) string {
	if err != nil {
		s.log.Warn("the transparency log is kept, and not signed: there is no secret key to encrypt the log's own key with; give the server a secret key (docs/secrets.md)", "error", err.Error())
	} else {
		s.log.Info("the transparency log is kept, and not signed, since it has no name yet; set base to the public URL of the server, or log-origin")
	}
	return "said"
}

// logKeys returns the keys of the log. If there are none yet it makes the first, under the name that the settings give. Nil if
// they give none.
func (s *server) logKeys(ctx context.Context, r *registry.Registry) (*transparency.Keys, error) {
	keys, err := r.LogKeys(ctx)
	if err != nil || keys != nil {
		return keys, err
	}
	origin := s.logOrigin()
	if origin == "" {
		return nil, nil
	}
	if keys, err = r.SetUpLog(auth.With(ctx, auth.Local()), origin); err == nil {
		s.log.Info("the transparency log is signed from now on; keep a copy of its public key elsewhere: it is at /.log/key", "origin", keys.Origin)
	}
	return keys, err
}

// logOrigin returns the name that the settings give a log; "" if they give none.
func (s *server) logOrigin() string {
	if s.LogOrigin != "" {
		return s.LogOrigin
	}
	base, err := url.Parse(s.Base)
	if err != nil || base.Host == "" || transparency.CheckOrigin(base.Host+"/.log") != nil {
		return ""
	}
	return base.Host + "/.log"
}

// shownLog makes the handler that serves the log.
func (s *server) shownLog(r *registry.Registry) *translog.Handler {
	return translog.New(translog.Options{
		Log: r.Log, Now: s.now,
		Keys: func(ctx context.Context) (list []translog.Key, err error) {
			keys, err := r.LogPublicKeys(ctx)
			if err != nil || keys == nil {
				return nil, err
			}
			for i := range keys.List {
				k := &keys.List[i]
				list = append(list, translog.Key{PublicKey: k.Public(keys.Origin), Created: k.Created, Retired: k.Retired})
			}
			return list, err
		},
		Generations: func(ctx context.Context) (string, error) {
			keys, err := r.LogKeys(ctx)
			if err != nil || keys == nil {
				return "", err
			}
			return r.Log.SignGenerations(ctx, keys)
		},
	})
}

// addLog adds how far the transparency log is. What can't be read is not shown.
func (m *metrics) addLog(log func() *transparency.Log, now func() time.Time) {
	status := func(of func(ctx context.Context, s transparency.Status) (float64, error)) func() float64 {
		return func() float64 {
			ctx, cancel := context.WithTimeout(auth.With(context.Background(), auth.Local()), readyTimeout)
			defer cancel()
			s, err := log().Status(ctx)
			n := 0.0
			if err == nil {
				n, err = of(ctx, s)
			}
			if err != nil {
				return -1
			}
			return n
		}
	}
	gauge := func(name, help string, of func(ctx context.Context, s transparency.Status) (float64, error)) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "stele_log_" + name, Help: help + " -1 if that can't be read."}, status(of)))
	}
	gauge("size", "Entries of the transparency log.", func(_ context.Context, s transparency.Status) (float64, error) { return float64(s.Size), nil })
	gauge("behind", "Changes of the registry that the transparency log does not have yet.", func(_ context.Context, s transparency.Status) (float64, error) {
		return float64(s.Changes - min(s.Size, s.Changes)), nil
	})
	gauge("checkpoint_age_seconds", "How old the last checkpoint of the transparency log is; 0 if it has all changes, -1 if there is none.", func(ctx context.Context, s transparency.Status) (float64, error) {
		p, err := log().Published(ctx)
		if err != nil {
			return 0, err
		}
		c, err := transparency.ParseCheckpoint(p.Note)
		switch {
		case p.Note == "":
			return -1, nil
		case err != nil:
			return 0, err
		case c.Size >= s.Changes:
			return 0, nil
		}
		return max(0, now().Sub(p.At).Seconds()), nil
	})
}
