package api

import (
	"context"
	"net/http"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
)

// breachDocument is a line of what a check of a namespace found. One that has only
// read says that the check goes on.
type breachDocument struct {
	ID       string          `json:"id,omitempty" doc:"The record." example:"ark:12345/x5b"`
	Version  uint64          `json:"version,omitempty" doc:"Its version."`
	Problems []faultDocument `json:"problems,omitempty" doc:"The rules that it breaks."`
	Read     int             `json:"read,omitempty" doc:"How many records were read so far."`
	Done     bool            `json:"done,omitempty" doc:"This is the last line: all records were read."`
	Found    *int            `json:"found,omitempty" doc:"How many records break a rule."`
}

func (h *Handler) checkOperations() []operation {
	return []operation{{
		name: "checkNamespace", method: http.MethodPost, path: "check/{prefix}", group: "Namespaces", tail: prefixInPath,
		summary: "List the records that the rules of a namespace would refuse",
		about: "Rules (hosts, protocols, check characters) are applied when a record is written, so a record can be older than a rule that it breaks. " +
			"All records are read, because a record of another namespace can have an alias in this one. " +
			"The answer has a line for each record that breaks a rule, lines that tell how many records were read, and one at its end.",
		asks: reader, scope: auth.ScopeRead,
		answers: []answer{{status: 200, about: "The records, and at the end whether all were read.", value: breachDocument{}, media: linesType, lines: true}},
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
	out, found, read := c.stream(linesType), 0, 0
	err = c.attend(out, func(ctx context.Context, tell func(line any)) error {
		progress := func(n int) {
			if read = n; n%readEvery == 0 {
				tell(breachDocument{Read: n})
			}
		}
		for b, err := range h.o.Registrar.CheckRules(ctx, ns.Key(), progress) {
			if err != nil {
				return err
			}
			found++
			tell(breachDocument{ID: b.ID.String(), Version: b.Version, Problems: faultDocuments(b.Problems), Read: read})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := out.line(breachDocument{Done: true, Found: &found, Read: read}); err != nil {
		return err
	}
	return out.flush()
}

// faultDocuments returns problems as their reader sees them.
func faultDocuments(problems stele.Problems) (list []faultDocument) {
	for _, f := range problems {
		list = append(list, faultDocument{legible(f.Path), legible(f.Err.Error()), codedOf(f.Err)})
	}
	return list
}
