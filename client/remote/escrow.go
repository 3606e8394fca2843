package remote

import (
	"context"
	"time"

	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

// Deposits returns what is known of the deposits that servers make.
func (r *Registry) Deposits(ctx context.Context) ([]registrar.ScheduledDeposit, error) {
	return gather(ctx, r, "list deposits", listOf("escrow", ""), func(d *apijson.Deposits) (registrar.ScheduledDeposit, error) {
		s := registrar.ScheduledDeposit{Name: d.Name, Place: d.Place, Prefixes: d.Prefixes, Every: time.Duration(d.Every) * time.Second, Deposit: d.Deposit, Deposited: d.Deposited, Change: d.Change,
			Records: d.Records, Objects: d.Objects, Sent: d.Sent, Bytes: d.Bytes, Checked: d.Checked, Ended: d.Ended, Next: d.Next, Failures: d.Failures, Said: d.Said}
		if d.UnderWay {
			s.Server = "server"
		}
		return s, nil
	})
}
