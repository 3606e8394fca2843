package api

import (
	"net/http"
	"time"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
)

func (h *Handler) escrowOperations() []operation {
	return []operation{{
		name: "listDeposits", method: http.MethodGet, path: "escrow", group: "Escrow",
		summary: "List the deposits that servers make at other places",
		about:   "What is known of the deposits that the settings of the servers ask for: when the last one was made, of which change, when it was checked, and the last error.",
		asks:    administrator, scope: auth.ScopeAdmin,
		query:   []parameter{limitParameter, cursorParameter},
		answers: []answer{{status: 200, about: "A page of the list.", value: apijson.DepositsPage{}}},
		serve:   h.listDeposits,
	}}
}

// listDeposits lists what is known of scheduled deposits.
func (h *Handler) listDeposits(c *call) error {
	after, err := c.after()
	if err != nil {
		return err
	}
	list, err := h.o.Registrar.Deposits(c.ctx)
	if err != nil {
		return err
	}
	page := newPage(c)
	for i := range list {
		d := &list[i]
		if d.Name <= after {
			continue
		}
		if page.isFull() {
			return page.reply()
		}
		page.pass(d.Name)
		if err := page.addValue(apijson.Deposits{Name: d.Name, Place: d.Place, Prefixes: d.Prefixes, Every: int64(d.Every / time.Second), Deposit: d.Deposit, Deposited: d.Deposited, Change: d.Change,
			Records: d.Records, Objects: d.Objects, Sent: d.Sent, Bytes: d.Bytes, Checked: d.Checked, Ended: d.Ended, Next: d.Next, Failures: d.Failures, Said: apijson.Legible(d.Said), UnderWay: d.Server != ""}); err != nil {
			return err
		}
	}
	return page.end()
}
