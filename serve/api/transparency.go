package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stele-id/stele"
	"github.com/stele-id/stele/auth"
	"github.com/stele-id/stele/document/apijson"
	"github.com/stele-id/stele/transparency"
)

// Log is the transparency log of the registry. The principal is in the context.
type Log interface {
	// Prove makes the proof of a version of a record, as far as the principal may see it; with full of the whole document,
	// Forbidden if the principal may not see that. The version is that which was current at a time if that is not zero, and
	// the current one if the number is zero too.
	Prove(ctx context.Context, name stele.ID, version uint64, at time.Time, full bool) (*transparency.Proof, error)

	LogStatus(ctx context.Context) (apijson.Log, error)

	// RollLogKey makes a new key that signs together with those before it, for an overlap. RetireLogKeys ends the overlap.
	RollLogKey(ctx context.Context, overlap time.Duration) (*transparency.Keys, error)
	RetireLogKeys(ctx context.Context) (*transparency.Keys, error)

	// VerifyLog checks the log against the registry.
	VerifyLog(ctx context.Context, report func(*stele.Message)) error
}

func (h *Handler) transparencyOperations() []operation {
	if h.o.Transparency == nil {
		return nil
	}
	const group = "Transparency log"
	return []operation{{
		name: "getProof", method: http.MethodGet, path: "proof/{id}", group: group, tail: identifier,
		summary: "Prove what a record said",
		about: "The answer is a text file: the document of a version, its salt, the path from its leaf to the root of the log, and the signed root with co-signatures. Readers check it offline, with the public key of the log, as 'stele log check' does. " +
			"It proves that the registry said this, and when it was committed; dates in the document are not proved. " +
			"Whom getRecord does not show a version gets the same answer here; of a version whose content is withheld from the caller, the proof has the entry alone. " +
			"A version that no checkpoint has yet is answered with 503: try again in a moment.",
		asks: anyone, scope: auth.ScopeRead,
		query: []parameter{
			{name: "version", kind: numberKind, min: 1, about: "this version instead of the last one", example: "1"},
			{name: "at", kind: momentKind, about: "the version that was current then", example: "2030-01-01T00:00:00Z"},
			{name: "full", kind: flagKind, usual: "false", about: "the whole document, with what the public does not see; for users with a role in the namespace"},
		},
		answers: []answer{{status: 200, about: "The proof.", media: proofType}},
		fails:   []int{403, 404},
		gathers: true,
		serve:   h.getProof,
	}, {
		name: "getLog", method: http.MethodGet, path: "log", group: group,
		summary: "Show how the transparency log is",
		asks:    anyone, scope: anyScope,
		answers: []answer{{status: 200, about: "How it is, and its public keys.", value: apijson.Log{}}},
		serve:   h.getLog,
	}, {
		name: "changeLogKeys", method: http.MethodPost, path: "log", group: group,
		summary: "Roll or retire the key of the transparency log",
		about:   "Publish the new key where readers of proofs find it, before the overlap ends: checkpoints then have the signature of the new key alone.",
		asks:    administrator, scope: auth.ScopeAdmin,
		body:    &body{media: []string{apijson.JSON}, limit: maxBody, value: apijson.LogKeyChange{}, example: `{"do":"roll","overlap":2592000}`},
		answers: []answer{{status: 200, about: "How the log is now.", value: apijson.Log{}}},
		fails:   []int{404},
		serve:   h.changeLogKeys,
	}}
}

// proofType is the media type of proofs.
const proofType = "text/plain; charset=utf-8"

// getProof proves a version of a record.
func (h *Handler) getProof(c *call) error {
	id, err := c.id()
	if err != nil {
		return err
	}
	version, at := c.number("version"), c.moment("at")
	if version != 0 && !at.IsZero() {
		return invalidf("request.version-and-at-given", "version and at are both given; keep one")
	}
	proof, err := h.o.Transparency.Prove(c.ctx, id, version, at, c.flag("full"))
	if err != nil {
		return h.meant(c, id, err)
	}
	text, err := proof.MarshalText()
	if err != nil {
		return err
	}
	c.write(http.StatusOK, proofType, text)
	return nil
}

// getLog shows how the log is.
func (h *Handler) getLog(c *call) error {
	status, err := h.o.Transparency.LogStatus(c.ctx)
	if err != nil {
		return err
	}
	return c.reply(http.StatusOK, status)
}

// changeLogKeys rolls or retires the key of the log.
func (h *Handler) changeLogKeys(c *call) error {
	var want apijson.LogKeyChange
	if err := c.decode(&want); err != nil {
		return err
	}
	var err error
	switch want.Do {
	case "roll":
		overlap := transparency.Overlap
		if want.Overlap != nil {
			overlap = time.Duration(min(*want.Overlap, 1<<32)) * time.Second
		}
		_, err = h.o.Transparency.RollLogKey(c.ctx, overlap)
	case "retire":
		_, err = h.o.Transparency.RetireLogKeys(c.ctx)
	default:
		err = invalidf("log.key-change-unknown", `"{change}" is not done to a key of the log; roll and retire are`, want.Do)
	}
	if err != nil {
		return err
	}
	return h.getLog(c)
}
