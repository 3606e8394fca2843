package api

import (
	"context"
	"net/http"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/registrar"
)

// verifiedDocument is a line of what was found. An empty one says that it goes on.
type verifiedDocument struct {
	Problem string  `json:"problem,omitempty" doc:"Something that is wrong."`
	Note    string  `json:"note,omitempty" doc:"A name that is kept as it was written, and that would not be accepted today. Nothing is damaged there."`
	Done    bool    `json:"done,omitempty" doc:"This is the last line: all was looked at."`
	Wrong   *int    `json:"wrong,omitempty" doc:"How many problems there are."`
	Changes *uint64 `json:"changes,omitempty" doc:"How many changes the registry has."`
}

func (h *Handler) verifyOperations() []operation {
	return []operation{{
		name: "verify", method: http.MethodPost, path: "verify", group: "Running the server",
		summary: "Check that the registry is whole",
		about: "All that the registry keeps is read, which takes a while, and held against each other: files, records, histories, indexes, counts, the list of changes, prefixes and minters. " +
			"The answer has a line for each thing that is wrong, one at its end, and an empty object now and then meanwhile.",
		asks: administrator, scope: auth.ScopeBackup,
		answers: []answer{{status: 200, about: "What is wrong, and at the end whether all was looked at.", value: verifiedDocument{}, media: linesType, lines: true}},
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
	out, wrong := c.stream(linesType), 0
	err := c.attend(out, func(ctx context.Context, tell func(line any)) error {
		problem := func(text string) {
			wrong++
			tell(verifiedDocument{Problem: legible(text)})
		}
		return h.check(ctx, problem, func(note string) { tell(verifiedDocument{Note: legible(note)}) })
	})
	if err != nil {
		return err
	}
	changes, err := h.o.Store.LastChange(ctx)
	if err != nil {
		return err
	}
	if err := out.line(verifiedDocument{Done: true, Wrong: &wrong, Changes: &changes}); err != nil {
		return err
	}
	return out.flush()
}

// check calls report for all that is wrong: with what the store keeps, and with what
// the registrar made of it; and note for names that would not be accepted today.
func (h *Handler) check(ctx context.Context, report, note func(text string)) error {
	wrong := 0
	err := h.o.Store.Verify(ctx, func(problem string) {
		wrong++
		report(problem)
	})
	if err != nil || wrong > 0 { // a registry that can't be read can't be judged
		return err
	}
	return h.o.Registrar.VerifyAll(ctx, registrar.Verification{Problem: report, Note: note})
}
