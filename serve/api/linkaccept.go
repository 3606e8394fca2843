package api

import (
	"iter"
	"net/http"
	"strings"

	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/bulk"
	"github.com/stele-id/stele/document/apijson"
)

func (h *Handler) linkAcceptOperations() []operation {
	return []operation{{
		name: "acceptMoved", method: http.MethodPost, path: "acceptmoved", group: "Link checks",
		summary: "Give targets the addresses to which they have moved",
		about: "Send it without expect first: the answer says what would change, and nothing is written. Send it with the digest of this answer then. If other targets have moved meanwhile, nothing is written, and the answer is 409. " +
			"A target changes only if it still has the address that was checked. At most 10,000 targets change at once; send the request again for others. " +
			"What was written has the number of an import, and revertImport undoes it.",
		asks: reader, scope: auth.ScopeWrite,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.LinkAcceptance{}, example: `{"prefix":"ark:12345","host":"old.example.org"}`},
		answers: []answer{{status: 200, about: "What became of each record, and at the end of all.", value: apijson.Replaced{}, media: apijson.Lines, lines: true}},
		fails:   []int{403, 404, 409},
		serve:   h.acceptMoved,
	}}
}

// acceptMoved gives targets the addresses to which they moved, or tells what that would do.
func (h *Handler) acceptMoved(c *call) error {
	var want apijson.LinkAcceptance
	if err := c.decode(&want); err != nil {
		return err
	}
	key, err := h.o.Registrar.ParsePrefix(want.Prefix)
	if err != nil {
		return amiss(c, "prefix", err)
	}
	ctx, stop := c.running()
	defer stop()
	host := strings.ToLower(strings.TrimSpace(want.Host))
	moves, _, err := bulk.Moves(host, func(after string) iter.Seq2[apijson.LinkFinding, error] {
		return h.o.Links.FindingsOf(ctx, key, bulk.MovedAt(host), after)
	})
	if err != nil {
		return err
	}
	answer := &replacing{c: c}
	mover := &bulk.Mover{Registrar: h.o.Registrar, Schemes: h.o.Schemes, Pace: answer.pace}
	var counts bulk.ReplaceCounts
	if want.Digest == "" {
		counts, err = mover.Judge(ctx, moves, answer.tell)
	} else {
		counts, err = mover.Run(ctx, host, moves, want.Digest, answer.tell)
	}
	return answer.end(counts, err)
}
