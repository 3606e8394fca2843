package api

import (
	"context"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/registrar"
)

func (h *Handler) verifyOperations() []operation {
	return []operation{{
		name: "verify", method: http.MethodPost, path: "verify", group: "Running the server",
		summary: "Check that the registry is whole",
		about: "All that the registry keeps is read, which takes a while, and held against each other: files, records, histories, indexes, counts, the list of changes, prefixes, minters and the transparency log. " +
			"The answer has a line for each thing that is wrong, one at its end, and an empty object now and then meanwhile.",
		asks: administrator, scope: auth.ScopeBackup,
		answers: []answer{{status: 200, about: "What is wrong, and at the end whether all was looked at.", value: apijson.Verified{}, media: apijson.Lines, lines: true}},
		serve:   h.verify,
	}}
}

// verify checks the registry, for one caller at a time: it reads everything.
func (h *Handler) verify(c *call) error {
	if !h.duties.verify.TryLock() {
		return busy(c, "the registry is being checked already")
	}
	defer h.duties.verify.Unlock()
	ctx, stop := c.running()
	defer stop()
	out, wrong := c.stream(apijson.Lines), 0
	err := c.attend(out, func(ctx context.Context, tell func(line any)) error {
		problem := func(m *stele.Message) {
			wrong++
			tell(apijson.Verified{Problem: apijson.Legible(m.Error()), Coded: apijson.CodedOf(m)})
		}
		return h.check(ctx, problem, func(m *stele.Message) {
			tell(apijson.Verified{Note: apijson.Legible(m.Error()), Coded: apijson.CodedOf(m)})
		})
	})
	if err != nil {
		return err
	}
	changes, err := h.o.Store.LastChange(ctx)
	if err != nil {
		return err
	}
	if err := out.line(apijson.Verified{Done: true, Wrong: &wrong, Changes: &changes}); err != nil {
		return err
	}
	return out.flush()
}

// check calls report for all that is wrong: with what the store keeps, and with what
// the registrar made of it; and note for names that would not be accepted today.
func (h *Handler) check(ctx context.Context, report, note func(*stele.Message)) error {
	wrong := 0
	err := h.o.Store.Verify(ctx, func(problem *stele.Message) {
		wrong++
		report(problem)
	})
	if err != nil || wrong > 0 { // a registry that can't be read can't be judged
		return err
	}
	if err := h.o.Registrar.VerifyAll(ctx, registrar.Verification{Problem: report, Note: note}); err != nil || h.o.Transparency == nil {
		return err
	}
	return h.o.Transparency.VerifyLog(ctx, report)
}

func (h *Handler) checkOperations() []operation {
	return []operation{{
		name: "checkNamespace", method: http.MethodPost, path: "check/{prefix}", group: "Namespaces", tail: prefixInPath,
		summary: "List the records that the rules of a namespace refuse",
		about: "Rules (hosts, protocols, check characters) are applied when a record is written, so a record can be older than a rule that it breaks. " +
			"All records are read, because a record of another namespace can have an alias in this one. " +
			"The answer has a line for each record that breaks a rule, lines that tell how many records were read, and one at its end.",
		asks: reader, scope: auth.ScopeRead,
		answers: []answer{{status: 200, about: "The records, and at the end whether all were read.", value: apijson.Breach{}, media: apijson.Lines, lines: true}},
		fails:   []int{404},
		serve:   h.checkNamespace,
	}}
}

// readEvery is after how many records a check reports its progress.
const readEvery = 10_000

// checkNamespace checks a namespace, for one caller at a time: it reads everything.
func (h *Handler) checkNamespace(c *call) error {
	ns, err := h.namespace(c)
	if err != nil {
		return err
	}
	if !h.duties.verify.TryLock() {
		return busy(c, "the registry is being checked already")
	}
	defer h.duties.verify.Unlock()
	_, stop := c.running()
	defer stop()
	out, found, read := c.stream(apijson.Lines), 0, 0
	err = c.attend(out, func(ctx context.Context, tell func(line any)) error {
		progress := func(n int) {
			if read = n; n%readEvery == 0 {
				tell(apijson.Breach{Read: n})
			}
		}
		for b, err := range h.o.Registrar.CheckRules(ctx, ns.Key(), progress) {
			if err != nil {
				return err
			}
			found++
			tell(apijson.Breach{ID: b.ID.String(), Version: b.Version, Problems: apijson.FaultsOf(b.Problems), Read: read})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := out.line(apijson.Breach{Done: true, Found: &found, Read: read}); err != nil {
		return err
	}
	return out.flush()
}
