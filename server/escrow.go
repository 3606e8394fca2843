package server

import (
	"context"
	"crypto/rand"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk/bundle"
	"github.com/stele-id/stele/bulk/deposit"
	"github.com/stele-id/stele/outbound"
	"github.com/stele-id/stele/registry"
	"github.com/stele-id/stele/registry/access"
	"github.com/stele-id/stele/transparency"
)

// openEscrow reads the settings of deposits.
func (s *server) openEscrow() error {
	rule, err := outbound.ParseRule(s.EscrowAllow)
	if err == nil {
		s.deposits, err = s.Deposits()
	}
	if err != nil {
		return refuse("serve", stele.Invalid, "", "{cause}", err)
	}
	dialer := &outbound.Dialer{Rule: rule, Timeout: deposit.Connecting, Own: net.InterfaceAddrs}
	client := outbound.NewClient(rule, deposit.Patience, deposit.MaxAnswer)
	for i := range s.deposits {
		a := &s.deposits[i].Access
		a.Dial, a.HTTP, a.Environment, a.Now, a.Wait = dialer.DialContext, client, os.Getenv, s.now, waitFor
	}
	return nil
}

// depositOften makes the deposits that the settings ask for, until the context ends.
func (s *server) depositOften(ctx context.Context, r *registry.Registry) {
	runner := &deposit.Runner{
		Schedule: r.Registrar, Entries: s.deposits, Now: s.now, Log: s.log, Server: rand.Text(), Lease: s.JobLease,
		State: func(ctx context.Context) (string, uint64, error) {
			status, err := r.Log.Status(ctx)
			if err != nil || len(status.Eras) == 0 {
				return "", 0, err
			}
			return status.Eras[len(status.Eras)-1].Generation.String(), status.Changes, nil
		},
		Job: func(ctx context.Context, prefixes []string) (*bundle.Job, error) {
			keys := func(ctx context.Context) (*transparency.Keys, error) { return s.depositKeys(ctx, r) }
			return access.NewLocal(r, s.now, "").BundleBelow(ctx, r, prefixes, keys, s.now())
		},
		Options: func(ctx context.Context) (bundle.Options, error) {
			keys, err := s.depositKeys(ctx, r)
			if err != nil {
				return bundle.Options{}, err
			}
			return bundle.Options{Schemes: s.schemes, Keys: keys.Public(), Now: s.now(), Temp: bundle.TempFile}, nil
		},
	}
	runner.Run(auth.WithOrigin(auth.With(ctx, auth.Local()), auth.Origin{Via: "server"}))
}

// depositKeys returns the keys of the log, which sign deposits.
func (s *server) depositKeys(ctx context.Context, r *registry.Registry) (*transparency.Keys, error) {
	keys, err := s.logKeys(ctx, r)
	if err == nil && keys == nil {
		err = refuse("escrow", stele.Invalid, "escrow.log-unnamed", "deposits are signed by the transparency log, which has no name yet; set base to the public URL of the server, or log-origin")
	}
	return keys, err
}

// addDeposits adds how the scheduled deposits are.
func (m *metrics) addDeposits(of func() *registry.Registry) {
	m.registry.MustRegister(&depositNumbers{
		of:       of,
		made:     prometheus.NewDesc("stele_escrow_deposit_timestamp_seconds", "When the last scheduled deposit was made, by its name in the settings.", []string{"escrow"}, nil),
		looked:   prometheus.NewDesc("stele_escrow_looked_timestamp_seconds", "When a server last looked whether a deposit is needed, and made it if so.", []string{"escrow"}, nil),
		checked:  prometheus.NewDesc("stele_escrow_checked_timestamp_seconds", "When a check last found all of the last deposit whole.", []string{"escrow"}, nil),
		change:   prometheus.NewDesc("stele_escrow_change", "The last change in the last deposit.", []string{"escrow"}, nil),
		failures: prometheus.NewDesc("stele_escrow_failures", "How often the deposit failed, one time after the other; 0 if the last one did not.", []string{"escrow"}, nil),
	})
}

// depositNumbers are the numbers of scheduled deposits. What can't be read is not shown.
type depositNumbers struct {
	of                                      func() *registry.Registry
	made, looked, checked, change, failures *prometheus.Desc
}

func (d *depositNumbers) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{d.made, d.looked, d.checked, d.change, d.failures} {
		out <- desc
	}
}

func (d *depositNumbers) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(auth.With(context.Background(), auth.Local()), readyTimeout)
	defer cancel()
	list, err := d.of().Registrar.Deposits(ctx)
	if err != nil {
		return
	}
	seconds := func(t time.Time) float64 {
		if t.IsZero() {
			return 0
		}
		return float64(t.UnixMilli()) / 1000
	}
	for _, s := range list {
		for desc, value := range map[*prometheus.Desc]float64{d.made: seconds(s.Deposited), d.looked: seconds(s.Ended), d.checked: seconds(s.Checked), d.change: float64(s.Change), d.failures: float64(s.Failures)} {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, s.Name)
		}
	}
}
